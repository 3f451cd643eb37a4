"""Section "Normals": standard normal variates from words."""

from __future__ import annotations

import math
import struct

MIDDLE = 0x3FE6A09E667F3BCD
LN4 = 1.3862943611198906
SERIES = [4.0 / k for k in (1, 3, 5, 7, 9, 11, 13, 15)]
RADIAN = math.pi * 2.0**-31


def words_for(count: int) -> int:
    """Words that so many variates take."""
    return (count + 1) // 2


def normals(words: list[int], count: int, sines: list[float]) -> list[float]:
    """All cosines first, then all sines. Args: sines (of a quarter, from the bundle)."""
    radii = [math.sqrt(_twice_log((w >> 32) + 0.5)) for w in words]
    turns = [_turn(w, sines) for w in words]
    first = [r * c for r, (c, _) in zip(radii, turns, strict=True)]
    return (first + [r * s for r, (_, s) in zip(radii, turns, strict=True)])[:count]


def _twice_log(x: float) -> float:
    (bits,) = struct.unpack("<q", struct.pack("<d", x))
    power = (bits - MIDDLE) >> 52
    m: float
    (m,) = struct.unpack("<d", struct.pack("<q", bits - (power << 52)))
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    series = z * SERIES[7]
    for term in SERIES[6:0:-1]:
        series = (series + term) * z
    series = (series + SERIES[0]) * s
    return (32 - power) * LN4 - series


def _turn(word: int, sines: list[float]) -> tuple[float, float]:
    rest = float((word >> 12) % 2**20) * RADIAN
    square = rest * rest
    cosine, sine = 1.0 - square * (0.5 - square / 24.0), rest * (1.0 - square / 6.0)
    c, s = _sine(word % 4096 + 1024, sines), _sine(word % 4096, sines)
    return c * cosine - s * sine, s * cosine + c * sine


def _sine(i: int, sines: list[float]) -> float:
    """sin(2 pi i / 4096)."""
    i %= 4096
    if i >= 2048:
        return -_sine(i - 2048, sines)
    return sines[i if i <= 1024 else 2048 - i]
