"""A population of users who have sent reports, read from files and streams, piece by piece.

On the workers of an engine parts are counted: the same result as one pass, to the last bit. Summaries are exact
integers, so parts may be added up in any order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import reduce
from typing import Any, final

import attrs
import numpy as np

from cloister.collection.intake.parts import counted_apart
from cloister.collection.intake.sources import Stream, Stretch
from cloister.collection.intake.validator import REPORTS, Intake, Origin, ReportValidator, SentFiles, isolated
from cloister.collection.wire.answers import layout_of
from cloister.collection.wire.batches import Block
from cloister.collection.wire.user_set import UserSet
from cloister.core.encoding import absorb, keep_memory, merge_summaries
from cloister.core.errors import InvalidInput, Refused
from cloister.core.questions import Round
from cloister.core.randomness import NoiseRng
from cloister.core.types import Bools, Ids, Ints

PIECE = 2**17
"""Reports that are summed at once, across files: a summary takes K d numbers, however few its reports are."""


@final
class ReportCounter(ReportValidator):
    """Counts reports of a round. Args: as for ``ReportValidator``; users (planned number)."""

    def __init__(self, intake: Intake, round: Round[Any], head: str, users: int, earlier: Collection[str] = ()) -> None:
        super().__init__(intake, round, head, earlier)
        self.users, self._layout = users, layout_of(round)

    def nothing(self) -> tuple[Any, ...]:
        """Summaries of no report."""
        return absorb(self.round, self._layout.reports(np.empty(0, np.uint64), self._layout.empty(0)))

    def pieces(self, some: Iterable[Stretch | Stream]) -> Iterator[tuple[Block, Origin]]:
        """Reports, those of small blocks and files together, and the file of each."""
        held, count = list[tuple[str, Block]](), 0
        for where in some:
            for found in self.parsed(where):
                held.append((where.name, Block(found.users, found.answers)))
                count += len(found.users)
                if count >= PIECE:
                    yield _joined(held)
                    held, count = [], 0
        if count:
            yield _joined(held)

    def counted(self, block: Block, origin: Origin, seen: UserSet | None) -> Iterator[tuple[Any, ...]]:
        """Yield summaries of the reports in a block that count. Args: seen (user numbers that count already; None: no
        number of these reports stands anywhere else)."""
        left = self.kept(np.arange(len(block)), block.users < self.users, "out of range", origin)
        now = block.of(left)
        left = self.kept(left, self._layout.sound(now.users, now.answers), "not as asked", origin)
        yield from self.once(seen, block.users, left, lambda rows: self._absorbed(block, rows, origin), origin)

    def _absorbed(self, block: Block, rows: Ints, origin: Origin) -> Iterator[tuple[Ints, tuple[Any, ...]]]:
        """Yield rows and summaries of these rows of different users, without the impossible ones."""

        def read(some: Ints) -> tuple[tuple[int, ...], tuple[Any, ...]]:
            these = block.of(some)
            reports = self._layout.reports(these.users, these.answers)
            return tuple(len(report.columns()["users"]) for report in reports), absorb(self.round, reports)

        found: Iterable[tuple[Ints, Any]]
        try:
            found = [(rows, read(rows))]
        except Refused:
            rows = self.kept(rows, self._possible(block.of(rows)), "impossible", origin)
            found = isolated(rows, read) if len(rows) else ()
        for some, both in found:
            if both is None:
                self.kept(some, np.zeros(1, bool), "impossible", origin)
                continue
            for number, count in enumerate(both[0]):
                self.intake.questions[number] += count
            yield some, both[1]

    def _possible(self, block: Block) -> Bools:
        """Which reports (n,) of different users an encoder could have sent. Checked by question: a round may have
        fifty, of which a user answers one."""
        good = np.ones(len(block), bool)
        parts = zip(self.round.parts, self._layout.parts(block.users, block.answers), strict=True)
        for part, (body, rows, bodies) in parts:
            users = block.users[rows]

            def read(some: Ints, part: Any = part, body: Any = body, users: Ids = users, bodies: Any = bodies) -> Any:
                return part.channel.absorb(body.report(users[some], bodies[some]))

            theirs = np.arange(len(block))[rows]
            for some, found in isolated(np.arange(len(users)), read):
                good[theirs[some]] &= found is not None
        return good


def _joined(held: list[tuple[str, Block]]) -> tuple[Block, Origin]:
    """One block of several, and a function from its rows to their files."""
    ends, (names, blocks) = np.cumsum([len(block) for _, block in held]), zip(*held, strict=True)
    return Block.joined(list(blocks)), lambda row: names[int(np.searchsorted(ends, row, side="right"))]


@final
@attrs.frozen
class PartSums:
    """Adds up the summaries of a part: exact integers, so parts may be added up in any order. Args: counter."""

    counter: ReportCounter

    def __call__(self, number: int, found: Iterable[tuple[Any, ...]]) -> tuple[Any, ...]:
        return reduce(merge_summaries, found, self.counter.nothing())


@final
class Collected(SentFiles):
    """Users' reports, summed as they are read: memory does not grow with them.

    Memory: the oracles' summaries, which are O(K d) for oracles that can list their buckets, one bit per planned user,
    and a bounded number of reports. Oracles that cannot list their buckets (explicit-histogram) keep every report.

    Guarantee: a Parquet or Arrow file counts only if it can be read to its end, of bytes every whole batch does; a
    report counts only if an encoder of this round could have sent it, and at most one per user does. Summaries are
    exact integers, so the result does not depend on the form of the reports, on the order of files or reports, or on
    how reports are divided over files, as long as all reports of one user are equal. If they differ, the first possible
    one counts: somebody else used her number, and nobody can tell who.

    Batches of bytes and Parquet pages carry checksums, which are verified (in Parquet where there are any). Arrow files
    and single reports have none: a bit flipped inside an answer changes the answer unnoticed.
    """

    kind = REPORTS

    def gather(self, round: Round[Any], rng: NoiseRng) -> tuple[Any, ...]:
        """Sum the reports of the round; draws no randomness.

        Raises: InvalidInput: no report can be used; or a file changes while it is read. Refused: something was refused
            under ``strict``.
        """
        keep_memory()
        self.intake = self._nothing(len(round.parts))
        counter = ReportCounter(self.intake, round, self._head, self._users, self._earlier)
        summed = PartSums(counter)
        if self._engine.apart:
            found = counted_apart(
                self._engine, counter, self._sources.files, PartSums(counter.afresh()), self._progress
            )
        else:
            found = self._summaries(counter, UserSet(self._users))
        total = summed(0, found)
        if not self.intake.accepted:
            raise InvalidInput("; ".join(["no report can be used", *self.intake.lines()]))
        return total

    def _summaries(self, counter: ReportCounter, seen: UserSet) -> Iterator[tuple[Any, ...]]:
        for piece, origin in counter.pieces(self._sources.opened()):
            yield from counter.counted(piece, origin, seen)
            self._progress(len(piece))
