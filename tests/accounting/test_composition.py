"""Composition of events, with shares of the users."""

from __future__ import annotations

import math
from typing import Any

import attrs
import pytest
from hypothesis import given, settings, strategies as st

from cloister.accounting import Spent, compose, epsilon_of_mu, epsilon_of_rho, eta
from cloister.accounting.discrete import BEYOND
from cloister.accounting.mixed import epsilon_of_mixed
from cloister.core.budget import Budget, Event, Measure, Share
from cloister.core.errors import InvalidInput
from cloister.core.randomness import PublicRng

KEY = PublicRng.from_seed(1)
OTHER = PublicRng.from_seed(2)


def event(
    measure: Measure, amount: float, among: Share | None = None, touched: int = 0, sigma: float = math.inf
) -> Event:
    return Event("test", Budget(measure, amount, among), touched, sigma)


@pytest.mark.parametrize(
    ("paid", "delta", "epsilon"),
    [
        ([], 1e-6, 0.0),
        ([("pure", 0.25), ("pure", 0.5)], 0.0, 0.75),
        ([("pure", 0.25), ("pure", 0.5)], 1e-6, 0.75),
        ([("gaussian", 0.09), ("gaussian", 0.16)], 1e-6, epsilon_of_mu(0.5, 1e-6)),
        ([("zcdp", 0.01), ("zcdp", 0.02)], 1e-6, epsilon_of_rho(0.03, 1e-6)),
        ([("gaussian", 0.01)], 0.0, math.inf),
        ([("pure", 0.1), ("zcdp", 0.01)], 0.0, math.inf),
        ([("exact", 1.0), ("pure", 0.1)], 1e-6, math.inf),
    ],
)
def test_what_adds_up_is_epsilon_mu_squared_or_rho(paid: Any, delta: float, epsilon: float) -> None:
    assert compose([event(*one) for one in paid], delta) == epsilon


def test_without_an_honest_shuffler_events_cost_the_sum_of_what_each_declares() -> None:
    relies = [Event("test", Budget("pure", 0.25), epsilon_without_shuffler=x) for x in (2.0, 0.5)]
    assert Spent.on([]) == Spent()
    assert [Spent.on(relies[:n]).epsilon_without_shuffler for n in range(3)] == [0.0, 2.0, 2.5]


def test_the_mechanisms_own_deltas_come_off_the_delta_of_the_conversion() -> None:
    fails = Event("thresholded", Budget("pure", 0.25), delta=2.0**-20)
    assert compose([fails], 2.0**-20) == compose([fails], 2.0**-19) == 0.25  # pure noise needs no more
    assert compose([fails], 2.0**-21) == compose([fails, fails], 2.0**-20) == compose([fails], 0.0) == math.inf
    noise = event("gaussian", 0.09)
    assert compose([fails, noise], 2.0**-19) == compose([event("pure", 0.25), noise], 2.0**-20)
    assert compose([fails, noise], 2.0**-20) == math.inf


def test_the_epsilons_of_pure_events_stay_in_their_order() -> None:
    paid = [event("pure", 0.25), event("gaussian", 0.01), event("pure", 0.5)]
    assert Spent.on(paid).pures == (0.25, 0.5)
    assert Spent.on(paid[:1]).plus(Spent.on(paid[2:])) == Spent.on(paid[::2])


@pytest.mark.parametrize("delta", [-1e-9, 1e-301, 1.0, math.nan])
def test_a_delta_that_is_no_probability_is_refused(delta: float) -> None:
    with pytest.raises(InvalidInput, match="delta is"):
        Spent().epsilon(delta)


def test_the_smallest_delta_is_enough_for_gaussian_noise() -> None:
    assert compose([event("gaussian", 0.01)], 1e-300) == epsilon_of_mu(0.1, 1e-300) < 5


