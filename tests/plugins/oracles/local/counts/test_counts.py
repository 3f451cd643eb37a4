"""All local count oracles: unbiased, as noisy as they say, the same for a user alone and in a crowd."""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

import numpy as np
import pytest

from cloister.core.buckets import QuestionContext, Space
from cloister.core.budget import Budget
from cloister.core.errors import InvalidInput
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.plugins.oracles.local.counts.adaptive_response import AdaptiveResponse
from cloister.plugins.oracles.local.counts.hadamard_response import HadamardResponse
from cloister.plugins.oracles.local.counts.local_hashing import ExplicitHistogram, OptimisedLocalHashing
from cloister.plugins.oracles.local.counts.optimised_unary import OptimisedUnary
from cloister.plugins.oracles.local.counts.subset_selection import SubsetSelection
from tests.alarms import Alarm

CLASSES = (
    ExplicitHistogram,
    HadamardResponse,
    OptimisedLocalHashing,
    OptimisedUnary,
    AdaptiveResponse,
    SubsetSelection,
)
ORACLES = [cls(share=share) for cls in CLASSES for share in ("users", "budget")]
each_oracle = pytest.mark.parametrize("oracle", ORACLES, ids=lambda o: f"{type(o).__name__}-{o.share}")
each_class = pytest.mark.parametrize("cls", CLASSES)

FAR = 4.9
"""Standard errors: a normal estimate is farther off, either way, once in a million times."""


def opened(oracle: Any, sizes: tuple[int, ...], epsilon: float = 1.0, n: int = 1000, seed: int = 7) -> Any:
    return oracle.open(Space(sizes), Budget("pure", epsilon), QuestionContext(n, 1.0, PublicRng.from_seed(seed)))


def numbered(n: int) -> np.ndarray:
    return np.arange(n, dtype=np.uint64) * np.uint64(3) + np.uint64(11)


def released(channel: Any, items: np.ndarray, seed: int = 5) -> Any:
    rng = NoiseRng.for_tests(seed)
    return channel.decode(channel.absorb(channel.encode(items, numbered(len(items)), rng)), rng)


@pytest.mark.alarm(1e-8)
@each_class
def test_the_variance_of_a_full_bucket_is_the_formula_s(cls, alarm: Alarm):
    """All users in one bucket of each of 3 levels: T n noise + n (T (1 - 2 q) / (p - q) - 1). The sampling
    of users is half of it."""
    n, repeats, sizes = 150, 300, (3, 4, 5)
    items, found = np.zeros((n, 3), np.int64), []
    for seed in range(repeats):
        table = released(opened(cls(), sizes, 4.0, n, 1000 + seed), items, seed)
        found.append([table.at(np.array([0]), level)[0] - n for level in range(3)])
    chances = [opened(cls(), sizes, 4.0, n).asked.chances(level) for level in range(3)]
    formula = np.array([n * (3 * c.noise + 3 * (1 - 2 * c.other) / (c.own - c.other) - 1) for c in chances])
    ratio = (np.array(found) ** 2 / formula).mean()
    alarm.near(ratio, 1, math.sqrt(2 / 900))


@pytest.mark.parametrize(("epsilon", "olh", "hadamard"), [(0.5, 15.67, 16.67), (1.0, 3.68, 4.68), (2.0, 0.724, 1.724)])
def test_variances_per_user_are_the_published_ones(epsilon, olh, hadamard):
    space, budget, context = Space((256,)), Budget("pure", epsilon), QuestionContext(1000, 1.0, PublicRng.from_seed(1))
    each = {cls: cls().variance(space, budget, context) / 1000 for cls in CLASSES}
    formula = 4 * math.exp(epsilon) / math.expm1(epsilon) ** 2
    assert formula == pytest.approx(olh, rel=2e-3)
    assert formula <= each[OptimisedLocalHashing] <= formula * 1.01
    assert each[OptimisedUnary] == pytest.approx(formula, rel=1e-12)
    assert each[HadamardResponse] == pytest.approx(formula + 1, rel=1e-12)
    assert each[ExplicitHistogram] == pytest.approx(formula + 1, rel=1e-12)
    assert each[HadamardResponse] == pytest.approx(hadamard, rel=2e-3)
    assert each[SubsetSelection] < formula  # Ye and Barg 2018: the best of all
    assert each[SubsetSelection] > formula * 0.95


