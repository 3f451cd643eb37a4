"""Bucketings of ``docs/reference/format_questions.md`` as SQL expressions: the bucket of each row.

Not compiled: ``nets``, whose points are found by sorting the remainders of each row and named by hashes that wrap
around at 2^64, which engines refuse as an overflow; and the kinds used under local trust, which no curator asks for.

Products of rows and directions are integers below 2^53, exact in doubles.
"""

from __future__ import annotations

import math
from itertools import accumulate
from typing import Any

import attrs
import ibis
import numpy as np

from cloister.core.types import Ints
from cloister.rows.databases.stage import (
    Described,
    Description,
    Expr,
    Locate,
    Located,
    Near,
    NotCompiled,
    Stage,
    clipped,
    floored,
    integer,
    longest,
    number,
    one_level,
    product,
    refuse_inexact,
    refuse_long,
    refuse_wide,
    squared,
    total,
    where_below,
)


def nearest(stage: Stage, centers: Ints) -> tuple[Stage, Expr, Expr]:
    """Return the index of each row's nearest centre (k, d), the lowest on ties, and their squared distance.

    As in ``core.nearest``: S (|c|^2 - 2 <x, c>) + j, with S a power of two >= k, orders centres by distance and then by
    index; every partial sum is below 2^53.
    """
    refuse_long(stage, centers.size)
    bits = (len(centers) - 1).bit_length()
    refuse_inexact((3 * max(longest(stage), norm(centers)) ** 2 + 1) << bits)
    lines = [
        total([product(-(c << (bits + 1)), stage.x), number((int((c**2).sum()) << bits) + j)])
        for j, c in enumerate(centers)
    ]
    stage, (least_score,) = stage.add(ibis.least(*lines) if len(lines) > 1 else lines[0])
    index = stage[least_score].cast("int64") & ((1 << bits) - 1)
    return stage, index, floored(stage[least_score] * number(2.0**-bits)) + squared(stage.x)


def norm(points: Ints) -> int:
    """Return the largest norm of points (m, d), rounded up."""
    return int(np.ceil(np.sqrt((points.astype(np.float64) ** 2).sum(axis=1).max())))


def within_edges(squares: Expr, edges: Ints) -> Expr:
    """Return how many of the ascending edges are below a squared distance."""
    return where_below(squares, edges + 1, [integer(i) for i in range(len(edges) + 1)])


def by_center(stage: Stage, cells: Description, descriptions: Described) -> Located:
    centers, within = descriptions.array(cells["centers"]), cells["within"]
    stage, index, distance = nearest(stage, centers)
    if within is not None:
        index = ibis.ifelse(distance > number(within**2), -1, index)
    return one_level(stage, index, Near(centers, within))


def by_distance(stage: Stage, cells: Description, descriptions: Described) -> Located:
    stage, index, distance = nearest(stage, descriptions.array(cells["centers"]))
    stage, (group, squares) = stage.add(index, distance)
    edges = np.array(cells["edges"], np.int64)
    first = stage[group] * (len(edges) + 1) if cells["kind"] == "grouped" else 0
    return one_level(stage, within_edges(stage[squares], edges) + first)


def by_grid(stage: Stage, cells: Description, descriptions: Described) -> Located:
    """Compile a grid: floor(a / b) of doubles is that of the integers, since |a| + b < 2^53."""
    sides, parts = cells["sides"], cells["parts"]
    refuse_inexact(math.prod(parts))
    strides = list(accumulate(parts[:0:-1], int.__mul__, initial=1))[::-1]
    steps = list[Any]()
    for x, side, part, stride in zip(stage.x, sides, parts, strides, strict=True):
        refuse_inexact((2 * side + 1) * (part + 1))
        if part > 1:
            steps.append(floored((x + number(side)) * number(part) / number(2 * side + 1)) * number(stride))
    return one_level(stage, total(steps).cast("int64"))


