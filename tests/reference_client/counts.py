"""Section "Randomisers of a bucket": from a bucket (-1: in none), a user number and secret words to numbers."""

from __future__ import annotations

from typing import Any

from tests.reference_client.words import Words, below, hashed, odd, word

Level = dict[str, Any]


def answer(level: Level, bucket: int, user: int, words: Words) -> list[int]:
    if level["randomiser"] == "unary":
        return _unary(level, bucket, words)
    if level["randomiser"] == "subset":
        return _subset(level, bucket, words)
    return _response(level, _symbol(level, bucket, user), words)


def _symbol(level: Level, bucket: int, user: int) -> int:
    """Her symbol; -1 for none."""
    if level["randomiser"] == "direct":
        return bucket if bucket >= 0 else int(level["size"])
    if bucket < 0:
        return -1
    if level["randomiser"] == "hashed":
        return hashed(level["low"], level["high"], level["shift"], user, bucket, level["symbols"])
    row = (word(level["row"], user) >> 40) % 2 ** level["bits"]
    return int(odd(row & bucket))


def _response(level: Level, symbol: int, words: Words) -> list[int]:
    first, second = words.many(2)
    true = first < int(level["keep"]) and symbol >= 0
    return [symbol if true else below(second, level["symbols"])]


def _unary(level: Level, bucket: int, words: Words) -> list[int]:
    drawn, flip = words.many(level["size"]), int(level["flip"])
    bits = [w < (2**63 if at == bucket else flip) for at, w in enumerate(drawn)]
    return packed(bits if sum(bits) <= level["most"] else [False] * len(bits))


def _subset(level: Level, bucket: int, words: Words) -> list[int]:
    m, k = level["size"] + 1, level["chosen"]
    drawn = words.many(m)
    chosen = sorted(sorted(range(m), key=lambda at: (drawn[at], at))[:k])
    pivot, coin, blind = words.many(3)
    own = (bucket if bucket >= 0 else m - 1) - chosen[below(pivot, k)]
    turn = own if coin < int(level["keep"]) else below(blind, m)
    inside = {(at + turn) % m for at in chosen}
    return packed([at in inside for at in range(m)])


def packed(bits: list[bool]) -> list[int]:
    """Bits to bytes, the first in the lowest bit."""
    return [sum(bit << i for i, bit in enumerate(bits[at : at + 8])) for at in range(0, len(bits), 8)]
