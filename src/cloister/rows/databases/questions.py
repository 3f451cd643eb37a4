"""Questions as SQL queries: one per bucketing of a round, whose answers are the exact totals of occupied buckets.

The engine sums the vectors of ``docs/reference/format_questions.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, final

import attrs
import ibis
import numpy as np
import pyarrow as pa
import sqlglot.expressions as sge

from cloister.core.lattice import Bound
from cloister.core.questions import OpenedQuestion
from cloister.core.types import Ints
from cloister.rows.databases.buckets import locate, norm
from cloister.rows.databases.database import EngineFailed
from cloister.rows.databases.lattices import UNDER, is_within, shrink
from cloister.rows.databases.stage import (
    Described,
    Description,
    Expr,
    Located,
    NotCompiled,
    Stage,
    longest,
    number,
    refuse_inexact,
    refuse_wide,
    selected,
    squared,
    truncated,
)


@final
@attrs.frozen(eq=False)
class Summed:
    """Vectors to sum.

    Args:
        stage: the rows.
        columns: names of the vectors' components, integer-valued doubles of at most 2^21.
        origins: subtracted from the vectors of each bucket (m, d), or from all (1, d), after summing: the row count
            times the origin is exact, and the engine need not know it. None for nothing.
    """

    stage: Stage
    columns: tuple[str, ...]
    origins: Ints | None = None

    def finished(self, ids: Ints, rows: Ints, sums: Ints) -> Ints:
        """Return the sums (m, dimension) of the vectors, from the ids, row counts and column sums of m buckets."""
        if self.origins is None:
            return sums
        origins = self.origins if len(self.origins) == 1 else self.origins[ids]
        return sums - rows[:, None] * origins


Sum: TypeAlias = Callable[[Located, Description, Described], Summed]


def compile_vectors(buckets: Located, vectors: Description, descriptions: Described) -> Summed:
    """Compile vectors; raise NotCompiled if there is no SQL for them."""
    if vectors["kind"] not in KINDS:
        raise NotCompiled(f"vectors of kind '{vectors['kind']}' have no form in SQL")
    return KINDS[vectors["kind"]](buckets, vectors, descriptions)


def _rows(buckets: Located, vectors: Description, descriptions: Described) -> Summed:
    """Compile rows themselves; they are shrunk only if their domain's bound exceeds the vectors' bound."""
    stage, bound = buckets.stage, _bound(vectors)
    assert stage.bound is not None
    if is_within(stage.bound, bound):
        return Summed(stage, stage.row)
    return _columns(buckets, shrink(stage, bound, stage.bound.l2))


def _offsets(buckets: Located, vectors: Description, descriptions: Described) -> Summed:
    """Compile x - c: it is no longer than x and c together, nor than the radius of a bucket of ``centers`` around c.

    If that is within the bound, as it is for all offsets of our methods, nothing is shrunk: the engine sums rows, and c
    times the row count is subtracted afterwards.
    """
    stage, bound, centers = buckets.stage, _bound(vectors), descriptions.array(vectors["centers"])
    reach = longest(stage) + norm(centers)
    if buckets.near is not None and np.array_equal(buckets.near.centers, centers) and buckets.near.within is not None:
        reach = min(reach, buckets.near.within)
    if len(buckets.levels) == 1 and is_within(Bound(reach, bound.dimension), bound):
        return Summed(stage, stage.row, centers)
    return _columns(buckets, shrink(_away(buckets, centers), bound, longest(stage) + norm(centers)))


def _clipped(buckets: Located, vectors: Description, descriptions: Described) -> Summed:
    """Compile clipped and scaled offsets.

    u = x - c, f = (scale (1 - 2^-30)) / max(|u|, r), v = trunc(u f), and trunc(f r / 2) if it is weighted.

    |v| <= scale: each of four roundings raises a number by a relative 2^-53 at most, and f is too small by 2^-30. So
    |v_0| + ... + |v_(d-1)|, an integer, is at most the integer part of sqrt(d) scale, and a weight at most scale / 2.
    """
    bound, scale = _bound(vectors), int(vectors["scale"])
    centers, radii = descriptions.array(vectors["centers"]), descriptions.array(vectors["radii"])
    refuse_inexact((longest(buckets.stage) + norm(centers)) ** 2)
    stage = _away(buckets, centers)
    stage, (squares, radius) = stage.add(squared(stage.x), _of_bucket(stage, buckets, radii))
    stage, (factor,) = stage.add(number(scale * UNDER) / ibis.greatest(stage[squares].sqrt(), stage[radius]))
    weight = [stage[factor] * (stage[radius] * number(0.5))] if vectors["weighted"] else []
    stage = stage.moved([x * stage[factor] for x in stage.x] + weight)
    stage = stage.moved([truncated(v) for v in stage.x])
    half = scale // 2 if weight else 0
    vector_bound = Bound(math.isqrt(scale**2 + half**2 - 1) + 1, bound.dimension)
    vector_bound = attrs.evolve(
        vector_bound, l1=min(vector_bound.implied, math.isqrt(centers.shape[1] * scale**2) + half)
    )
    return _columns(buckets, stage if is_within(vector_bound, bound) else shrink(stage, bound, vector_bound.l2))


def _bound(vectors: Description) -> Bound:
    return Bound(vectors["l2"], vectors["dimension"], vectors["l1"])


def _away(buckets: Located, centers: Ints) -> Stage:
    """Subtract from each row the centre (m, d) of its bucket, or one centre (1, d)."""
    refuse_wide(centers.size)
    stage = buckets.stage
    return stage.moved([x - _of_bucket(stage, buckets, column) for x, column in zip(stage.x, centers.T, strict=True)])


def _of_bucket(stage: Stage, buckets: Located, values: Ints) -> Expr:
    """Return the value of each row's bucket (m,), or of all (1,); periodic values are looked up within one period."""
    if len(values) == 1:
        return number(values[0])
    ids = stage[buckets.first]
    for period in range(1, len(values)):
        if np.array_equal(values[period:], values[:-period]) and len(values) % period == 0:
            return selected(ids % period, values[:period])
    return selected(ids, values)


