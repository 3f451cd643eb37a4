"""``cloister profile``, run as a user runs it: it sees a result's file and no rows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.in_process import cloister

FIT = ("-k", "2", "--epsilon", "1", "--delta", "1e-6", "--bounds=-1:1", "--rows", "1000", "--seed", "1")


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a result; the rows are gone."""
    folder = tmp_path_factory.mktemp("profiled")
    g = np.random.default_rng(0)
    rows = np.where(g.random((1000, 1)) < 0.3, -0.5, 0.5) + g.normal(0, 0.12, (1000, 2))
    np.savetxt(folder / "rows.csv", rows, delimiter=",", header="age,glucose", comments="")
    done = cloister("fit", "rows.csv", *FIT, "--columns", "age,glucose", "--out", "r.json", folder=folder)
    assert done.returncode == 0, done.stderr
    (folder / "rows.csv").unlink()
    return folder


def test_it_prints_sizes_centres_and_figures_with_their_errors(fitted: Path) -> None:
    done = cloister("profile", "r.json", folder=fitted)
    assert done.returncode == 0
    assert "age low" in done.stdout
    assert "silhouette: 0." in done.stdout
    assert done.stdout.count("\u00b1") >= 2 + 4 + 2
    assert "is one standard error" in done.stdout


def test_its_json_is_the_profile_of_the_file(fitted: Path) -> None:
    found = json.loads(cloister("profile", "r.json", "--json", folder=fitted).stdout)
    low = min(found["clusters"], key=lambda cluster: cluster["center"][0])
    assert abs(low["size"] - 300) <= 4 * low["size_error"] < 200
    assert set(low["apart"]) == {"age low", "glucose low"}
    assert found["silhouette"]["error"] > 0


def test_a_file_that_is_no_result_is_refused_in_one_line(fitted: Path) -> None:
    (fitted / "other.json").write_text("{}")
    done = cloister("profile", "other.json", folder=fitted)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1


def test_a_result_of_a_method_that_states_no_errors_has_sizes_without_them(fitted: Path) -> None:
    data = json.loads((fitted / "r.json").read_text())["result"]
    data["details"] = {}
    (fitted / "bare.json").write_text(json.dumps(data))
    done = cloister("profile", "bare.json", folder=fitted)
    assert done.returncode == 0
    assert "Standard errors are not known" in done.stdout


def test_names_of_columns_print_as_they_are(fitted: Path) -> None:
    """Untrusted text: no markup, no control characters."""
    data = json.loads((fitted / "r.json").read_text())["result"]
    data["columns"] = ["price [/m2]", "a\x1b[31mb"]
    (fitted / "odd.json").write_text(json.dumps(data))
    done = cloister("profile", "odd.json", folder=fitted)
    assert done.returncode == 0
    assert "price [/m2]" in done.stdout
    assert "\x1b" not in done.stdout
