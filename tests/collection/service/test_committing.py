"""Group commit: who is told what, and when."""

from __future__ import annotations

import asyncio
import errno
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from cloister.collection.service import committing
from cloister.collection.service.committing import Committer, DiskFailed
from cloister.collection.service.limits import ServiceCounts
from cloister.collection.service.segments import Segments
from cloister.collection.wire.batches import BatchForm
from tests.collection.service.collectors import on_disk
from tests.waiting import PATIENCE

FORM = BatchForm("ab" * 32, 1, 1)
Work = Callable[[Committer], Awaitable[Any]]


class Disk:
    """Segments of which every write is counted, or fails, and a committer to them."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.writes, self.fails = folder, 0, False
        self.segments, self.counts, self.told = Segments(folder, FORM, 10**6), ServiceCounts(), list[str | None]()
        append, try_again = self.segments.append, self.segments.try_again

        def check(then: Callable[..., Any], *given: Any) -> Any:
            if self.fails:
                raise OSError(errno.ENOSPC, "No space left on device")
            return then(*given)

        def counted(users: Any, answers: Any) -> Any:
            self.writes += 1
            return check(append, users, answers)

        monkeypatch.setattr(self.segments, "append", counted)
        monkeypatch.setattr(self.segments, "try_again", lambda: check(try_again))
        monkeypatch.setattr(committing, "RETRY", 0.01)

    def run(self, work: Work, *kept: int, later: Work | None = None) -> None:
        """Do some work with the committer, close it, and go on: these users are on the disk then, and nobody waits."""

        async def all_of_it() -> None:
            committer = Committer(self.segments, self.counts, self.told.append)
            await work(committer)
            await committer.close()
            if later is not None:
                await later(committer)

        asyncio.run(all_of_it())
        assert on_disk(self.folder, FORM).tolist() == list(kept)
        assert (self.counts.accepted, self.counts.waiting) == (len(kept), 0)


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(tmp_path, monkeypatch)


async def put(committer: Committer, *users: int, answer: int = 0) -> int:
    return await committer.add(np.array(users, np.uint64), np.full((len(users), 1), answer, np.uint8))


def test_what_waits_is_written_together_sorted_and_each_is_told_her_own(disk: Disk) -> None:
    """Of two reports of a number the first one is kept."""

    async def work(committer: Committer) -> None:
        first, second = put(committer, 9, 4, answer=1), put(committer, 4, 5)
        assert await asyncio.gather(first, second, put(committer, 5), put(committer, 1)) == [2, 1, 0, 1]

    disk.run(work, 1, 4, 5, 9)
    (path,) = disk.folder.glob("*.reports")
    assert FORM.parse(path.read_bytes()).answers.tolist() == [[0], [1], [0], [1]]
    assert (disk.writes, disk.counts.commits, disk.told) == (1, 1, [])


def test_a_number_counts_once_also_within_one_batch(disk: Disk) -> None:
    async def work(committer: Committer) -> None:
        assert await put(committer, 3, 3, 3) == 1
        assert await put(committer, 3) == 0

    disk.run(work, 3)


def test_a_failing_disk_acknowledges_nothing_but_what_it_has(disk: Disk) -> None:
    """It is tried again by itself, and then takes reports."""

    async def work(committer: Committer) -> None:
        await put(committer, 1)
        disk.fails = True
        asked = ((1,), (2,), (1, 2), (2,))
        done = await asyncio.gather(*(put(committer, *users) for users in asked), return_exceptions=True)
        assert done[0] == 0
        # the last two have nothing of their own: whether they are duplicates depends on what was not written
        assert [(type(one), str(one)) for one in done[1:]] == [(DiskFailed, "No space left on device")] * 3
        await asyncio.sleep(0.05)
        assert committer.trouble == "No space left on device"
        disk.fails = False
        async with asyncio.timeout(PATIENCE):
            while committer.trouble is not None:
                await asyncio.sleep(0.01)
        assert await put(committer, 2) == 1

    disk.run(work, 1, 2)
    assert disk.told == ["No space left on device", None]


def test_who_went_away_does_not_disturb_the_others(disk: Disk) -> None:
    async def work(committer: Committer) -> None:
        gone = asyncio.ensure_future(put(committer, 1))
        await asyncio.sleep(0)
        gone.cancel()
        assert await put(committer, 2) == 1

    disk.run(work, 1, 2)


def test_what_waits_at_the_end_is_written_and_who_comes_later_is_not_left_waiting(disk: Disk) -> None:
    """A request may have been checking its tickets while the round was closed."""

    waiting = list[asyncio.Future[int]]()

    async def work(committer: Committer) -> None:
        waiting.append(asyncio.ensure_future(put(committer, 1)))
        await asyncio.sleep(0)

    async def later(committer: Committer) -> None:
        assert await waiting[0] == 1
        with pytest.raises(DiskFailed):
            await asyncio.wait_for(put(committer, 2), 60)

    disk.run(work, 1, later=later)


def test_a_close_that_is_cut_off_is_done_by_the_next_one_and_who_waits_is_answered(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A collector may be told to end while it closes a round."""
    written, append = threading.Event(), disk.segments.append

    def slowly(users: Any, answers: Any) -> int:
        written.wait(PATIENCE)
        return append(users, answers)

    monkeypatch.setattr(disk.segments, "append", slowly)

    async def work(committer: Committer) -> None:
        waiting, closing = asyncio.ensure_future(put(committer, 1)), asyncio.ensure_future(committer.close())
        await asyncio.sleep(0.05)
        closing.cancel()
        await asyncio.wait([closing])
        written.set()
        assert await asyncio.wait_for(waiting, 60) == 1

    disk.run(work, 1)
    (path,) = disk.folder.glob("*.reports")
    assert path.stat().st_mtime == 0, "its time would be that of the last report"


def test_a_system_that_gives_no_thread_is_told_to_who_waits_and_the_writer_goes_on(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(committer: Committer) -> None:
        with monkeypatch.context() as broken:
            broken.setattr(committer._thread, "submit", Mock(side_effect=RuntimeError("can't start new thread")))
            with pytest.raises(DiskFailed):
                await asyncio.wait_for(put(committer, 1), 60)
            await asyncio.sleep(0.05)  # it tries again meanwhile
        assert await asyncio.wait_for(put(committer, 1), 60) == 1

    disk.run(work, 1)


def test_a_fault_of_the_writer_s_own_is_no_end_of_it(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(committer: Committer) -> None:
        with monkeypatch.context() as broken:
            broken.setattr(disk.segments.seen, "has", lambda users: [].pop())
            with pytest.raises(DiskFailed):
                await asyncio.wait_for(put(committer, 1), 60)
        assert await asyncio.wait_for(put(committer, 1), 60) == 1

    disk.run(work, 1)
