"""Normal variates that are the same bits everywhere: the logarithm and the sines, against arithmetic of many digits."""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext

import numpy as np
import pytest

from cloister.core.normals import _circle, normals, quarter_sines, twice_log

LONG = Context(prec=60)


def pi() -> Decimal:
    """Machin's formula, 16 arctan 1/5 - 4 arctan 1/239."""

    def arctan(n: int) -> Decimal:
        terms = (Decimal((-1) ** k) / ((2 * k + 1) * Decimal(n) ** (2 * k + 1)) for k in range(60))
        return sum(terms, Decimal(0))

    return 16 * arctan(5) - 4 * arctan(239)


def sine(x: Decimal) -> Decimal:
    total, term, k = Decimal(0), x, 1
    while abs(term) > Decimal("1e-55"):
        total, term, k = total + term, -term * x * x / ((k + 1) * (k + 2)), k + 2
    return total


def test_the_sines_of_the_table_are_correctly_rounded() -> None:
    """No value is so near to the middle between two doubles that 40 digits could not tell them apart."""
    with localcontext(LONG):
        step, error = pi() / 2048, Decimal("1e-40")
        for i, found in enumerate(quarter_sines().tolist()):
            exact = sine(step * i)
            if 0 < i < 1024:
                assert found == float(exact - error) == float(exact + error)
            else:
                assert found == round(exact)


def test_the_circle_is_four_quarters() -> None:
    cosines, sines = _circle()
    angles = 2 * np.pi * np.arange(4096) / 4096
    assert np.abs(cosines - np.cos(angles)).max() < 1e-15
    assert np.abs(sines - np.sin(angles)).max() < 1e-15


def test_the_logarithm_is_right_to_what_is_stated() -> None:
    """2^-44 of itself, also where it nearly vanishes, and on both sides of where the exponent changes."""
    edges = [round(2.0**i * math.sqrt(0.5)) + j for i in range(3, 33) for j in (-1, 0)]
    some = np.random.default_rng(74).integers(0, 2**32, 500).tolist()
    numbers = [0, 1, 2, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1, *edges, *some]
    found = twice_log(np.array(numbers, np.float64) + 0.5).tolist()
    worst = Decimal(0)
    with localcontext(LONG):
        for number, value in zip(numbers, found, strict=True):
            exact = -2 * ((number + Decimal("0.5")) / 2**32).ln()
            worst = max(worst, abs(Decimal(value) / exact - 1))
    assert worst < Decimal(2) ** -44


def reference(word: int) -> tuple[float, float]:
    """One word, as the docstrings say, in Python's own floats: no function but the square root."""
    x = (word >> 32) + 0.5
    m, e = math.frexp(x)
    if m < float.fromhex("0x1.6a09e667f3bcdp-1"):
        m, e = 2 * m, e - 1
    s = (m - 1) / (m + 1)
    z = s * s
    series = z * (4 / 15)
    for k in range(6, 0, -1):
        series = (series + 4 / (2 * k + 1)) * z
    radius = math.sqrt((32 - e) * 1.3862943611198906 - (series + 4.0) * s)
    table = quarter_sines().tolist()
    whole = [*table, *table[1023::-1], *(-y for y in table[1:]), *(-y for y in table[1023:0:-1])]
    place, rest = word & 4095, (word >> 12 & (2**20 - 1)) * (math.pi * 2.0**-31)
    square = rest * rest
    cosine, sine = 1 - square * (0.5 - square / 24), rest * (1 - square / 6)
    c, s = whole[(place + 1024) % 4096], whole[place]
    return radius * (c * cosine - s * sine), radius * (s * cosine + c * sine)


@pytest.mark.parametrize("dimension", [1, 2, 7, 8])
def test_normals_are_their_words_to_the_last_bit_in_the_stated_order(dimension: int) -> None:
    words = np.random.default_rng(75).integers(0, 2**64, (300, (dimension + 1) // 2), dtype=np.uint64)
    words[:4, 0] = [0, 2**64 - 1, 0xFFFFFFFF, 0xFFFFFFFF00000000]
    found = normals(words, dimension)
    for row, column in zip(words.tolist(), found.T.tolist(), strict=True):
        pairs = [reference(word) for word in row]
        assert column == [*(first for first, _ in pairs), *(second for _, second in pairs)][:dimension]
