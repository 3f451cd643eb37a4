"""Sums, products and functions that come out the same on every machine, against NumPy's and exact ones.

Normal variates' logarithm and sines are compared with arithmetic of many digits.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import mpmath
import numpy as np
import pytest

from cloister.core import reproducible_math
from cloister.core.randomness import PublicRng
from cloister.core.reproducible_math import normals, quarter_sines, twice_log
from tests.reference_client.normals import normals as client_normals

G = np.random.default_rng(0)


def test_normals_of_a_generator_are_those_of_its_words_block_after_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reproducible_math, "NORMALS", 4)
    drawn, raw = PublicRng.from_seed(8).generator(), PublicRng.from_seed(8).generator().bit_generator
    blocks = [normals(np.asarray(raw.random_raw(n), np.uint64)[:, None], 2).T.ravel() for n in (2, 2, 1)]
    assert reproducible_math.standard_normals(drawn, 3, 3).ravel().tolist() == np.concatenate(blocks)[:9].tolist()


@pytest.mark.parametrize("m", [0, 1, 3, 1001])
def test_sums_are_right_and_depend_on_the_length_alone(m: int) -> None:
    values = G.normal(size=(m, 5))
    assert reproducible_math.column_sums(values) == pytest.approx(values.sum(axis=0))
    assert reproducible_math.row_sums(values.T) == pytest.approx(values.sum(axis=0))
    for j in range(5):
        assert reproducible_math.column_sums(values[:, [j]])[0] == reproducible_math.column_sums(values)[j]


def test_a_sum_is_taken_by_halves() -> None:
    values = np.array([1.0, 2.0**-53, 2.0**-53, 2.0**-53])[:, None]
    assert reproducible_math.column_sums(values)[0] == (1.0 + 2.0**-53) + (2.0**-53 + 2.0**-53)
    assert reproducible_math.column_sums(values)[0] != math.fsum(values[:, 0])


def test_products_and_lengths_are_numpys() -> None:
    a, b = G.normal(size=(130, 7)), G.normal(size=(7, 3))
    assert reproducible_math.product(a, b) == pytest.approx(a @ b)
    assert reproducible_math.lengths(a) == pytest.approx(np.linalg.norm(a, axis=1))
    whole = np.rint(a * 1000)
    assert (reproducible_math.exact_product(whole, whole.T) == reproducible_math.product(whole, whole.T)).all()
    with pytest.raises(AssertionError):
        reproducible_math.exact_product(whole * 2.0**30, whole.T * 2.0**30)


def test_vectors_become_orthonormal_within_their_span() -> None:
    vectors = G.normal(size=(40, 40))
    found = reproducible_math.orthonormal(vectors)
    assert np.abs(found @ found.T - np.eye(40)).max() < 2.0**-40
    assert np.abs(np.triu(vectors @ found.T, 1)).max() < 1e-10
    assert (np.diag(vectors @ found.T) > 0).all()


def test_functions_are_right() -> None:
    x = G.uniform(-690, 690, 10_000)
    assert reproducible_math.exps(x) == pytest.approx(np.exp(x), rel=2.0**-49)
    u = reproducible_math.uniforms(PublicRng.from_seed(0).generator(), 1000)
    assert ((u > 0) & (u < 1)).all()
    assert reproducible_math.roots(u, 7) == pytest.approx(u ** (1 / 7), rel=2.0**-39)
    assert reproducible_math.powers(np.array([0.0, 4.0, 1e-30]), 1.5) == pytest.approx([0.0, 8.0, 1e-45], rel=1e-11)
    with localcontext(prec=60):
        for value in G.lognormal(0, 10, 50).tolist():
            assert reproducible_math.log(value) == float(Decimal(value).ln())
            assert reproducible_math.root(value, 3) == pytest.approx(value ** (1 / 3), rel=1e-15)
            assert reproducible_math.power(value, 0.3) == pytest.approx(value**0.3, rel=1e-15)
    assert reproducible_math.exp(1.0) == math.e
    assert reproducible_math.root(9.0, 2) == 3.0
    assert reproducible_math.root(0.0, 3) == 0.0


def test_the_deviation_of_geometric_noise_is_the_known_one() -> None:
    for scale in (1e-3, 0.5, 1.0, 1e3, 2.0**40):
        wanted = math.sqrt(2 * math.exp(-1 / scale)) / -math.expm1(-1 / scale)
        assert reproducible_math.geometric_deviation(scale) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("x", [1.0, 0.1, math.pi, 1e-200, 3e200])
def test_few_bits_are_nearest_below_and_above(x: float) -> None:
    below, near, above = (
        reproducible_math.fewer_bits(x, 10),
        reproducible_math.few_bits(x, 10),
        reproducible_math.more_bits(x, 10),
    )
    assert below <= x <= above
    assert near in (below, above)
    assert above - below <= x * 2.0**-9
    assert reproducible_math.few_bits(near * (1 + 2.0**-50), 10) == near
    assert (reproducible_math.few_bits(math.inf), reproducible_math.figure(0.123456)) == (math.inf, 0.1235)


def test_the_power_of_two_above_is_exact() -> None:
    assert [reproducible_math.ceil_log2(x) for x in (1.0, 1.5, 2.0, 2.5, 0.5, 2.0**40 + 1)] == [0, 1, 1, 2, -1, 41]


def test_the_sines_of_the_table_are_correctly_rounded() -> None:
    """Forty digits of each: none is so near to the middle between two doubles."""
    with mpmath.workdps(50):
        exact = [mpmath.nstr(mpmath.sin(mpmath.pi * i / 2048), 40) for i in range(1025)]
    assert quarter_sines().tolist() == [float(digits) for digits in exact]


def test_the_logarithm_is_right_to_what_is_stated() -> None:
    """2^-44 of itself, also where it nearly vanishes, and on both sides of where the exponent changes."""
    edges = [round(2.0**i * math.sqrt(0.5)) + j for i in range(3, 33) for j in (-1, 0)]
    some = np.random.default_rng(74).integers(0, 2**32, 500).tolist()
    numbers = [0, 1, 2, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1, *edges, *some]
    found = twice_log(np.array(numbers, np.float64) + 0.5).tolist()
    worst = Decimal(0)
    with localcontext(prec=60):
        for number, value in zip(numbers, found, strict=True):
            exact = -2 * ((number + Decimal("0.5")) / 2**32).ln()
            worst = max(worst, abs(Decimal(value) / exact - 1))
    assert worst < Decimal(2) ** -44


@pytest.mark.parametrize("dimension", [1, 2, 7, 8])
def test_normals_are_their_words_to_the_last_bit_in_the_stated_order(dimension: int) -> None:
    """As the client in Python's own floats has them: no function but the square root."""
    words = np.random.default_rng(75).integers(0, 2**64, (300, (dimension + 1) // 2), dtype=np.uint64)
    words[:4, 0] = [0, 2**64 - 1, 0xFFFFFFFF, 0xFFFFFFFF00000000]
    sines = quarter_sines().tolist()
    for row, column in zip(words.tolist(), normals(words, dimension).T.tolist(), strict=True):
        assert column == client_normals(row, dimension, sines)
