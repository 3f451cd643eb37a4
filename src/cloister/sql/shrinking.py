"""Vectors that are no longer than their bound, in SQL: ``shrink`` of ``docs/reference/format.md``."""

from __future__ import annotations

import ibis

from cloister.core.lattice import EXACT, Bound
from cloister.sql.arithmetic import Expr, number, squared, total, truncated
from cloister.sql.bundles import NotCompiled
from cloister.sql.stage import Stage

UNDER = 1 - 2.0**-30
"""Of a factor: so that rounding in a product cannot cross an integer."""


def shrunk(stage: Stage, bound: Bound, longest: int) -> Stage:
    """Rows of integers that may be beyond a bound, made to keep it. Args: longest, their largest norm.

    Nothing is divided by zero, whichever branch an engine works out.

    Raises: NotCompiled: their squared lengths are not exact in doubles.
    """
    if longest**2 >= EXACT:
        raise NotCompiled("squared lengths of such vectors are not exact in doubles")
    stage, (squares,) = stage.add(squared(stage.x))
    stage, (length,) = stage.add(ibis.greatest(stage[squares], number(bound.l2**2)))
    stage = _scaled(stage, stage[squares] > number(bound.l2**2), number(bound.l2) / stage[length].sqrt())
    if bound.l1 < bound.implied:
        stage, (sums,) = stage.add(total([x.abs() for x in stage.x]))
        beyond = stage[sums] > number(bound.l1)
        stage = _scaled(stage, beyond, number(bound.l1) / ibis.greatest(stage[sums], number(bound.l1)))
    return stage


def _scaled(stage: Stage, which: Expr, factor: Expr) -> Stage:
    stage, (scale,) = stage.add(ibis.ifelse(which, factor * number(UNDER), number(1)))
    return stage.moved([truncated(x * stage[scale]) for x in stage.x])


def keeps(vectors: Bound, bound: Bound) -> bool:
    """Whether no vector of one bound is beyond another, so that ``shrink`` leaves all of them as they are."""
    return vectors.l2 <= bound.l2 and (bound.l1 == bound.implied or vectors.l1 <= bound.l1)
