"""Buckets by a locality-sensitive hash value, and by intervals on the axes of a random basis."""

from __future__ import annotations

from typing import Any

from tests.reference_client.rows import dot, less
from tests.reference_client.words import MASK, word


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


def hashes(cells: dict[str, Any], row: list[int]) -> list[int]:
    found = value(cells["hash"], row)
    return [found >> cells["hash"]["bits"] - bits for bits in cells["bits"]]


def intervals(cells: dict[str, Any], row: list[int]) -> list[int]:
    first = value(cells["hash"], row) * cells["intervals"]["number"]
    return [first + number for number in along(cells["intervals"], row)]


def regions(cells: dict[str, Any], row: list[int]) -> list[int]:
    at = _place(cells, row)
    if at < 0:
        return [-1]
    numbers = zip(along(cells["intervals"], row), cells["chosen"][at], strict=True)
    return [at if all(abs(number - middle) <= 1 for number, middle in numbers) else -1]


def created(cells: dict[str, Any], row: list[int]) -> list[int]:
    return [closest(cells, row)[0]]


def closest(cells: dict[str, Any], row: list[int]) -> tuple[int, int]:
    """The centre that the row created, or -1, and its squared distance."""
    at = _place(cells, row)
    if at < 0:
        return -1, 0
    away = less(row, cells["centers"][at])
    square = dot(away, away)
    return (at if square <= cells["within"] ** 2 else -1), square


def _place(cells: dict[str, Any], row: list[int]) -> int:
    """Where the row's hash value stands in the list of values, or -1."""
    found = value(cells["hash"], row)
    return cells["values"].index(found) if found in cells["values"] else -1
