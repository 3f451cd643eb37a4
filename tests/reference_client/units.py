"""Section "Randomisers of a vector": lifting, the codebook, and the randomisers of real vectors."""

from __future__ import annotations

import math
from typing import Any

from tests.reference_client.normals import normals, words_for
from tests.reference_client.words import Words, odd, word

Level = dict[str, Any]


def answer(channel: dict[str, Any], level: Level, bucket: int, vector: list[int], user: int, words: Words) -> list[int]:
    unit = lifted(vector, sign(level, bucket, user), channel["l2"], bucket < 0)
    return RANDOMISERS[level["randomiser"]](level, unit, user, words)


def sign(level: Level, bucket: int, user: int) -> float:
    """Her public sign of the bucket."""
    minus = word(level["nobody"], user) >> 63 == 1 if bucket < 0 else odd(word(level["bucket"], user) & bucket)
    return -1.0 if minus else 1.0


def lifted(vector: list[int], sign: float, l2: int, nowhere: bool) -> list[float]:
    wide = [0.0 if nowhere else float(x) for x in vector]
    squares = float(sum(int(x) ** 2 for x in wide))
    whole = max(squares, float(l2) ** 2)
    scale = sign / math.sqrt(whole)
    return [x * scale for x in wide] + [scale * math.sqrt(whole - squares)]


def codebook(level: Level, unit: list[float], user: int, words: Words) -> list[int]:
    size = level["size"]
    turned = _turned(level, unit, user)
    order = sorted(range(size), key=lambda j: (-(abs(turned[j]) // size), j))
    place, opposite = _place(level, words.next())
    axis = order[place]
    return [axis + size * ((turned[axis] < 0) != opposite)]


def _turned(level: Level, unit: list[float], user: int) -> list[int]:
    size = level["size"]
    x = [round(u * 2.0 ** level["bits"]) for u in unit] + [0] * (size - len(unit))
    for start in range(0, len(level["signs"]), size // 64):
        flips = [word(key, user) for key in level["signs"][start : start + size // 64]]
        x = hadamard([-v if flips[j // 64] >> (j % 64) & 1 else v for j, v in enumerate(x)])
    return x


def hadamard(x: list[int]) -> list[int]:
    """out[v] = sum over j of (-1)^(bits of j & v) x[j]."""
    x, half = list(x), 1
    while half < len(x):
        for start in range(0, len(x), 2 * half):
            for j in range(start, start + half):
                x[j], x[j + half] = x[j] + x[j + half], x[j] - x[j + half]
        half *= 2
    return x


def _place(level: Level, drawn: int) -> tuple[int, bool]:
    """Which of the axes, largest first, and whether the other sign."""
    inside, near, far = level["inside"], int(level["near"]), int(level["far"])
    if drawn < near * inside:
        return drawn // near, False
    outer = (drawn - near * inside) // far
    if outer < inside:
        return outer, True
    return inside + (outer - inside) // 2, (outer - inside) % 2 == 1


def _duchi(level: Level, unit: list[float], user: int, words: Words) -> list[int]:
    coin = words.next()
    v = normals(words.many(words_for(len(unit))), len(unit), level["sines"])
    above = tree_sum([a * b for a, b in zip(v, unit, strict=True)]) >= 0
    length = math.sqrt(tree_sum([a * a for a in v]) / len(v))
    factor = (1.0 if above == (coin < int(level["coin"])) else -1.0) / length
    return _sent([a * factor for a in v[:-1]])


def _privunit(level: Level, unit: list[float], user: int, words: Words) -> list[int]:
    while True:
        kept: list[list[int]] = []
        for _ in range(level["together"]):
            coin = words.next()
            v = normals(words.many(words_for(len(unit))), len(unit), level["sines"])
            length = math.sqrt(tree_sum([a * a for a in v]) / len(v))
            near = tree_sum([a * b for a, b in zip(v, unit, strict=True)]) >= level["gamma"] * length
            if coin < int(level["coin"]) or near:
                kept.append(_sent([a / length for a in v[:-1]]))
        if kept:
            return kept[0]


def tree_sum(values: list[float]) -> float:
    """Halves added to each other until one number is left; an odd last one goes to the first sum."""
    while len(values) > 1:
        half, last = len(values) // 2, values[-1]
        odd_one = len(values) % 2 == 1
        values = [values[j] + values[half + j] for j in range(half)]
        if odd_one:
            values[0] += last
    return values[0]


def _sent(values: list[float]) -> list[int]:
    return [min(max(round(x * 2048.0), -32767), 32767) + 32768 for x in values]


RANDOMISERS = {"codebook": codebook, "duchi": _duchi, "privunit": _privunit}
