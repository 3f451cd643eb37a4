"""What an (epsilon, delta) buys, and what the accountant lets through."""

from __future__ import annotations

import math
from itertools import permutations, product
from typing import Any, get_args

import attrs
import pytest
from hypothesis import given, settings, strategies as st

from cloister.accounting import (
    Accountant,
    PrivacyTarget,
    Spent,
    accountant as accounting_of_runs,
    delta_of_mu,
    mu_of,
    rho_of,
)
from cloister.accounting.conversions import ROUNDING
from cloister.accounting.discrete import BEYOND, eta
from cloister.accounting.users import checked_rows_per_user
from cloister.core.budget import Budget, Event, Measure
from cloister.core.errors import BudgetExceeded, InvalidInput, Refused, WrongComposition
from cloister.core.reproducible_math import fewer_bits
from cloister.noise.distributions import enough_bits

WIDE = 2.0**16
MEASURES: tuple[Measure, ...] = ("pure", "gaussian", "zcdp", "exact")


def test_pure_noise_gets_epsilon_whatever_delta_is_and_exact_answers_all() -> None:
    assert PrivacyTarget(1.0).measured(["exact", "exact"]) == Budget("exact", math.inf)
    assert PrivacyTarget(0.7).measured(["pure", "pure"]) == Budget("pure", 0.7)
    assert PrivacyTarget(0.7, 1e-6).measured({"pure"}) == Budget("pure", 0.7)
    assert PrivacyTarget(0.7).measured([]) == Budget("pure", 0.7)


def test_a_target_is_a_finite_epsilon_above_0_and_a_delta_below_1() -> None:
    for epsilon in (1e-300, 1.0, 1e4):
        assert PrivacyTarget(epsilon).epsilon == epsilon
    for epsilon in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(InvalidInput, match="expected a finite number > 0"):
            PrivacyTarget(epsilon)
    with pytest.raises(InvalidInput, match="protects nobody"):
        PrivacyTarget(math.nextafter(1e4, math.inf))
    for delta in (0.0, 1e-300, math.nextafter(1, 0)):
        assert PrivacyTarget(1.0, delta).delta == delta
    for delta in (-1e-9, 1.0, 1.5, math.inf, math.nan):
        with pytest.raises(InvalidInput, match="expected a probability"):
            PrivacyTarget(1.0, delta)
    for wrong in ("one", None, [1.0], 1j):
        for figures in ((wrong, 1e-6), (1.0, wrong)):
            with pytest.raises(InvalidInput, match="epsilon and delta are numbers"):
                PrivacyTarget(*figures)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        PrivacyTarget(1.0, 1e-6, 3)  # type: ignore[misc]


def test_the_unit_of_privacy_is_the_user_where_their_rows_are_limited() -> None:
    assert [PrivacyTarget(1.0, rows_per_user=m).unit for m in (None, 1, 5)] == ["rows", "users", "users"]


def test_mechanisms_with_a_delta_of_their_own_get_all_of_it_beside_pure_noise_and_half_beside_other() -> None:
    total = PrivacyTarget(1.0, 1e-6)
    assert total.measured({"pure"}, uses_delta=True) == Budget("pure", 1.0, delta=1e-6)
    assert total.measured({"exact"}, uses_delta=True) == Budget("exact", math.inf, delta=1e-6)
    assert total.measured({"zcdp"}, uses_delta=True) == Budget("zcdp", fewer_bits(rho_of(1.0, 5e-7)), delta=5e-7)
    mu = fewer_bits(mu_of(1 - 1e-4, 5e-7 * (1 - 1e-4)))
    assert total.measured({"gaussian"}, uses_delta=True) == Budget("gaussian", mu * mu, delta=5e-7)
    for measure in MEASURES:
        with pytest.raises(InvalidInput, match="delta is 0, but thresholds"):
            PrivacyTarget(1.0, 0.0).measured({measure}, uses_delta=True)
    assert total.measured({"pure"}).delta == total.measured({"gaussian"}).delta == total.measured({"zcdp"}).delta == 0


def test_gaussian_noise_gets_mu_squared_less_the_slack() -> None:
    budget = PrivacyTarget(1.0, 1e-6).measured(["gaussian"])
    assert budget.measure == "gaussian"
    assert mu_of(0.9998, 1e-6) < budget.mu < mu_of(1.0, 1e-6)
    assert delta_of_mu(budget.mu, 0.9999) <= 1e-6 * 0.9999


