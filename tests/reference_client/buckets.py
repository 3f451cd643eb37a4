"""The buckets of a lattice row: one id for each level, -1 for none."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import Any, TypeAlias

from tests.reference_client import hashed_buckets, nets
from tests.reference_client.rows import Row, dot, less

Cells: TypeAlias = dict[str, Any]


def locate(cells: Cells, row: Row) -> list[int]:
    return KINDS[cells["kind"]](cells, row)


def nearest(centers: list[Row], row: Row) -> tuple[int, int]:
    """The nearest centre, the lowest one of equals, and its squared distance."""
    squares = [dot(away, away) for away in (less(row, center) for center in centers)]
    return squares.index(min(squares)), min(squares)


def below(edges: list[int], square: int) -> int:
    return sum(edge < square for edge in edges)


def one(cells: Cells, row: Row) -> list[int]:
    return [0]


def grid(cells: Cells, row: Row) -> list[int]:
    cell = 0
    for x, side, parts in zip(row, cells["sides"], cells["parts"], strict=True):
        cell = cell * parts + (x + side) * parts // (2 * side + 1)
    return [cell]


def directions(cells: Cells, row: Row) -> list[int]:
    products = [dot(direction, row) for direction in cells["around"]]
    sizes = [abs(product) for product in products]
    best = sizes.index(max(sizes))
    return [2 * best + (products[best] < 0)]


def signs(cells: Cells, row: Row) -> list[int]:
    found = [int(dot(direction, row) < 0) for direction in cells["around"]]
    for level in range(1, len(found)):
        found[level] += 2 * found[level - 1]
    return found


def centers(cells: Cells, row: Row) -> list[int]:
    found, square = nearest(cells["centers"], row)
    return [found if cells["within"] is None or square <= cells["within"] ** 2 else -1]


def shells(cells: Cells, row: Row) -> list[int]:
    away = less(row, cells["middle"])
    return [directions(cells, away)[0] * (len(cells["edges"]) + 1) + below(cells["edges"], dot(away, away))]


def distances(cells: Cells, row: Row) -> list[int]:
    return [below(cells["edges"], nearest(cells["centers"], row)[1])]


def grouped(cells: Cells, row: Row) -> list[int]:
    found, square = nearest(cells["centers"], row)
    return [found * (len(cells["edges"]) + 1) + below(cells["edges"], square)]


def columns(cells: Cells, row: Row) -> list[int]:
    found = []
    for x, side in zip(row, cells["sides"], strict=True):
        if side == 0:
            continue
        code = max(0, min(65535, (x + side) * 65536 // (2 * side)))
        found += [code >> 16 - 4 * (level + 1) for level in range(cells["depth"])]
    return found


def quadtree(cells: Cells, row: Row) -> list[int]:
    subspace = cells["subspace"]
    if subspace is not None:
        images = [dot(list(column), row) >> subspace["bits"] for column in zip(*subspace["matrix"], strict=True)]
        row = [max(-side, min(side, image)) for side, image in zip(subspace["sides"], images, strict=True)]
    intervals = [bisect_right(cuts, x) for x, cuts in zip(row, cells["cuts"], strict=True)]  # cuts at most x
    left = [(len(cuts) + 1).bit_length() - 1 for cuts in cells["cuts"]]
    cell, found = 0, [0] if cells["top"] == 0 else []
    for level, column in enumerate(cells["order"]):
        left[column] -= 1
        cell = 2 * cell + (intervals[column] >> left[column] & 1)
        if level + 1 >= cells["top"]:
            found.append(cell)
    return found


def last(cells: Cells, row: Row) -> list[int]:
    return locate(cells["of"], row)[-1:]


def spared(cells: Cells, row: Row) -> list[int]:
    found = locate(cells["of"], row)
    return [-1] * len(found) if locate(cells["near"], row)[0] in cells["bad"] else found


def facets(cells: Cells, row: Row) -> list[int]:
    group = locate(cells["near"], row[: cells["first"]])[0]
    codes = [_code(cells, row, *facet) for facet in cells["facets"]]
    return [group * room + code for room, code in zip(cells["of_group"], codes, strict=True)]


def _code(cells: Cells, row: Row, place: int, values: int) -> int:
    if values:
        positive = [code for code in range(values) if row[place + code] > 0]
        return min(positive, default=values)
    side = cells["sides"][place]
    return max(0, min(cells["bins"] - 1, (row[place] + side) * cells["bins"] // (2 * side)))


def assigned(cells: Cells, row: Row) -> list[int]:
    found = _assigned(cells, row)
    kept = cells["kept"]
    return [_nearest_of(cells["centers"], kept, row) if kept and found not in kept else found]


def _assigned(cells: Cells, row: Row) -> int:
    places, ranks = cells["centers"], cells["ranks"]
    if not places:
        return -1
    for rank in sorted({own["rank"] for own in cells["own"]}, reverse=True):
        created = list[tuple[int, int]]()
        for own in cells["own"]:
            at, square = hashed_buckets.closest(own["created"], row)
            if own["rank"] == rank and at >= 0:
                created.append((square, own["start"] + at))
        if created:
            square, mine = min(created, key=lambda pair: pair[0])  # the first of equals
            smaller = _nearest_of(places, [i for i, other in enumerate(ranks) if other > rank], row)
            if smaller < 0:
                return mine
            away = less(row, places[smaller])
            return smaller if dot(away, away) < square else mine
    return nearest(places, row)[0]


def _nearest_of(places: list[Row], some: list[int], row: Row) -> int:
    """The nearest of some of the places, by its index among all; -1 if there are none."""
    return some[nearest([places[i] for i in some], row)[0]] if some else -1


KINDS: dict[str, Callable[[Cells, Row], list[int]]] = {
    "one": one,
    "grid": grid,
    "directions": directions,
    "signs": signs,
    "centers": centers,
    "shells": shells,
    "distances": distances,
    "grouped": grouped,
    "columns": columns,
    "quadtree": quadtree,
    "nets": nets.locate,
    "last": last,
    "spared": spared,
    "facets": facets,
    "hashes": hashed_buckets.hashes,
    "intervals": hashed_buckets.intervals,
    "regions": hashed_buckets.regions,
    "created": hashed_buckets.created,
    "assigned": assigned,
}
