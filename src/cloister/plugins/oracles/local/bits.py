"""Answers that are sets of buckets: one bit for each, packed into bytes, bucket 0 in the lowest bit."""

from __future__ import annotations

import numpy as np

from cloister.core.types import AnyArray, Bools, Ints

BLOCK = 2**22
"""Bits that are unpacked at once."""

TILE = 32
"""Users whom a compiled kernel takes together."""


def packed(sets: Bools) -> AnyArray:
    """Sets (n, m) to bytes (n, ceil(m / 8))."""
    return np.packbits(sets, axis=1, bitorder="little")


def unpacked(answers: AnyArray, size: int) -> AnyArray:
    """Bytes back to bits (n, size), 0 or 1."""
    return np.unpackbits(answers, axis=1, bitorder="little", count=size)


def filled(answers: AnyArray, size: int) -> bool:
    """Whether any bit beyond ``size`` is set."""
    return bool(size % 8 and (answers[:, -1] >> np.uint8(size % 8)).any())


def members(answers: AnyArray, size: int) -> Ints:
    """How many of the sets each element is in (size,)."""
    out, step = np.zeros(size, np.int64), max(1, BLOCK // size)
    for start in range(0, len(answers), step):
        out += unpacked(answers[start : start + step], size).sum(axis=0, dtype=np.int64)
    return out


def sizes(answers: AnyArray) -> Ints:
    """How many elements each of the sets has (n,)."""
    return np.asarray(np.bitwise_count(answers).sum(axis=1, dtype=np.int64))
