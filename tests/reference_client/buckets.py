"""The buckets of a lattice row: one id for each level, -1 for none."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from typing import Any, TypeAlias

from tests.reference_client.words import MASK, word

Cells: TypeAlias = dict[str, Any]
Row: TypeAlias = list[int]


def locate(cells: Cells, row: Row) -> list[int]:
    return KINDS[cells["kind"]](cells, row)


def dot(a: Row, b: Row) -> int:
    return sum(x * y for x, y in zip(a, b, strict=True))


def less(a: Row, b: Row) -> Row:
    return [x - y for x, y in zip(a, b, strict=True)]


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
            at, square = closest(own["created"], row)
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


def nets(cells: Cells, row: Row) -> list[int]:
    point, found = _projected(cells, row), list[int]()
    for net in reversed(cells["nets"]):
        name = _net_point(net, _inside(point, cells["radius"]))
        found.insert(0, _id(net, name))
        point = [u * net["step"] + s for u, s in zip([*name, 0], net["shift"], strict=True)]
    return found


def _energy(point: list[int]) -> int:
    return len(point) * dot(point, point) - sum(point) ** 2


def _projected(cells: Cells, row: Row) -> list[int]:
    """The row's image; 0 where it leaves the ball."""
    columns = zip(*cells["matrix"], strict=True)
    image = [dot(list(column), row) >> cells["bits"] for column in columns]
    radius = cells["radius"]
    inside = all(abs(y) <= radius for y in image) and _energy(image) <= len(image) * radius**2
    return image if inside else [0] * len(image)


def _inside(point: list[int], radius: int) -> list[int]:
    """A point put back on the ball if it is outside."""
    size, energy = len(point), _energy(point)
    if energy <= size * radius**2:
        return point
    factor, total = radius / math.sqrt(float(energy) * size), sum(point)
    return [math.floor((size * y - total) * factor) for y in point]


def _net_point(net: dict[str, Any], point: list[int]) -> list[int]:
    """The name of the net's nearest point."""
    step, size = net["step"], len(point)
    moved = [y - s for y, s in zip(point, net["shift"], strict=True)]
    whole, rest = [y // step for y in moved], [y % step for y in moved]
    order = sorted(range(size), key=lambda j: -rest[j])  # the first of equals first
    best, least, total = 0, 0, 0
    for k in range(1, size):
        total += rest[order[k - 1]]
        far = step * k * (size - k) - 2 * size * total + 2 * k * sum(rest)
        if far < least:
            best, least = k, far
    for j in order[:best]:
        whole[j] += 1
    return [u - whole[-1] for u in whole[:-1]]


def _id(net: dict[str, Any], name: list[int]) -> int:
    if net["keys"] is None:
        return sum((u + net["base"] // 2) * net["base"] ** j for j, u in enumerate(name))
    mixed = 0
    for key, u in zip(net["keys"], name, strict=True):
        mixed = word(key, mixed ^ u & MASK)
    return mixed >> 2


def value(hash: dict[str, Any], row: list[int]) -> int:
    mixed = 0
    for slope, shift, key in zip(hash["slopes"], hash["shifts"], hash["keys"], strict=True):
        step = (dot(slope, row) + shift) // int(hash["width"])
        mixed = word(key, mixed ^ step & MASK)
    return mixed >> 64 - hash["bits"]


def along(intervals: dict[str, Any], row: list[int]) -> list[int]:
    """The number of the row's interval on every axis."""
    found = []
    for axis, start in zip(intervals["basis"], intervals["start"], strict=True):
        step = (dot(axis, row) - start) // int(intervals["length"])
        found.append(max(0, min(intervals["number"] - 1, step)))
    return found


def hashes(cells: Cells, row: Row) -> list[int]:
    found = value(cells["hash"], row)
    return [found >> cells["hash"]["bits"] - bits for bits in cells["bits"]]


def intervals(cells: Cells, row: Row) -> list[int]:
    first = value(cells["hash"], row) * cells["intervals"]["number"]
    return [first + number for number in along(cells["intervals"], row)]


def regions(cells: Cells, row: Row) -> list[int]:
    at = _place(cells, row)
    if at < 0:
        return [-1]
    numbers = zip(along(cells["intervals"], row), cells["chosen"][at], strict=True)
    return [at if all(abs(number - middle) <= 1 for number, middle in numbers) else -1]


def created(cells: Cells, row: Row) -> list[int]:
    return [closest(cells, row)[0]]


def closest(cells: Cells, row: Row) -> tuple[int, int]:
    """The centre that the row created, or -1, and its squared distance."""
    at = _place(cells, row)
    if at < 0:
        return -1, 0
    away = less(row, cells["centers"][at])
    square = dot(away, away)
    return (at if square <= cells["within"] ** 2 else -1), square


def _place(cells: Cells, row: Row) -> int:
    """Where the row's hash value stands in the list of values, or -1."""
    found = value(cells["hash"], row)
    return cells["values"].index(found) if found in cells["values"] else -1


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
    "nets": nets,
    "last": last,
    "spared": spared,
    "facets": facets,
    "hashes": hashes,
    "intervals": intervals,
    "regions": regions,
    "created": created,
    "assigned": assigned,
}
