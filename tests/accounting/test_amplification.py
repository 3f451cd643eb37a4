"""Amplification by shuffling: exact enumerations lie below the bounds, which are as tight as published figures."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Mapping
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import binom

from cloister.accounting import amplification
from cloister.accounting.amplification import (
    bins,
    delta_of_shuffled,
    epsilon_of_shuffled,
    excess,
    general_delta,
    local_of_shuffled,
    response_delta,
)
from cloister.core.errors import InvalidInput

SLACK = 1 + 1e-9
Counts: TypeAlias = tuple[int, ...]


def response(k: int, p: float) -> np.ndarray:
    """Laws (k, k) of k-ary randomised response, one row per input."""
    return (np.ones((k, k)) + (p - 1) * np.eye(k)) / (p + k - 1)


def extremal(k: int, outputs: int, p: float, g: np.random.Generator) -> np.ndarray:
    """Laws (k, outputs) with ratio p between inputs, as the most accurate randomisers have: each output likely for some
    inputs."""
    while True:
        likely = g.integers(0, 2, (k, outputs))
        shape = 1 + (p - 1) * likely
        # weights of the outputs that make every row add up to one
        weights, *_ = np.linalg.lstsq(shape, np.ones(k), rcond=None)
        weights += 0.2 * (np.eye(outputs) - np.linalg.pinv(shape) @ shape) @ g.standard_normal(outputs)
        if weights.min() > 1e-3 and abs(shape @ weights - 1).max() < 1e-9:
            return shape * weights


def added(chances: Mapping[Counts, float], weights: np.ndarray) -> dict[Counts, float]:
    """One more report, of these weights, among counts of each output."""
    found = defaultdict[Counts, float](float)
    for seen, chance in chances.items():
        for y, weight in enumerate(weights):
            found[*seen[:y], seen[y] + 1, *seen[y + 1 :]] += chance * float(weight)
    return found


def worst_delta(laws: np.ndarray, users: int, epsilon: float) -> float:
    """The hockey-stick divergence of the shuffled reports, over all pairs of neighbouring inputs."""
    k, worst = len(laws), 0.0
    for others in itertools.combinations_with_replacement(range(k), users - 1):
        rest: Mapping[Counts, float] = {(0,) * laws.shape[1]: 1.0}
        for x in others:
            rest = added(rest, laws[x])
        for x, other in itertools.permutations(range(k), 2):
            gap = added(rest, laws[x] - math.exp(epsilon) * laws[other])
            worst = max(worst, sum(value for value in gap.values() if value > 0))
    return worst


def within(laws: np.ndarray, users: int, local: float, share: float, values: int | None = None) -> bool:
    """Whether the divergence at a share of the local epsilon is at most the bound; values: of a k-ary response."""
    bound = delta_of_shuffled(local, share * local, users, values)
    return worst_delta(laws, users, share * local) <= bound * SLACK


@pytest.mark.parametrize("p", [1.5, 3.0, 20.0])
def test_no_shuffled_randomised_response_is_above_its_bound(p: float) -> None:
    for (users, k), share in itertools.product([(1, 2), (2, 4), (3, 3), (4, 3), (6, 2)], (0.0, 0.1, 0.4, 0.8)):
        for values in (k, None):
            assert within(response(k, p), users, math.log(p), share, values), (users, k, share)


@pytest.mark.parametrize("seed", range(6))
def test_no_shuffled_randomiser_is_above_the_general_bound(seed: int) -> None:
    g = np.random.default_rng(seed)
    for users, p in ((2, 1.5), (3, 30.0), (4, 4.0)):
        laws = extremal(int(g.integers(2, 5)), int(g.integers(3, 6)), p, g)
        for share in (0.0, 0.05, 0.3, 0.7):
            assert within(laws, users, math.log(p), share), (users, p, share)


@pytest.mark.parametrize("p", [2.0, 40.0])
def test_response_on_a_hash_that_is_sent_along_is_below_the_bound_for_its_values(p: float) -> None:
    """Three hashes of three buckets into three values, and a user in no bucket, who sends a uniform value."""
    hashes, k = ([0, 1, 2], [1, 1, 0], [2, 0, 2]), 3
    each = [np.concatenate([response(k, p)[h], np.full((1, k), 1 / k)]) for h in hashes]
    laws = np.concatenate(each, axis=1) / len(hashes)
    for users, share in ((1, 0.0), (2, 0.0), (2, 0.4), (3, 0.1)):
        assert within(laws, users, math.log(p), share, k), (users, share)


@pytest.mark.parametrize("p", [2.0, 10.0])
def test_a_role_drawn_in_private_keeps_the_general_bound(p: float) -> None:
    """A share of the users answers another question, by another randomiser of the same epsilon, and says which."""
    subset = np.array([[p, p, 1.0], [p, 1.0, p], [1.0, p, p]]) / (2 * p + 1)
    for role, users, share in ((0.05, 2, 0.0), (0.05, 4, 0.2), (0.5, 2, 0.5), (0.5, 4, 0.0)):
        laws = np.concatenate([role * response(3, p), (1 - role) * subset], axis=1)
        assert within(laws, users, math.log(p), share), (role, users, share)


def exact_delta(p: int, e: Fraction, users: int, values: int) -> Fraction:
    """The k-ary bound, term by term, in fractions."""
    one, null = Fraction(1, p + values - 1), Fraction(values - 2, p + values - 1)
    total = Fraction(0)
    for a in range(users + 1):
        for b in range(users - a + 1):
            for c in range(users - a - b + 1):
                ways = math.comb(users, a) * math.comb(users - a, b) * math.comb(users - a - b, c)
                chance = ways * one ** (a + b) * null**c * (1 - 2 * one - null) ** (users - a - b - c)
                total += chance * max(Fraction(0), (p - e) * a - (p * e - 1) * b - (e - 1) * c)
    return total / users


@pytest.mark.parametrize(
    ("users", "p", "e"), [(1, 3, Fraction(2)), (9, 2, Fraction(5, 4)), (12, 50, Fraction(3)), (25, 7, Fraction(11, 10))]
)
def test_the_sums_are_those_of_exact_fractions(users: int, p: int, e: Fraction) -> None:
    figures = math.log(p), math.log(e), users
    for found, values in ((general_delta(*figures), 2), *((response_delta(*figures, k), k) for k in (3, 5))):
        assert found == pytest.approx(float(exact_delta(p, e, users, values)), rel=1e-9)


def test_the_binomial_excess_is_that_of_exact_integers() -> None:
    """Where it is small and cancels: 60-digit integers as the judge."""
    for m, beyond in ((50, 12.5), (2000, 130.75), (20_000, 350.25), (20_000, 700.5), (7, 3.25)):
        k, total = math.ceil(m / 2 + beyond), 0
        ways = math.comb(m, k)
        for j in range(k, m + 1):
            total += ways * int(4 * (j - m / 2 - beyond))
            ways = ways * (m - j) // (j + 1)
        (found,) = excess(np.array([float(m)]), np.array([beyond]))
        assert found == pytest.approx(float(Fraction(total, 4 * 2**m)), rel=1e-9)


@pytest.mark.parametrize("most", [3, 10, 40])
def test_few_bins_err_on_the_safe_side(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """All clones of a bin count as its fewest: delta is never below the one of single counts."""
    exact = amplification.general_delta(3.0, 0.3, 20_000)
    monkeypatch.setattr(amplification, "BINS", most)
    assert amplification.general_delta(3.0, 0.3, 20_000) >= exact * (1 - 1e-9) > 0


def single_counts(trials: int, chance: float, most: int) -> tuple[np.ndarray, np.ndarray]:
    """A binomial law without bins."""
    counts = np.arange(trials + 1.0)
    return counts, binom.pmf(counts, trials, chance)


@pytest.mark.parametrize("values", [3, 20])
@pytest.mark.parametrize(("nothing", "reach"), [(1e-3, 12.0), (0.05, 12.0), (1e-40, 0.5), (1e-40, 1.5), (0.02, 1.0)])
def test_what_is_cut_off_counts_whole_and_no_more_than_that(
    monkeypatch: pytest.MonkeyPatch, nothing: float, reach: float, values: int
) -> None:
    """Rare numbers of clones, and pairs far from their mean: at most half of each report is divergence."""
    local, epsilon, users = 2.0, 0.2, 60
    exact = response_delta(local, epsilon, users, values)
    for name, value in (("bins", single_counts), ("_NEGLIGIBLE", nothing), ("REACH", reach)):
        monkeypatch.setattr(amplification, name, value)
    if reach < 12:
        monkeypatch.setattr(amplification, "_MIN_ROOM", 0.0)
    found = response_delta(local, epsilon, users, values)
    p, e = math.exp(local), math.exp(epsilon)
    scale, chance, mean = (p - 1) * (e + 1), values / (p + values - 1), 2 * users / (p + values - 1)
    room = reach * math.sqrt(mean) + (40 if reach == 12 else 0)
    low, high = max(0, math.floor(mean - room)), min(users, math.ceil(mean + room))
    clones, chances = single_counts(users - 1, chance, 0)
    m, pairs = (clones + 1)[:, None], np.arange(low, high + 1.0)
    beyond = (e - 1) * ((p - 1) * pairs / 2 + m) / scale
    inside = excess(np.broadcast_to(pairs, beyond.shape), beyond) * binom.pmf(pairs, m, 2 / values) / m
    outside = binom.sf(high, clones + 1, 2 / values) + binom.cdf(low - 1, clones + 1, 2 / values)
    each = np.where(chances > nothing, inside.sum(axis=1) + outside / 2, 0.5)
    assert exact < found == pytest.approx(scale * chance * float(chances @ each), rel=1e-9)


def test_where_all_is_cut_off_half_of_each_report_is_divergence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(amplification, "_NEGLIGIBLE", 1.0)
    p, e = math.exp(2.0), math.exp(0.2)
    whole = (p - 1) * (e + 1) * 5 / (p + 4) / 2
    assert response_delta(2.0, 0.2, 60, 5) == pytest.approx(whole, rel=1e-9)


def test_bins_cover_twelve_standard_deviations_and_forty_counts_either_way() -> None:
    for trials, chance, room in ((10**6, 0.5, 6040), (10**4, 0.02, 208), (10**4, 0.98, 208)):
        lowest, _ = amplification.bins(trials, chance, 10**5)
        mean = round(trials * chance)
        assert lowest[:2].tolist() == [0, mean - room] if mean > room else lowest[0] == 0
        assert lowest[-1] == min(trials, mean + room)


def test_bins_hold_the_whole_law() -> None:
    for trials, chance, most in ((10, 0.3, 1000), (10**6, 0.001, 100), (10**8, 1e-5, 1000), (5, 0.9, 2), (0, 0.5, 10)):
        least, chances = bins(trials, chance, most)
        assert least[0] == 0
        assert chances.sum() == pytest.approx(1, abs=1e-9)
        assert float(chances @ least) <= trials * chance * (1 + 1e-9)


@pytest.mark.parametrize(("local", "users", "study"), [(2.0, 10**4, 0.114), (4.0, 10**4, 0.411), (4.0, 10**5, 0.118)])
def test_epsilon_is_that_of_the_study(local: float, users: int, study: float) -> None:
    assert epsilon_of_shuffled(local, 1e-6, users) == pytest.approx(study, rel=0.012, abs=5e-4)


@settings(max_examples=5, deadline=None)
@given(st.floats(0.2, 4), st.floats(-12, -2), st.integers(10, 10**7), st.sampled_from([None, 200]))
def test_the_local_epsilon_is_safe(epsilon: float, exponent: float, users: int, values: int | None) -> None:
    local = local_of_shuffled(epsilon, 10**exponent, users, values)
    assert local >= epsilon
    assert delta_of_shuffled(local, epsilon, users, values) <= 10**exponent


@pytest.mark.parametrize(("users", "values"), [(40, 300), (5000, 10)])
def test_the_local_epsilon_of_a_response_is_the_largest(users: int, values: int) -> None:
    """And more than that of any randomiser: with more values than users, and with fewer."""
    local, any_randomiser = local_of_shuffled(1.0, 1e-6, users, values), local_of_shuffled(1.0, 1e-6, users)
    assert local > any_randomiser * 1.01
    assert delta_of_shuffled(local, 1.0, users, values) <= 1e-6
    assert delta_of_shuffled(local + 2e-3 * (local - any_randomiser), 1.0, users, values) > 1e-6


def test_one_user_alone_pays_her_own_epsilon() -> None:
    assert local_of_shuffled(1.0, 1e-6, 1) == pytest.approx(1.0, abs=1e-5)
    assert delta_of_shuffled(2.0, 2.0, 5) == 0
    assert delta_of_shuffled(math.inf, 2.0, 5) == 1
    assert delta_of_shuffled(500.0, 2.0, 5) == 1


def test_figures_out_of_range_are_refused() -> None:
    nan = math.nan
    for figures in ((-1.0, 1.0, 5), (nan, 1.0, 5), (1.0, nan, 5), (1.0, 1.0, 0), (1.0, 0.5, 5, 1)):
        with pytest.raises(InvalidInput):
            delta_of_shuffled(*figures)
