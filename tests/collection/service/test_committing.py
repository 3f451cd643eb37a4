"""Group commit: who is told what, and when."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.collection.service import committing
from cloister.collection.service.committing import Committer, DiskFailed
from cloister.collection.service.limits import ServiceCounts
from cloister.collection.service.segments import Segments
from cloister.collection.wire.batches import BatchForm
from tests.collection.service.collectors import on_disk

FORM = BatchForm("ab" * 32, 1, 1)


class Disk:
    """Segments of which every write can be counted, or fail."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.segments, self.writes, self.fails = Segments(folder, FORM, 10**6), 0, False
        append, try_again = self.segments.append, self.segments.try_again

        def counted(users: Any, answers: Any) -> int:
            self.writes += 1
            self.check()
            return append(users, answers)

        def tried() -> None:
            self.check()
            try_again()

        self.segments.append = counted  # type: ignore[method-assign]
        self.segments.try_again = tried  # type: ignore[method-assign]
        monkeypatch.setattr(committing, "RETRY", 0.01)

    def check(self) -> None:
        if self.fails:
            raise OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(tmp_path, monkeypatch)


def run(disk: Disk, work: Callable[[Committer], Awaitable[None]]) -> tuple[ServiceCounts, list[str | None]]:
    """Do some work with a committer, and close it; its counts and what it told."""
    counts, told = ServiceCounts(), list[str | None]()

    async def all_of_it() -> None:
        committer = Committer(disk.segments, counts, told.append)
        await work(committer)
        await committer.close()

    asyncio.run(all_of_it())
    return counts, told


async def put(committer: Committer, *users: int) -> int:
    return await committer.add(np.array(users, np.uint64), np.zeros((len(users), 1), np.uint8))


def test_what_waits_is_written_together_sorted_and_each_is_told_her_own(disk: Disk, tmp_path: Path) -> None:
    async def work(committer: Committer) -> None:
        done = await asyncio.gather(put(committer, 9, 4), put(committer, 4, 5), put(committer, 5), put(committer, 1))
        assert done == [2, 1, 0, 1]

    counts, told = run(disk, work)
    assert disk.writes == 1
    assert on_disk(tmp_path, FORM).tolist() == [1, 4, 5, 9]
    assert (counts.accepted, counts.commits, counts.waiting, told) == (4, 1, 0, [])


def test_a_number_counts_once_also_within_one_batch(disk: Disk, tmp_path: Path) -> None:
    async def work(committer: Committer) -> None:
        assert await put(committer, 3, 3, 3) == 1
        assert await put(committer, 3) == 0

    run(disk, work)
    assert on_disk(tmp_path, FORM).tolist() == [3]


def test_the_first_of_two_reports_of_a_number_is_the_one_that_is_kept(disk: Disk, tmp_path: Path) -> None:
    async def work(committer: Committer) -> None:
        users = np.array([7], np.uint64)
        first, second = (committer.add(users, np.array([[answer]], np.uint8)) for answer in (1, 2))
        assert await asyncio.gather(first, second) == [1, 0]

    run(disk, work)
    (path,) = tmp_path.glob("*.reports")
    assert FORM.parse(path.read_bytes()).answers.tolist() == [[1]]


def test_thousands_at_once_take_few_writes(disk: Disk) -> None:
    async def work(committer: Committer) -> None:
        assert sum(await asyncio.gather(*(put(committer, user) for user in range(3000)))) == 3000

    run(disk, work)
    assert disk.writes < 10


def test_a_failing_disk_acknowledges_nothing_but_what_it_has(disk: Disk, tmp_path: Path) -> None:
    async def work(committer: Committer) -> None:
        await put(committer, 1)
        disk.fails = True
        done = await asyncio.gather(
            put(committer, 1), put(committer, 2), put(committer, 1, 2), put(committer, 2), return_exceptions=True
        )
        assert done[0] == 0
        # the last two have nothing of their own: whether they are duplicates depends on what was not written
        assert [type(one) for one in done[1:]] == [DiskFailed] * 3
        assert str(done[1]) == "No space left on device"

    counts, told = run(disk, work)
    assert on_disk(tmp_path, FORM).tolist() == [1]
    assert (counts.accepted, counts.waiting, told) == (1, 0, ["No space left on device"])


def test_a_disk_that_failed_is_tried_again_by_itself_and_then_takes_reports(disk: Disk, tmp_path: Path) -> None:
    async def work(committer: Committer) -> None:
        disk.fails = True
        with pytest.raises(DiskFailed):
            await put(committer, 2)
        await asyncio.sleep(0.05)
        assert committer.trouble == "No space left on device"
        disk.fails = False
        async with asyncio.timeout(300):
            while committer.trouble is not None:
                await asyncio.sleep(0.01)
        assert await put(committer, 2) == 1

    _, told = run(disk, work)
    assert told == ["No space left on device", None]
    assert on_disk(tmp_path, FORM).tolist() == [2]


def test_who_went_away_does_not_disturb_the_others(disk: Disk, tmp_path: Path) -> None:
    async def work(committer: Committer) -> None:
        gone = asyncio.ensure_future(put(committer, 1))
        await asyncio.sleep(0)
        gone.cancel()
        assert await put(committer, 2) == 1

    run(disk, work)
    assert on_disk(tmp_path, FORM).tolist() == [1, 2]


def test_what_waits_at_the_end_is_written(disk: Disk, tmp_path: Path) -> None:
    waiting = list[asyncio.Future[int]]()

    async def work(committer: Committer) -> None:
        waiting.append(asyncio.ensure_future(put(committer, 1)))
        await asyncio.sleep(0)

    run(disk, work)
    assert waiting[0].result() == 1
    assert on_disk(tmp_path, FORM).tolist() == [1]


def test_who_comes_after_the_end_is_not_left_waiting(disk: Disk) -> None:
    """A request may have been checking its tickets while the round was closed."""

    async def all_of_it() -> ServiceCounts:
        committer = Committer(disk.segments, counts := ServiceCounts(), lambda why: None)
        await committer.close()
        with pytest.raises(DiskFailed):
            await asyncio.wait_for(put(committer, 1), 2)
        return counts

    counts = asyncio.run(all_of_it())
    assert (counts.accepted, counts.waiting) == (0, 0)


def test_a_fault_of_the_writer_s_own_is_no_end_of_it(disk: Disk, tmp_path: Path) -> None:
    seen = disk.segments.seen.has

    async def work(committer: Committer) -> None:
        disk.segments.seen.has = lambda users: [].pop()  # type: ignore[method-assign]
        with pytest.raises(DiskFailed):
            await asyncio.wait_for(put(committer, 1), 2)
        disk.segments.seen.has = seen  # type: ignore[method-assign]
        assert await asyncio.wait_for(put(committer, 1), 2) == 1

    counts, _ = run(disk, work)
    assert (counts.accepted, counts.waiting) == (1, 0)
    assert on_disk(tmp_path, FORM).tolist() == [1]