def test_a_mixed_run_takes_the_smallest_of_rho_basic_composition_and_its_privacy_loss() -> None:
    few = [event("pure", 2.0), event("gaussian", 1e-4)]
    assert compose(few, 1e-6) == epsilon_of_mixed([2.0], 0.01, 1e-6) < 2.0 + epsilon_of_mu(0.01, 1e-6)
    unknown = [event("pure", 2.0), event("zcdp", 5e-5)]
    assert compose(unknown, 1e-6) == 2.0 + epsilon_of_rho(5e-5, 1e-6) < epsilon_of_rho(2.0 + 5e-5, 1e-6)
    many = [event("pure", 0.05)] * 100 + [event("zcdp", 0.05)]
    assert compose(many, 1e-6) == epsilon_of_rho(Spent.on(many).all_rho, 1e-6) < 5.0
    assert Spent.on(many).all_rho == pytest.approx(100 * 0.05**2 / 2 + 0.05)


def test_a_run_of_gaussian_and_of_other_noise_in_rho_costs_at_least_what_each_of_them_does() -> None:
    """With and without a pure event beside them: noise stated in rho has no mu^2, and no privacy loss in ``mixed``."""
    gaussian, other = event("gaussian", 0.09), event("zcdp", 0.5)
    assert compose([gaussian, other], 1e-6) == epsilon_of_rho(0.545, 1e-6) > epsilon_of_rho(0.5, 1e-6) > 5
    pure = event("pure", 0.3)
    assert compose([pure, gaussian, other], 1e-6) == epsilon_of_rho(0.59, 1e-6) < 0.3 + epsilon_of_rho(0.545, 1e-6)
    pure = event("pure", 3.0)
    assert compose([pure, gaussian, other], 1e-6) == 3.0 + epsilon_of_rho(0.545, 1e-6) < epsilon_of_rho(5.045, 1e-6)


def paid_in_rho(epsilon: float) -> Event:
    """A pure event whose budget is in rho."""
    return Event("laplace", Budget("zcdp", epsilon**2 / 2), pure=epsilon)


def test_pure_events_that_are_paid_in_rho_keep_their_epsilon_unless_rho_costs_less() -> None:
    assert compose([paid_in_rho(0.22)], 0.0) == compose([paid_in_rho(0.22)], 1e-6) == 0.22
    assert Spent.on([paid_in_rho(0.5)]).amount("zcdp") == 0.125
    assert compose([paid_in_rho(2.0), event("zcdp", 1e-4)], 1e-6) == 2.0 + epsilon_of_rho(1e-4, 1e-6)
    many = [paid_in_rho(0.05)] * 400
    assert compose(many, 0.0) == pytest.approx(20.0)
    assert compose(many, 1e-6) == epsilon_of_rho(Spent.on(many).all_rho, 1e-6) < 6.0


@pytest.mark.parametrize(("touched", "sigma"), [(3, math.inf), (0, 2.0**16)])
def test_noise_in_rho_that_is_no_discrete_gaussian_costs_its_rho(touched: int, sigma: float) -> None:
    """Laws that change numbers without a Gaussian's sigma, and those with a sigma that say nothing of the numbers."""
    other = event("zcdp", 0.03, touched=touched, sigma=sigma)
    assert Spent.on([other]) == Spent(rho=0.03, all_rho=0.03, epsilon_without_shuffler=math.inf)
    assert compose([other], 1e-6) == epsilon_of_rho(0.03, 1e-6)


def test_discrete_gaussian_noise_that_is_paid_in_rho_costs_its_mu_squared_too() -> None:
    spent = Spent.on([event("zcdp", 0.03, touched=3, sigma=2.0**20)])
    assert (spent.mu_squared, spent.rho, spent.all_rho) == (0.06, 0.0, 0.03)
    assert spent.drift == 3 * eta(2.0**20)
    assert spent.epsilon(1e-6) < epsilon_of_mu(math.sqrt(0.06), 1e-6) + 1e-6 < epsilon_of_rho(0.03, 1e-6)


def test_an_epsilon_that_its_rho_does_not_cover_is_refused() -> None:
    with pytest.raises(InvalidInput, match="at most rho"):
        compose([Event("laplace", Budget("zcdp", 0.1), pure=0.5)], 1e-6)