def by_facet(stage: Stage, cells: Description, descriptions: Described) -> Located:
    """Compile column values in groups.

    A categorical column's code is its first positive feature, or one more than the last code if none is. A number's
    code is its bin: floor of doubles as in ``by_grid``.
    """
    # every level's query snaps all columns with 16 constants each; PostgreSQL allows 1,664 columns
    refuse_wide(max(32, 16 * len(cells["facets"])) * len(stage.row))
    near_buckets = locate(attrs.evolve(stage, row=stage.row[: cells["first"]]), cells["near"], descriptions)
    located_stage = attrs.evolve(near_buckets.stage, row=stage.row)
    ids = list[Expr]()
    for (place, values), room in zip(cells["facets"], cells["of_group"], strict=True):
        if values:
            listed = located_stage.x[place : place + values]
            codes = [ibis.ifelse(x > 0, integer(code), integer(values)) for code, x in enumerate(listed)]
            code = ibis.least(*codes) if values > 1 else codes[0]
        else:
            side, bins = cells["sides"][place], cells["bins"]
            refuse_inexact(2 * side * (bins + 1))
            inside = clipped(located_stage.x[place], -side, side) + number(side)
            code = ibis.least(floored(inside * number(bins) / number(2 * side)), number(bins - 1)).cast("int64")
        ids.append(located_stage[near_buckets.first] * integer(room) + code)
    located_stage, names = located_stage.add(*ids)
    return Located(located_stage, tuple(names), tuple((level, 0) for level in range(len(names))))


def by_columns(stage: Stage, cells: Description, descriptions: Described) -> Located:
    """Compile bins per column, counted by the finest ones: sides are powers of two, so that no product is rounded."""
    depth = cells["depth"]
    moved = stage.moved(
        [
            floored((x + number(side)) * number(16.0**depth / (2 * side)))
            for x, side in zip(stage.x, cells["sides"], strict=True)
            if side
        ]
    )
    coded, names = moved.add(*(clipped(code, 0, 16**depth - 1).cast("int64") for code in moved.x))
    levels = [(column, 4 * (depth - 1 - level)) for column in range(len(names)) for level in range(depth)]
    return Located(attrs.evolve(coded, row=stage.row), tuple(names), tuple(levels))


def by_quadtree(stage: Stage, cells: Description, descriptions: Described) -> Located:
    """Compile a quadtree, counted by the deepest cells: each interval of a column adds its bits to the cell's path."""
    order, top = cells["order"], cells["top"]
    cuts = [descriptions.array(entry) for entry in cells["cuts"]]
    refuse_wide(sum(len(of) for of in cuts))
    subspace = cells["subspace"]
    image = stage if subspace is None else _projected(stage, subspace, descriptions)
    sides = [longest(stage)] * len(cuts) if subspace is None else subspace["sides"]
    paths = [
        stage.steps(y, of, _paths(order, j, len(of) + 1), side)
        for j, (y, of, side) in enumerate(zip(image.x, cuts, sides, strict=True))
        if len(of)
    ]
    coded, names = image.add(total(paths) if paths else integer(0))
    return Located(
        attrs.evolve(coded, row=stage.row), tuple(names), tuple((0, len(order) - i) for i in range(top, len(order) + 1))
    )


def _projected(stage: Stage, subspace: Description, descriptions: Described) -> Stage:
    matrix, bits = descriptions.array(subspace["matrix"]), subspace["bits"]
    refuse_long(stage, matrix.size)
    refuse_inexact(norm(matrix.T) * longest(stage))
    stage = stage.moved([floored(product(column, stage.x) * number(2.0**-bits)) for column in matrix.T])
    return stage.moved([clipped(image, -side, side) for image, side in zip(stage.x, subspace["sides"], strict=True)])


def _paths(order: list[int], column: int, intervals: int) -> Ints:
    """Return the bits of a cell's id that each interval of a column sets, at the levels that split the column."""
    places = [len(order) - 1 - level for level, split in enumerate(order) if split == column][::-1]
    numbers = np.arange(intervals)
    return np.asarray(np.bitwise_or.reduce([(numbers >> bit & 1) << place for bit, place in enumerate(places)]))


def by_direction(stage: Stage, cells: Description, descriptions: Described) -> Located:
    return one_level(*_direction(stage, longest(stage), descriptions.array(cells["around"])))


