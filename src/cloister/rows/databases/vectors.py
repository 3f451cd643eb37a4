"""Sums of each bucket in SQL: the vectors of ``docs/reference/format.md``."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias, final

import attrs
import ibis
import numpy as np

from cloister.core.lattice import Bound
from cloister.core.types import Ints
from cloister.rows.databases.arithmetic import Expr, number, selected, squared, truncated
from cloister.rows.databases.buckets import norm
from cloister.rows.databases.lattices import UNDER, keeps, shrunk
from cloister.rows.databases.stage import (
    Described,
    Description,
    Located,
    NotCompiled,
    Stage,
    longest,
    refuse_inexact,
    refuse_wide,
)


@final
@attrs.frozen(eq=False)
class Summed:
    """Vectors to be summed.

    Args:
        stage: the rows.
        columns: names of the vectors' numbers, whole doubles of at most 2^21.
        origins: (m, d) what is taken from the vectors of a bucket, or (1, d) from all: as often as it has rows, which
            is exact, and need not be told the engine; None for nothing.
    """

    stage: Stage
    columns: tuple[str, ...]
    origins: Ints | None = None

    def finished(self, ids: Ints, rows: Ints, sums: Ints) -> Ints:
        """Sums (m, dimension) of the vectors, from those of the columns. Args: ids, rows (m,) of buckets."""
        if self.origins is None:
            return sums
        mine = self.origins if len(self.origins) == 1 else self.origins[ids]
        return sums - rows[:, None] * mine


Sum: TypeAlias = Callable[[Located, Description, Described], Summed]


def summed(buckets: Located, vectors: Description, known: Described) -> Summed:
    """Raises: NotCompiled: there is no SQL for such vectors."""
    if vectors["kind"] not in KINDS:
        raise NotCompiled(f"vectors of kind '{vectors['kind']}' have no form in SQL")
    return KINDS[vectors["kind"]](buckets, vectors, known)


def _rows(buckets: Located, vectors: Description, known: Described) -> Summed:
    """Rows of a domain keep the bound of that domain's rows: only others are shrunk."""
    stage, bound = buckets.stage, _bound(vectors)
    assert stage.bound is not None
    if keeps(stage.bound, bound):
        return Summed(stage, stage.row)
    return _columns(buckets, shrunk(stage, bound, stage.bound.l2))


def _offsets(buckets: Located, vectors: Description, known: Described) -> Summed:
    """x - c is no longer than x and c together, and than the radius of a bucket of ``centers`` around c.

    Where that is within the bound, as it is of all offsets that our methods ask for, nothing is shrunk, and the engine
    adds up rows: as many c as there are rows are taken off afterwards.
    """
    stage, bound, centers = buckets.stage, _bound(vectors), known.array(vectors["centers"])
    reach = longest(stage) + norm(centers)
    if buckets.near is not None and np.array_equal(buckets.near.centers, centers) and buckets.near.within is not None:
        reach = min(reach, buckets.near.within)
    if len(buckets.levels) == 1 and keeps(Bound(reach, bound.dimension), bound):
        return Summed(stage, stage.row, centers)
    return _columns(buckets, shrunk(_away(buckets, centers), bound, longest(stage) + norm(centers)))


def _clipped(buckets: Located, vectors: Description, known: Described) -> Summed:
    """u = x - c, f = (scale (1 - 2^-30)) / max(|u|, r), v = trunc(u f), and trunc(f r / 2) if it is weighted.

    |v| <= scale: each of four roundings raises a number by a relative 2^-53 at most, and f is too small by 2^-30. So
    |v_0| + ... + |v_(d-1)|, an integer, is at most the integer part of sqrt(d) scale, and a weight at most scale / 2.
    """
    bound, scale = _bound(vectors), int(vectors["scale"])
    centers, radii = known.array(vectors["centers"]), known.array(vectors["radii"])
    refuse_inexact((longest(buckets.stage) + norm(centers)) ** 2)
    stage = _away(buckets, centers)
    stage, (squares, radius) = stage.add(squared(stage.x), _of_bucket(stage, buckets, radii))
    stage, (factor,) = stage.add(number(scale * UNDER) / ibis.greatest(stage[squares].sqrt(), stage[radius]))
    weight = [stage[factor] * (stage[radius] * number(0.5))] if vectors["weighted"] else []
    stage = stage.moved([x * stage[factor] for x in stage.x] + weight)
    stage = stage.moved([truncated(v) for v in stage.x])
    half = scale // 2 if weight else 0
    kept = Bound(math.isqrt(scale**2 + half**2 - 1) + 1, bound.dimension)
    kept = attrs.evolve(kept, l1=min(kept.implied, math.isqrt(centers.shape[1] * scale**2) + half))
    return _columns(buckets, stage if keeps(kept, bound) else shrunk(stage, bound, kept.l2))


def _bound(vectors: Description) -> Bound:
    return Bound(vectors["l2"], vectors["dimension"], vectors["l1"])


def _away(buckets: Located, centers: Ints) -> Stage:
    """Rows less the centres (m, d) of their buckets, or one (1, d) of all."""
    refuse_wide(centers.size)
    stage = buckets.stage
    return stage.moved([x - _of_bucket(stage, buckets, column) for x, column in zip(stage.x, centers.T, strict=True)])


def _of_bucket(stage: Stage, buckets: Located, values: Ints) -> Expr:
    """What each bucket (m,) has, or one (1,) for all; where it comes again and again, the same few are told apart."""
    if len(values) == 1:
        return number(values[0])
    ids = stage[buckets.first]
    for period in range(1, len(values)):
        if np.array_equal(values[period:], values[:-period]) and len(values) % period == 0:
            return selected(ids % period, values[:period])
    return selected(ids, values)


def _columns(buckets: Located, stage: Stage) -> Summed:
    """The rows of a stage as vectors; the rows of the buckets stay what they were."""
    return Summed(attrs.evolve(stage, row=buckets.stage.row), stage.row)


KINDS: dict[str, Sum] = {"rows": _rows, "offsets": _offsets, "clipped": _clipped}
"""How each kind of vectors is compiled."""
