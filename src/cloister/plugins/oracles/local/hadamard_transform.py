"""Hadamard transforms, and public random rotations made of them, in exact integers.

All arrays are (D, n), one vector per column, so that a transform is log2 D additions of whole rows. Integers, because a
person's distribution must be a function of her row alone, and a sum of floats depends on the batch it is computed in.
"""

from __future__ import annotations

from functools import cache
from typing import Any, final

import attrs
import numpy as np

from cloister.plugin import AnyArray, Ids, Ints, PublicRng

ROUNDS = 3
"""Rounds of random signs and a transform: one or two are not random enough, see ``Rotations``."""

TILE = 32
"""Users that a compiled kernel processes together."""


def transform(vectors: AnyArray) -> AnyArray:
    """Return H x for every column x of (2^m, ...): out[v] = sum_j (-1)^|j & v| x[j]. H H is 2^m times the identity.

    Every step adds and subtracts the halves and interleaves the results: after m steps the m bits of the row numbers
    have rotated once around (Pease 1968). Integers must not overflow: |out| <= 2^m max |x|, and no step is larger.
    """
    size = len(vectors)
    source, target, half = vectors, np.empty_like(vectors), size // 2
    spare = np.empty_like(vectors)
    for _ in range(size.bit_length() - 1):
        np.add(source[:half], source[half:], out=target[0::2])
        np.subtract(source[:half], source[half:], out=target[1::2])
        source, target = target, spare if source is vectors else source
    return source


def parity(words: Ids) -> Ids:
    """Return 1 for words with an odd number of set bits, else 0."""
    return np.bitwise_count(words).astype(np.uint64) & np.uint64(1)


def signs(words: Ids) -> AnyArray:
    """Return the bits of words (m, n), lowest first, as int16 signs (64 m, n): 1 becomes -1."""
    quarters = words[:, None] >> np.arange(0, 64, 16, dtype=np.uint64)[:, None]
    pieces = quarters.astype(np.uint16).reshape(-1, 1, words.shape[1])
    highest = pieces << np.arange(15, -1, -1, dtype=np.uint16)[:, None]
    return ((highest.view(np.int16) >> 15) | np.int16(1)).reshape(-1, words.shape[1])


@cache
def rows_of_hadamard(size: int) -> Ids:
    """Return words (size / 64, size) whose column j holds row j of H as bits, 1 for -1."""
    i, j = np.arange(size, dtype=np.uint64).reshape(-1, 64, 1), np.arange(size, dtype=np.uint64)
    bits = parity(i & j) << np.arange(64, dtype=np.uint64)[:, None]
    rows: Ids = np.bitwise_or.reduce(bits, axis=1)
    rows.flags.writeable = False
    return rows


@final
@attrs.frozen
class Rotations:
    """Public rotation of R^D for every user: R = H S3 H S2 H S1 / D^1.5, with random signs S from the user's number.

    Three rounds are not quite a random rotation. Errors of ``codebook``'s estimates, measured on 1e5 rotations for
    axes, pairs, flat and spiky vectors at D = 128: at most 0.1% in length, and none above the detectable 0.2% in
    direction. Only vectors on four coordinates whose numbers cancel bit by bit, such as (0.8, 0.35, 0.35, 0.35) on the
    first four, are off by 0.45%, which a fourth round removes. At D = 64 errors are 0.35% and 1.1%, at D = 16 6% and
    2%, but no codebook is that small. Two rounds are off by 1.3% at D = 128, one by 54%.

    Args:
        dimension: D, a power of two, 64 <= D <= 4096.
    """

    dimension: int

    @property
    def bits(self) -> int:
        """Fractional bits of a unit vector for ``turn``: D^1.5 2^bits <= 2^30 in 32 bits, 2^56 in 64."""
        return (30 if self.narrow else 56) - (3 * (self.dimension.bit_length() - 1) + 1) // 2

    @property
    def narrow(self) -> bool:
        """True if 32 bits are enough."""
        return self.dimension <= 256

    @property
    def exact(self) -> type[np.int16] | type[np.int32]:
        """Integer type that ``axis`` needs."""
        return np.int16 if self.dimension <= 128 else np.int32

    def turn(self, units: AnyArray, users: Ids, seed: PublicRng) -> AnyArray:
        """Return 2^bits D^1.5 R x, integers (D, n), for columns x (m <= D, n) of norm at most 1.

        Exact but for the initial rounding of x, which moves an estimate by at most 2^-19 of the bound (D = 128). No
        step overflows: H multiplies norms by sqrt(D), and a sum within it is at most sqrt(D) times the input's norm.
        """
        turned = np.zeros((self.dimension, units.shape[1]), np.int32 if self.narrow else np.int64)
        turned[: len(units)] = np.rint(units * 2.0**self.bits)
        for flips in self._flips(users, seed):
            np.multiply(turned, signs(flips), out=turned)
            turned = transform(turned)
        return turned

    def axis(self, numbers: Ints, minus: Ids, users: Ids, seed: PublicRng) -> AnyArray:
        """Return D^1.5 R^T e_j, negated where ``minus`` (n,) is 1, for each user's j (n,).

        Exact integers (D, n) of absolute value at most D^2.
        """
        first, second, third = self._flips(users, seed)
        start = third ^ rows_of_hadamard(self.dimension)[:, numbers] ^ (np.uint64(0) - minus)
        turned = transform(signs(start).astype(self.exact, copy=False))
        np.multiply(turned, signs(second), out=turned)
        turned = transform(turned)
        return np.multiply(turned, signs(first), out=turned)

    def seeds(self, seed: PublicRng) -> list[PublicRng]:
        """Return the seeds of the words whose bits are the signs, 64 a word, round by round."""
        return [seed.child("signs", i) for i in range(ROUNDS * self.dimension // 64)]

    def _flips(self, users: Ids, seed: PublicRng) -> Any:
        """Return the signs of every round as words (rounds, D / 64, n)."""
        return np.reshape([child.of_users(users) for child in self.seeds(seed)], (ROUNDS, -1, len(users)))