def _columns(buckets: Located, stage: Stage) -> Summed:
    """Return a stage's rows as vectors, while the buckets' own rows stay unchanged."""
    return Summed(attrs.evolve(stage, row=buckets.stage.row), stage.row)


KINDS: dict[str, Sum] = {"rows": _rows, "offsets": _offsets, "clipped": _clipped}
"""Compiler of each kind of vectors."""


WRONG = "the engine's answer does not fit its query: nothing was answered, and no part of an answer is kept"


@final
@attrs.frozen(eq=False)
class Occupied:
    """Exact totals of the occupied buckets of one level.

    Args:
        ids: (m,) ascending.
        values: row counts (m,) or sums (m, d).
    """

    ids: Ints = attrs.field(repr=False)
    values: Ints = attrs.field(repr=False)


@final
@attrs.frozen(eq=False)
class Grouped:
    """Answer of an engine, by bucket id.

    Args:
        ids: (m,) ascending, -1 for rows in no bucket.
        rows: (m,) row counts.
        marks: (m,) sums of hashes.
        sums: (m, columns).
    """

    ids: Ints
    rows: Ints
    marks: Ints
    sums: Ints

    @classmethod
    def of(cls, answer: Any) -> Grouped:
        """Read an Arrow table of the columns id, rows, mark, s0, s1, ...

        Raises:
            EngineFailed: the table is malformed, such as a duplicate bucket or a missing number.
        """
        columns = [_integers(column) for column in answer.columns]
        order = np.argsort(columns[0])
        ids, rows, marks, *sums = (column[order] for column in columns)
        if not (np.diff(ids, prepend=-2) > 0).all() or not (rows > 0).all():
            raise EngineFailed(WRONG)
        return cls(ids, rows, marks, np.stack(sums, axis=1) if sums else np.zeros((len(ids), 0), np.int64))

    @property
    def inside(self) -> Grouped:
        """The answer without rows in no bucket."""
        there = self.ids >= 0
        return Grouped(self.ids[there], self.rows[there], self.marks[there], self.sums[there])


def _integers(column: Any) -> Ints:
    """Return a column as int64; decimals without a fraction are accepted.

    Raises:
        EngineFailed: values are missing or not integers.
    """
    is_integer = pa.types.is_integer(column.type) or (pa.types.is_decimal(column.type) and column.type.scale == 0)
    if not is_integer or column.null_count:
        raise EngineFailed(WRONG)
    return np.asarray(column.to_numpy().astype(np.int64))


