"""The vector of a row that is in a bucket, before its norms are cut (``snapping.shrink``)."""

from __future__ import annotations

import math
from typing import Any

from tests.reference_client.snapping import SHY, shrink


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
    center = centers[0 if len(centers) == 1 else bucket]
    return [x - c for x, c in zip(row, center, strict=True)]


def _clipped(vectors: dict[str, Any], row: list[int], bucket: int) -> list[int]:
    radii, away = vectors["radii"], _less(row, vectors["centers"], bucket)
    radius = float(radii[0 if len(radii) == 1 else bucket])
    factor = vectors["scale"] * SHY / max(math.sqrt(sum(v * v for v in away)), radius)
    found = [math.trunc(v * factor) for v in away]
    return [*found, math.trunc(factor * (radius * 0.5))] if vectors["weighted"] else found
