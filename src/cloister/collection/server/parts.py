"""Counting reports in parts, on the workers of an engine: the same result as one pass, to the last bit.

Summaries are exact integers, so parts may be added up in any order; but of several reports with one number the first
possible one counts, and they may stand in different parts. So the user numbers are read first, alone: each part gives
the set of its numbers, a bit for each planned user, and those that it holds twice. Numbers that stand more than once
are *contested*. Then the parts count all reports but the contested ones, whose numbers stand nowhere else; and these go
through the laws of one pass, in one process, in pieces with the same bounds as there.

So a flood of repeated numbers costs time in one process, and never memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, final

import attrs
import numpy as np

from cloister.collection.intake.refusals import Intake
from cloister.collection.intake.sent import Origin
from cloister.collection.intake.sources import Stretch
from cloister.collection.server.counter import ReportCounter
from cloister.collection.wire.batches import BatchForm
from cloister.collection.wire.blocks import Block, stretches
from cloister.collection.wire.listing import changed, is_bytes
from cloister.collection.wire.user_set import UserSet
from cloister.core.encoding import keep_memory, merge_summaries
from cloister.core.errors import InvalidInput
from cloister.core.types import Bools, Ids
from cloister.engines.engine import Engine

PART = 2**26
"""Bytes of files in a part, at least, if there are so many: seven million reports of one byte."""


@final
@attrs.frozen
class Part:
    """What one worker reads at once. Args: number (of the part), stretches (of files, in order)."""

    number: int
    stretches: tuple[Stretch, ...]


@final
@attrs.frozen(eq=False)
class Found:
    """The user numbers of a part. Args: number (of the part), users, again (standing twice), count (of reports)."""

    number: int
    users: UserSet
    again: Ids
    count: int


@final
@attrs.frozen
class Numbers:
    """Reads the user numbers of parts. Args: counter (of the same round; it is not changed)."""

    counter: ReportCounter

    def __call__(self, part: Part) -> Found:
        keep_memory()
        counter, users, again, count = self.counter.afresh(), UserSet(self.counter.users), list[Ids](), 0
        for where in part.stretches:
            for block in counter.blocks(where):
                again.append(users.mark(block.users[counter.within(block)]))
                count += len(block)
        return Found(part.number, users, np.concatenate([*again, np.empty(0, np.uint64)]), count)


@final
@attrs.frozen
class Uncontested:
    """Counts the reports of parts whose numbers stand nowhere else. Args: counter, contested."""

    counter: ReportCounter
    contested: UserSet | None

    def __call__(self, part: Part) -> tuple[int, tuple[Any, ...], Intake, int]:
        """The part's number, its summaries, what was accepted and refused, and how many reports were read."""
        keep_memory()
        counter, count = self.counter.afresh(), 0
        total = counter.nothing()
        for block, origin in counter.pieces(part.stretches):
            count += len(block)
            mine = _some(block, origin, ~contested(counter, block, self.contested))
            for summaries in counter.counted(*mine, None):
                total = merge_summaries(total, summaries)
        return part.number, total, counter.intake, count


def contested(counter: ReportCounter, block: Block, numbers: UserSet | None) -> Bools:
    """Which reports (n,) of a block have a number among these."""
    found = np.zeros(len(block), bool)
    if numbers is not None:
        within = counter.within(block)
        found[within] = numbers.has(block.users[within])
    return found


def on_engine(
    engine: Engine, counter: ReportCounter, files: list[str], told: Callable[[int], None]
) -> Iterator[tuple[Any, ...]]:  # fmt: skip
    """Yield summaries of the reports in files that count; the counter's intake says what was refused. Raises:
    InvalidInput: a file changes while it is read, or a part fails."""
    if engine.elsewhere:
        files = [os.path.abspath(path) for path in files]
    parts = list(divided(files, counter.form, max(PART, counter.users // 2)))
    numbers, several, counts = UserSet(counter.users), UserSet(counter.users), dict[int, int]()
    for found in engine.run(Numbers(counter.afresh()), parts):
        several.join(numbers.join(found.users))
        several.mark(found.again)
        counts[found.number] = found.count
    twice = several if several.count else None
    for number, summaries, intake, count in engine.run(Uncontested(counter.afresh(), twice), parts):
        if counts[number] != count:
            raise InvalidInput(changed(parts[number].stretches[0].name))
        counter.intake.add(intake, files)
        told(count)
        yield summaries
    if twice is not None:
        seen = UserSet(counter.users)
        for block, origin in counter.afresh().pieces(where for part in parts for where in part.stretches):
            yield from counter.counted(*_some(block, origin, contested(counter, block, twice)), seen)


def _some(block: Block, origin: Origin, which: Bools) -> tuple[Block, Origin]:
    """The reports of a mask (n,), and where they are from."""
    rows = np.flatnonzero(which)
    return block.of(rows), origin if isinstance(origin, str) else lambda row: origin(int(rows[row]))


def divided(files: Iterable[str], form: BatchForm, most: int) -> Iterator[Part]:
    """Parts of about ``most`` bytes: several small files, or a stretch of a large one of reports as bytes. Files of
    other forms count as a whole or not at all, and are not divided."""
    held, size, number = list[Stretch](), 0, 0
    for path in files:
        for stretch in _stretches(path, form, most):
            held.append(stretch)
            size += stretch.size
            if size >= most:
                yield Part(number, tuple(held))
                held, size, number = [], 0, number + 1
    if held:
        yield Part(number, tuple(held))


def _stretches(path: str, form: BatchForm, most: int) -> Iterator[Stretch]:
    whole = Stretch.whole(path)
    if whole.size <= most or not is_bytes(path):
        yield whole
        return
    with whole.opened() as file:
        for start, stop in stretches(file, form, whole.size, most):
            yield Stretch(path, start, stop)
