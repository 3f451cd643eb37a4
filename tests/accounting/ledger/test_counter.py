"""The counter beside a ledger, played as whoever restores, edits, copies or kills: no older copy is taken for the
ledger, no sound one is refused, and nothing is given back but what asked nothing.
"""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from cloister.accounting import Ledger, Run
from cloister.accounting.ledger import counter
from cloister.accounting.ledger.counter import RunCount, counter_of
from cloister.accounting.ledger.sqlite import Store
from cloister.core.budget import Budget, Event
from cloister.core.errors import CloisterError, Damaged, Refused, UnknownName
from tests.accounting.ledger.books import edit, look, reserve, resumed
from tests.killed import Killed

OLDER = r"lacks rounds or answers of run \w+.*, which .*\.count counted\): restore a backup that is not older than"


def counted(book: Ledger) -> dict[str, RunCount]:
    return counter.read(counter_of(book.path))


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
    run = reserve(ledger)
    for do in STEPS[:step]:
        do(run)
    backup = ledger.path.read_bytes()
    STEPS[step](run)
    now = ledger.path.read_bytes()
    ledger.path.write_bytes(backup)
    if step == HARMLESS:
        resumed(ledger, run)
        return
    for use in (
        ledger.status,
        lambda: Ledger.open(ledger.path),
        lambda: Ledger.open(ledger.path, create=True),
        lambda: reserve(ledger),
        lambda: resumed(ledger, run),
        lambda: ledger.give_back(run.id),
        lambda: run.finish([]),
    ):
        with pytest.raises(Damaged, match=OLDER):
            use()
    ledger.path.write_bytes(now)
    resumed(ledger, run)


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
    assert (status.left, status.runs[0].state) == ("epsilon 0.75, delta 1e-06", "done")
    for do in (*STEPS, lambda run: run.finish()):
        with pytest.raises(Refused, match="is finished"):
            do(run)
    with pytest.raises(Refused, match="is finished"):
        ledger.give_back(run.id)
    with pytest.raises(UnknownName, match="no run 'nobody'"):
        ledger.give_back("nobody")
    STEPS[0](other)
    assert counted(ledger) == {run.id: RunCount(0, 0, True), other.id: RunCount(1, 0, True)}


def test_without_the_counter_all_works_as_before_and_nothing_of_then_is_given_back(ledger: Ledger) -> None:
    """Whoever deletes the counter and a round has a ledger that was moved alone."""
    run, other = reserve(ledger), reserve(ledger)
    STEPS[0](run)
    counter_of(ledger.path).unlink()
    edit(ledger, "delete from rounds")
    for one in (run.id, other.id):
        with pytest.raises(Refused, match=r"run \w+ may have asked something \(.*\.count has not"):
            ledger.give_back(one)
    later = reserve(ledger)
    assert [found.complete for found in counted(ledger).values()].count(True) == 1
    for one in (run.id, other.id):
        with pytest.raises(Refused, match="may have asked something"):
            ledger.give_back(one)
    ledger.give_back(later.id)
    STEPS[0](resumed(ledger, run))


def test_an_older_counter_is_no_proof_and_learns_what_it_missed(ledger: Ledger) -> None:
    run, beside = reserve(ledger), counter_of(ledger.path)
    old, before = beside.read_bytes(), ledger.path.read_bytes()
    STEPS[0](run)
    beside.write_bytes(old)
    with pytest.raises(Refused, match=f"opened 1 rounds.*its reservation stays. Resume it with --resume {run.id}"):
        ledger.give_back(run.id)
    ledger.declare("people", 1.0, 1e-6)  # whatever is written
    ledger.path.write_bytes(before)
    with pytest.raises(Damaged, match=OLDER):
        ledger.give_back(run.id)


def test_of_a_round_and_a_return_at_once_one_is_refused(ledger: Ledger) -> None:
    for _ in range(4):
        run, start = reserve(ledger), Barrier(2)

        def done(step: Callable[[], object], start: Barrier = start) -> bool:
            start.wait()
            with suppress(Refused):
                step()
                return True
            return False

        with ThreadPoolExecutor(2) as threads:
            asked, returned = threads.map(done, (partial(STEPS[0], run), partial(ledger.give_back, run.id)))
        assert asked is not returned
        if asked:
            run.finish([Event("nothing", Budget("pure", 1e-9))])


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
    with pytest.raises(CloisterError, match=r"cannot use .*\.count, the ledger's counter: Is a directory"):
        ledger.status()


