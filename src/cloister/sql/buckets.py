"""Which bucket a row is in, in SQL: the bucketings of ``docs/reference/format.md``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, final

import attrs
import ibis
import numpy as np

from cloister.core.lattice import EXACT
from cloister.core.types import Ints
from cloister.sql.arithmetic import Expr, floored, number, product, squared, total
from cloister.sql.bundles import Described, Description, NotCompiled
from cloister.sql.stage import Stage

TERMS = 2**13
"""Most products in one query: engines take seconds to read longer ones."""

REACH = 2**20
"""Largest norm of a lattice row, and of a centre."""


@final
@attrs.frozen(eq=False)
class Located:
    """Rows with their buckets.

    Args:
        stage: the rows.
        ids: names of columns of bucket ids, int64, -1 for none: what rows are counted by.
        levels: for each level, by which of ``ids`` it is counted, and how many bits its ids are shifted to the right.
    """

    stage: Stage
    ids: tuple[str, ...]
    levels: tuple[tuple[int, int], ...] = ((0, 0),)


Locate: TypeAlias = Callable[[Stage, Description, Described], Located]


def located(stage: Stage, cells: Description, known: Described) -> Located:
    """Lattice rows to bucket ids. Raises: NotCompiled: there is no SQL for such buckets, or it would be too long."""
    if cells["kind"] not in KINDS:
        raise NotCompiled(f"buckets of kind '{cells['kind']}' have no form in SQL")
    return KINDS[cells["kind"]](stage, cells, known)


def refuse_long(terms: int) -> None:
    """Raises: NotCompiled: a query would have more products than engines read in time."""
    if terms > TERMS:
        raise NotCompiled(f"a query of {terms} products is too long")


def one(stage: Stage, *ids: Expr) -> Located:
    """Of one level. Args: ids, one expression."""
    stage, names = stage.add(*ids)
    return Located(stage, tuple(names))


def _one(stage: Stage, cells: Description, known: Described) -> Located:
    return one(stage, ibis.literal(0, "int64"))


def nearest(stage: Stage, centers: Ints) -> tuple[Stage, Expr, Expr]:
    """The index of each row's nearest centre (k, d), the lowest of equals, and their squared distance.

    As ``core.nearest`` does it: S (|c|^2 - 2 <x, c>) + j, S a power of two >= k, orders centres by distance and then by
    index; every partial sum is below 2^53.
    """
    refuse_long(centers.size)
    bits = (len(centers) - 1).bit_length()
    if (3 * REACH**2 + 1) << bits >= EXACT:
        raise NotCompiled(f"{len(centers)} centres are too many for one comparison in doubles")
    lines = [
        total([product(-(c << (bits + 1)), stage.x), number(((int((c**2).sum())) << bits) + j)])
        for j, c in enumerate(centers)
    ]
    stage, (least,) = stage.add(ibis.least(*lines) if len(lines) > 1 else lines[0])
    index = stage[least].cast("int64") & ((1 << bits) - 1)
    return stage, index, floored(stage[least] * number(2.0**-bits)) + squared(stage.x)


def _centers(stage: Stage, cells: Description, known: Described) -> Located:
    stage, index, distance = nearest(stage, known.array(cells["centers"]).astype(np.int64))
    if cells["within"] is None:
        return one(stage, index)
    return one(stage, ibis.ifelse(distance > number(cells["within"] ** 2), -1, index))


KINDS: dict[str, Locate] = {"one": _one, "centers": _centers}
"""How each kind of bucketing is compiled."""
