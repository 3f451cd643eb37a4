"""Randomisers of one unit vector: their constants, means and variances, exact tables and exact coins. False alarms: at
most 1e-6 per test, seeds are fixed."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import attrs
import numpy as np
import pytest
from scipy.stats import beta

from cloister.core.reproducible_math import normals
from cloister.plugin import Bound, Budget, InvalidInput, NoiseRng, PublicRng, QuestionContext, Space
from cloister.plugins.oracles.local.coins import WORDS, odds
from cloister.plugins.oracles.local.hadamard_transform import Rotations
from cloister.plugins.oracles.local.vectors.channel import RANDOMISERS, word_source
from cloister.plugins.oracles.local.vectors.codebook import Codebook, mean_of_largest
from cloister.plugins.oracles.local.vectors.duchi import Duchi
from cloister.plugins.oracles.local.vectors.ldp_average import LdpAverage
from cloister.plugins.oracles.local.vectors.unit_randomiser import lifted, received, sent
from cloister.plugins.oracles.local.vectors.vector_sums import HadamardVector

SEED = PublicRng.from_seed(70)
SIGMAS = 6.5  # two-sided, over a few hundred comparisons: below 1e-6


def made(name: str, epsilon: float, dimension: int) -> Any:
    return RANDOMISERS[name](odds(Budget("pure", epsilon)), dimension)


def somewhere(size: int) -> np.ndarray:
    v = np.random.default_rng(71).standard_normal(size)
    return np.asarray(v / np.linalg.norm(v))


DIRECTIONS = {
    "axis": lambda size: np.eye(size)[0],
    "flat": lambda size: np.full(size, size**-0.5),
    "somewhere": somewhere,
}


@pytest.mark.parametrize(("epsilon", "m"), [(0.5, 0.1993), (1.0, 0.3975), (2.0, 0.7865), (4.0, 1.5156)])
def test_privunit_has_the_known_constants(epsilon: float, m: float) -> None:
    """Of PrivUnitG, which it is in high dimension; at 100 within half a percent, and by scipy's law of a coordinate of
    the sphere."""
    unit = made("privunit", epsilon, 100_000)
    assert unit.m == pytest.approx(m, rel=1e-3)
    for size in (2, 3, 21, 101):
        unit = made("privunit", epsilon, size - 1)
        assert unit.gamma == pytest.approx(unit.m, rel=1e-4)
        assert unit.m == pytest.approx(m, rel=1 / (2 * size) + 1e-3) or size < 101
        coordinate = beta((size - 1) / 2, (size - 1) / 2, loc=-math.sqrt(size), scale=2 * math.sqrt(size))
        t = unit.coin / 2**64
        inside = coordinate.expect(lb=unit.gamma, ub=math.sqrt(size))
        cap = coordinate.sf(unit.gamma)
        assert unit.m == pytest.approx((1 - t) * inside / (cap + (1 - cap) * t), rel=1e-6)


@pytest.mark.parametrize(
    ("epsilon", "inside", "m", "variance"),
    [(1.0, 89, 0.3976, 7.3), (2.0, 56, 0.7858, 2.7), (4.0, 17, 1.5088, 1.7)],
)
def test_one_byte_has_the_known_constants_and_duchi_the_corrected_length(
    epsilon: float, inside: int, m: float, variance: float
) -> None:
    unit, duchi, e = made("one-byte", epsilon, 100), made("duchi", epsilon, 100), math.exp(epsilon)
    assert (unit.size, unit.inside, unit.dtype) == (128, inside, "u1")
    assert unit.m == pytest.approx(m, rel=1e-3)
    assert unit.moment == pytest.approx(1 / m**2, rel=0.025)
    length = (e + 1) / (e - 1) * math.sqrt(math.pi) * math.exp(math.lgamma(51) - math.lgamma(50.5))
    assert duchi.length == pytest.approx(length, rel=2e-9)
    assert duchi.moment == pytest.approx(variance, abs=0.06)


@pytest.mark.parametrize("name", RANDOMISERS)
@pytest.mark.parametrize(("dimension", "direction"), [(1, "axis"), (10, "flat"), (10, "somewhere")])
def test_estimates_have_the_mean_and_the_variance_that_are_declared(name: str, dimension: int, direction: str) -> None:
    n, unit, u = 60_000, made(name, 2.0, dimension), DIRECTIONS[direction](dimension + 1)
    users = np.arange(n, dtype=np.uint64)
    words = word_source(NoiseRng.for_tests(73), unit.secret_words)
    answers = unit.randomise(np.repeat(u[:, None], n, axis=1), users, words, SEED)
    assert answers.shape == (n, unit.width)
    assert answers.dtype == unit.dtype
    assert unit.possible(answers)
    z = unit.estimates(answers, users, SEED) * unit.scale
    error = z.std(axis=0) / math.sqrt(n)
    assert (np.abs(z.mean(axis=0) - u[:dimension]) < SIGMAS * error + 1e-3 * np.abs(u[:dimension])).all()
    assert error.max() < 0.01  # so that a mean off by a factor of 1.2 is seen, u being 0.3 and more somewhere
    if name == "duchi" or direction == "flat":
        assert (z**2).mean() == pytest.approx(unit.moment, rel=0.03 if dimension == 1 else 0.015)
    if name == "privunit":
        along = 1 + unit.gamma * unit.m * dimension / (dimension + 1)
        across = (dimension + 1 - along) / dimension
        second = (along * u**2 + across * (1 - u**2))[:dimension] / unit.m**2
        assert (z**2).mean(axis=0) == pytest.approx(second, rel=0.05)


def test_normals_are_their_words_to_twelve_digits() -> None:
    """``cap_error`` assumes it: radius, cosine and sine within 2^-40 of the exact ones, in the middle and at
    every edge."""
    mpmath = pytest.importorskip("mpmath")
    halves = [0, 1, 2, 2**11, 2**12 - 1, 2**12, 2**20, 2**31 - 1, 2**31, 2**32 - 4096, 2**32 - 2, 2**32 - 1]
    edges = [(h << 32) + low for h in halves for low in halves]
    words = np.array([*edges, *NoiseRng.for_tests(78).words(np.arange(500, dtype=np.uint64), 1)[:, 0]], np.uint64)
    found = normals(words[:, None], 2)
    assert 6.7 < np.hypot(*found).max() < 6.7638
    with mpmath.workdps(40):
        for word, cosine, sine in zip(words.tolist(), *found, strict=True):
            h, low = divmod(word, 2**32)
            radius = mpmath.sqrt(-2 * mpmath.log((mpmath.mpf(h) + 0.5) / 2**32))
            angle = 2 * mpmath.pi * ((low & 4095) * 2**20 + (low >> 12)) / 2**32
            assert abs(cosine - radius * mpmath.cos(angle)) < radius * 2.0**-40
            assert abs(sine - radius * mpmath.sin(angle)) < radius * 2.0**-40


def test_the_means_that_every_codebook_shares_cannot_be_overwritten() -> None:
    with pytest.raises(ValueError, match="read-only"):
        mean_of_largest(128)[0] = 0.0


def test_codewords_beyond_a_codebook_of_16_bits_are_impossible() -> None:
    unit = made("one-byte", 1.0, 200)
    assert unit.dtype == "u2"
    assert [unit.possible(np.full((10, 1), last, np.uint16)) for last in (511, 512)] == [True, False]


ONE_BYTE, PURE = HadamardVector(randomiser="one-byte"), Budget("pure", 1.0)


@pytest.mark.parametrize(
    ("oracle", "size", "dimension", "budget", "said"),
    [
        (ONE_BYTE, 2**24, 10, PURE, "explicit-histogram-vector"),
        (ONE_BYTE, 4, 10, Budget("pure", math.inf), "finite"),
        (ONE_BYTE, 4, 10, Budget("gaussian", 1.0), "Gaussian"),
        (ONE_BYTE, 4, 4096, PURE, "at most 4095"),
        (HadamardVector(randomiser="privunit"), 4, 2**17 + 1, PURE, "at most 131072"),
        (LdpAverage(), 3, 2, PURE, "spends delta"),
        (LdpAverage(), 2**20, 2, attrs.evolve(PURE, delta=1e-6), "hadamard-vector"),
        (LdpAverage(), 3, 2, Budget("pure", 1e-13, delta=1e-6), "out of range"),
    ],
)
def test_questions_that_cannot_be_answered_are_refused_when_they_are_opened(
    oracle: Any, size: int, dimension: int, budget: Budget, said: str
) -> None:
    with pytest.raises(InvalidInput, match=said):
        oracle.open(Space((size,)), budget, QuestionContext(100, 1.0, SEED), Bound(10, dimension))


@pytest.mark.parametrize("name", RANDOMISERS)
def test_much_epsilon_is_no_error(name: str) -> None:
    assert math.isfinite(made(name, 1000.0, 5).moment)


# Privacy: exact tables and exact coins.

EPSILONS = (1e-3, 0.5, 1.0, 4.0, 12.0, 39.0)


def intervals(unit: Codebook) -> list[tuple[int, int]]:
    """The 2 D sets of words that ``drawn`` is constant on, as it says: first word and length."""
    edge = unit.near * unit.inside
    inner = [(r * unit.near, unit.near) for r in range(unit.inside)]
    return inner + [(edge + r * unit.far, unit.far) for r in range(2 * unit.size - unit.inside)]


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_one_byte_draws_every_codeword_from_one_interval_of_words_of_two_lengths_within_the_odds(
    epsilon: float,
) -> None:
    most = odds(Budget("pure", epsilon))
    unit = Codebook.within(most, 100)
    assert 1 < Fraction(unit.near, unit.far) <= most
    assert Fraction(unit.near, unit.far) > most * (1 - Fraction(1, 10**9)) or epsilon > 4
    parts = intervals(unit)
    assert sum(length for _, length in parts) == WORDS
    assert all(a + n == b for (a, n), (b, _) in pairwise(parts))
    first, last = (unit.place_and_sign(np.array([a + end * (n - 1) for a, n in parts], np.uint64)) for end in (0, 1))
    assert np.array_equal(first, last)
    outcomes = list(zip(*(part.tolist() for part in first), strict=True))
    assert len(set(outcomes)) == 2 * unit.size
    assert set(outcomes[: unit.inside]) == {(place, False) for place in range(unit.inside)}
    assert all(0 <= place < unit.size for place, _ in outcomes)


def test_the_whole_table_of_one_byte_keeps_the_law_for_every_pair_of_inputs() -> None:
    """By enumeration: each codeword's exact chance for inputs of every kind (ties too), against brute force for T."""
    most, n = odds(Budget("pure", 1.0)), 256
    unit = Codebook.within(most, 100)
    words = np.array([a for a, _ in intervals(unit)], np.uint64)[:, None]
    chances = np.array([length for _, length in intervals(unit)], object)
    users = np.full(n, 5, np.uint64)
    g = np.random.default_rng(81).standard_normal((101, 4))
    inputs = [*(g / np.linalg.norm(g, axis=0)).T, np.eye(101)[0], -np.eye(101)[100], np.full(101, 101**-0.5)]
    table = []
    for u in inputs:
        answers = unit.randomise(np.repeat(u[:, None], n, axis=1), users, lambda *_: words, SEED)[:, 0]
        assert sorted(answers) == list(range(n))  # every codeword, once
        row = np.empty(n, object)
        row[answers] = chances
        table.append(row)
        w = Rotations(128).turn(u[:, None], users[:1], SEED)[:, 0].astype(object)
        order = sorted(range(128), key=lambda j: (-(abs(int(w[j])) // 128), j))
        inside = {j + 128 * (w[j] < 0) for j in order[: unit.inside]}
        assert {c for c in range(n) if row[c] == unit.near} == inside
    for one, other in product(table, table):
        assert all(Fraction(a, b) <= most for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_coin_of_the_half_sphere_is_on_the_safe_side_and_close(epsilon: float) -> None:
    most = odds(Budget("pure", epsilon))
    coin = Duchi.within(most, 100).coin
    ratio = Fraction(coin, WORDS - coin)
    assert most * (1 - Fraction(1, 10**9)) < ratio <= most or epsilon > 12


@pytest.mark.parametrize("dimension", [1, 2, 20])
def test_duchi_sends_a_vector_or_its_opposite_and_the_row_only_says_which(dimension: int) -> None:
    """Exactly: whatever the row is, the same two answers, one for ``coin`` of the 2^64 words and one for the others.
    Ties and all."""
    unit, n = Duchi.within(odds(Budget("pure", 1.0)), dimension), 200
    words = NoiseRng.for_tests(85).words(np.arange(n, dtype=np.uint64), unit.secret_words)
    words[:20, 1:] &= np.uint64(2**64 - 2**32)  # angle 0: variates that are zero, so that <v, u> is a tie for some rows
    g = np.random.default_rng(86).standard_normal((dimension + 1, 3))
    rows = [*(g / np.linalg.norm(g, axis=0)).T, *np.eye(dimension + 1), *-np.eye(dimension + 1)]
    found = []
    for u in rows:
        for word in (0, unit.coin - 1, unit.coin, WORDS - 1):
            words[:, 0] = np.uint64(word)
            units = np.repeat(u[:, None], n, axis=1)
            found.append(received(unit.randomise(units, np.arange(n, dtype=np.uint64), lambda *_: words, SEED)))
    first = found[0]
    assert first.any(axis=1).all()
    for at in range(0, len(found), 4):
        low, edge, beyond, high = found[at : at + 4]
        assert np.array_equal(low, edge)
        assert np.array_equal(beyond, high)
        assert np.array_equal(low, -high)
        assert ((low == first).all(axis=1) | (low == -first).all(axis=1)).all()


def test_lifted_vectors_are_of_length_one_whatever_came_in() -> None:
    """Zero; inside; beyond the bound: scaled to it; of a row in no bucket: no vector, but a sign."""
    values = np.array([[0, 0], [3, 4], [30, 40], [6, 8]])
    units = lifted(values, np.array([1.0, 1.0, -1.0, -1.0]), 10, np.arange(4) == 3).T
    expected = [[0, 0, 1], [0.3, 0.4, math.sqrt(0.75)], [-0.6, -0.8, 0], [0, 0, -1]]
    assert units == pytest.approx(np.array(expected), abs=1e-15)


@pytest.mark.parametrize("size", [128, 512, 4096])
def test_rotations_are_exact_and_their_axes_belong_to_them(size: int) -> None:
    """The vectors of which coordinates get longest among them: an axis, and a flat one."""
    rotations, users = Rotations(size), np.arange(50, dtype=np.uint64)
    u = np.random.default_rng(75).standard_normal((size, 50))
    u[:, 0], u[:, 1] = np.eye(size)[0], 1
    u /= np.linalg.norm(u, axis=0)
    turned = rotations.turn(u, users, SEED).astype(object)
    whole = np.rint(u * 2.0**rotations.bits).astype(np.int64).astype(object)
    assert ((turned**2).sum(axis=0) == size**3 * (whole**2).sum(axis=0)).all()
    numbers = np.arange(50) * (size // 50)
    axes = rotations.axis(numbers, np.zeros(50, np.uint64), users, SEED).astype(object)
    assert ((axes * whole).sum(axis=0) == turned[numbers, np.arange(50)]).all()


def test_steps_go_there_and_back() -> None:
    x = np.array([[0.0, 1.0, -3.5, 15.99, 100.0, -100.0]])
    assert sent(x).dtype == np.uint16
    assert sent(x).min() == 1
    assert received(sent(x))[:, 0] * 2.0**-11 == pytest.approx([0, 1, -3.5, 15.99, 16, -16], abs=1e-3)
