"""All local count oracles: as noisy as published, as another library's formulas say and as their reports say; for any
ids; which randomiser is taken where."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from cloister.core.registry.registry import built_in
from cloister.plugin import Budget, InvalidInput, NoiseRng, PublicRng, QuestionContext, Space
from cloister.plugins.oracles.local.counts.adaptive_response import AdaptiveResponse
from cloister.plugins.oracles.local.counts.channel import Direct
from cloister.plugins.oracles.local.counts.hadamard_response import HadamardResponse
from cloister.plugins.oracles.local.counts.local_hashing import (
    AskedLocalHashing,
    ExplicitHistogram,
    OptimisedLocalHashing,
)
from cloister.plugins.oracles.local.counts.optimised_unary import OptimisedUnary
from cloister.plugins.oracles.local.counts.subset_selection import SubsetSelection
from cloister.plugins.oracles.local.hashing import Hashed

LOCAL = [spec for spec in built_in().specs("FrequencyOracle") if spec.trust == "Local"]
CLASSES = [cls for cls in map(built_in().load, LOCAL) if cls is not AskedLocalHashing]
"""Classes of the oracles that add reports up: all but the one that keeps them."""

ORACLES = [cls(share=share) for cls in CLASSES for share in ("users", "budget")]
each_oracle = pytest.mark.parametrize("oracle", ORACLES, ids=lambda o: f"{type(o).__name__}-{o.share}")
each_class = pytest.mark.parametrize("cls", CLASSES)


def opened(oracle: Any, sizes: tuple[int, ...], epsilon: float = 1.0, n: int = 1000, seed: int = 7) -> Any:
    return oracle.open(Space(sizes), Budget("pure", epsilon), QuestionContext(n, 1.0, PublicRng.from_seed(seed)))


def numbered(n: int) -> np.ndarray:
    return np.arange(n, dtype=np.uint64) * np.uint64(3) + np.uint64(11)


def released(channel: Any, items: np.ndarray, seed: int = 5) -> Any:
    rng = NoiseRng.for_tests(seed)
    return channel.decode(channel.absorb(channel.encode(items, numbered(len(items)), rng)), rng)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_chances_and_variances_are_the_published_ones_and_another_library_s(epsilon):
    """multi-freq-ldpy (Arcolezi et al. 2022), an independent implementation; subsets: Ye and Barg 2018, Theorem III.1,
    the best of all."""
    symbols, e = 33, math.exp(epsilon)  # one more than buckets, for users in none
    g, k = round(e) + 1, max(1, round(symbols / (e + 1)))
    z = k * e + symbols - k
    published = {
        OptimisedLocalHashing: (e / (e + g - 1), 1 / g),
        OptimisedUnary: (1 / 2, 1 / (e + 1)),
        HadamardResponse: (e / (e + 1), 1 / 2),
        ExplicitHistogram: (e / (e + 1), 1 / 2),
        SubsetSelection: (k * e / z, (k * (k - 1) * e + (symbols - k) * k) / ((symbols - 1) * z)),
    }
    each = {cls: opened(cls(), (32,), epsilon).asked for cls in published}
    for cls, (p, q) in published.items():
        assert (each[cls].chances(0).own, each[cls].chances(0).other) == pytest.approx((p, q), rel=1e-9)
    assert each[SubsetSelection].variance < each[OptimisedUnary].variance <= each[OptimisedLocalHashing].variance
    theirs = pytest.importorskip("multi_freq_ldpy.pure_frequency_oracles.Variance_PURE").VAR_Pure
    for cls, chances in published.items():
        assert each[cls].variance == pytest.approx(1000**2 * theirs(*chances, 1000, 0.0), rel=1e-6)


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


@pytest.mark.parametrize("cls", [c for c in CLASSES if c is not ExplicitHistogram])
def test_spaces_that_are_too_large_are_refused_with_a_way_out(cls):
    with pytest.raises(InvalidInput, match=r"at most \d+ buckets, not \d+: use '"):
        opened(cls(), (2, 2**60))


@pytest.mark.parametrize(
    ("epsilon", "size", "kind"), [(1.0, 8, Direct), (1.0, 256, Hashed), (6.0, 1024, Direct), (6.0, 2000, Hashed)]
)
def test_few_buckets_are_named_and_many_are_hashed(epsilon, size, kind):
    channel = opened(AdaptiveResponse(), (size,), epsilon)
    assert isinstance(channel.asked.levels[0], kind)
    assert channel.asked.variance <= opened(OptimisedLocalHashing(), (size,), epsilon).asked.variance * 1.02


def test_a_channel_says_whether_it_is_plain_response():
    assert opened(AdaptiveResponse(), (16,), 4.0).response_values == 17
    assert opened(AdaptiveResponse(), (16, 8), 4.0).response_values == 9
    assert opened(AdaptiveResponse(share="budget"), (16, 8), 4.0).response_values is None
    assert opened(OptimisedLocalHashing(), (16,), 2.0).response_values == 8
    assert opened(SubsetSelection(), (16,), 2.0).response_values is None