@pytest.mark.parametrize("measures", [["pure", "gaussian"], ["zcdp"], ["zcdp", "pure"]])
def test_mixed_noise_gets_rho_and_needs_delta(measures: list[Measure]) -> None:
    """Less what is rounded away, so that all machines have the same plan."""
    assert PrivacyTarget(1.0, 1e-6).measured(measures) == Budget("zcdp", fewer_bits(rho_of(1.0, 1e-6)))
    with pytest.raises(InvalidInput, match=r"pass delta .* or choose components with pure noise"):
        PrivacyTarget(1.0).measured(measures)
    with pytest.raises(InvalidInput, match="or none"):
        PrivacyTarget(1.0, 1e-6).measured(["exact", *measures])


def accountant(total: PrivacyTarget, *measures: Measure) -> Accountant:
    return Accountant(total, total.measured(measures))


def rounds_of(budget: Budget, rounds: int, touched: int = 0, sigma: float = math.inf) -> list[tuple[Event, ...]]:
    return [(Event("test", budget.over(rounds), touched, sigma),)] * rounds


@settings(max_examples=60, deadline=None)
@given(
    st.floats(0.1, 20),
    st.floats(-12, -2).map(lambda x: 10**x),
    st.integers(1, 20),
    st.sampled_from([("pure", 0), ("zcdp", 0), ("gaussian", 1), ("gaussian", 100)]),
)
def test_equal_shares_of_a_budget_always_pass_and_the_slack_covers_wide_discrete_noise(
    epsilon: float, delta: float, rounds: int, noise: tuple[Measure, int]
) -> None:
    measure, touched = noise
    books = accountant(PrivacyTarget(epsilon, delta), measure)
    spent = books.forecast(rounds_of(books.budget, rounds, touched, WIDE if touched else math.inf))
    assert measure != "gaussian" or spent.epsilon(delta) <= epsilon


def test_coarse_discrete_noise_is_over_budget_and_the_error_says_why() -> None:
    books = accountant(PrivacyTarget(1.0, 1e-6), "gaussian")
    with pytest.raises(BudgetExceeded, match=r"choose a larger delta, or pure noise"):
        books.forecast(rounds_of(books.budget, 3, 8, 64.0))


def test_rounds_are_charged_as_forecast_once_and_in_order() -> None:
    """With each those before it, which the process that this one resumes has asked."""
    books = accountant(PrivacyTarget(1.0), "pure")
    a, b = Event("a", Budget("pure", 0.25)), Event("b", Budget("pure", 0.5))
    books.forecast([(a,), (a,), (b,)])
    assert (books.spent.pure, books.left) == (0.0, 1.0)
    with pytest.raises(Refused, match="must not depend on answers"):
        books.charge(1, (b,))
    books.charge(1, (a,))
    assert (books.spent.pure, books.left) == (0.5, 0.5)
    for index in (0, 1):
        with pytest.raises(Refused, match="already"):
            books.charge(index, (a,))
    books.charge(2, (b,))
    assert (books.spent.pure, books.left) == (1.0, 0.0)
    with pytest.raises(Refused, match="not forecast"):
        books.charge(3, ())
    with pytest.raises(Refused, match="forecast comes before"):
        books.forecast([])


def test_no_other_rounds_are_forecast_once_the_first_is_charged() -> None:
    """One round is enough: the schedule may not depend on its answers."""
    books = accountant(PrivacyTarget(1.0), "pure")
    a, b = Event("a", Budget("pure", 0.25)), Event("b", Budget("pure", 0.5))
    books.forecast([(b,)])
    books.forecast([(a,), (b,)])
    books.charge(0, (a,))
    with pytest.raises(Refused, match="forecast comes before"):
        books.forecast([(a,), (b,)])
    assert (books.rounds, books.spent.pure) == (2, 0.25)


# two stages


