"""What additive noise declares: how many of the released numbers one row can change."""

from __future__ import annotations

import math
from typing import Any

import attrs
import numpy as np
import pytest

from cloister.core.aggregated import whole_noise
from cloister.noise.sparse import DENSE
from cloister.plugin import (
    UP,
    AdditiveNoise,
    Aggregated,
    Bound,
    Budget,
    Central,
    Ints,
    Laplace,
    Measure,
    NoiseRng,
    PublicRng,
    QuestionContext,
    Refused,
    RingChannel,
    Sensitivity,
    Space,
    Threshold,
    additive_channel,
    component,
)
from cloister.plugins.oracles.aggregated.masked_gaussian import MaskedGaussian
from cloister.plugins.oracles.aggregated.skellam import SkellamShares
from cloister.plugins.oracles.central.discrete_gaussian import DiscreteGaussian
from cloister.plugins.oracles.central.discrete_laplace import DiscreteLaplace
from cloister.plugins.oracles.central.thresholded import ThresholdedCounts
from cloister.testing import parametrize
from tests.rings import but

SPACES = [Space((7,)), Space((4, 9, 30)), Space((2, 4, 8, 16), nested=True), Space((2**40, 2**41), nested=True)]
SETTING = QuestionContext(1000, 2.0**-10, PublicRng.from_seed(1))
BOUND = Bound(1000, 5)
GAUSSIAN = Budget("gaussian", 0.01)


@pytest.mark.parametrize(
    ("oracle", "space"),
    [
        *((oracle, space) for oracle in (MaskedGaussian, SkellamShares) for space in SPACES[:3]),
        *((DiscreteGaussian, space) for space in SPACES),
    ],
)  # pooled ones list all buckets
def test_one_row_changes_a_count_or_a_vector_of_every_level(space: Space, oracle: Any) -> None:
    for bound, width in ((None, 1), (BOUND, BOUND.dimension)):
        (event,) = oracle().open(space, GAUSSIAN, SETTING, bound).events
        assert event.l0_sensitivity == space.levels * width
        assert math.isfinite(event.sigma)


@pytest.mark.parametrize("space", SPACES)
def test_pure_noise_says_its_epsilon_where_it_is_paid_in_rho(space: Space) -> None:
    """epsilon = sqrt(2 rho), the one that its scale is of; in epsilon the budget says so itself."""
    rho, epsilon = Budget("zcdp", 0.02, delta=1e-6), Budget("pure", 0.2, delta=1e-6)
    for spend, pure in ((rho, 0.2), (epsilon, math.inf)):
        channels = (
            DiscreteLaplace().open(space, spend, SETTING),
            DiscreteLaplace().open(space, spend, SETTING, BOUND),
            ThresholdedCounts().open(space, spend, SETTING),
        )
        assert [event.pure for channel in channels for event in channel.events] == [pure] * 3
    assert DiscreteLaplace().open(space, rho, SETTING).law == DiscreteLaplace().open(space, epsilon, SETTING).law


@pytest.mark.parametrize("space", SPACES)
def test_gaussian_noise_is_never_called_pure(space: Space) -> None:
    for spend in (GAUSSIAN, Budget("zcdp", 0.02)):
        channels = (
            DiscreteGaussian().open(space, spend, SETTING),
            DiscreteGaussian().open(space, spend, SETTING, BOUND),
        )
        assert [event.pure for channel in channels for event in channel.events] == [math.inf] * 2


@pytest.mark.parametrize("space", [Space((7,)), Space((2**40,))])
@pytest.mark.parametrize("bucket", [-1, 1])
def test_totals_of_buckets_that_there_are_not_are_refused(space: Space, bucket: int) -> None:
    """-1, which would be the last one; and the first beyond the last."""
    channel = DiscreteGaussian().open(space, GAUSSIAN, SETTING)
    ids = np.array([bucket if bucket < 0 else space.sizes[0]])
    with pytest.raises(Refused):
        channel.totalled([(ids, np.array([1]))], 1)


@pytest.mark.parametrize("sizes", [(6,), (DENSE + 6,)], ids=["tensor", "sparse"])
@pytest.mark.parametrize("shift", [0, 5])
def test_a_threshold_is_in_rows_however_far_totals_are_shifted(sizes: tuple[int, ...], shift: int) -> None:
    """A plugin's noise may be scaled up in integers; its threshold is as many rows all the same."""
    spend, rng = Budget("pure", 1.0, delta=1e-6), NoiseRng.for_tests(1)
    channel = additive_channel("above-ten", spend, Space(sizes), None, None, shift, 1.0, Threshold(10, 1e-6))
    held = np.repeat(np.arange(6, dtype=np.int64), [0, 1, 9, 10, 11, 40])[:, None]
    summary = channel.absorb(channel.encode(held, np.arange(len(held), dtype=np.uint64), rng))
    assert channel.decode(summary, rng).at(np.arange(6)).tolist() == [0, 0, 0, 0, 11, 40]


# a law of an author


ITEMS = np.array([[0], [2], [2], [2]])


@attrs.frozen
class Even(Laplace):
    """Released are even numbers."""

    @property
    def deviation(self) -> float:
        return float(np.hypot(super().deviation, 0.5**0.5))

    def post_processed(self, noised: Ints) -> Ints:
        return 2 * np.rint(noised / 2).astype(np.int64)


@component
class EvenNoise(AdditiveNoise):
    """Even numbers, from noise of scale sensitivity / eps.

    Guarantee (Central; add-or-remove one row): eps-DP, post-processed.
    """

    trust = Central
    mechanism = "even"

    @property
    def measure(self) -> Measure:
        return "pure"

    def noise(self, sensitivity: Sensitivity, budget: Budget) -> tuple[Even, int]:
        return Even(sensitivity.l1 / budget.epsilon * UP), 0


@component
class PooledEven(EvenNoise):
    """Of parties."""

    trust = Aggregated

    def channel(self, space: Space, bound: Bound | None, budget: Budget, unit: float) -> RingChannel:
        return self.pooled(space, bound, budget, unit, 4, 1000)


@pytest.mark.thorough
@but(
    parametrize(EvenNoise()),
    "rows_count|merging|no_rows|absorb|always_answers|tables|sessions"  # no matter of laws: as of all that is additive
    "|(one_row_moves|nested|what_it_costs|two_questions|large_space).*_of_sums",  # beside counts
    pytest.mark.long,
)
def test_an_authors_law_conforms_in_both_roles(component: Any, check: Any) -> None:
    check(component)


@pytest.mark.parametrize("size", [5, 2**40])
def test_what_is_released_is_post_processed_dense_or_sparse(size: int) -> None:
    channel: Any = EvenNoise().open(Space((size,)), Budget("pure", 0.1), SETTING)
    table = channel.decode(channel.absorb(channel.encode(ITEMS, np.arange(4), NoiseRng.secret())), NoiseRng.secret())
    values = table.at(np.arange(5))
    assert (values % 2 == 0).all()
    assert (table.at(np.arange(5)) == values).all()


def test_what_parties_release_is_post_processed_too() -> None:
    channel: Any = PooledEven().open(Space((5,)), Budget("pure", 0.1), SETTING)
    total = channel.encode(ITEMS, np.arange(4), NoiseRng.secret()).released(whole_noise(channel, NoiseRng.secret()))
    assert (channel.decode(total, NoiseRng.secret()).at(np.arange(5)) % 2 == 0).all()
