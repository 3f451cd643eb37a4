"""The kit of additive oracles, as an author uses it: one law gives counts and vector sums, sparse or dense,
post-processed or not.

Guarantee of ``Even`` (Central; add-or-remove one row): eps-DP, post-processed.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest

from cloister.core.aggregated import whole_noise
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
    RingChannel,
    Sensitivity,
    Space,
    component,
)
from cloister.testing import parametrize
from tests.rings import but

SETTING, BUDGET = QuestionContext(100, 0.5, PublicRng.from_seed(1)), Budget("pure", 0.1)
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
    """Even numbers, from noise of scale sensitivity / eps."""

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
    channel: Any = EvenNoise().open(Space((size,)), BUDGET, SETTING)
    table = channel.decode(channel.absorb(channel.encode(ITEMS, np.arange(4), NoiseRng.secret())), NoiseRng.secret())
    values = table.at(np.arange(5))
    assert (values % 2 == 0).all()
    assert (table.at(np.arange(5)) == values).all()


def test_what_parties_release_is_post_processed_too() -> None:
    channel: Any = PooledEven().open(Space((5,)), BUDGET, SETTING)
    total = channel.encode(ITEMS, np.arange(4), NoiseRng.secret()).released(whole_noise(channel, NoiseRng.secret()))
    assert (channel.decode(total, NoiseRng.secret()).at(np.arange(5)) % 2 == 0).all()
