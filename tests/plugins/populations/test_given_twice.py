"""Rows that are given twice would count twice, and one person's row would move every count by two: refused, whatever
the second name is."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cloister.core.errors import InvalidInput
from cloister.plugins.populations.files import Files
from cloister.run.fit import parties, source
from tests.in_process import refused

ROWS = np.random.default_rng(0).uniform(-1, 1, (60, 2))


def linked(folder: Path) -> None:
    os.symlink("a.npy", folder / "b.npy")


def hard_linked(folder: Path) -> None:
    os.link(folder / "a.npy", folder / "b.npy")


def in_a_linked_folder(folder: Path) -> None:
    os.symlink(folder, folder / "again")


def mounted(folder: Path) -> None:
    (folder / "again").mkdir()
    if subprocess.run(["mount", "--bind", folder, folder / "again"], capture_output=True, check=False).returncode:
        pytest.skip("this machine lets nobody mount")


WAYS: dict[str, tuple[Callable[[Path], None], list[str]]] = {
    "the same path": (lambda folder: None, ["a.npy", "./a.npy"]),
    "its path and a pattern": (lambda folder: None, ["a.npy", "*.npy"]),
    "a symbolic link beside it": (linked, ["a.npy", "b.npy"]),
    "a hard link": (hard_linked, ["*.npy"]),
    "a linked folder": (in_a_linked_folder, ["a.npy", "again/a.npy"]),
    "a bind mount": (mounted, ["a.npy", "again/a.npy"]),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    np.save(tmp_path / "a.npy", ROWS)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    if os.path.ismount(tmp_path / "again"):
        subprocess.run(["umount", tmp_path / "again"], check=True)


@pytest.mark.parametrize("way", WAYS)
def test_a_file_under_two_names_is_given_twice(folder: Path, way: str) -> None:
    made, paths = WAYS[way]
    made(folder)
    with pytest.raises(InvalidInput, match="was given twice: its rows would count twice"):
        Files(paths)
    if len(paths) == 2 and "*" not in paths[1]:
        with pytest.raises(InvalidInput, match=r"'south' has the same rows as 'north'.*would count twice"):
            parties(dict(zip(("north", "south"), map(source, paths), strict=True)))
        assert "given twice" in refused(
            f"fit {' '.join(paths)} --pooled -k 2 --epsilon 1 --delta 1e-6 --bounds=-1:1 --rows 100", folder
        )


def test_two_files_of_equal_rows_are_two(folder: Path) -> None:
    np.save(folder / "b.npy", ROWS)
    assert len(Files("*.npy").table()) == 2 * len(ROWS)
    parties({name: source(f"{name}.npy") for name in "ab"})


FRAME = pd.DataFrame(ROWS, columns=["x", "y"])
POPULATION = source(ROWS)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (POPULATION, POPULATION),
        (source(ROWS), source(ROWS)),
        (source(ROWS), source(ROWS[:])),
        (source(FRAME), source(FRAME, columns=["x", "y"])),
    ],
    ids=["one population", "one array", "a view of an array", "one frame"],
)
def test_a_pool_refuses_one_object_for_two_parties(one: Any, other: Any) -> None:
    with pytest.raises(InvalidInput, match="'b' has the same rows as 'a'"):
        parties({"a": one, "b": other})


def test_a_pool_takes_parts_of_an_array() -> None:
    assert len(parties({"a": source(ROWS[:30]), "b": source(ROWS[30:]), "c": source(ROWS.copy())}).parties) == 3


def test_a_pool_refuses_one_table_for_two_parties() -> None:
    ibis = pytest.importorskip("ibis")
    backend = ibis.duckdb.connect()
    backend.raw_sql("CREATE TABLE rows AS SELECT 0.5 AS x, 0.1 AS y")
    backend.raw_sql("CREATE TABLE others AS SELECT 0.5 AS x, 0.1 AS y")
    with pytest.raises(InvalidInput, match="'b' has the same rows as 'a'"):
        parties({name: source(backend.table("rows"), columns="*") for name in "ab"})
    parties({name: source(backend.table(name), columns="*") for name in ("rows", "others")})