def test_subset_selection_has_the_variance_of_the_paper():
    """Ye and Barg 2018, Theorem III.1, here per user and for an empty bucket: q (1 - q) / (p - q)^2 of their p and
    q."""
    m, e = 33, math.exp(1.5)
    k = round(m / (e + 1))
    z = k * e + m - k
    p, q = k * e / z, (k * (k - 1) * e + (m - k) * k) / ((m - 1) * z)
    chances = opened(SubsetSelection(), (32,), 1.5).asked.chances(0)
    assert (chances.own, chances.other) == pytest.approx((p, q), rel=1e-12)


@each_class
def test_levels_share_users_or_budget(cls):
    """T users' shares cost T times the variance; T shares of epsilon cost that of epsilon / T."""
    one, four = (5,), (5, 5, 5, 5)
    users, budget = cls(share="users"), cls(share="budget")
    assert opened(users, four).asked.variance == pytest.approx(4 * opened(users, one).asked.variance)
    assert opened(budget, four).asked.variance == pytest.approx(opened(users, one, 0.25).asked.variance)


@each_class
@pytest.mark.parametrize("came", [0, 40, 4000])
def test_standard_errors_are_those_of_the_reports_that_came(cls, came):
    """T parts of N users, each counted T-fold: N T times a report's noise, over the public coins that part them."""
    channel = opened(cls(share="users"), (5, 5, 5, 5), n=1000)
    table = released(channel, np.zeros((came, 4), np.int64))
    for level in range(4):
        noise = channel.asked.chances(level).noise
        assert table.standard_error(np.array([1, 2]), level) == pytest.approx([math.sqrt(4 * max(1, came) * noise)] * 2)


@pytest.mark.alarm(1e-8)
@each_class
def test_every_user_answers_exactly_one_level_with_her_whole_epsilon(cls, alarm: Alarm):
    n, channel = 8000, opened(cls(), (3, 3, 3, 3))
    parts = [channel.asked.sharing.answers(numbered(n))[level] for level in range(4)]
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(n))
    sd = math.sqrt(n * 3 / 16)
    alarm.near([len(part) for part in parts], n / 4, sd)
    assert [event.spent for event in channel.events] == [Budget("pure", 1.0)]


@pytest.mark.alarm(1e-8)
def test_explicit_histograms_answer_domains_that_nobody_could_list(alarm: Alarm):
    n, size = 4000, 2**60
    heavy = 987_654_321_012_345_678
    items = np.full((n, 1), heavy)
    items[::2, 0] = np.random.default_rng(8).integers(0, size, n // 2)
    channel = opened(ExplicitHistogram(), (size,), 2.0, n)
    rng = NoiseRng.for_tests(1)
    pieces = [
        channel.absorb(channel.encode(items[i : i + 1000], numbered(n)[i : i + 1000], rng)) for i in range(0, n, 1000)
    ]
    table = channel.decode(reduce(lambda a, b: a.merge(b), pieces), rng)
    ids = np.concatenate([[heavy], np.random.default_rng(9).integers(0, size, 50)])
    values, error = table.at(ids), table.standard_error(ids)
    alarm.near(values, np.where(np.arange(len(values)) == 0, n / 2, 0), error)
    assert np.array_equal(table.at(ids[::-1])[::-1], values)


@pytest.mark.parametrize("cls", [c for c in CLASSES if c is not ExplicitHistogram])
def test_spaces_that_are_too_large_are_refused_with_a_way_out(cls):
    with pytest.raises(InvalidInput, match=r"at most \d+ buckets, not \d+: use '"):
        opened(cls(), (2, 2**60))


@each_oracle
def test_a_budget_in_rho_buys_the_epsilon_whose_half_square_it_is(oracle):
    context, space = QuestionContext(10, 1.0, PublicRng.from_seed(1)), Space((4, 5))
    rho, pure = (oracle.variance(space, b, context) for b in (Budget("zcdp", 0.5), Budget("pure", 1.0)))
    assert rho == pytest.approx(pure, rel=1e-9)
    assert rho >= pure
