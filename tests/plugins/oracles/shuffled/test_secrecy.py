"""What shuffled shares say beside their sum, by enumeration, and by the bound that plans rest on."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from cloister.accounting.conversions import delta_of_mu
from cloister.plugins.oracles.shuffled.mixing import split
from cloister.plugins.oracles.shuffled.secrecy import (
    delta_of_distance,
    enough_shares,
    log2_distance,
    max_distance,
)

Law = dict[tuple[int, ...], Fraction]


@cache
def enumerated(inputs: tuple[int, ...], bits: int, shares: int) -> Law:
    """The law of the multiset of all shares, over every word that an encoder can draw."""
    q, n = 2**bits, len(inputs)
    seen: Counter[tuple[int, ...]] = Counter()
    for words in itertools.product(range(q), repeat=n * (shares - 1)):
        drawn = np.array(words, np.uint64).reshape(n, shares - 1)
        sent = split(np.array(inputs, np.uint64), drawn, bits)
        seen[tuple(np.bincount(sent.reshape(-1).astype(np.int64), minlength=q).tolist())] += 1
    total = q ** (n * (shares - 1))
    return {multiset: Fraction(count, total) for multiset, count in seen.items()}


def distance(one: Law, other: Law) -> float:
    keys = set(one) | set(other)
    return float(sum(abs(one.get(c, Fraction(0)) - other.get(c, Fraction(0))) for c in keys) / 2)


def worst(users: int, bits: int, shares: int) -> float:
    """The largest distance between inputs of one sum."""
    q, laws = 2**bits, dict[int, dict[tuple[int, ...], Law]]()
    for inputs in itertools.combinations_with_replacement(range(q), users):  # order does not matter to a multiset
        laws.setdefault(sum(inputs) % q, {})[inputs] = enumerated(inputs, bits, shares)
    pairs = (p for same in laws.values() for p in itertools.combinations(same.values(), 2))
    return max(distance(*pair) for pair in pairs)


def exact_b(users: int, q: int, dealt: int) -> Fraction:
    """E[q^(C - 1)] - 1 exactly: [z^n] A(z)^q / a_n / q - 1, A with coefficients a_s = (s M)! / s!."""
    a = [Fraction(math.factorial(s * dealt), math.factorial(s)) for s in range(users + 1)]
    power = [Fraction(1)]
    for k in range(1, users + 1):
        power.append(sum(((q + 1) * i - k) * a[i] * power[k - i] for i in range(1, k + 1)) / k)
    return power[users] / a[users] / q - 1


@pytest.mark.parametrize(
    ("users", "bits", "shares"),
    [(2, 1, 2), (2, 1, 5), (4, 1, 4), (5, 1, 3), (2, 2, 2), (2, 2, 3), (3, 2, 2)],
)
def test_the_enumerated_distance_is_below_the_bound(users: int, bits: int, shares: int) -> None:
    bound = math.sqrt(exact_b(users, 2**bits, shares - 1))
    assert worst(users, bits, shares) <= bound


@pytest.mark.parametrize(("users", "bits"), [(19, 4), (19, 32), (40, 16), (90, 4), (90, 32)])
def test_the_closed_bound_is_above_the_exact_one_and_near_it(users: int, bits: int) -> None:
    for shares in (12, 24):
        b = exact_b(users, 2**bits, shares - 1)
        exact = (math.log2(b.numerator) - math.log2(b.denominator)) / 2
        assert exact <= log2_distance(users, bits, shares) <= exact + 0.1


@pytest.mark.parametrize("mu", [0.01, 0.21, 1.0, 4.0])
def test_what_a_distance_costs_is_the_best_of_all_epsilons(mu: float) -> None:
    """Phi(Phi^-1(t) + mu) = min over eps of e^eps t + delta(eps)."""
    for t in (1e-12, 1e-8, 1e-4):
        costs = minimize_scalar(lambda e, t=t: math.exp(e) * t + delta_of_mu(mu, e), bounds=(0, 60), method="bounded")
        least = costs.fun
        assert t + 0.999 * least <= delta_of_distance(t, mu) <= t + 1.01 * least
        assert delta_of_distance(max_distance(1e-6, mu), mu) <= 1e-6
    assert max_distance(0.0, mu) == 0.0


@pytest.mark.parametrize("users", [19, 100, 10_000, 900_000, 9 * 10**8])
def test_no_more_shares_are_asked_for_than_published_bounds_ask_for(users: int) -> None:
    """Balle et al. 2019. Few users, or few shares, have no bound."""
    for bits, security in itertools.product((20, 32, 48), (30.0, 40.0, 60.0)):
        shares = enough_shares(users, bits, security)
        assert shares is not None
        assert shares <= math.ceil((2 * security + bits) / (math.log2(users) - math.log2(math.e))) + 2
        assert log2_distance(users, bits, shares) <= -security
        assert shares == 5 or log2_distance(users, bits, shares - 1) > -security
    assert [log2_distance(*few) for few in ((18, 8, 100), (1000, 8, 4), (19, 60, 5))] == [0.0] * 3
