"""Population of users who have sent reports, read from files and streams, piece by piece.

The workers of an engine may read parts, with the same result to the last bit: summaries are exact integers, so parts
may be added up in any order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import reduce
from typing import Any, final

import attrs
import numpy as np

from cloister.collection.intake.parts import read_in_parts
from cloister.collection.intake.sources import FileRange, Stream
from cloister.collection.intake.validator import REPORTS, Intake, Origin, ReportValidator, SentFiles, isolate_refused
from cloister.collection.wire.answers import layout_of
from cloister.collection.wire.batches import Block
from cloister.collection.wire.user_set import UserSet
from cloister.core.encoding import absorb, keep_memory, merge_summaries
from cloister.core.errors import InvalidInput, Refused
from cloister.core.questions import Round
from cloister.core.randomness import NoiseRng
from cloister.core.types import Bools, Ids, Ints

PIECE = 2**17
"""Reports summed at once, across files: a summary takes K d numbers, however few its reports are."""


@final
class ReportCounter(ReportValidator):
    """Validator that sums a round's reports; ``users`` is the planned number of users."""

    def __init__(self, intake: Intake, round: Round[Any], head: str, users: int, earlier: Collection[str] = ()) -> None:
        super().__init__(intake, round, head, earlier)
        self.users, self._layout = users, layout_of(round)

    def empty_summaries(self) -> tuple[Any, ...]:
        """Return summaries of no report."""
        return absorb(self.round, self._layout.reports(np.empty(0, np.uint64), self._layout.empty(0)))

    def pieces(self, sources: Iterable[FileRange | Stream]) -> Iterator[tuple[Block, Origin]]:
        """Yield reports, those of small batches and files together, with the file of each."""
        blocks, count = list[tuple[str, Block]](), 0
        for source in sources:
            for parsed in self.parse(source):
                blocks.append((source.name, Block(parsed.users, parsed.answers)))
                count += len(parsed.users)
                if count >= PIECE:
                    yield _concatenate(blocks)
                    blocks, count = [], 0
        if count:
            yield _concatenate(blocks)

    def accepted(self, block: Block, origin: Origin, counted_users: UserSet | None) -> Iterator[tuple[Any, ...]]:
        """Yield summaries of the reports in a block that count, see ``first_per_user``."""
        rows = self.filter_rows(np.arange(len(block)), block.users < self.users, "out of range", origin)
        within = block.take(rows)
        rows = self.filter_rows(rows, self._layout.well_padded(within.users, within.answers), "not as asked", origin)
        yield from self.first_per_user(
            counted_users, block.users, rows, lambda rows: self._absorbed(block, rows, origin), origin
        )

    def _absorbed(self, block: Block, rows: Ints, origin: Origin) -> Iterator[tuple[Ints, tuple[Any, ...]]]:
        """Yield rows of different users with their summaries, and refuse the impossible ones."""

        def read(rows: Ints) -> tuple[tuple[int, ...], tuple[Any, ...]]:
            part = block.take(rows)
            reports = self._layout.reports(part.users, part.answers)
            return tuple(len(report.columns()["users"]) for report in reports), absorb(self.round, reports)

        parts: Iterable[tuple[Ints, Any]]
        try:
            parts = [(rows, read(rows))]
        except Refused:
            rows = self.filter_rows(rows, self._possible(block.take(rows)), "impossible", origin)
            parts = isolate_refused(rows, read) if len(rows) else ()
        for part_rows, result in parts:
            if result is None:
                self.filter_rows(part_rows, np.zeros(1, bool), "impossible", origin)
                continue
            counts, summaries = result
            for number, count in enumerate(counts):
                self.intake.questions[number] += count
            yield part_rows, summaries

    def _possible(self, block: Block) -> Bools:
        """Return which reports (n,) of different users an encoder could have sent."""
        good = np.ones(len(block), bool)
        # by question: a round may have fifty, of which a user answers one
        parts = zip(self.round.parts, self._layout.parts(block.users, block.answers), strict=True)
        for part, (body, rows, bodies) in parts:
            users = block.users[rows]

            def read(at: Ints, part: Any = part, body: Any = body, users: Ids = users, bodies: Any = bodies) -> Any:
                return part.channel.absorb(body.report(users[at], bodies[at]))

            positions = np.arange(len(block))[rows]
            for at, summary in isolate_refused(np.arange(len(users)), read):
                good[positions[at]] &= summary is not None
        return good


def _concatenate(named: list[tuple[str, Block]]) -> tuple[Block, Origin]:
    """Concatenate blocks; return also a function from rows to their files."""
    ends, (names, blocks) = np.cumsum([len(block) for _, block in named]), zip(*named, strict=True)
    return Block.concatenate(list(blocks)), lambda row: names[int(np.searchsorted(ends, row, side="right"))]


@final
@attrs.frozen
class PartSums:
    """Function that adds up the summaries of a part."""

    counter: ReportCounter

    def __call__(self, number: int, summaries: Iterable[tuple[Any, ...]]) -> tuple[Any, ...]:
        return reduce(merge_summaries, summaries, self.counter.empty_summaries())


@final
class CollectedReports(SentFiles):
    """Users' reports, summed as they are read: memory does not grow with them.

    Memory: the oracles' summaries, which are O(K d) for oracles that can list their buckets, one bit per planned user,
    and a bounded number of reports. Oracles that cannot list their buckets (explicit-histogram) keep every report.

    Guarantee: every complete batch counts; a report counts only if an encoder of this round could have sent it, and at
    most one per user. Summaries are exact integers, so the result does not depend on the order of files or reports, nor
    on how reports are divided over batches and files, as long as all reports of one user are equal. If they differ, the
    first possible one counts: somebody else used her number, and nobody can tell who.

    Batches carry checksums, which are verified. Single reports have none: a bit flipped in an answer goes unnoticed.
    """

    kind = REPORTS

    def gather(self, round: Round[Any], rng: NoiseRng) -> tuple[Any, ...]:
        """Sum the reports of the round; draws no randomness.

        Raises:
            InvalidInput: no report can be used; or a file changes while it is read.
            Refused: something was refused under ``strict``.
        """
        keep_memory()
        self.intake = self._new_intake(len(round.parts))
        counter = ReportCounter(self.intake, round, self._head, self._users, self._earlier)
        summed = PartSums(counter)
        if self._engine.apart:
            results = read_in_parts(
                self._engine, counter, self._sources.files, PartSums(counter.fresh_copy()), self._progress
            )
        else:
            results = self._summaries(counter, UserSet(self._users))
        total = summed(0, results)
        if not self.intake.accepted:
            raise InvalidInput("; ".join(["no report can be used", *self.intake.lines()]))
        return total

    def _summaries(self, counter: ReportCounter, counted_users: UserSet) -> Iterator[tuple[Any, ...]]:
        for piece, origin in counter.pieces(self._sources.in_order()):
            yield from counter.accepted(piece, origin, counted_users)
            self._progress(len(piece))