def _direction(stage: Stage, reach: int, around: Ints) -> tuple[Stage, Expr]:
    """Return the cell of a row x of norm at most ``reach``.

    It is 2 j, where j is the lowest of the directions a (m, d) with the largest |<a, x>|, plus 1 if the product is
    negative. The maximum is taken over pairs, pairs of pairs and so on, each in a column of its own, and then traced
    back.
    """
    refuse_long(stage, around.size)
    refuse_inexact(norm(around) * reach)
    stage, products = stage.add(*(product(a, stage.x) for a in around))
    rounds = [products]
    stage, sizes = stage.add(*(stage[name].abs() for name in products))
    rounds.append(sizes)
    while len(rounds[-1]) > 1:
        last = rounds[-1]
        pairs = [last[i : i + 2] for i in range(0, len(last), 2)]
        stage, made = stage.add(*(ibis.greatest(*(stage[name] for name in pair)) for pair in pairs if len(pair) > 1))
        rounds.append(made + [pair[0] for pair in pairs if len(pair) == 1])
    return stage, _followed(stage, rounds, len(rounds) - 1, 0)


def _followed(stage: Stage, rounds: list[list[str]], height: int, at: int) -> Expr:
    """Return the cell below this entry of a round, which holds the largest product."""
    if height == 1:
        return ibis.ifelse(stage[rounds[0][at]] < 0, integer(2 * at + 1), integer(2 * at))
    left = _followed(stage, rounds, height - 1, 2 * at)
    if 2 * at + 1 == len(rounds[height - 1]):
        return left
    right = _followed(stage, rounds, height - 1, 2 * at + 1)
    return ibis.ifelse(stage[rounds[height - 1][2 * at]] == stage[rounds[height][at]], left, right)


def by_signs(stage: Stage, cells: Description, descriptions: Described) -> Located:
    around = descriptions.array(cells["around"])
    refuse_long(stage, around.size)
    refuse_inexact(norm(around) * longest(stage))
    levels = len(around)
    bits = [
        ibis.ifelse(product(a, stage.x) < 0, number(1 << (levels - 1 - level)), number(0))
        for level, a in enumerate(around)
    ]
    stage, names = stage.add(total(bits).cast("int64"))
    return Located(stage, tuple(names), tuple((0, levels - 1 - level) for level in range(levels)))


def by_shell(stage: Stage, cells: Description, descriptions: Described) -> Located:
    middle, edges = np.array(cells["middle"], np.int64), np.array(cells["edges"], np.int64)
    reach = longest(stage) + norm(middle[None])
    refuse_inexact(reach**2)
    moved = stage.moved([x - number(m) for x, m in zip(stage.x, middle, strict=True)])
    moved, (squares,) = moved.add(squared(moved.x))
    moved, cell = _direction(moved, reach, descriptions.array(cells["around"]))
    shell = within_edges(moved[squares], edges)
    return one_level(attrs.evolve(moved, row=stage.row), cell * (len(edges) + 1) + shell)


def locate(stage: Stage, cells: Description, descriptions: Described) -> Located:
    """Assign lattice rows to bucket ids; raise NotCompiled if there is no SQL for it, or it would be too long."""
    if cells["kind"] not in KINDS:
        raise NotCompiled(f"buckets of kind '{cells['kind']}' have no form in SQL")
    return KINDS[cells["kind"]](stage, cells, descriptions)


def _one(stage: Stage, cells: Description, descriptions: Described) -> Located:
    return one_level(stage, integer(0))


def _last(stage: Stage, cells: Description, descriptions: Described) -> Located:
    buckets = locate(stage, cells["of"], descriptions)
    group, down = buckets.levels[-1]
    return attrs.evolve(buckets, ids=buckets.ids[group : group + 1], levels=((0, down),))


def _spared(stage: Stage, cells: Description, descriptions: Described) -> Located:
    near_buckets = locate(stage, cells["near"], descriptions)
    buckets = locate(near_buckets.stage, cells["of"], descriptions)
    spared = buckets.stage[near_buckets.ids[0]].isin(cells["bad"])
    made, names = buckets.stage.add(*(ibis.ifelse(spared, -1, buckets.stage[name]) for name in buckets.ids))
    return attrs.evolve(buckets, stage=made, ids=tuple(names))


KINDS: dict[str, Locate] = {
    "one": _one,
    "grid": by_grid,
    "directions": by_direction,
    "signs": by_signs,
    "centers": by_center,
    "shells": by_shell,
    "distances": by_distance,
    "grouped": by_distance,
    "columns": by_columns,
    "last": _last,
    "spared": _spared,
    "quadtree": by_quadtree,
    "facets": by_facet,
}
"""Compiler of each kind of bucketing."""
