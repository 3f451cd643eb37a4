"""Buckets by the nearest points of nets: scaled and shifted lattices A*_m, in a zero-sum hyperplane."""

from __future__ import annotations

import math
from typing import Any

from tests.reference_client.rows import dot, less
from tests.reference_client.words import MASK, word


def locate(cells: dict[str, Any], row: list[int]) -> list[int]:
    point, found = _projected(cells, row), list[int]()
    for net in reversed(cells["nets"]):
        name = _nearest(net, _inside(point, cells["radius"]))
        found.insert(0, _id(net, name))
        point = [u * net["step"] + s for u, s in zip([*name, 0], net["shift"], strict=True)]
    return found


def _energy(point: list[int]) -> int:
    return len(point) * dot(point, point) - sum(point) ** 2


def _projected(cells: dict[str, Any], row: list[int]) -> list[int]:
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


def _nearest(net: dict[str, Any], point: list[int]) -> list[int]:
    """The name of the net's nearest point."""
    step, size = net["step"], len(point)
    moved = less(point, net["shift"])
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
