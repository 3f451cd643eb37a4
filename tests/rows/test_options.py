"""Options of rows: each is obeyed wherever it applies, and a resumed run compares those that decide what a row is."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.core.errors import InvalidInput
from cloister.rows.options import Reading, Where, options_of_rows
from cloister.rows.places import population_of

READERS: dict[Where, str] = {
    "memory": "plugins/populations/arrays.py",
    "files": "plugins/populations/files.py",
    "databases": "plugins/populations/sql_table.py, or rows/places.py, which opens it",
}
"""Files whose readers obey the options of rows of each place."""


def rows_in(where: Where, folder: Path) -> tuple[Any, Reading]:
    """Two columns of three rows, and how they are read."""
    if where == "memory":
        return np.zeros((3, 2)), Reading()
    if where == "files":
        np.save(folder / "rows.npy", np.zeros((3, 2)))
        return folder / "rows.npy", Reading()
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("ibis")
    with duckdb.connect(str(folder / "lake.db")) as lake:
        lake.execute("CREATE TABLE visits AS SELECT 1.0 AS x, 2.0 AS y")
    return f"duckdb:///{folder}/lake.db", Reading(table="visits", columns=["x", "y"])


@contextmanager
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """The names of fields that are read of any ``Reading`` meanwhile."""
    names, plain = set[str](), Reading.__getattribute__

    def watching(self: Reading, name: str) -> Any:
        names.add(name)
        return plain(self, name)

    with monkeypatch.context() as patched:
        patched.setattr(Reading, "__getattribute__", watching)
        yield names


@pytest.mark.parametrize("where", READERS)
def test_a_population_obeys_every_option_of_rows_that_applies_to_it(
    where: Where, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, reading = rows_in(where, tmp_path)
    with watched(monkeypatch) as names, population_of(rows, reading):
        pass
    declared = {name for name, option in options_of_rows().items() if option.only in (None, where)}
    assert declared - names == set(), f"declared in rows/options.py, and not obeyed by {READERS[where]}"


@pytest.mark.parametrize("where", READERS)
def test_an_option_of_another_place_is_refused_by_its_name(where: Where, tmp_path: Path) -> None:
    rows, _ = rows_in(where, tmp_path)
    for name, option in options_of_rows().items():
        if option.only not in (None, where):
            with pytest.raises(InvalidInput, match=name):
                population_of(rows, Reading(**{name: "x"}))


@pytest.mark.thorough
def test_an_option_of_rows_stands_in_three_places(tmp_path: Path) -> None:
    """Its declaration, the reader that obeys it and its test: what is asserted here follows by itself."""
    (tmp_path / "rows.csv").write_text("x,y\n" + "0,0\n" * 40, "utf-8")
    command = [sys.executable, "-m", "tests.rows.one_more_option", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["obeyed"] == ["Python", "flag", "config"]
    assert "Skip lines of CSV that begin with it." in seen["help"]
    assert "comment" in seen["elsewhere"]
    assert seen["compared"], "a run that resumes does not see that the option has changed"


def test_names_of_users_are_for_rows_in_memory_and_given_once(tmp_path: Path) -> None:
    rows, _ = rows_in("files", tmp_path)
    with pytest.raises(InvalidInput, match="named by one of their columns"):
        population_of(rows, Reading(users=["a", "b", "c"]))
    with pytest.raises(InvalidInput, match="users are named twice"):
        Reading(users=["a"], user_column="who")
    with pytest.raises(InvalidInput, match="give the column that has them as user_column"):
        Reading(users="who")
