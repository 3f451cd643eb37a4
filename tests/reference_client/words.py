"""Secret words in order, and what is made of words: integers below m, parities, hashes."""

from __future__ import annotations

from collections.abc import Iterable

from tests.reference_client.arrays import word

ALL = 2**64


class Words:
    """Secret words, in order. Here they are given; a real client asks its cryptographic generator for each."""

    def __init__(self, given: Iterable[int]) -> None:
        self._given, self.taken = iter(given), 0

    def next(self) -> int:
        self.taken += 1
        return next(self._given)

    def many(self, count: int) -> list[int]:
        return [self.next() for _ in range(count)]


def below(word: int, m: int) -> int:
    """floor(word * m / 2^64)."""
    return word * m >> 64


def odd(number: int) -> bool:
    """Whether an odd number of bits is set."""
    return number.bit_count() % 2 == 1


def hashed(low: str, high: str, shift: str, user: int, bucket: int, symbols: int) -> int:
    """The public hash of a bucket for a user: an integer below ``symbols``."""
    v0, v1 = bucket % 2**32, bucket >> 32
    top = (word(low, user) * v0 + word(high, user) * v1 + word(shift, user)) % ALL >> 32
    return top * symbols >> 32
