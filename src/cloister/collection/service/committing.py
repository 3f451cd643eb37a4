"""Group commit: write and sync all waiting reports together, then answer their senders.

Reports arrive one by one from a thousand connections, and a sync takes as long for one as for a hundred. So one writer
takes all waiting reports, drops those of user numbers that have reported, writes one batch, syncs and answers; reports
that arrive meanwhile wait for the next turn. Of two reports of one number in a turn the first counts; the second is
answered as a duplicate only when the first is on the disk.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeAlias, final

import attrs
import numpy as np

from cloister.collection.service.limits import ServiceCounts
from cloister.collection.service.segments import Segments
from cloister.collection.wire.answers import Packed
from cloister.collection.wire.user_set import first_of
from cloister.core.errors import cause
from cloister.core.types import Ids

RETRY = 1.0
"""Seconds until a failed disk is tried again."""


class DiskFailed(Exception):
    """Failure to write reports, none of which is acknowledged; the message is the system's reason."""


@final
@attrs.define(eq=False)
class _Waiting:
    users: Ids
    answers: Packed
    outcome: asyncio.Future[int]


_Outcome: TypeAlias = int | DiskFailed


@final
class Committer:
    """Writer of a round's files.

    Args:
        segments: the files.
        counts: the collector's counts.
        on_trouble: called with a reason when the disk begins to fail, and with None when it works again.

    Attributes:
        trouble: reason why the disk fails at the moment, or None.
    """

    def __init__(self, segments: Segments, counts: ServiceCounts, on_trouble: Callable[[str | None], None]) -> None:
        self._segments, self._counts, self._on_trouble = segments, counts, on_trouble
        self.trouble: str | None = None
        self._waiting = list[_Waiting]()
        self._wake = asyncio.Event()
        self._closing = False
        self._thread = ThreadPoolExecutor(1, "cloister-writer")
        self._task = asyncio.get_running_loop().create_task(self._run())

    @property
    def reports(self) -> int:
        """Number of reports of this round on the disk."""
        return self._segments.seen.count

    async def add(self, users: Ids, answers: Packed) -> int:
        """Store the reports of ``users`` (n,), numbers in the plan's range.

        Returns: number of new reports, now on the disk; the others are duplicates.
        Raises: DiskFailed: none is acknowledged.
        """
        if self._closing:
            raise DiskFailed("the round is closed")
        item = _Waiting(users, answers, asyncio.get_running_loop().create_future())
        self._waiting.append(item)
        self._counts.waiting += len(users)
        self._wake.set()
        return await item.outcome

    async def close(self) -> None:
        """Write waiting reports and close the files; if interrupted, another call does the rest."""
        self._closing = True
        self._wake.set()
        await asyncio.shield(self._task)
        await asyncio.to_thread(self._segments.close)  # the writer thread has ended with the task
        self._thread.shutdown()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting or not self._closing:
            if self._waiting:
                items, self._waiting = self._waiting, []
                try:
                    outcomes = await loop.run_in_executor(self._thread, self._commit_or_fail, items)
                except Exception as error:  # such as no thread to be had: the senders need an answer
                    outcomes = [DiskFailed(type(error).__name__)] * len(items)
                self._answer(items, outcomes)
            elif self.trouble is not None:
                with suppress(RuntimeError):  # no thread, as above
                    self._say(await loop.run_in_executor(self._thread, self._retry_disk))
            self._wake.clear()
            if not self._waiting and not self._closing:
                await self._wait_for_work()

    async def _wait_for_work(self) -> None:
        try:
            async with asyncio.timeout(RETRY if self.trouble is not None else None):
                await self._wake.wait()
        except TimeoutError:
            pass

    def _answer(self, items: Sequence[_Waiting], outcomes: Sequence[_Outcome]) -> None:
        failed = next((str(one) for one in outcomes if isinstance(one, DiskFailed)), None)
        if failed is not None or any(not isinstance(one, DiskFailed) and one for one in outcomes):
            self._say(failed)
        for item, outcome in zip(items, outcomes, strict=True):
            self._counts.waiting -= len(item.users)
            if item.outcome.done():  # the sender is gone
                continue
            if isinstance(outcome, DiskFailed):
                item.outcome.set_exception(outcome)
            else:
                item.outcome.set_result(outcome)

    def _say(self, trouble: str | None) -> None:
        if (trouble is None) != (self.trouble is None):
            self._on_trouble(trouble)
        self.trouble = trouble

    def _retry_disk(self) -> str | None:
        try:
            self._segments.try_again()
        except OSError as error:
            return cause(error)
        return None

    def _commit_or_fail(self, items: Sequence[_Waiting]) -> list[_Outcome]:
        try:
            return self._commit(items)
        except Exception as error:  # the only writer must go on: the next turn may succeed
            return [DiskFailed(type(error).__name__)] * len(items)

    def _commit(self, items: Sequence[_Waiting]) -> list[_Outcome]:
        """Write the new reports; return the number of new ones per item, or ``DiskFailed``."""
        sizes = [len(item.users) for item in items]
        users = np.concatenate([item.users for item in items])
        owner = np.repeat(np.arange(len(items)), sizes)
        unknown = np.flatnonzero(~self._segments.seen.has(users))
        new = unknown[first_of(users[unknown])]
        new = new[np.argsort(users[new])]
        if len(new):
            answers = np.concatenate([item.answers for item in items])
            started = time.monotonic()
            try:
                written = self._segments.append(users[new], answers[new])
            except OSError as error:
                touched = np.bincount(owner[unknown], minlength=len(items))
                why = cause(error)
                return [DiskFailed(why) if touched[i] else 0 for i in range(len(items))]
            self._counts.commit(len(new), written, time.monotonic() - started)
        counted: list[_Outcome] = np.bincount(owner[new], minlength=len(items)).tolist()
        return counted
