"""Section "Normals": standard normal variates from words."""

from __future__ import annotations

import math


def words_for(count: int) -> int:
    """Words that so many variates take."""
    return (count + 1) // 2


def normals(words: list[int], count: int) -> list[float]:
    """All cosines first, then all sines."""
    radii = [math.sqrt(-2 * math.log(((w >> 32) + 0.5) * 2.0**-32)) for w in words]
    turns = [_turn(w) for w in words]
    first = [r * c for r, (c, _) in zip(radii, turns, strict=True)]
    return (first + [r * s for r, (_, s) in zip(radii, turns, strict=True)])[:count]


def _turn(word: int) -> tuple[float, float]:
    place = word % 4096
    rest = float((word >> 12) % 2**20) * (math.pi * 2.0**-31)
    square = rest * rest
    cosine, sine = 1 - square * (0.5 - square / 24), rest * (1 - square / 6)
    c, s = math.cos(math.pi * place / 2048), math.sin(math.pi * place / 2048)
    return c * cosine - s * sine, s * cosine + c * sine
