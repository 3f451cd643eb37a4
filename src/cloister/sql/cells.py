"""Buckets that are boxes, in SQL: ``grid``, ``quadtree``, ``columns``."""

from __future__ import annotations

import math
from itertools import accumulate
from typing import Any

import attrs
import numpy as np

from cloister.core.types import Ints
from cloister.sql.arithmetic import clipped, floored, integer, number, product, total
from cloister.sql.bundles import Described, Description
from cloister.sql.centers import norm
from cloister.sql.located import Located, longest, one_level, refuse_inexact, refuse_long, refuse_wide
from cloister.sql.stage import Stage


def by_grid(stage: Stage, cells: Description, known: Described) -> Located:
    """floor(a / b) of doubles is that of the integers, since |a| + b < 2^53."""
    sides, parts = cells["sides"], cells["parts"]
    refuse_inexact(math.prod(parts))
    strides = list(accumulate(parts[:0:-1], int.__mul__, initial=1))[::-1]
    steps = list[Any]()
    for x, side, part, stride in zip(stage.x, sides, parts, strides, strict=True):
        refuse_inexact((2 * side + 1) * (part + 1))
        if part > 1:
            steps.append(floored((x + number(side)) * number(part) / number(2 * side + 1)) * number(stride))
    return one_level(stage, total(steps).cast("int64"))


def by_columns(stage: Stage, cells: Description, known: Described) -> Located:
    """Counted by the finest bins of each column: sides are powers of two, so that no product is rounded."""
    depth = cells["depth"]
    moved = stage.moved([
        floored((x + number(side)) * number(16.0**depth / (2 * side)))
        for x, side in zip(stage.x, cells["sides"], strict=True)
    ])  # fmt: skip
    found, names = moved.add(*(clipped(code, 0, 16**depth - 1).cast("int64") for code in moved.x))
    levels = [(column, 4 * (depth - 1 - level)) for column in range(len(names)) for level in range(depth)]
    return Located(attrs.evolve(found, row=stage.row), tuple(names), tuple(levels))


def by_quadtree(stage: Stage, cells: Description, known: Described) -> Located:
    """Counted by the deepest cells: each interval of a column adds its own bits to a cell's path."""
    order, top = cells["order"], cells["top"]
    cuts = [known.array(entry) for entry in cells["cuts"]]
    refuse_wide(sum(len(of) for of in cuts))
    subspace = cells["subspace"]
    image = stage if subspace is None else _projected(stage, subspace, known)
    sides = [longest(stage)] * len(cuts) if subspace is None else subspace["sides"]
    paths = [
        stage.steps(y, of, _paths(order, j, len(of) + 1), side)
        for j, (y, of, side) in enumerate(zip(image.x, cuts, sides, strict=True))
        if len(of)
    ]
    found, names = image.add(total(paths) if paths else integer(0))
    return Located(
        attrs.evolve(found, row=stage.row), tuple(names), tuple((0, len(order) - i) for i in range(top, len(order) + 1))
    )


def _projected(stage: Stage, subspace: Description, known: Described) -> Stage:
    matrix, bits = known.array(subspace["matrix"]), subspace["bits"]
    refuse_long(stage, matrix.size)
    refuse_inexact(norm(matrix.T) * longest(stage))
    stage = stage.moved([floored(product(column, stage.x) * number(2.0**-bits)) for column in matrix.T])
    return stage.moved([clipped(image, -side, side) for image, side in zip(stage.x, subspace["sides"], strict=True)])


def _paths(order: list[int], column: int, intervals: int) -> Ints:
    """What each interval of a column adds to the id of a cell: its bits, the highest first, where the column's turns
    are."""
    places = [len(order) - 1 - level for level, split in enumerate(order) if split == column][::-1]
    numbers = np.arange(intervals)
    return np.asarray(np.bitwise_or.reduce([(numbers >> bit & 1) << place for bit, place in enumerate(places)]))