@final
@attrs.frozen(eq=False)
class Compiled:
    """Questions about one bucketing, as queries.

    Args:
        buckets: location of the rows.
        sums: what is summed, in the order of the columns s0, s1, ...
        vectors: for each question, its index in ``sums``; None for a count.
        nested: whether only the last level is counted.
    """

    buckets: Located
    sums: tuple[Summed, ...]
    vectors: tuple[int | None, ...]
    nested: bool

    @classmethod
    def of(cls, stage: Stage, parts: Sequence[OpenedQuestion], descriptions: Described) -> Compiled:
        """Compile questions with one bucketing; raise NotCompiled if a part has no form in SQL."""
        cells = parts[0].cells
        buckets = locate(stage, descriptions.of(cells), descriptions)
        sums, vectors = list[Summed](), list[int | None]()
        for part in parts:
            vectors.append(None if part.vectors is None else len(sums))
            if part.vectors is not None:
                vector_sum = compile_vectors(buckets, descriptions.of(part.vectors), descriptions)
                buckets = attrs.evolve(buckets, stage=vector_sum.stage)
                sums.append(vector_sum)
        return cls(buckets, tuple(sums), tuple(vectors), cells.space.nested)

    def queries(self, mark: str | None, sets: bool = False) -> list[Any]:
        """Return tables of id, rows, mark and sums with one row per bucket.

        With GROUPING SETS it is one table of several id columns, all but one of which are NULL in each row.

        Args:
            mark: name of a column of hashes.
            sets: ``Dialect.sets``.
        """
        table = self.buckets.stage.table
        columns = [name for vector_sum in self.sums for name in vector_sum.columns]
        sums = {f"s{i}": table[name].cast("int32").sum().cast("int64") for i, name in enumerate(columns)}
        marked = table.count() if mark is None else table[mark].sum()
        ids, totals = self.buckets.ids, {"rows": table.count(), "mark": marked.cast("int64"), **sums}
        if sets and len(ids) > 1:
            return [_in_sets(table.group_by([table[name] for name in ids]).aggregate(**totals), len(ids))]
        return [table.group_by(id=table[name]).aggregate(**totals) for name in ids]

    def grouped(self, answers: Sequence[Any]) -> list[Grouped]:
        """Read the answers to the queries, one per id column; raises as ``Grouped.of``."""
        ids = self.buckets.ids
        if len(answers) == len(ids):
            return [Grouped.of(answer) for answer in answers]
        (answer,) = answers
        return [Grouped.of(answer.filter(answer[name].is_valid()).drop(set(ids) - {name})) for name in ids]

    def totals(self, answers: Sequence[Grouped]) -> list[list[Occupied]]:
        """Return, for each question, the totals of its levels."""
        return [self._of(vectors, answers) for vectors in self.vectors]

    def _of(self, vectors: int | None, answers: Sequence[Grouped]) -> list[Occupied]:
        levels = self.buckets.levels[-1:] if self.nested else self.buckets.levels
        return [_shifted(self._level(vectors, answers[group].inside), down) for group, down in levels]

    def _level(self, vectors: int | None, grouped: Grouped) -> Occupied:
        if vectors is None:
            return Occupied(grouped.ids, grouped.rows)
        first = sum(len(previous.columns) for previous in self.sums[:vectors])
        vector_sum = self.sums[vectors]
        sums = grouped.sums[:, first : first + len(vector_sum.columns)]
        return Occupied(grouped.ids, vector_sum.finished(grouped.ids, grouped.rows, sums))


def _in_sets(groups: Any, n_columns: int) -> Any:
    """Group by each of the first ``n_columns`` columns alone, in one pass; Ibis cannot express it."""
    backend = groups.get_backend()
    query = backend.compiler.to_sqlglot(groups)
    sets = [sge.Tuple(expressions=[column.unalias()]) for column in query.selects[:n_columns]]
    query.set("group", sge.Group(grouping_sets=[sge.GroupingSets(expressions=sets)]))
    nullable = {name: kind.copy(nullable=True) for name, kind in groups.schema().items()}
    return backend.sql(query.sql(dialect=backend.dialect), schema=nullable)


def _shifted(occupied: Occupied, down: int) -> Occupied:
    """Return the totals of a coarser level, whose ids are these shifted right by ``down`` bits."""
    if not down:
        return occupied
    ids, parents = np.unique(occupied.ids >> down, return_inverse=True)
    values = np.zeros((len(ids), *occupied.values.shape[1:]), np.int64)
    np.add.at(values, parents, occupied.values)
    return Occupied(ids, values)