@pytest.mark.parametrize("measure", ["pure", "gaussian", "zcdp"])
def test_a_second_stage_may_cost_what_was_left_for_it_and_no_more(measure: Measure) -> None:
    total = PrivacyTarget(1.0, 1e-6)
    first, rest = total.measured([measure]).split(0.01, 0.99)
    books = accountant(total, measure)
    books.forecast(rounds_of(first, 1))
    with pytest.raises(BudgetExceeded, match="the second stage's"):
        books.forecast_second(rounds_of(attrs.evolve(rest, amount=rest.amount * 1.001), 3), rest)
    with pytest.raises(BudgetExceeded, match="the first stage's"):
        books.forecast_second([], attrs.evolve(rest, amount=rest.amount * 1.001))
    assert books.rounds == 1
    both = books.forecast_second(rounds_of(rest, 3), rest)
    assert books.rounds == 4
    assert both.amount(measure) == pytest.approx(books.budget.amount)
    assert both.epsilon(1e-6) <= 1.0
    with pytest.raises(Refused, match="must not depend on answers"):
        books.charge(1, rounds_of(rest, 1)[0])
    books.charge(1, rounds_of(rest, 3)[0])


def test_the_least_width_of_the_proof_is_that_of_the_oracles_noise() -> None:
    """Narrower noise is widened by a bit: else the drift of a second stage could exceed what covers it."""
    least = accounting_of_runs.WIDE
    assert least == 2.0**20
    assert [enough_bits(x) for x in (math.nextafter(least, 0), least)] == [1, 0]


@pytest.mark.parametrize("measure", ["pure", "gaussian", "zcdp"])
def test_thresholds_spend_no_more_delta_than_was_set_aside_though_the_whole_would_hold(measure: Measure) -> None:
    total = PrivacyTarget(1.0, 1e-6)
    budget = attrs.evolve(total.measured({measure}, uses_delta=True), delta=2e-7)
    event = Event("thresholded", attrs.evolve(budget, amount=1e-4, delta=0.0))
    Accountant(total, budget).forecast([[attrs.evolve(event, delta=2e-7)]])
    with pytest.raises(BudgetExceeded, match="the delta that was set aside for thresholds"):
        Accountant(total, budget).forecast([[attrs.evolve(event, delta=2.1e-7)]])


def test_shares_of_delta_that_add_up_to_a_last_digit_more_than_delta_are_admitted() -> None:
    total = PrivacyTarget(1.0, 1e-6)
    budget = total.measured({"pure"}, uses_delta=True)
    shares = next(n for n in range(2, 100) if sum([1e-6 / n] * n) > 1e-6)
    event = Event("thresholded", Budget("pure", 1.0 / shares), delta=1e-6 / shares)
    spent = Accountant(total, budget).forecast([[event] * shares])
    assert 1e-6 < spent.delta < 1e-6 * (1 + 1e-12)


def test_an_epsilon_may_exceed_the_target_s_by_what_sums_round_and_by_no_more() -> None:
    total = PrivacyTarget(0.01, 0.0)
    for epsilon in (0.01, 0.01 * ROUNDING):
        Accountant(total, Budget("pure", 1.0)).forecast([[Event("test", Budget("pure", epsilon))]])
    over = Budget("pure", math.nextafter(0.01 * ROUNDING, 1))
    with pytest.raises(BudgetExceeded, match="the run's epsilon"):
        Accountant(total, Budget("pure", 1.0)).forecast([[Event("test", over)]])


@pytest.mark.parametrize("drift", [0.0, 0.3, 1.0, 1.5])
@pytest.mark.parametrize("tail", [0.0, 0.2, 1.0, 7.25])
def test_what_covers_a_path_has_no_smaller_drift_and_no_smaller_tail_than_the_path(drift: float, tail: float) -> None:
    total = PrivacyTarget(1.0, 1e-6)
    books = Accountant(total, total.measured({"gaussian"}))
    one = eta(2.0**20)
    cover = books._covering(Spent(drift=drift * one, tail=tail * BEYOND))
    touched = math.ceil(max(drift, tail))
    assert (cover.mu_squared, cover.drift, cover.tail) == (books.budget.amount, touched * one, touched * BEYOND)


