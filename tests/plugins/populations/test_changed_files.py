"""Files that are not what they were when a run began fail the whole question, wherever they are read."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from cloister.core.errors import InvalidInput
from cloister.plugins.populations.files import Files
from cloister.rows.workers.engine import Engine
from tests.rows.workers.engine_rows import NAMES, answers, some_rows, write


def vanish(path: Path) -> None:
    path.unlink()


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-200])


def other_columns(path: Path) -> None:
    pyarrow.parquet.write_table(pa.table({"x": [0.5], "z": [0.5]}), path)


def text(path: Path) -> None:
    pyarrow.parquet.write_table(pa.table({"x": [0.5], "y": ["secret"]}), path)


def more_rows(path: Path) -> None:
    write(path, some_rows(301))


def replaced(path: Path) -> None:
    """By another file of the same cells and times."""
    aside, facts = path.with_suffix(".aside"), path.stat()
    aside.write_bytes(path.read_bytes())
    os.replace(aside, path)
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))


CHANGES = (vanish, cut, other_columns, text, more_rows)
CASES = [
    *(("serial", change, when) for change in (*CHANGES, replaced) for when in ("before", "while it lasts")),
    *(
        pytest.param(name, change, when, marks=pytest.mark.thorough)
        for name in NAMES
        for change, when in ((vanish, "before"), (cut, "while it lasts"), (text, "before"), (more_rows, "before"))
    ),
]


@pytest.mark.parametrize(("name", "change", "when"), CASES)
def test_a_file_that_is_not_what_it_was_fails_the_whole_question(
    name: str, change: Callable[[Path], None], when: str, shared: dict[str, Engine], many: list[Path]
) -> None:
    done: list[int] = []

    def tell(rows: int) -> None:
        if not done:
            change(many[7])
        done.append(rows)

    population = Files(many, "*", engine=shared[name], progress=tell if when == "while it lasts" else None)
    population.check()
    if when == "before":
        change(many[7])
    reason = "cannot be opened: No such file" if change is vanish else "is not what it was when this run began"
    with pytest.raises(InvalidInput, match=rf"part-07\.parquet' {reason}") as caught:
        answers(population)
    assert "secret" not in str(caught.value)


@pytest.mark.thorough
@pytest.mark.parametrize("name", NAMES)
def test_workers_refuse_missing_cells_and_damaged_files_as_one_process_does(
    name: str, shared: dict[str, Engine], many: list[Path], tmp_path: Path
) -> None:
    rows = some_rows(300)
    rows[77, 1] = np.nan
    write(many[4], rows)
    damaged, bad = bytearray(many[3].read_bytes()), tmp_path / "bad.csv"
    damaged[100:1500] = bytes(1400)
    many[3].write_bytes(damaged)
    bad.write_bytes(b"x,y\n" + b"1,2\n" * 4000 + b"secret-314159,3\n")
    for paths, said in (
        ([many[4]], "some cells are missing or infinite"),
        ([many[3]], r"part-03\.parquet' cannot be read: it is damaged, cut short, or not"),
        ([bad], r"bad\.csv' .*column 'x' does not hold numbers"),
    ):
        with pytest.raises(InvalidInput, match=said) as caught:
            Files(paths, "*", engine=shared[name]).check()
        assert "314159" not in str(caught.value)
