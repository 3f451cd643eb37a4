"""Counts the reports of one round, piece by piece."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, final

import numpy as np

from cloister.collection.intake.refusals import Intake
from cloister.collection.intake.sent import Origin, Sieve, isolated
from cloister.collection.intake.sources import Stream, Stretch
from cloister.collection.wire import reports as wire
from cloister.collection.wire.answers import layout_of
from cloister.collection.wire.blocks import Block
from cloister.collection.wire.listing import is_bytes
from cloister.collection.wire.user_set import UserSet
from cloister.core.encoding import absorb
from cloister.core.errors import Refused
from cloister.core.questions import Round
from cloister.core.types import Bools, Ids, Ints

PIECE = 2**17
"""Reports that are summed at once, across files: a summary takes K d numbers, however few its reports are."""


@final
class ReportCounter(Sieve):
    """Counts reports of a round. Args: as for ``Sieve``; users (planned number)."""

    def __init__(
        self, intake: Intake, round: Round[Any], head: str, users: int, earlier: Collection[str] = ()
    ) -> None:  # fmt: skip
        super().__init__(intake, round, head, earlier)
        self.users, self._layout = users, layout_of(round)

    def afresh(self) -> ReportCounter:
        """A counter of the same round that has counted nothing yet, and refuses without failing."""
        nothing = Intake(self.intake.kind, questions=[0] * len(self.round.parts))
        return ReportCounter(nothing, self.round, self.head, self.users, self.earlier)

    def nothing(self) -> tuple[Any, ...]:
        """Summaries of no report."""
        return absorb(self.round, self._layout.reports(np.empty(0, np.uint64), self._layout.empty(0)))

    def blocks(self, where: Stretch | Stream) -> Iterator[Block]:
        """The reports of a file of any form, or of a stream, a bounded number at a time."""
        if isinstance(where, Stretch) and not is_bytes(where.name):
            for batch in self.batches(where.name, wire.schema(self.round, self.head)):
                yield wire.block_of(batch, self.round)
        else:
            for found in self.parsed(where):
                yield Block(found.users, found.answers)

    def numbers(self, where: Stretch) -> Iterator[tuple[Ids, Bools]]:
        """The user numbers of what ``blocks`` yields, and which of them the plan has."""
        for block in self.blocks(where):
            yield block.users, self.within(block)

    def pieces(self, some: Iterable[Stretch | Stream]) -> Iterator[tuple[Block, Origin]]:
        """Merge blocks into larger pieces; yields each with the file of every row."""
        held, count = list[tuple[str, Block]](), 0
        for where in some:
            for block in self.blocks(where):
                held.append((where.name, block))
                count += len(block)
                if count >= PIECE:
                    yield _joined(held)
                    held, count = [], 0
        if count:
            yield _joined(held)

    def within(self, block: Block) -> Bools:
        """Which reports (n,) are of users whom the plan has."""
        good: Bools = block.without("out of range") & (block.users < self.users)
        return good

    def counted(self, block: Block, origin: Origin, seen: UserSet | None) -> Iterator[tuple[Any, ...]]:
        """Yield summaries of the reports in a block that count. Args: seen (user numbers that count already; None: no
        number of these reports stands anywhere else)."""
        left = self.kept(np.arange(len(block)), self.within(block), "out of range", origin)
        now = block.of(left)
        sound = now.without("not as asked") & self._layout.sound(now.users, now.answers)
        left = self.kept(left, sound, "not as asked", origin)
        if seen is not None:
            yield from self.once(seen, block.users, left, lambda rows: self._absorbed(block, rows, origin), origin)
            return
        for rows, found in self._absorbed(block, left, origin) if len(left) else ():
            self.intake.accepted += len(rows)
            yield found

    def _absorbed(self, block: Block, rows: Ints, origin: Origin) -> Iterator[tuple[Ints, tuple[Any, ...]]]:
        """Yield rows and summaries of these rows of different users, without the impossible ones."""

        def read(some: Ints) -> tuple[tuple[int, ...], tuple[Any, ...]]:
            these = block.of(some)
            reports = self._layout.reports(these.users, these.answers)
            return tuple(len(report.columns()["users"]) for report in reports), absorb(self.round, reports)

        rows = self.kept(rows, block.of(rows).without("impossible"), "impossible", origin)
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
