"""The counter beside a ledger, played as whoever restores, edits, copies or kills: no older copy is taken for the
ledger, no sound one is refused, and nothing is given back but what asked nothing.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.accounting import Ledger, Run, Total
from cloister.accounting.ledger import counter
from cloister.accounting.ledger.counter import Counted, counter_of
from cloister.accounting.ledger.sqlite import Store
from cloister.core.errors import CloisterError, Damaged, Refused, UnknownName
from cloister.core.record import Lookup
from tests.killed import Killed

PURE = Total(0.25)
OLDER = r"lacks rounds or answers of run \w+.*, which book.db.count counted\): restore a backup that is not older than"


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    book = Ledger.open(tmp_path / "book.db", create=True)
    book.declare("people", 1.0)
    return book


def reserve(book: Ledger) -> Run:
    return book.reserve("people", PURE, PURE.measured(["pure"]), "plan", b"public seed")


def resumed(book: Ledger, run: str) -> Run:
    return book.resume(run, "people", "plan", same_rows=True)


def look(round: int = 0) -> Lookup:
    return Lookup(round, 0, 0, False, np.arange(2), np.ones(2))


def counted(book: Ledger) -> dict[str, Counted]:
    return counter.read(counter_of(book.path))


def edit(book: Ledger, statement: str) -> None:
    with closing(sqlite3.connect(book.path)) as db, db:
        db.execute(statement)


STEPS: list[Callable[[Run], None]] = [
    lambda run: run.open_round(0, "first"),
    lambda run: run.write(look()),
    lambda run: run.close_round(0),
    lambda run: run.open_round(1, "second"),
    lambda run: run.write(look(1)),
]
HARMLESS = 2
"""The step that releases nothing: what is lost with it is asked again from the record."""


# an older ledger


@pytest.mark.parametrize("step", range(len(STEPS)))
def test_a_backup_of_before_any_step_is_refused_and_one_of_after_it_is_not(ledger: Ledger, step: int) -> None:
    run, backup = reserve(ledger), ledger.path.with_name("backup")
    for do in STEPS[:step]:
        do(run)
    shutil.copy(ledger.path, backup)
    STEPS[step](run)
    now = ledger.path.read_bytes()
    shutil.copy(backup, ledger.path)
    if step == HARMLESS:
        resumed(ledger, run.id)
        return
    for use in (
        ledger.status,
        lambda: Ledger.open(ledger.path),
        lambda: Ledger.open(ledger.path, create=True),
        lambda: reserve(ledger),
        lambda: resumed(ledger, run.id),
        lambda: ledger.give_back(run.id),
        lambda: run.finish([]),
    ):
        with pytest.raises(Damaged, match=OLDER):
            use()
    ledger.path.write_bytes(now)
    resumed(ledger, run.id)


def test_a_backup_of_before_the_last_run_is_refused(ledger: Ledger) -> None:
    backup = ledger.path.read_bytes()
    reserve(ledger).finish()
    reserve(ledger)
    ledger.path.write_bytes(backup)
    with pytest.raises(Damaged, match=r"of run \w+ and of 1 more, which"):
        ledger.status()


def test_a_new_ledger_in_place_of_one_that_was_counted_is_refused(ledger: Ledger) -> None:
    """Its data set would have its whole lifetime again."""
    reserve(ledger)
    ledger.path.unlink()
    with pytest.raises(Damaged, match=OLDER):
        Ledger.open(ledger.path, create=True).declare("people", 1.0)
    assert not ledger.path.exists()


@pytest.mark.parametrize("lost", ["rounds", "looks", "runs"])
def test_a_ledger_whose_entries_were_deleted_is_refused(ledger: Ledger, lost: str) -> None:
    run, other = reserve(ledger), reserve(ledger)
    for do in STEPS[:2]:
        do(run)
    edit(ledger, f"delete from {lost}")
    for one in (run.id, other.id):
        with pytest.raises(Damaged, match=OLDER):
            ledger.give_back(one)


def test_a_ledger_that_is_swapped_between_its_commit_and_its_count_lowers_no_counter(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = reserve(ledger)
    STEPS[0](run)
    backup, opened, transaction = ledger.path.read_bytes(), [0], Store.transaction
    STEPS[1](run)
    before = counted(ledger)

    def swapped(store: Store, *given: Any) -> AbstractContextManager[sqlite3.Connection]:
        opened[0] += 1
        if opened[0] == 2:
            ledger.path.write_bytes(backup)
        return transaction(store, *given)

    monkeypatch.setattr(Store, "transaction", swapped)
    with pytest.raises(Damaged, match=OLDER):
        STEPS[1](run)
    assert (counted(ledger), opened) == (before, [2])


def test_both_files_restored_together_look_as_they_did_that_day(ledger: Ledger) -> None:
    """The limit of it, which the page of the curator and the command's help state: leave the counter out of backups."""
    run = reserve(ledger)
    files = {path: path.read_bytes() for path in (ledger.path, counter_of(ledger.path))}
    STEPS[0](run)
    for path, content in files.items():
        path.write_bytes(content)
    assert ledger.give_back(run.id).rounds == 0


# giving back


