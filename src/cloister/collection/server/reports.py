"""A population of users who have sent reports, read from files and streams."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Any, final

from cloister.collection.intake.refusals import REPORTS
from cloister.collection.intake.sent import SentFiles
from cloister.collection.server.counter import ReportCounter
from cloister.collection.server.parts import on_engine
from cloister.collection.wire.user_set import UserSet
from cloister.core.encoding import keep_memory, merge_summaries
from cloister.core.errors import InvalidInput
from cloister.core.questions import Round
from cloister.core.randomness import NoiseRng


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
        if self._engine.apart:
            found = on_engine(self._engine, counter, self._sources.files, self._progress)
        else:
            found = self._summaries(counter, UserSet(self._users))
        total = reduce(merge_summaries, found, counter.nothing())
        if not self.intake.accepted:
            raise InvalidInput("; ".join(["no report can be used", *self.intake.lines()]))
        return total

    def _summaries(self, counter: ReportCounter, seen: UserSet) -> Iterator[tuple[Any, ...]]:
        for piece, origin in counter.pieces(self._sources.opened()):
            yield from counter.counted(piece, origin, seen)
            self._progress(len(piece))
