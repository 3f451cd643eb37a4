"""Randomisers of one unit vector: their constants, means and variances. False alarms: at most 1e-6 per test, seeds are
fixed."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta

from cloister.core.budget import Budget
from cloister.core.errors import InvalidInput
from cloister.core.fixed_order import normals
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.plugins.oracles.local.hadamard_transform import Rotations, signs, transform
from cloister.plugins.oracles.local.randomised_response import odds
from cloister.plugins.oracles.local.vectors.channel import drawing
from cloister.plugins.oracles.local.vectors.codebook import Codebook, largest
from cloister.plugins.oracles.local.vectors.duchi import Duchi
from cloister.plugins.oracles.local.vectors.privunit import PrivUnit
from cloister.plugins.oracles.local.vectors.unit_randomiser import lifted, received, sent

SEED = PublicRng.from_seed(70)
MADE = {"one-byte": Codebook.within, "privunit": PrivUnit.within, "duchi": Duchi.within}
SIGMAS = 6.5  # two-sided, over a few hundred comparisons: below 1e-6


def made(name: str, epsilon: float, dimension: int) -> Any:
    return MADE[name](odds(Budget("pure", epsilon)), dimension)


def axis(size: int) -> np.ndarray:
    return np.asarray(np.eye(1, size)[0])


def flat(size: int) -> np.ndarray:
    return np.full(size, size**-0.5)


def pair(size: int) -> np.ndarray:
    return np.asarray((np.eye(size)[0] + np.eye(size)[1]) / math.sqrt(2))


def somewhere(size: int) -> np.ndarray:
    v = np.random.default_rng(71).standard_normal(size)
    return np.asarray(v / np.linalg.norm(v))


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


@pytest.mark.parametrize(("epsilon", "inside", "m"), [(1.0, 89, 0.3976), (2.0, 56, 0.7858), (4.0, 17, 1.5088)])
def test_one_byte_has_the_known_constants(epsilon: float, inside: int, m: float) -> None:
    unit = made("one-byte", epsilon, 100)
    assert (unit.size, unit.inside, unit.dtype) == (128, inside, "u1")
    assert unit.m == pytest.approx(m, rel=1e-3)
    assert unit.moment == pytest.approx(made("privunit", epsilon, 100).moment, rel=0.011)
    assert unit.moment == pytest.approx(1 / m**2, rel=0.025)


@pytest.mark.parametrize(("epsilon", "variance"), [(0.5, 26.1), (1.0, 7.3), (2.0, 2.7), (4.0, 1.7)])
def test_duchi_has_the_corrected_length(epsilon: float, variance: float) -> None:
    unit = made("duchi", epsilon, 100)
    assert unit.moment == pytest.approx(variance, abs=0.06)
    e = math.exp(epsilon)
    b = (e + 1) / (e - 1) * math.sqrt(math.pi) * math.exp(math.lgamma(51) - math.lgamma(50.5))
    assert unit.length == pytest.approx(b, rel=2e-9)


def test_the_sum_of_the_largest_coordinates_is_in_closed_form() -> None:
    g = np.random.default_rng(72).standard_normal((20_000, 128))
    w = np.sort(np.abs(g) / np.linalg.norm(g, axis=1)[:, None], axis=1)[:, ::-1].cumsum(axis=1) * math.sqrt(128)
    error = w.std(axis=0) / math.sqrt(len(w))
    assert (np.abs(w.mean(axis=0) - largest(128)) < SIGMAS * error).all()
    assert (error < 1e-3 * largest(128)).all()
    for size in (128, 4096):  # all D of them: D^1.5 E|w_1|
        mean = math.exp(math.lgamma(size / 2) - math.lgamma((size + 1) / 2)) / math.sqrt(math.pi)
        assert largest(size)[-1] == pytest.approx(size**1.5 * mean, rel=2e-6)
        assert largest(size, 2)[-1] == pytest.approx(size, rel=2e-6)
    assert largest(128, 2)[16] == pytest.approx(
        np.mean(np.sort(g**2 / (g**2).mean(axis=1)[:, None])[:, -17:].sum(axis=1)), rel=3e-3
    )


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("dimension", [1, 10])
@pytest.mark.parametrize("make", [axis, flat, somewhere], ids=lambda f: f.__name__)
def test_estimates_have_the_mean_and_the_variance_that_are_declared(name: str, dimension: int, make: Any) -> None:
    n, unit, u = 60_000, made(name, 2.0, dimension), make(dimension + 1)
    users = np.arange(n, dtype=np.uint64)
    words = drawing(NoiseRng.for_tests(73), unit.each)
    answers = unit.randomise(np.repeat(u[:, None], n, axis=1), users, words, SEED)
    assert answers.shape == (n, unit.width)
    assert answers.dtype == unit.dtype
    assert unit.possible(answers)
    z = unit.estimates(answers, users, SEED) * unit.scale
    error = z.std(axis=0) / math.sqrt(n)
    assert (np.abs(z.mean(axis=0) - u[:dimension]) < SIGMAS * error + 1e-3 * np.abs(u[:dimension])).all()
    assert error.max() < 0.01  # so that a mean off by a factor of 1.2 is seen, u being 0.3 and more somewhere
    if name == "duchi" or make is flat:
        assert (z**2).mean() == pytest.approx(unit.moment, rel=0.03 if dimension == 1 else 0.015)
    if name == "privunit":
        along = 1 + unit.gamma * unit.m * dimension / (dimension + 1)
        across = (dimension + 1 - along) / dimension
        second = (along * u**2 + across * (1 - u**2))[:dimension] / unit.m**2
        assert (z**2).mean(axis=0) == pytest.approx(second, rel=0.05)


@pytest.mark.thorough
@pytest.mark.parametrize("make", [axis, pair, flat, somewhere], ids=lambda f: f.__name__)
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_three_rounds_turn_as_randomly_as_the_estimate_needs(make: Any, epsilon: float) -> None:
    """E[sqrt(D) sum of T] is M_k u within 0.2%, and nothing else beyond the error of the mean (one round is off by up
    to 54%)."""
    unit, u, n = made("one-byte", epsilon, 100), make(128), 30_000
    rotations, users = Rotations(128), np.arange(n, dtype=np.uint64)
    turned = rotations.turn(np.repeat(u[:, None], n, axis=1), users, SEED)
    order = np.argsort(-np.abs(turned), axis=0, kind="stable")[: unit.inside]
    chosen = np.zeros((128, n))
    np.put_along_axis(chosen, order, np.where(np.take_along_axis(turned, order, axis=0) < 0, -1.0, 1.0), axis=0)
    total = chosen
    for flips in rotations._flips(users, SEED)[::-1]:
        total = transform(total) * signs(flips)
    total /= 128 * largest(128)[unit.inside - 1]
    mean, error = total.mean(axis=1), total.std(axis=1) / math.sqrt(n)
    along = total.T @ u
    assert abs(along.mean() - 1) < 2e-3
    assert (np.abs(mean - u) < SIGMAS * error + 2e-3 * np.abs(u)).all()


@pytest.mark.parametrize("size", [128, 256, 512])
def test_rotations_are_exact_and_their_axes_belong_to_them(size: int) -> None:
    rotations, users = Rotations(size), np.arange(50, dtype=np.uint64)
    u = np.random.default_rng(75).standard_normal((size, 50))
    u /= np.linalg.norm(u, axis=0)
    turned = rotations.turn(u, users, SEED)
    whole = np.rint(u * 2.0**rotations.bits).astype(np.int64).astype(object)
    assert ((turned.astype(object) ** 2).sum(axis=0) == size**3 * (whole**2).sum(axis=0)).all()
    numbers = np.arange(50) * (size // 50)
    for minus in (0, 1):
        axes = rotations.axis(numbers, np.full(50, minus, np.uint64), users, SEED).astype(object)
        assert ((axes**2).sum(axis=0) == size**3).all()
        assert ((axes * whole).sum(axis=0) == (1 - 2 * minus) * turned.astype(object)[numbers, np.arange(50)]).all()


def test_even_the_longest_flat_vector_does_not_overflow() -> None:
    for size in (128, 256, 4096):
        for u in (axis(size), flat(size)):
            turned = Rotations(size).turn(np.repeat(u[:, None], 40, axis=1), np.arange(40, dtype=np.uint64), SEED)
            norms = np.sqrt((turned.astype(float) ** 2).sum(axis=0))
            assert norms == pytest.approx(np.full(40, size**1.5 * 2.0 ** Rotations(size).bits), rel=1e-3)


def test_normals_are_their_words_to_twelve_digits() -> None:
    """What ``astray`` takes for granted: radius, cosine and sine within 2^-40 of the exact ones, in the middle and at
    every edge."""
    mpmath = pytest.importorskip("mpmath")
    halves = [0, 1, 2, 2**11, 2**12 - 1, 2**12, 2**20, 2**31 - 1, 2**31, 2**32 - 4096, 2**32 - 2, 2**32 - 1]
    edges = [(h << 32) + low for h in halves for low in halves]
    words = np.array([*edges, *NoiseRng.for_tests(78).words(np.arange(2000, dtype=np.uint64), 1)[:, 0]], np.uint64)
    found = normals(words[:, None], 2)
    assert 6.7 < np.hypot(*found).max() < 6.7638
    with mpmath.workdps(40):
        for word, cosine, sine in zip(words.tolist(), *found, strict=True):
            h, low = divmod(word, 2**32)
            radius = mpmath.sqrt(-2 * mpmath.log((mpmath.mpf(h) + 0.5) / 2**32))
            angle = 2 * mpmath.pi * ((low & 4095) * 2**20 + (low >> 12)) / 2**32
            assert abs(cosine - radius * mpmath.cos(angle)) < radius * 2.0**-40
            assert abs(sine - radius * mpmath.sin(angle)) < radius * 2.0**-40


def test_steps_go_there_and_back() -> None:
    x = np.array([[0.0, 1.0, -3.5, 15.99, 100.0, -100.0]])
    assert sent(x).dtype == np.uint16
    assert sent(x).min() == 1
    assert received(sent(x))[:, 0] * 2.0**-11 == pytest.approx([0, 1, -3.5, 15.99, 16, -16], abs=1e-3)


def test_lifted_vectors_are_of_length_one_whatever_came_in() -> None:
    values = np.array([[0, 0], [3, 4], [30, 40], [6, 8], [6, 8]])
    units = lifted(values, np.array([1.0, 1.0, -1.0, 1.0, -1.0]), 10, np.array([False, False, False, False, True]))
    assert (units**2).sum(axis=0) == pytest.approx(np.ones(5), abs=1e-15)
    assert units[:2, 1] == pytest.approx([0.3, 0.4])
    assert units[:2, 2] == pytest.approx([-0.6, -0.8])  # beyond the bound: scaled to it
    assert units[:, 3] == pytest.approx([0.6, 0.8, 0.0])
    assert units[:, 4] == pytest.approx([0.0, 0.0, -1.0])  # nowhere: no vector, but a sign


def test_budgets_and_dimensions_out_of_range_are_refused() -> None:
    with pytest.raises(InvalidInput, match="too small"):
        Codebook.within(Fraction(1), 10)
    with pytest.raises(InvalidInput, match="too small"):
        PrivUnit.within(Fraction(1) + Fraction(1, 10**20), 10)
    with pytest.raises(InvalidInput, match="at most 131072"):
        PrivUnit.within(Fraction(2), 2**17 + 1)
    with pytest.raises(InvalidInput, match="at most 4095"):
        Codebook.within(Fraction(2), 4096)
    for name in MADE:
        assert math.isfinite(made(name, 1000.0, 5).moment)
