"""A row of finite numbers to a lattice row, and the vector of a row that is in a bucket."""

from __future__ import annotations

import math
import struct
from typing import Any

from tests.reference_client.rows import dot, less

WIDE = 2.0**80
SHY = 1 - 2.0**-30
"""A factor that many roundings cannot push above its true value."""


def snap(domain: dict[str, Any], row: list[float]) -> list[int]:
    return DOMAINS[domain["kind"]](domain, row)


def _between(value: float, low: float, high: float) -> float:
    return low if value < low else high if value > high else value


def _box(domain: dict[str, Any], row: list[float]) -> list[int]:
    found = []
    for x, low, high, middle, side in zip(
        row, domain["lower"], domain["upper"], domain["middle"], domain["sides"], strict=True
    ):
        steps = round((_between(x, low, high) - middle) * (1 / domain["unit"]))  # ties to even
        found.append(max(-side, min(side, steps)))
    return found


def _ball(domain: dict[str, Any], row: list[float]) -> list[int]:
    inside = [_between((x - m) / domain["unit"], -WIDE, WIDE) for x, m in zip(row, domain["middle"], strict=True)]
    factor = min(1.0, domain["max_norm"] / max(1.0, *map(abs, inside)))
    return shrink([round(x * factor) for x in inside], domain["max_norm"])


def _reframed(domain: dict[str, Any], row: list[float]) -> list[int]:
    return _box(domain["then"], [(x - o) / s for x, o, s in zip(row, domain["offset"], domain["scale"], strict=True)])


def _graded(domain: dict[str, Any], row: list[float]) -> list[int]:
    found = snap(domain["others"], row)
    for j in domain["columns"]:
        (bits,) = struct.unpack("<q", struct.pack("<d", abs(row[j])))
        grade = max(0, min(32767, (bits >> 44) - 245504))
        found[j] = -1 - grade if row[j] < 0 else grade
    return found


def _without(domain: dict[str, Any], row: list[float]) -> list[int]:
    return snap(domain["first"], row[: len(row) - domain["beside"]])


DOMAINS = {"box": _box, "ball": _ball, "reframed": _reframed, "graded": _graded, "without": _without}


def shrink(vector: list[int], l2: int, l1: int | None = None) -> list[int]:
    """A vector scaled to norms of at most l2 and, if it is given, l1."""
    square = dot(vector, vector)
    if square > l2 * l2:
        vector = _scaled(vector, l2 / math.sqrt(square))
    total = sum(map(abs, vector))
    if l1 is not None and total > l1:
        vector = _scaled(vector, l1 / total)
    return vector


def _scaled(vector: list[int], factor: float) -> list[int]:
    factor = factor * SHY
    return [math.trunc(v * factor) for v in vector]


def vector(vectors: dict[str, Any], row: list[int], bucket: int) -> list[int]:
    """Args: bucket, the row's at the first level; not -1."""
    if vectors["kind"] == "rows":
        return row
    if vectors["kind"] == "offsets":
        return _less(row, vectors["centers"], bucket)
    if vectors["kind"] == "clipped":
        return _clipped(vectors, row, bucket)
    raise ValueError(vectors["kind"])


def sent(vectors: dict[str, Any], row: list[int], bucket: int) -> list[int]:
    """What the channel is given."""
    return shrink(vector(vectors, row, bucket), vectors["l2"], vectors["l1"])


def _less(row: list[int], centers: list[list[int]], bucket: int) -> list[int]:
    return less(row, centers[0 if len(centers) == 1 else bucket])


def _clipped(vectors: dict[str, Any], row: list[int], bucket: int) -> list[int]:
    radii, away = vectors["radii"], _less(row, vectors["centers"], bucket)
    radius = float(radii[0 if len(radii) == 1 else bucket])
    factor = vectors["scale"] * SHY / max(math.sqrt(dot(away, away)), radius)
    found = [math.trunc(v * factor) for v in away]
    return [*found, math.trunc(factor * (radius * 0.5))] if vectors["weighted"] else found
