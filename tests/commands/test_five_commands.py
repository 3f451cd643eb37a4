"""From nothing to a report in a browser: the tutorial's five commands, as a newcomer runs them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow.parquet as pq
import pytest

from cloister.run.result import Result
from tests.commands.test_report import CHROMIUM, browsed
from tests.docs.pages import blocks, commands
from tests.in_process import cloister
from tests.showing.report.pages import Page

PAGE = "docs/tutorial/first_clusters.md"
ASKED = ("data make", "fit", "profile", "report", "predict")
CliOption: TypeAlias = tuple[Path, dict[str, subprocess.CompletedProcess[str]]]
"""The folder that was empty, and what each command said."""

CATEGORIES = ["ward=medical", "ward=surgical", "ward=children"]
NUMBERS = ["age", "systolic", "heart_rate", "creatinine", "stay", "weight", "temperature", "glucose"]


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> CliOption:
    """The folder that was empty, and what each command said."""
    folder = tmp_path_factory.mktemp("newcomer")
    lines = [line for block in blocks(PAGE) if block.language == "sh" for line in commands(block.text)]
    found = {}
    for name in ASKED:
        (line,) = (line for line in lines if line.startswith(f"cloister {name} "))
        found[name] = cloister(*line.split()[1:], folder=folder)
        assert found[name].returncode == 0, found[name].stderr
    return folder, found


def test_the_fit_says_what_it_uses_shows_every_column_and_the_promise(said: CliOption) -> None:
    out, err = said[1]["fit"].stdout, said[1]["fit"].stderr
    assert f"columns used: ward (category), {', '.join(NUMBERS)}; left out: mrn (" in err
    assert "visit (" in err
    rows = dict[str, list[str]]()  # of all tables below one another
    for line in out[: out.rindex("└")].splitlines():
        name, *cells = line.strip("│").split("│")
        rows.setdefault(name.strip(), []).extend(cells)
    assert [name for name in rows if name in {*CATEGORIES, *NUMBERS}] == [*CATEGORIES, *NUMBERS]
    assert {len(rows[name]) for name in ("rows (noisy)", *CATEGORIES, *NUMBERS)} == {7}
    assert all("±" in cell for name in ("rows (noisy)", *CATEGORIES, *NUMBERS) for cell in rows[name])
    assert all(0 <= float(age.partition("±")[0]) <= 120 for age in rows["age"])
    assert "(add-or-remove one row) epsilon = 1, delta = 1e-07, Central trust" in out
    warned = [line for line in (out + err).splitlines() if "WARNING" in line]
    assert all("were clipped" in line for line in warned)  # which columns zoom cuts, the noise decides
    assert out.endswith("saved to groups.json\n")


def test_the_profile_says_in_words_what_sets_each_group_apart(said: CliOption) -> None:
    out = said[1]["profile"].stdout
    children = re.search(r"ward\s+│ +children +([\d.]+)% ± ([\d.]+)%", out)
    assert children is not None
    share, error = map(float, children.groups())
    assert share + 3 * error >= 90  # all of them, but for the noise of a centre
    said = re.search(r"[\d,]+ ± \d+ │ +1\d\.\d+% ± [\d.]+% │ .*ward mostly children", out)
    assert (said is not None) == (share - 2 * error > 50)  # a run with little luck states a large error
    assert out.count("± ") > 7 * len(NUMBERS)
    assert "7 clusters, from released values alone" in out
    assert re.search(r"silhouette: 0\.\d+ ± 0\.\d+", out)


def test_the_report_has_all_groups_and_no_row(said: CliOption) -> None:
    folder, found = said
    assert found["report"].stdout == "saved to groups.html: open it in a browser\n"
    text = (folder / "groups.html").read_text("utf-8")
    page = Page(text)
    assert page.cards() == 7
    assert ("ward mostly children" in re.sub(r"\s+", " ", page.text)) == (
        "mostly children" in re.sub(r"[\s│]+", " ", found["profile"].stdout)
    )
    ids = [line.split(",", 1)[0] for line in (folder / "patients.csv").read_text().splitlines()[1:]]
    assert not set(ids) & set(re.findall(r"P\d{7}", text))


def test_labels_are_said_not_to_be_private_and_stand_beside_the_patients_numbers(said: CliOption) -> None:
    folder, found = said
    assert "NOT private" in found["predict"].stdout + found["predict"].stderr
    labels = pq.read_table(folder / "labels.parquet").to_pydict()
    assert len(labels["mrn"]) == 20_000
    assert 1 < len(set(labels["cluster"]) & set(range(7))) == len(set(labels["cluster"]))
    wards = [line.split(",")[2] for line in (folder / "patients.csv").read_text().splitlines()[1:]]
    result = Result.load(folder / "groups.json")
    children = np.flatnonzero(result.centers[:, result.columns.index("ward=children")] > 0.5)
    alike = np.equal([ward == "children" for ward in wards], np.isin(labels["cluster"], children))
    assert alike.mean() > 0.99  # 0.9986 and more in twelve fits


@pytest.mark.thorough
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
def test_a_browser_shows_every_group(said: CliOption, tmp_path: Path) -> None:
    done = browsed(said[0] / "groups.html", tmp_path)
    assert [done.stdout.count(f"Cluster <bdi>{i}<") for i in range(7)] == [1] * 7
    assert done.stdout.count("<circle") >= 7 * len(NUMBERS)
    assert "CONSOLE" not in done.stderr