def test_a_counter_that_cannot_be_written_lets_nobody_go_on(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    run = reserve(ledger)

    def full(path: Path, content: bytes, mode: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(counter, "replace", full)
        for do in (lambda: reserve(ledger), lambda: STEPS[0](run)):
            with pytest.raises(CloisterError, match=r"cannot use .*\.count.*: No space left on device"):
                do()
    assert [found.rounds for found in ledger.runs()] == [1]  # the reservation was undone, the round is open
    STEPS[1](resumed(ledger, run))


# kills


def only_what_asked_nothing_comes_back(book: Ledger) -> None:
    for run in book.runs():
        if run.rounds:
            with pytest.raises(Refused, match="opened 1 rounds"):
                book.give_back(run.id)
        else:
            book.give_back(run.id)


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
    only_what_asked_nothing_comes_back(ledger)
    later = reserve(ledger)
    assert set(counted(ledger)) == {*(run.id for run in runs), later.id}  # an announcement without a run is gone


def killed_at(call: str, number: int, book: Ledger, said: Path) -> bool:
    """Whether a process that reserves a run, opens a round and releases a look was killed at its so-manieth system call
    of this name, SQLite's included; it says what has returned."""
    child = os.fork()
    if child == 0:
        try:
            os.kill(os.getpid(), signal.SIGSTOP)
            file = os.open(said, os.O_WRONLY | os.O_CREAT, 0o600)
            run = reserve(book)
            for name, do in (("opened", STEPS[0]), ("wrote", STEPS[1])):
                do(run)
                os.pwritev(file, [f"{run.id} {name}\n".encode()], os.lseek(file, 0, os.SEEK_END))
        finally:
            os._exit(0)
    os.waitpid(child, os.WUNTRACED)
    kill = f"inject={call}:signal=SIGKILL:when={number}"
    command = ["strace", "-p", str(child), "-o", os.devnull, "-e", f"trace={call}", "-e", kill]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as tracer:
        assert tracer.stderr is not None
        told = tracer.stderr.readline()
        os.kill(child, signal.SIGCONT)
        _, status = os.waitpid(child, 0)
        if "attached" not in told:
            pytest.skip(f"strace cannot trace here: {told}")
    return os.WIFSIGNALED(status)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.skipif(sys.platform != "linux" or shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.parametrize("call", ["pwrite64", "write", "fdatasync", "fsync", "unlink", "rename"])
def test_killed_at_any_system_call_nothing_sound_is_refused_and_nothing_given_back_that_was_asked(
    tmp_path: Path, call: str
) -> None:
    number, killed = 0, True
    while killed:
        number += 1
        folder = tmp_path / str(number)
        folder.mkdir()
        book = Ledger.open(folder / "book.db", create=True)
        book.declare("people", 1.0)
        backup, said = book.path.read_bytes(), folder / "said"
        killed = killed_at(call, number, book, said)
        words = said.read_text().split() if said.exists() else []
        for run in Ledger.open(book.path).runs():
            assert run.rounds >= words.count("opened")
            assert run.lookups >= words.count("wrote")
        only_what_asked_nothing_comes_back(book)
        if words:  # nobody has written since: what was told was counted
            book.path.write_bytes(backup)
            with pytest.raises(Damaged, match=OLDER):
                book.give_back(words[0])
    assert number > 4  # of 5 writes to 47


def test_what_was_counted_is_on_the_disk_before_it_has_its_name_and_then_its_name_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the power an unsynced file comes back empty, and an unsynced name is the old one."""
    path, done, fsync, renamed = tmp_path / "count", list[Any](), os.fsync, Path.replace

    def synced(descriptor: int) -> None:
        done.append(os.fstat(descriptor).st_ino)
        fsync(descriptor)

    def named(temporary: Path, target: Path) -> Path:
        done.append("named")
        return renamed(temporary, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", named)
    counter.replace(path, b"{}", 0o600)
    assert done == [path.stat().st_ino, "named", tmp_path.stat().st_ino]


@pytest.mark.parametrize("older", [False, True], ids=["the same", "an older copy"])
def test_a_ledger_of_two_names_is_refused_by_both_for_each_would_have_a_counter_and_a_journal(
    ledger: Ledger, tmp_path: Path, older: bool
) -> None:
    """An older copy was taken by its second name, beside which no counter lies."""
    before = ledger.path.read_bytes()
    reserve(ledger)
    if older:
        ledger.path.write_bytes(before)
    second = tmp_path / "second.db"
    os.link(ledger.path, second)
    for path in (second, ledger.path):
        with pytest.raises(CloisterError, match=r"has 2 names \(hard links\)"):
            reserve(Ledger.open(path))
    second.unlink()
    with pytest.raises(Damaged, match="lacks rounds") if older else nullcontext():
        reserve(Ledger.open(ledger.path))


def test_a_run_that_is_announced_has_fewer_rounds_than_none_and_those_there_before_keep_their_counts() -> None:
    earlier = {"before": RunCount(3, 7, False)}
    stored = {**earlier, "new": RunCount(0, 0, False)}
    announced = counter.with_announced(earlier, stored)
    assert announced == {**earlier, "new": RunCount(-1, 0, True)}
    assert counter.runs_lacking_entries(earlier, announced) == []
    assert counter.runs_lacking_entries({}, announced) == ["before"]


def test_a_file_that_is_replaced_is_its_owners_until_it_has_the_mode_that_it_is_to_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes, chmod, synced, fsync = list[int](), os.chmod, list[int](), os.fsync

    def watched(path: Path, mode: int) -> None:
        modes.append(path.stat().st_mode & 0o777)
        chmod(path, mode)
        modes.append(path.stat().st_mode & 0o777)

    def counted_bytes(descriptor: int) -> None:
        facts = os.fstat(descriptor)
        synced.append(facts.st_size if stat.S_ISREG(facts.st_mode) else -1)
        fsync(descriptor)

    monkeypatch.setattr(os, "chmod", watched)
    monkeypatch.setattr(os, "fsync", counted_bytes)
    counter.replace(tmp_path / "file", b"content", 0o640)
    assert modes == [0o600, 0o640]
    assert synced == [len(b"content"), -1]  # all of it, then the folder
    assert (tmp_path / "file").read_bytes() == b"content"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
