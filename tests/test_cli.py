"""The command line, run as a user runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cloister.core.registry.components import Spec
from cloister.core.registry.registry import Plugin, Registry
from cloister.run.result import Result
from tests.in_process import ran, refused

GOLDEN = Path(__file__).parent / "golden"
BASE = "-k 3 --epsilon 1 --delta 1e-6 --bounds=-1:1 --rows 1000"


@pytest.fixture(autouse=True)
def _as_wide_as_golden_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = np.random.default_rng(0).normal(0, 0.3, (1000, 2))
    np.save(tmp_path / "rows.npy", rows)
    pq.write_table(pa.table({"x": rows[:, 0], "y": rows[:, 1], "name": ["a"] * 1000}), tmp_path / "rows.parquet")
    return tmp_path


@pytest.mark.parametrize(
    "name", ["list", "list FrequencyOracle", "describe discrete-laplace", "describe fastlloyd", "plugins"]
)
def test_what_it_prints_is_what_it_printed(name: str) -> None:
    done = ran(name)
    assert done.stderr == ""
    golden = GOLDEN / f"{name.replace(' ', '-')}.txt"
    if os.environ.get("CLOISTER_GOLDEN") == "write":
        golden.write_text(done.stdout)
    assert done.stdout == golden.read_text(), "set CLOISTER_GOLDEN=write to accept the new text"


def test_an_oracle_that_is_biased_is_described_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """And no other: see the text of discrete-laplace."""
    spec = Spec("clamped", "FrequencyOracle", "tests.testing.zoo_noise:Clamped", "counts", "Central")
    installed = Registry((Plugin("zoo", "here", (spec,)),))
    for module in ("making", "records"):  # which keep the registry that they import
        import_module(f"cloister.core.registry.{module}")
    monkeypatch.setattr("cloister.core.registry.registry.registry", lambda: installed)
    assert "\nbiased: released values may be off" in ran("describe clamped").stdout
    assert json.loads(ran("describe clamped --json").stdout)[0]["biased"] is True


def test_help_and_list_import_nothing_heavy() -> None:
    code = (
        "import sys; import cloister.cli\n"
        "for word in ('--help', 'list'):\n"
        "    sys.argv = ['cloister', word]\n"
        "    try: cloister.cli.main()\n"
        "    except SystemExit: pass\n"
        "heavy = 'numpy', 'scipy', 'sklearn', 'opendp', 'pyarrow', 'pandas'\n"
        "print([m for m in heavy if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
    assert "Usage" in done.stdout
    assert "fastlloyd" in done.stdout


def test_fit_saves_and_prints_released_values_only(folder: Path) -> None:
    told = ran(f"fit rows.parquet {BASE} --columns x,y --out result.json", folder).stdout
    assert "epsilon = 1, Central trust" in told
    result = Result.load(folder / "result.json")
    assert (result.columns, result.centers.shape) == (("x", "y"), (3, 2))
    saved = set(json.loads((folder / "result.json").read_text())["result"])
    released = {"columns", "centers", "weights", "method", "problem", "privacy", "details"}
    assert saved == {"format", "version", *released}, "a new one is looked at: is it released?"


def test_no_word_of_a_fit_tells_that_rows_were_clipped_or_dropped(folder: Path) -> None:
    np.save(folder / "holes.npy", np.vstack([np.load(folder / "rows.npy"), [[np.nan, 0.1]]]))
    for rows in ("rows.npy", "holes.npy"):
        asked = "--method fastlloyd --zoom off --bounds=-0.01:0.01 --missing drop --json"
        done = ran(f"fit {rows} {BASE} {asked}", folder)
        assert done.stderr == ""
        assert np.abs(json.loads(done.stdout)["centers"]).max() <= 0.01


def test_a_config_file_carries_the_same_options_and_flags_win(folder: Path) -> None:
    (folder / "bounds.toml").write_text("x = [-1, 1]\ny = [-2, 2]\n")
    (folder / "run.toml").write_text(
        'k = 2\nmethod = "fastlloyd"\nepsilon = 0.5\ndelta = 1e-6\nbounds = "bounds.toml"\nrows = 1000\n'
        'columns = ["x", "y"]\n[set]\nrounds = 3\nborder = "truncate"\n'
    )
    asked = "-k 4 --rows 2e3 --with counts=discrete-laplace --json --out r.npz"
    result = json.loads(ran(f"fit rows.parquet --config run.toml {asked}", folder).stdout)
    assert result == Result.load(folder / "r.npz").as_dict()
    problem, method = result["problem"], result["method"]
    assert (problem["k"], problem["rows"], problem["bounds"]["lower"]) == (4, 2000, [-1.0, -2.0])
    assert (method["name"], method["options"]["rounds"], method["options"]["border"]) == ("fastlloyd", 3, "truncate")
    assert result["privacy"]["epsilon"] == 0.5
    assert {s["mechanism"] for s in result["privacy"]["spends"]} == {"discrete-laplace", "discrete-gaussian"}


def test_centres_without_column_names_are_evaluated_on_files_that_have_them(folder: Path) -> None:
    """Plans may say how many columns there are, and not what they are called."""
    ran(f"fit rows.npy {BASE} --out unnamed.json", folder)
    assert "which columns? There are x (numbers), y" in refused("evaluate unnamed.json rows.parquet", folder)
    named = ran("evaluate unnamed.json rows.parquet --columns x,y --json", folder).stdout
    assert json.loads(named) == json.loads(ran("evaluate unnamed.json rows.npy --json", folder).stdout)


@pytest.mark.parametrize(("options", "trust"), [("", "Central"), ("--federated", "Aggregated")])
def test_demo_shows_four_costs_and_the_statement(options: str, trust: str) -> None:
    shown = json.loads(ran(f"demo {options} --json").stdout)
    costs, privacy = list(shown["costs"].values()), shown["result"]["privacy"]
    assert len(costs) == 4
    assert costs[0] < costs[1] < costs[3]
    assert (privacy["trust"], privacy["simulated"], privacy["private"]) == (trust, bool(options), True)


def test_files_of_parties_are_pooled_in_one_process(folder: Path) -> None:
    rows = np.load(folder / "rows.npy")
    for name, part in (("north", rows[::2]), ("south", rows[1::2])):
        np.save(folder / f"{name}.npy", part)
    asked = f"{BASE} --pooled --json --method hst-means"
    privacy = json.loads(ran(f"fit north.npy south.npy {asked}", folder).stdout)["privacy"]
    assert (privacy["trust"], privacy["simulated"], privacy["private"]) == ("Aggregated", True, True)
    assert "was given twice" in refused(f"fit north.npy north.npy {asked}", folder)
