"""Files that are not what they were when a run began fail the whole question, wherever they are read."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from cloister.accounting.ledger.ledger import Ledger
from cloister.core.errors import InvalidInput
from cloister.plugins.populations.files import Files
from cloister.rows.workers.engine import Engine
from cloister.run.account import Account
from cloister.run.fit import fit
from cloister.run.request import Request
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


CHANGES = (vanish, cut, other_columns, text, more_rows)


@pytest.mark.parametrize("name", ["serial", *NAMES])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("when", ["before", "while it lasts"])
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


@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_was_damaged_before_fails_the_check(
    name: str, shared: dict[str, Engine], many: list[Path], tmp_path: Path
) -> None:
    whole = bytearray(many[3].read_bytes())
    whole[100:1500] = bytes(1400)
    many[3].write_bytes(whole)
    with pytest.raises(InvalidInput, match=r"part-03\.parquet' cannot be read: it is damaged, cut short, or not"):
        Files(many, "*", engine=shared[name]).check()
    bad = tmp_path / "bad.csv"
    bad.write_bytes(b"x,y\n" + b"1,2\n" * 4000 + b"secret-314159,3\n")
    with pytest.raises(InvalidInput, match=r"bad\.csv' .*column 'x' does not hold numbers") as caught:
        Files(bad, "*", engine=shared[name]).check()
    assert "314159" not in str(caught.value)


def test_files_of_another_schema_are_refused_before_anybody_works(many: list[Path]) -> None:
    other_columns(many[5])
    with pytest.raises(InvalidInput, match=r"part-05\.parquet' has the columns x, z, the files before it x, y"):
        Files(many, "*", engine="processes")


@pytest.mark.parametrize("name", NAMES)
def test_missing_cells_are_refused_as_in_one_process(name: str, shared: dict[str, Engine], many: list[Path]) -> None:
    rows = some_rows(300)
    rows[77, 1] = np.nan
    write(many[4], rows)
    with pytest.raises(InvalidInput, match="some cells are missing or infinite") as caught:
        Files(many, "*", engine=shared[name]).check()
    assert not any(c.isdigit() for c in str(caught.value))
    dropping = Files(many, "*", missing="drop", engine=shared[name])
    dropping.check()
    assert answers(dropping) == answers(Files(many, "*", missing="drop"))


def test_a_run_whose_file_vanishes_keeps_its_reservation_and_is_resumed(
    shared: dict[str, Engine], many: list[Path], tmp_path: Path
) -> None:
    ledger = Ledger.open(tmp_path / "ledger", create=True)
    ledger.declare("people", 1.0, 0.0, "basic")
    request = Request(k=2, method="su-lloyd", epsilon=1.0, bounds=(-1.0, 1.0), rows=4000)
    account, kept, saved = Account(ledger=tmp_path / "ledger", dataset="people"), many[7].read_bytes(), list[Any]()

    def run(account: Account, progress: Any = None) -> Any:
        return fit(
            request, Files(many, "*", engine=shared["processes"], progress=progress), account=account, keep=saved.append
        )

    cut(many[7])
    with pytest.raises(InvalidInput, match="cannot be read"):
        run(account)
    assert not ledger.status()[0].runs, "the check failed, so nothing was reserved"
    many[7].write_bytes(kept)
    facts = many[7].stat()
    with pytest.raises(InvalidInput, match="cannot be opened"):
        run(account, lambda _: many[7].unlink(missing_ok=True))
    (reserved,) = ledger.status()[0].runs
    assert (reserved.state, reserved.epsilon, saved) == ("open", 1.0, [])
    many[7].write_bytes(kept)
    os.utime(many[7], ns=(facts.st_atime_ns, facts.st_mtime_ns))
    run(Account(ledger=tmp_path / "ledger", dataset="people", resume=reserved.id))
    (done,) = ledger.status()[0].runs
    assert done.state != "open"
    assert (done.epsilon, len(saved)) == (1.0, 1)
