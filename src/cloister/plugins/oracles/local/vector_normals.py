"""Normal variates from secret words, and real vectors as small integers: what the real-valued randomisers share."""

from __future__ import annotations

import math

import numpy as np

from cloister.core.types import AnyArray, Floats, Ids, Ints

STEP = 2.0**-11
"""Real answers are sent in these steps, 16 bits each, for coordinates of variance 1: rounding adds STEP^2 / 12 = 2e-8 to that."""

ZERO = 2**15
"""The 16-bit number that stands for 0. Sent numbers are 1 .. 2^16 - 1: coordinates within 16, beyond which chance is below e^-128."""


def words_for(dimension: int) -> int:
    """Words that so many normal variates take: two from each."""
    return (dimension + 1) // 2


def normals(words: Ids, dimension: int) -> AnyArray:
    """Words (n, m) to standard normal variates (dimension, n), float32 (Box and Muller 1958).

    A word gives a radius from 31 bits, at most 6.6, and an angle from 32: the law is normal up to those, and to float32.
    """
    columns = np.ascontiguousarray(words.T)
    high = (columns >> np.uint64(33)).astype(np.int32).astype(np.float32)
    low = columns.astype(np.uint32).view(np.int32).astype(np.float32)
    radius = np.sqrt(-2 * np.log((high + np.float32(0.5)) * np.float32(2.0**-31)))
    angle = low * np.float32(math.pi * 2.0**-31)
    return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[:dimension]


def column_sums(values: AnyArray) -> AnyArray:
    """Sums of the columns of (m, n), in an order that depends on m alone: a user's is the same in any batch."""
    while len(values) > 1:
        half, odd = len(values) // 2, len(values) % 2
        last, values = values[-1], values[:half] + values[half : 2 * half]
        if odd:
            values[0] += last
    return np.asarray(values[0])


def fractions(words: Ids) -> Floats:
    """Words (n,) as numbers strictly between 0 and 1, in the middles of 2^52 intervals."""
    return ((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


def sent(vectors: AnyArray) -> AnyArray:
    """Columns (d, n) of real numbers to answers (n, d), uint16."""
    steps = np.clip(np.rint(vectors * vectors.dtype.type(1 / STEP)), 1 - ZERO, ZERO - 1).astype(np.int32)
    return np.ascontiguousarray((steps + ZERO).astype(np.uint16).T)


def received(answers: AnyArray) -> Ints:
    """Answers (n, d) back to steps."""
    return answers.astype(np.int64) - ZERO
