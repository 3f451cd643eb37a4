"""Rows in Arrow batches, in this process or an engine's Python workers, with the hashes that detect changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, final

import attrs
import numpy as np
import pyarrow as pa

from cloister.core.encoding import finite, map_merge, merge_summaries
from cloister.core.errors import InvalidInput
from cloister.core.questions import Round
from cloister.core.randomness import NoiseRng
from cloister.core.types import Floats
from cloister.rows.reading import Chunk
from cloister.rows.users import numbers_of, numbers_of_nobody
from cloister.rows.workers.threads import Threads

ODD_NUMBER = 0x9E37_79B9_7F4A_7C15

FINISH = 0xFF51_AFD7_ED55_8CCD, 0xC4CE_B9FE_1A85_EC53
"""Multipliers of MurmurHash3's 64-bit finaliser."""


@final
@attrs.frozen
class RowFacts:
    """Row count and hash of rows, which detect changes.

    Args:
        rows: number of usable rows.
        mark: sum of their hashes, if known.
    """

    rows: int
    mark: int | None

    def same(self, other: RowFacts) -> bool:
        """Return True if both may describe the same rows, as far as is known of these."""
        return self.rows == other.rows and self.mark in (None, other.mark)

    def plus(self, other: RowFacts) -> RowFacts:
        return RowFacts(self.rows + other.rows, (self.mark or 0) + (other.mark or 0))


def refuse_changed(facts: RowFacts, expected: RowFacts) -> None:
    """Raise InvalidInput if the rows changed since the run began."""
    if not facts.same(expected):
        raise InvalidInput(
            "the rows are not what they were when this run began: nothing of this round is answered; copy them "
            "first with --materialise (materialise=True), or leave the table alone while a run lasts"
        )


def hashed(rows: Floats) -> int:
    """Return the sum of hashes of rows (n, d): equal rows have equal hashes, and the order of columns matters.

    The last cell is mixed like the others: integers have few bits, all of them high, which a single product would keep
    high; two rows that exchange it would often have the same sum.
    """
    mixed = np.zeros(len(rows), np.uint64)
    for column in rows.T:
        mixed = (mixed ^ (column + 0.0).view(np.uint64)) * np.uint64(ODD_NUMBER)
        mixed ^= mixed >> np.uint64(32)
    for factor in FINISH:
        mixed *= np.uint64(factor)
        mixed ^= mixed >> np.uint64(32)
    return int((mixed >> np.uint64(32)).sum())


@final
@attrs.frozen
class Batches:
    """Converter of Arrow batches to chunks.

    Args:
        features: names of the columns of doubles.
        marked: name of the column of the engine's hashes, if there is one.
        named: name of the user column, if there is one.
        here: whether rows are hashed by ``hashed`` instead.
        numbered: whether users have numbers (else all are 0). Then unusable rows are included; one that names nobody
            has a number of its own and no cells, so it is in no bucket.
    """

    features: list[str]
    marked: list[str]
    named: list[str]
    here: bool
    numbered: bool = False

    @property
    def columns(self) -> list[str]:
        """Columns to read."""
        return [*self.features, *self.marked, *self.named]

    def chunks(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Chunk, RowFacts]]:
        """Yield chunks (at least one, possibly empty) with the facts of their rows."""
        start, nameless = 0, 0
        for batch in batches:
            rows = np.stack([batch.column(name).to_numpy(zero_copy_only=False) for name in self.features]).T
            usable = finite(rows)
            mark = hashed(rows[usable]) if self.here else 0
            users = np.zeros(len(rows), np.uint64)
            for name in self.named:
                named = batch.column(name).is_valid().to_numpy(zero_copy_only=False)
                usable = np.ones(len(rows), bool) if self.numbered else usable & named
                if self.numbered:
                    names = batch.column(name).drop_null().to_numpy(zero_copy_only=False)
                    users[named] = numbers_of(names)
                    users[~named] = numbers_of_nobody(nameless, int((~named).sum()))
                    nameless += int((~named).sum())
                    rows[~named] = np.nan
            for name in self.marked:
                mark += int(batch.column(name).fill_null(0).to_numpy(zero_copy_only=False)[usable].sum())
            yield Chunk(start, rows, users=users), RowFacts(int(usable.sum()), mark)
            start += len(rows)
        if not start:
            yield Chunk(0, np.empty((0, len(self.features))), users=np.empty(0, np.uint64)), RowFacts(0, 0)


@final
@attrs.frozen(eq=False)
class PassResult:
    """Result of one pass over some rows.

    Args:
        rows: number of all rows.
        seen: facts of the usable ones.
        summaries: one per question.
    """

    rows: int
    seen: RowFacts
    summaries: tuple[Any, ...]

    def merge(self, other: PassResult) -> PassResult:
        summaries = merge_summaries(self.summaries, other.summaries)
        return PassResult(self.rows + other.rows, self.seen.plus(other.seen), summaries)


@final
@attrs.frozen(eq=False)
class Pass:
    """Work of an engine's worker on a partition: count, hash and summarise its rows.

    No randomness is sent: questions without user numbers draw none before the merge, and a channel gets the worker's
    own.

    Args:
        reading: converter of the batches.
        round: None to count rows only.
    """

    reading: Batches
    round: Round[Any] | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> PassResult:
        rng = NoiseRng.secret()

        def one(read: tuple[Chunk, RowFacts]) -> PassResult:
            chunk, facts = read
            return PassResult(len(chunk.rows), facts, () if self.round is None else chunk.summary(self.round, rng))

        return map_merge(self.reading.chunks(batches), one, PassResult.merge, Threads(1).run)