def test_a_round_that_differs_from_its_forecast_is_refused_with_both() -> None:
    total = PrivacyTarget(1.0, 1e-6)
    books = Accountant(total, total.measured({"pure"}))
    books.forecast([[Event("test", Budget("pure", 0.25)), Event("other", Budget("pure", 0.5))], []])
    with pytest.raises(Refused, match=r"\(forecast: test pure 0.25, other pure 0.5; asked: none\)"):
        books.charge(0, [])
    books.charge(0, [Event("test", Budget("pure", 0.25)), Event("other", Budget("pure", 0.5))])
    with pytest.raises(Refused, match=r"\(forecast: none; asked: test pure 0.25\)"):
        books.charge(1, [Event("test", Budget("pure", 0.25))])


def test_an_accountant_begins_without_rounds_and_nobody_gives_it_any() -> None:
    total = PrivacyTarget(1.0, 1e-6)
    budget = total.measured({"pure"})
    for more in ((((Event("test", budget),),),), ((), 1)):
        with pytest.raises(TypeError):
            Accountant(total, budget, *more)
    books = Accountant(total, budget)
    assert (books.rounds, books.spent, books.left) == (0, Spent(), 1.0)
    for name in ("total", "budget"):
        with pytest.raises(attrs.exceptions.FrozenAttributeError):
            setattr(books, name, None)


def test_paths_with_drift_and_paths_with_tails_are_covered_together() -> None:
    """Each of two second stages, by itself, is within the total: one with coarse noise on few coordinates (drift), one
    with wide noise on many (tails). A run that takes the one or the other after an answer needs room for both."""
    total = PrivacyTarget(1.0, 1e-36)
    coarse, wide = (50, 2.0**12), (900, 2.0**40)
    for touched, sigma in (coarse, wide):
        alone = accountant(total, "gaussian")
        first, rest = alone.budget.split(0.01, 0.99)
        alone.forecast(rounds_of(first, 1) + rounds_of(rest, 1, touched, sigma))
    books = accountant(total, "gaussian")
    books.forecast(rounds_of(first, 1))
    with pytest.raises(BudgetExceeded):
        books.forecast_second(rounds_of(rest, 1, *coarse), rest)
    books.forecast_second(rounds_of(rest, 1, *wide), rest)


@pytest.mark.parametrize(("first", "second", "fits"), [(5000, 1, True), (1, 5000, True), (5000, 5000, False)])
def test_tails_of_both_stages_add_up_where_noise_is_too_wide_to_drift(first: int, second: int, fits: bool) -> None:
    """Args: first, second: integers that one row can change in each stage, with noise far wider than 2^20."""
    books = accountant(PrivacyTarget(1.0, 1e-36), "gaussian")
    before, rest = books.budget.split(0.5, 0.5)
    books.forecast(rounds_of(before, 1, first, 2.0**40))
    asked = rounds_of(rest, 1, second, 2.0**40)
    if fits:
        both = books.forecast_second(asked, rest)
        assert both.tail == pytest.approx((first + second) * BEYOND, rel=1e-12, abs=0)
        assert both.epsilon(1e-36) <= 1.0
        return
    with pytest.raises(BudgetExceeded, match="the run's epsilon"):
        books.forecast_second(asked, rest)
    assert books.rounds == 1


def test_a_zcdp_budget_is_not_priced_as_if_all_of_it_were_gaussian() -> None:
    """A budget of mu^2 / 2 keeps (1, 1e-6) with Gaussian noise alone. Events that are zCDP and no more cost 1.078, also
    if some discrete Gaussian noise beside them makes the drift positive."""
    total = PrivacyTarget(1.0, 1e-6)
    budget = Budget("zcdp", total.measured(["gaussian"]).amount / 2)
    first, rest = budget.split(0.01, 0.99)
    for stages in ((0, 8), (8, 0), (8, 8), (0, 0)):
        books = Accountant(total, budget)
        one, two = (rounds_of(b, 1, t, WIDE if t else math.inf) for b, t in zip((first, rest), stages, strict=True))
        books.forecast(one)
        with pytest.raises(BudgetExceeded, match="the run's epsilon at delta"):
            books.forecast_second(two, rest)
        assert books.rounds == 1


