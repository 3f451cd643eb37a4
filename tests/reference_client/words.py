"""A bundle's arrays, its public words, secret words in order, and what is made of words: integers, parities, hashes."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from typing import Any

MASK = 2**64 - 1


def opened(value: Any, content: bytes) -> Any:
    """A part of a bundle's JSON with its arrays, which are in ``content``, as nested lists."""
    if isinstance(value, dict):
        if set(value) == {"at", "type", "shape"}:
            return array(value, content)
        return {name: opened(part, content) for name, part in value.items()}
    if isinstance(value, list):
        return [opened(part, content) for part in value]
    return value


def array(place: dict[str, Any], content: bytes) -> list[Any]:
    letter = {"i4": "i", "i8": "q", "f8": "d"}[place["type"]]
    shape = place["shape"]
    flat = list(struct.unpack_from(f"<{math.prod(shape)}{letter}", content, place["at"]))
    for size in reversed(shape[1:]):
        flat = [flat[i * size : (i + 1) * size] for i in range(len(flat) // size)] if size else []
    return flat


def word(key: str, number: int) -> int:
    """The public 64-bit word of a 64-bit number under a key."""
    a, b = struct.unpack("<QQ", bytes.fromhex(key))
    z = (number * 0x9E3779B97F4A7C15 + a) & MASK
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & MASK
    return int(z ^ z >> 31 ^ b)


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
