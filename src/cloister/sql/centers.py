"""Buckets around public centres, in SQL: ``centers``, ``distances``."""

from __future__ import annotations

import ibis
import numpy as np

from cloister.core.types import Ints
from cloister.sql.arithmetic import Expr, floored, integer, number, product, squared, total, where_below
from cloister.sql.bundles import Described, Description
from cloister.sql.located import Located, Near, longest, one_level, refuse_inexact, refuse_long
from cloister.sql.stage import Stage


def nearest(stage: Stage, centers: Ints) -> tuple[Stage, Expr, Expr]:
    """The index of each row's nearest centre (k, d), the lowest of equals, and their squared distance.

    As ``core.nearest`` does it: S (|c|^2 - 2 <x, c>) + j, S a power of two >= k, orders centres by distance and then by
    index; every partial sum is below 2^53.
    """
    refuse_long(stage, centers.size)
    bits = (len(centers) - 1).bit_length()
    refuse_inexact((3 * max(longest(stage), norm(centers)) ** 2 + 1) << bits)
    lines = [
        total([product(-(c << (bits + 1)), stage.x), number((int((c**2).sum()) << bits) + j)])
        for j, c in enumerate(centers)
    ]
    stage, (least,) = stage.add(ibis.least(*lines) if len(lines) > 1 else lines[0])
    index = stage[least].cast("int64") & ((1 << bits) - 1)
    return stage, index, floored(stage[least] * number(2.0**-bits)) + squared(stage.x)


def norm(points: Ints) -> int:
    """The largest norm of points (m, d), rounded up."""
    return int(np.ceil(np.sqrt((points.astype(np.float64) ** 2).sum(axis=1).max())))


def within_edges(squares: Expr, edges: Ints) -> Expr:
    """How many of the ascending edges are below a squared distance, an integer."""
    return where_below(squares, edges + 1, [integer(i) for i in range(len(edges) + 1)])


def by_center(stage: Stage, cells: Description, known: Described) -> Located:
    centers, within = known.array(cells["centers"]), cells["within"]
    stage, index, distance = nearest(stage, centers)
    if within is not None:
        index = ibis.ifelse(distance > number(within**2), -1, index)
    return one_level(stage, index, Near(centers, within))


def by_distance(stage: Stage, cells: Description, known: Described) -> Located:
    stage, _, distance = nearest(stage, known.array(cells["centers"]))
    stage, (squares,) = stage.add(distance)
    return one_level(stage, within_edges(stage[squares], np.array(cells["edges"], np.int64)))
