"""Counting reports in parts, on the workers of an engine: the same result as one pass, to the last bit. Summaries are
exact integers, so parts may be added up in any order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, final

import attrs
import numpy as np

from cloister.collection.intake.parts import Partition, Read, ReportPart, among
from cloister.collection.intake.refusals import Intake
from cloister.collection.intake.sent import Origin
from cloister.collection.server.counter import ReportCounter
from cloister.collection.wire.blocks import Block
from cloister.collection.wire.user_set import UserSet
from cloister.core.encoding import keep_memory, merge_summaries
from cloister.core.types import Bools
from cloister.engines.engine import Engine


@final
@attrs.frozen
class Uncontested:
    """Counts the reports of parts whose numbers stand nowhere else. Args: counter, contested."""

    counter: ReportCounter
    contested: UserSet | None

    def __call__(self, part: ReportPart) -> tuple[int, tuple[Any, ...], Intake, Read]:
        """The part's number, its summaries, what was accepted and refused, and what was read."""
        keep_memory()
        counter, read = self.counter.afresh(), Read()
        total = counter.nothing()
        for block, origin in counter.pieces(part.stretches):
            read = read.more(block.users)
            alone = ~among(self.contested, block.users, counter.within(block))
            for summaries in counter.counted(*_some(block, origin, alone), None):
                total = merge_summaries(total, summaries)
        return part.number, total, counter.intake, read


def on_engine(
    engine: Engine, counter: ReportCounter, files: list[str], told: Callable[[int], None]
) -> Iterator[tuple[Any, ...]]:
    """Yield summaries of the reports in files that count; the counter's intake says what was refused. Raises:
    InvalidInput: a file changes while it is read, or a part fails."""
    plan = Partition.made(engine, counter, files)
    for number, summaries, intake, read in engine.run(Uncontested(counter.afresh(), plan.contested), plan.parts):
        plan.check(number, read)
        counter.intake.add(intake, plan.files)
        told(read.reports)
        yield summaries
    if plan.contested is not None:
        seen = UserSet(counter.users)
        for block, origin in counter.afresh().pieces(plan.stretches):
            theirs = among(plan.contested, block.users, counter.within(block))
            yield from counter.counted(*_some(block, origin, theirs), seen)


def _some(block: Block, origin: Origin, which: Bools) -> tuple[Block, Origin]:
    """The reports of a mask (n,), and where they are from."""
    rows = np.flatnonzero(which)
    return block.of(rows), origin if isinstance(origin, str) else lambda row: origin(int(rows[row]))
