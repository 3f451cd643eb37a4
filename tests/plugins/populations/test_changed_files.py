"""Files that are not what they were when a run began fail the whole question, wherever they are read."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cloister.core.errors import InvalidInput
from cloister.plugins.populations.files import Files
from cloister.rows.options import Reading
from cloister.rows.workers.engine import Engine
from tests.rows.stored import stored
from tests.rows.workers.engine_rows import NAMES, answers, some_rows, write


def replaced(path: Path) -> None:
    """By another file of the same cells and times."""
    aside, facts = path.with_suffix(".aside"), path.stat()
    aside.write_bytes(path.read_bytes())
    os.replace(aside, path)
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))


CHANGES: dict[str, Callable[[Path], Any]] = {
    "gone": Path.unlink,
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-200]),
    "other columns": lambda path: stored(pa.table({"x": [0.5], "z": [0.5]}), path),
    "text": lambda path: stored(pa.table({"x": [0.5], "y": ["secret"]}), path),
    "more rows": lambda path: write(path, some_rows(301)),
    "replaced": replaced,
}
CASES = [
    *(("serial", change, when) for change in CHANGES for when in ("before", "while it lasts")),
    *(
        pytest.param(name, change, when, marks=pytest.mark.thorough)
        for name in NAMES
        for change, when in (("gone", "before"), ("cut", "while it lasts"), ("text", "before"), ("more rows", "before"))
    ),
]


@pytest.mark.parametrize(("name", "change", "when"), CASES)
def test_a_file_that_is_not_what_it_was_fails_the_whole_question(
    name: str, change: str, when: str, shared: dict[str, Engine], many: list[Path]
) -> None:
    done: list[int] = []

    def tell(rows: int) -> None:
        if not done:
            CHANGES[change](many[7])
        done.append(rows)

    population = Files(
        many, Reading(columns="*", progress=tell if when == "while it lasts" else None), engine=shared[name]
    )
    population.check()
    if when == "before":
        CHANGES[change](many[7])
    reason = "cannot be opened: No such file" if change == "gone" else "is not what it was when this run began"
    with pytest.raises(InvalidInput, match=rf"part-07\.parquet' {reason}") as caught:
        answers(population)
    assert "secret" not in str(caught.value)


def test_a_file_that_changes_after_it_was_read_while_others_are_read_fails_the_question(many: list[Path]) -> None:
    """Nobody opens it again in this round: it is looked at once more when all are read."""
    done = list[int]()

    def tell(rows: int) -> None:
        if not done:
            CHANGES["replaced"](many[0])
        done.append(rows)

    population = Files(many, Reading(columns="*", threads=1, progress=tell))
    population.check()
    with pytest.raises(InvalidInput, match=r"part-00\.parquet' is not what it was when this run began"):
        answers(population)
    assert len(done) == len(many)
