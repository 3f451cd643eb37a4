"""A population of users who have sent reports, read from files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import chain
from typing import TYPE_CHECKING, Any, final

import numpy as np

from cloister.collection.intake.refusals import REPORTS
from cloister.collection.intake.sent import Origin, SentFiles, isolated
from cloister.collection.wire import reports as wire
from cloister.collection.wire.columns import ReportType, numbers, report_types, valid, with_arrow
from cloister.collection.wire.user_set import UserSet
from cloister.core.encoding import absorb, keep_memory, merge_summaries
from cloister.core.errors import InvalidInput, Refused
from cloister.core.questions import OpenedQuestion, Round
from cloister.core.randomness import NoiseRng
from cloister.core.types import AnyArray, Bools, Ints

if TYPE_CHECKING:
    import pyarrow as pa

PIECE = 2**17
"""Reports that are summed at once, across files: a summary takes K d numbers, however few its reports are."""


@final
class Collected(SentFiles):
    """Users' reports in files, summed as they are read: memory does not grow with the files.

    Memory: the oracles' summaries, which are O(K d) for oracles that can list their buckets, one bit per planned user,
    and a bounded number of reports. Oracles that cannot list their buckets (explicit-histogram) keep every report.

    Guarantee: a file counts only if it can be read to its end; a report counts only if an encoder of this round could
    have sent it, and at most one per user does. Summaries are exact integers, so the result does not depend on the
    order of files or reports, or on how reports are divided over files, as long as all reports of one user are equal.
    If they differ, the first possible one counts: somebody else used her number, and nobody can tell who.

    Parquet pages that carry checksums are verified. Arrow files have none: a bit flipped inside an answer changes the
    answer unnoticed.
    """

    kind = REPORTS

    def gather(self, round: Round[Any], rng: NoiseRng) -> tuple[Any, ...]:
        """Sum the reports of the round; draws no randomness.

        Raises: InvalidInput: no report can be used; or a file changes while it is read. Refused: something was refused
            under ``strict``.
        """
        keep_memory()
        self.intake = self._nothing(len(round.parts))
        schema, seen = wire.schema(round, self._plan), UserSet(self._users)
        nothing = absorb(round, wire.from_batch(with_arrow().RecordBatch.from_pylist([], schema=schema), round))
        counted = (self._counted(round, piece, origin, seen) for piece, origin in self._pieces(schema))
        total = reduce(merge_summaries, chain.from_iterable(counted), nothing)
        if not self.intake.accepted:
            raise InvalidInput("; ".join(["no report can be used", *self.intake.lines()]))
        return total

    def _pieces(self, schema: pa.Schema) -> Iterator[tuple[pa.RecordBatch, Origin]]:
        """Merge batches of files into larger pieces; yields each with the file of every row."""
        held, count = list[tuple[str, Any]](), 0
        for path in self._files:
            for batch in self._batches(path, schema):
                held.append((path, batch))
                count += batch.num_rows
                if count >= PIECE:
                    yield _joined(held)
                    held, count = [], 0
        if count:
            yield _joined(held)

    def _counted(
        self, round: Round[Any], piece: pa.RecordBatch, origin: Origin, seen: UserSet
    ) -> Iterator[tuple[Any, ...]]:
        """Yield summaries of the reports in a piece that count."""
        users, left = numbers(piece.column(0)), np.arange(piece.num_rows)
        left = self._kept(left, valid(piece.column(0)) & (users < self._users), "out of range", origin)
        left = self._kept(left, wire.sound(_taken(piece, left), round), "not as asked", origin)
        yield from self._once(seen, users, left, lambda rows: self._absorbed(round, piece, rows, origin), origin)
        self._progress(piece.num_rows)

    def _absorbed(
        self, round: Round[Any], piece: pa.RecordBatch, rows: Ints, origin: Origin
    ) -> Iterator[tuple[Ints, tuple[Any, ...]]]:
        """Yield rows and summaries of these rows of different users, without the impossible ones."""

        def read(some: Ints) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
            reports = wire.from_batch(_taken(piece, some), round)
            return reports, absorb(round, reports)

        found: Iterable[tuple[Ints, Any]]
        try:
            found = [(rows, read(rows))]
        except Refused:
            rows = self._kept(rows, _possible(round, _taken(piece, rows)), "impossible", origin)
            found = isolated(rows, read) if len(rows) else ()
        for some, both in found:
            if both is None:
                self._kept(some, np.zeros(1, bool), "impossible", origin)
                continue
            for number, report in enumerate(both[0]):
                self.intake.questions[number] += len(report.columns()["users"])
            yield some, both[1]


def _possible(round: Round[Any], batch: pa.RecordBatch) -> Bools:
    """Which rows (n,) of different users an encoder could have sent. Checked by question: a round may have fifty, of
    which a user answers one."""
    bad = [numbers(batch.column(0))[:0]]
    for part, kind, given in zip(round.parts, report_types(round), wire.columns_of(batch, round), strict=True):

        def read(
            some: Ints, part: OpenedQuestion = part, kind: ReportType = kind, given: dict[str, AnyArray] = given
        ) -> Any:
            return part.channel.absorb(kind.load({name: values[some] for name, values in given.items()}))

        alone = isolated(np.arange(len(given["users"])), read)
        bad += [given["users"][some] for some, found in alone if found is None]
    return ~np.isin(numbers(batch.column(0)), np.concatenate(bad))


def _taken(piece: Any, rows: Ints) -> Any:
    return piece if len(rows) == piece.num_rows else piece.take(rows)


def _joined(held: Sequence[tuple[str, Any]]) -> tuple[Any, Origin]:
    """One batch of several, and a function from its rows to their files."""
    pa, ends = with_arrow(), np.cumsum([batch.num_rows for _, batch in held])
    plain = [pa.RecordBatch.from_arrays(batch.columns, names=batch.schema.names) for _, batch in held]
    whole = plain[0] if len(plain) == 1 else pa.Table.from_batches(plain).combine_chunks().to_batches()[0]
    return whole, lambda row: held[int(np.searchsorted(ends, row, side="right"))][0]
