"""Sums with noise on whole vectors: no likelihood ratio beyond e^eps, less noise than Laplace's, few columns alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from cloister.noise.distributions import NARROW, Spherical
from cloister.plugin import Bound, Budget, InvalidInput, NoiseRng, PublicRng, QuestionContext, Space
from cloister.plugins.oracles.central.discrete_laplace import DiscreteLaplace
from cloister.plugins.oracles.central.l2_mechanism import MAX_COLUMNS, L2Mechanism
from cloister.run.request import Request, prepare
from cloister.testing.check import Violation
from cloister.testing.checks.oracle_noise import JOINT, check_correlations, noises_are_independent
from tests.alarms import Alarm

SETTING = QuestionContext(1000, 2.0**-10, PublicRng.from_seed(1))
SECRET = NoiseRng.secret()


def opened(bound: Bound, epsilon: float = 1.0, levels: int = 1, measure: Any = "pure") -> Any:
    amount = epsilon if measure == "pure" else epsilon**2 / 2
    return L2Mechanism().open(Space((5,) * levels), Budget(measure, amount), SETTING, bound)


@pytest.mark.parametrize(
    ("l2", "epsilon", "levels"), [(1000, 0.1, 1), (1000, 1.0, 1), (1000, 3.0, 2), (1000, 1.0, 5), (10, 4.0, 1)]
)
def test_no_likelihood_ratio_of_neighbours_is_beyond_e_to_the_epsilon_and_some_are_near(
    l2: int, epsilon: float, levels: int
) -> None:
    """The law is P(x) ~ e^(-|x| / s), whatever the lattice point it is centred on: each level's ratio is at most e^(|v|
    / s) for a row's vector v, and is that beyond v, in its direction."""
    channel = opened(Bound(l2, 2), epsilon, levels)
    assert isinstance(channel.law, Spherical)
    assert 0.99 * epsilon < levels * l2 * 2**channel.shift / channel.law.scale <= epsilon


@pytest.mark.parametrize("bound", [Bound(1000, 2, 1001), Bound(1005, 10, 1009), Bound(1, 3, 1), Bound(2**20, 3)])
@pytest.mark.parametrize("levels", [1, 3])
def test_it_never_has_more_noise_than_laplace(bound: Bound, levels: int) -> None:
    """Where a row's L1 norm is bounded too, as of columns of different width, its noise is Laplace's."""
    space, budget = Space((5,) * levels), Budget("pure", 0.5)
    mine = L2Mechanism().variance(space, budget, SETTING, bound)
    theirs = DiscreteLaplace().variance(space, budget, SETTING, bound)
    assert mine <= theirs * (1 + 1e-9)
    law = opened(bound, levels=levels).law
    if bound.l2 == 2**20:
        assert isinstance(law, Spherical)
    else:
        assert law == DiscreteLaplace().open(Space((5,) * levels), Budget("pure", 1.0), SETTING, bound).law


@pytest.mark.alarm(1e-8)
@pytest.mark.parametrize("levels", [1, 2])
def test_what_is_drawn_is_as_wide_as_is_said(levels: int, alarm: Alarm) -> None:
    """A length over its scale, which is e^epsilon's, has mean d and variance d; a factor of 1.2 is 50 errors off."""
    bound = Bound(1000, 3)
    channel = opened(bound, 0.5, levels)
    noised = channel.law.draw(3 * 30_000, SECRET).reshape(-1, 3) / (levels * bound.l2 / 0.5 * 2.0**channel.shift)
    alarm.near(np.linalg.norm(noised, axis=1).mean(), 3, math.sqrt(3 / 30_000))


def test_more_columns_are_refused_and_a_run_without_delta_takes_it_where_there_are_few() -> None:
    with pytest.raises(InvalidInput, match="at most 10 columns, not 11: use 'discrete-laplace'"):
        opened(Bound(1000, MAX_COLUMNS + 1))
    for columns, wanted in ((3, "l2-mechanism"), (MAX_COLUMNS + 1, "discrete-laplace")):
        request = Request(k=3, epsilon=1.0, bounds=(-1, 1), rows=5000, method="fastlloyd", trust="central")
        parts = prepare(request, [f"c{i}" for i in range(columns)]).composed.inner
        assert (parts["counts"].spec.name, parts["sums"].spec.name) == ("discrete-laplace", wanted)


class Silent(L2Mechanism):
    joint = False


def test_the_kit_wants_to_be_told_that_sizes_within_a_vector_go_together() -> None:
    noises_are_independent(L2Mechanism())
    with pytest.raises(Violation, match="coordinate 0 and level 0, coordinate 1: the sizes of the noises"):
        noises_are_independent(Silent())
    sizes, signs = np.random.default_rng(0).exponential(size=8000), np.random.default_rng(1).choice([-1, 1], (2, 8000))
    with pytest.raises(Violation, match="the sizes of the noises have correlation 1"):
        check_correlations("one size, two signs", *(signs * sizes), JOINT)


def test_narrow_noise_whose_variance_would_be_another_is_refused() -> None:
    with pytest.raises(InvalidInput, match="too narrow"):
        Spherical(NARROW / 2, 2)