def test_a_run_that_asked_nothing_is_given_back_and_whoever_held_it_can_ask_nothing_more(ledger: Ledger) -> None:
    run, other = reserve(ledger), reserve(ledger)
    was = ledger.give_back(run.id)
    assert (was.id, was.epsilon, was.state) == (run.id, 0.25, "open")
    (status,) = ledger.status()
    assert (status.left, status.runs[0].state) == ("epsilon 0.75, delta 0", "done")
    for do in (*STEPS, lambda run: run.finish()):
        with pytest.raises(Refused, match="is finished"):
            do(run)
    with pytest.raises(Refused, match="is finished"):
        ledger.give_back(run.id)
    with pytest.raises(UnknownName, match="no run 'nobody'"):
        ledger.give_back("nobody")
    STEPS[0](other)
    assert counted(ledger) == {run.id: Counted(0, 0, True), other.id: Counted(1, 0, True)}


def test_without_the_counter_all_works_as_before_and_nothing_of_then_is_given_back(ledger: Ledger) -> None:
    """Whoever deletes the counter and a round has a ledger that was moved alone."""
    run, other = reserve(ledger), reserve(ledger)
    STEPS[0](run)
    counter_of(ledger.path).unlink()
    edit(ledger, "delete from rounds")
    for one in (run.id, other.id):
        with pytest.raises(Refused, match=r"nobody can tell whether run \w+ asked anything \(book.db.count has not"):
            ledger.give_back(one)
    later = reserve(ledger)
    assert [found.whole for found in counted(ledger).values()].count(True) == 1
    for one in (run.id, other.id):
        with pytest.raises(Refused, match="nobody can tell"):
            ledger.give_back(one)
    ledger.give_back(later.id)
    STEPS[0](resumed(ledger, run.id))


def test_an_older_counter_is_no_proof_and_learns_what_it_missed(ledger: Ledger) -> None:
    run, beside = reserve(ledger), counter_of(ledger.path)
    old, before = beside.read_bytes(), ledger.path.read_bytes()
    STEPS[0](run)
    beside.write_bytes(old)
    with pytest.raises(Refused, match="opened 1 rounds"):
        ledger.give_back(run.id)
    ledger.declare("people", 1.0)  # whatever is written
    ledger.path.write_bytes(before)
    with pytest.raises(Damaged, match=OLDER):
        ledger.give_back(run.id)


# files


def test_a_counter_is_for_whoever_may_read_its_ledger_and_beside_the_file_that_links_lead_to(
    ledger: Ledger, tmp_path: Path
) -> None:
    ledger.path.chmod(0o660)
    link = tmp_path / "elsewhere" / "link.db"
    link.parent.mkdir()
    link.symlink_to(ledger.path)
    run = reserve(Ledger.open(link))
    assert counter_of(link) == counter_of(ledger.path)
    assert counter_of(ledger.path).stat().st_mode & 0o777 == 0o660
    assert set(counted(ledger)) == {run.id}
    assert list(link.parent.iterdir()) == [link]


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff", b"[]", b'{"format": "cloister-counter-1", "runs": [1]}'])
def test_a_counter_that_cannot_be_read_is_one_clear_error_and_stays(ledger: Ledger, content: bytes) -> None:
    run, beside = reserve(ledger), counter_of(ledger.path)
    beside.write_bytes(content)
    for use in (ledger.status, lambda: STEPS[0](run), lambda: ledger.give_back(run.id)):
        with pytest.raises(
            Damaged, match=r"is not a ledger's counter, or it is damaged: make sure that .* then remove"
        ):
            use()
    assert beside.read_bytes() == content
    beside.unlink()
    beside.mkdir()
    with pytest.raises(CloisterError, match=r"cannot use \S+book.db.count, the ledger's counter: Is a directory"):
        ledger.status()


def test_a_counter_that_cannot_be_written_lets_nobody_go_on(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    run = reserve(ledger)

    def full(path: Path, content: bytes, mode: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(counter, "replace", full)
        for do in (lambda: reserve(ledger), lambda: STEPS[0](run)):
            with pytest.raises(CloisterError, match=r"cannot use \S+book.db.count.*: No space left on device"):
                do()
    assert [found.rounds for found in ledger.runs()] == [1]  # the reservation was undone, the round is open
    STEPS[1](resumed(ledger, run.id))


# kills


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("write", [0, 1, 2])
def test_a_process_that_dies_around_any_write_of_the_counter_leaves_a_sound_ledger(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, write: int, moment: str
) -> None:
    """The writes are: announced, counted as reserved, counted with a round."""
    left, replace = [write], counter.replace

    def dies(path: Path, content: bytes, mode: int) -> None:
        if not left[0] and moment == "before":
            raise Killed
        replace(path, content, mode)
        if not left[0]:
            raise Killed
        left[0] -= 1

    with monkeypatch.context() as patch:
        patch.setattr(counter, "replace", dies)
        with pytest.raises(Killed):
            STEPS[0](reserve(ledger))
    runs = Ledger.open(ledger.path).runs()
    assert [run.rounds for run in runs] == [[], [0], [1]][write]
    for found in runs:
        if found.rounds:
            with pytest.raises(Refused, match="opened 1 rounds"):
                ledger.give_back(found.id)
        else:
            ledger.give_back(found.id)
    later = reserve(ledger)
    assert set(counted(ledger)) == {*(run.id for run in runs), later.id}  # an announcement without a run is gone
