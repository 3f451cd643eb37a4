"""Questions as queries: one for each bucketing of a round, whose answers are exact totals of occupied buckets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import attrs
import numpy as np
import pyarrow as pa

from cloister.core.questions import OpenedQuestion
from cloister.core.types import Ints
from cloister.rows.databases.buckets import located
from cloister.rows.databases.database import EngineFailed
from cloister.rows.databases.stage import Described, Located, Stage
from cloister.rows.databases.vectors import Summed, summed

WRONG = "the engine's answer is not one to what it was asked: nothing was answered, and no part of an answer is kept"


@final
@attrs.frozen(eq=False)
class Occupied:
    """Exact totals of the occupied buckets of one level. Args: ids (m,) ascending; values, rows (m,) or sums (m, d)."""

    ids: Ints = attrs.field(repr=False)
    values: Ints = attrs.field(repr=False)


@final
@attrs.frozen(eq=False)
class Grouped:
    """An engine's answer, by bucket id (m,), -1 for none. Args: ids, rows (m,), marks (m,), sums (m, columns)."""

    ids: Ints
    rows: Ints
    marks: Ints
    sums: Ints

    @classmethod
    def of(cls, answer: Any) -> Grouped:
        """From an Arrow table of the columns id, rows, mark, s0, s1, ...

        Raises: EngineFailed: it is no answer to what was asked: a bucket comes twice, say, or a number is none.
        """
        columns = [_integers(column) for column in answer.columns]
        order = np.argsort(columns[0])
        ids, rows, marks, *sums = (column[order] for column in columns)
        if not (np.diff(ids, prepend=-2) > 0).all() or not (rows > 0).all():
            raise EngineFailed(WRONG)
        return cls(ids, rows, marks, np.stack(sums, axis=1) if sums else np.zeros((len(ids), 0), np.int64))

    @property
    def inside(self) -> Grouped:
        """Without the rows in no bucket."""
        there = self.ids >= 0
        return Grouped(self.ids[there], self.rows[there], self.marks[there], self.sums[there])


def _integers(column: Any) -> Ints:
    """Raises: EngineFailed: some are missing, or of another type; decimals without a fraction are integers."""
    whole = pa.types.is_integer(column.type) or (pa.types.is_decimal(column.type) and column.type.scale == 0)
    if not whole or column.null_count:
        raise EngineFailed(WRONG)
    return np.asarray(column.to_numpy().astype(np.int64))


@final
@attrs.frozen(eq=False)
class Compiled:
    """The questions about one bucketing, as queries.

    Args:
        buckets: where rows are.
        sums: what is added up, in the order of the columns s0, s1, ...
        vectors: for each question, which of ``sums`` it asks for; None for a count.
        nested: whether only the last level is counted.
    """

    buckets: Located
    sums: tuple[Summed, ...]
    vectors: tuple[int | None, ...]
    nested: bool

    @classmethod
    def of(cls, stage: Stage, parts: Sequence[OpenedQuestion], known: Described) -> Compiled:
        """Args: parts, which have one bucketing. Raises: NotCompiled: something of it has no form in SQL."""
        cells = parts[0].cells
        buckets = located(stage, known.of(cells), known)
        sums, vectors = list[Summed](), list[int | None]()
        for part in parts:
            vectors.append(None if part.vectors is None else len(sums))
            if part.vectors is not None:
                found = summed(buckets, known.of(part.vectors), known)
                buckets = attrs.evolve(buckets, stage=found.stage)
                sums.append(found)
        return cls(buckets, tuple(sums), tuple(vectors), cells.space.nested)

    def queries(self, mark: str | None) -> list[Any]:
        """Tables of id, rows, mark and sums, one row per bucket. Args: mark, name of a column of hashes."""
        table = self.buckets.stage.table
        columns = [name for some in self.sums for name in some.columns]
        sums = {f"s{i}": table[name].cast("int32").sum().cast("int64") for i, name in enumerate(columns)}
        marked = table.count() if mark is None else table[mark].sum()
        return [
            table.group_by(id=table[ids]).aggregate(rows=table.count(), mark=marked.cast("int64"), **sums)
            for ids in self.buckets.ids
        ]

    def totals(self, answers: Sequence[Grouped]) -> list[list[Occupied]]:
        """For each question, the totals of the levels that are counted. Args: answers, of the queries."""
        return [self._of(vectors, answers) for vectors in self.vectors]

    def _of(self, vectors: int | None, answers: Sequence[Grouped]) -> list[Occupied]:
        levels = self.buckets.levels[-1:] if self.nested else self.buckets.levels
        return [_shifted(self._level(vectors, answers[group].inside), down) for group, down in levels]

    def _level(self, vectors: int | None, found: Grouped) -> Occupied:
        if vectors is None:
            return Occupied(found.ids, found.rows)
        first = sum(len(some.columns) for some in self.sums[:vectors])
        some = self.sums[vectors]
        mine = found.sums[:, first : first + len(some.columns)]
        return Occupied(found.ids, some.finished(found.ids, found.rows, mine))


def _shifted(found: Occupied, down: int) -> Occupied:
    """The totals of a coarser level, whose ids are these without their lowest bits."""
    if not down:
        return found
    ids, mine = np.unique(found.ids >> down, return_inverse=True)
    values = np.zeros((len(ids), *found.values.shape[1:]), np.int64)
    np.add.at(values, mine, found.values)
    return Occupied(ids, values)
