"""Answers that are sets of buckets: one bit per bucket, packed into bytes, bucket 0 in the lowest bit."""

from __future__ import annotations

import numpy as np

from cloister.plugin import AnyArray, Bools, Ints

BLOCK = 2**22
"""Bits that are unpacked at once."""


def packed(sets: Bools) -> AnyArray:
    """Pack sets (n, m) into bytes (n, ceil(m / 8))."""
    return np.packbits(sets, axis=1, bitorder="little")


def unpacked(answers: AnyArray, size: int) -> AnyArray:
    """Unpack bytes to bits (n, size), 0 or 1."""
    return np.unpackbits(answers, axis=1, bitorder="little", count=size)


def has_padding_bits(answers: AnyArray, size: int) -> bool:
    """Return True if any bit beyond ``size`` is set."""
    return bool(size % 8 and (answers[:, -1] >> np.uint8(size % 8)).any())


def set_counts(answers: AnyArray, size: int) -> Ints:
    """Count the sets that hold each element (size,)."""
    out, step = np.zeros(size, np.int64), max(1, BLOCK // size)
    for start in range(0, len(answers), step):
        out += unpacked(answers[start : start + step], size).sum(axis=0, dtype=np.int64)
    return out


def set_sizes(answers: AnyArray) -> Ints:
    """Count the elements of each set (n,)."""
    return np.asarray(np.bitwise_count(answers).sum(axis=1, dtype=np.int64))