def test_discrete_gaussian_events_pay_for_touched_coordinates_at_their_own_width() -> None:
    events = [event("gaussian", 0.04, touched=50, sigma=2.0**16), event("gaussian", 0.05, touched=7, sigma=2.0**14)]
    spent = Spent.on(events)
    assert spent.drift == pytest.approx(50 * eta(2.0**16) + 7 * eta(2.0**14))
    assert epsilon_of_mu(0.3, 1e-6) + 2 * spent.drift < compose(events, 1e-6)
    assert compose(events, 1e-6) < epsilon_of_mu(0.3, 1e-6) + 5 * spent.drift


def test_noise_that_is_near_a_discrete_gaussian_pays_for_the_ratio_in_drift_and_tail() -> None:
    """Its own tail is at most e^ratio times that of the discrete Gaussian."""
    wide = Event("gaussian", Budget("gaussian", 0.04), 3, 2.0**16, ratio=0.5)
    spent = Spent.on([wide])
    assert spent.drift == pytest.approx(3 * (eta(2.0**16) + 0.5), rel=1e-12)
    assert spent.tail == pytest.approx(3 * BEYOND * math.exp(0.5), rel=1e-12, abs=0)


def test_discrete_gaussian_events_that_are_too_coarse_pay_in_rho() -> None:
    assert compose([event("gaussian", 0.09, touched=1, sigma=10.0)], 1e-6) == epsilon_of_rho(0.045, 1e-6)


def test_a_gaussian_event_that_hides_half_of_its_noise_is_refused() -> None:
    for touched, sigma in ((3, math.inf), (0, 2.0**16), (-1, math.inf), (3, math.nan), (3, -5.0)):
        with pytest.raises(InvalidInput, match=r"touched|sigma"):
            Spent.on([event("gaussian", 0.1, touched=touched, sigma=sigma)])


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("delta", (-1e-9, 1.0, 1.5, math.nan)),
        ("epsilon_without_shuffler", (-1e-9, math.nan)),
        ("ratio", (-1e-9, 1.0, 1.5, math.nan)),
    ],
)
def test_a_declaration_out_of_range_is_refused(name: str, values: tuple[float, ...]) -> None:
    declared = event("gaussian", 0.1, touched=3, sigma=2.0**16)
    assert Spent.on([attrs.evolve(declared, **{name: 0.0})]).mu_squared == 0.1
    for value in values:
        with pytest.raises(InvalidInput, match=f"'test' declares .*{name.partition('_')[0]}"):
            Spent.on([attrs.evolve(declared, **{name: value})])


def test_shares_of_different_keys_and_unshared_events_add() -> None:
    first, _ = Budget("pure", 1.0).split_users(KEY, 1, 1)
    second, _ = Budget("pure", 0.5).split_users(OTHER, 1, 1)
    assert compose([Event("a", first), Event("b", second), event("pure", 0.25)], 0.0) == 1.75


def test_shares_in_different_measures_never_cost_less_than_the_worst_user() -> None:
    left, right = Share(KEY, 0, 0.0, 0.5), Share(KEY, 1, 0.5, 1.0)
    both = compose([event("pure", 0.5, left), event("gaussian", 0.01, right)], 1e-6)
    assert both >= max(0.5, epsilon_of_mu(0.1, 1e-6))


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 7), st.integers(1, 8), st.floats(0.01, 1)), max_size=8),
    st.lists(st.floats(0.01, 1), max_size=3),
)
def test_the_worst_user_pays_what_enumerating_the_users_says(
    shares: list[tuple[int, int, float]], all_: list[float]
) -> None:
    events = [event("pure", x) for x in all_]
    spans = [(a / 16, (a + b) / 16, x) for a, b, x in shares]
    events += [event("pure", x, Share(KEY, 0, low, high)) for low, high, x in spans]
    worst = max(sum(x for low, high, x in spans if low <= u / 16 < high) for u in range(16))
    assert compose(events, 0.0) == pytest.approx(worst + sum(all_))
