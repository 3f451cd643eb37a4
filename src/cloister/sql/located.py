"""Rows with their buckets, on their way to an answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, final

import attrs

from cloister.core.lattice import EXACT
from cloister.core.types import Ints
from cloister.sql.arithmetic import Expr
from cloister.sql.bundles import Described, Description, NotCompiled
from cloister.sql.stage import Stage

PLACES = 2**13
"""Most constants that a row's number is looked up among: engines take seconds to read more."""


@final
@attrs.frozen(eq=False)
class Near:
    """The centres (k, d) that rows are in the buckets of, and how far from them at most; None for any distance."""

    centers: Ints
    within: int | None


@final
@attrs.frozen(eq=False)
class Located:
    """Rows with their buckets.

    Args:
        stage: the rows.
        ids: names of columns of bucket ids, int64, -1 for none: what rows are counted by.
        levels: for each level, by which of ``ids`` it is counted, and how many bits its ids are shifted to the right.
        near: what is known of rows in a bucket.
    """

    stage: Stage
    ids: tuple[str, ...]
    levels: tuple[tuple[int, int], ...] = ((0, 0),)
    near: Near | None = None

    @property
    def first(self) -> str:
        """The name of the column of the first level's ids. Raises: NotCompiled: there is none, only a finer level's."""
        group, down = self.levels[0]
        if down:
            raise NotCompiled("vectors that differ by the buckets of a coarser level have no form in SQL")
        return self.ids[group]


Locate: TypeAlias = Callable[[Stage, Description, Described], Located]


def one_level(stage: Stage, ids: Expr, near: Near | None = None) -> Located:
    """Buckets of one level."""
    stage, names = stage.add(ids)
    return Located(stage, tuple(names), near=near)


def longest(stage: Stage) -> int:
    """The largest norm of a lattice row."""
    assert stage.bound is not None
    return stage.bound.l2


def refuse_long(stage: Stage, terms: int) -> None:
    """Raises: NotCompiled: a query would have more products than the engine works out in time."""
    if terms > stage.terms:
        raise NotCompiled(f"a query of {terms} products is slower than reading the rows (the most is {stage.terms})")


def refuse_wide(places: int) -> None:
    """Raises: NotCompiled: a query would have more constants than engines read in time."""
    if places > PLACES:
        raise NotCompiled(f"a query of {places} constants is too long")


def refuse_inexact(largest: float) -> None:
    """Args: largest, of all numbers on the way to a result. Raises: NotCompiled: doubles would not be exact."""
    if not largest < EXACT:
        raise NotCompiled("numbers of this size are not exact in doubles")