@pytest.mark.parametrize("measure", ["pure", "gaussian", "zcdp"])
def test_deltas_of_two_stages_are_held_against_the_whole_together(measure: Measure) -> None:
    """In sixths of the delta that is set aside: whatever the split, and also where the second stage was told that it
    may have all of it."""
    total = PrivacyTarget(1.0, 1e-6)
    budget = total.measured([measure], uses_delta=True)
    sixth = budget.delta / 6
    before, rest = budget.split(0.5, 0.5)
    for first, second in [(6, 6), *((first, both - first) for both in (6, 7) for first in range(7))]:
        for told in {second, 6}:
            books = Accountant(total, budget)
            books.forecast([(Event("thresholded", attrs.evolve(before, delta=0.0), delta=first * sixth),)])
            within = attrs.evolve(rest, delta=told * sixth)
            asked = [(Event("thresholded", attrs.evolve(rest, delta=0.0), delta=second * sixth),)]
            if first + second > 6:
                with pytest.raises(BudgetExceeded, match="set aside for thresholds"):
                    books.forecast_second(asked, within)
                assert books.rounds == 1
            else:
                both = books.forecast_second(asked, within)
                assert both.delta == pytest.approx((first + second) * sixth)
                assert both.epsilon(total.delta * (1 + 1e-9)) <= 1.0 + 1e-9


PAYS: dict[Measure, set[Measure]] = {
    "pure": {"pure"},
    "gaussian": {"gaussian"},
    "zcdp": {"pure", "gaussian", "zcdp"},
    "exact": {"pure", "gaussian", "zcdp", "exact"},
}
"""Whose events a budget can pay, written down once more: an event whose amount a measure does not hold is free."""


@pytest.mark.parametrize(("paid_in", "asked_in"), list(product(get_args(Measure), get_args(Measure))))
def test_a_budget_pays_for_events_whose_amount_its_measure_holds_in_both_forecasts(
    paid_in: Measure, asked_in: Measure
) -> None:
    """A pure event has no mu^2: charged to a Gaussian budget, a second stage of epsilon = 50 would cost nothing."""
    total = PrivacyTarget(1.0, 1e-6)
    for amount in (1e-9, 50.0):
        asked = [(Event("asked", Budget(asked_in, amount)),)]
        fits = asked_in in PAYS[paid_in] and (amount < 1 or paid_in == "exact")
        wrong: Any = BudgetExceeded if asked_in in PAYS[paid_in] else WrongComposition
        once = accountant(total, paid_in)
        first, rest = once.budget.split(0.01, 0.99)
        twice = accountant(total, paid_in)
        twice.forecast(rounds_of(first, 1))
        if fits:
            once.forecast(asked)
            twice.forecast_second(asked, rest)
            continue
        with pytest.raises(wrong):
            once.forecast(asked)
        with pytest.raises(wrong):
            twice.forecast_second(asked, rest)
        assert (once.rounds, twice.rounds) == (0, 1)


def test_a_second_stages_budget_is_in_the_measure_of_the_whole() -> None:
    """A stage whose budget is in epsilon would be charged nothing for its rho."""
    for whole, stage in permutations(get_args(Measure), 2):
        books = accountant(PrivacyTarget(1.0, 1e-6), whole)
        first, _ = books.budget.split(0.01, 0.99)
        books.forecast(rounds_of(first, 1))
        with pytest.raises(WrongComposition, match=f"the second stage's budget is {stage}, the run's is {whole}"):
            books.forecast_second([(Event("asked", Budget(whole, 50.0)),)], Budget(stage, 1e-3))
        assert books.rounds == 1


@pytest.mark.parametrize("measure", ["pure", "zcdp"])
def test_a_cost_may_exceed_a_budget_by_what_sums_round_and_by_no_more(measure: Measure) -> None:
    total = PrivacyTarget(1.0, 1e-6)
    budget = attrs.evolve(total.measured([measure]), amount=0.01)
    most = 0.01 * ROUNDING
    for amount in (0.01, most):
        Accountant(total, budget).forecast([(Event("test", attrs.evolve(budget, amount=amount)),)])
    over = attrs.evolve(budget, amount=math.nextafter(most, 1))
    with pytest.raises(BudgetExceeded, match=f"the run's {measure} budget"):
        Accountant(total, budget).forecast([(Event("test", over),)])


def test_rows_per_user_is_a_whole_number_within_its_limits() -> None:
    for value in (None, 1, 7, 2**20):
        assert checked_rows_per_user(value) == value
    for wrong in (0, -1, 2**20 + 1, True, 2.0, "3"):
        with pytest.raises(InvalidInput, match="rows_per_user"):
            checked_rows_per_user(wrong)
