"""What users with several rows pay: figures, exact laws, and the kit's worst neighbours, m rows of one user at once."""

from __future__ import annotations

import math
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from cloister.accounting.accountant import Accountant
from cloister.accounting.composition import Spent
from cloister.accounting.ledger.privacy_filter import Cost
from cloister.accounting.total import Total, of_row, of_user
from cloister.core.buckets import BucketedVectors, QuestionContext, Space
from cloister.core.budget import Budget, Event, Measure
from cloister.core.errors import BudgetExceeded, InvalidInput
from cloister.core.randomness import PublicRng
from cloister.core.registry.registry import registry
from cloister.testing.check import Broken
from cloister.testing.checks.oracle_privacy import neighbours_are_hard_to_tell_apart, one_row_moves_no_mean_too_far

CONTEXT = QuestionContext(1000, 1.0, PublicRng.from_seed(1))
MEASURES: tuple[Measure, ...] = ("pure", "gaussian", "zcdp")


def made(role: Any, name: str) -> Any:
    return registry().load(registry().spec(role, name))()


def test_epsilon_grows_with_the_rows_and_rho_and_mu_squared_with_their_square() -> None:
    paid = [of_user(Event("m", Budget(measure, 0.5)), 3).spent.amount for measure in MEASURES]
    assert paid == [1.5, 4.5, 4.5]


def test_pure_noise_that_is_paid_in_rho_grows_in_both() -> None:
    event = of_user(Event("m", Budget("zcdp", 0.5), pure=1.0), 4)
    assert (event.spent.amount, event.pure) == (8.0, 4.0)
    assert Spent.on([event]).pure == 4.0
    assert Spent.on([event]).all_rho == 8.0


def test_every_row_of_a_user_touches_numbers_of_its_own() -> None:
    event = Event("m", Budget("gaussian", 0.5), 7, 2.0**20, ratio=1e-9)
    one, many = (Spent.on([of_user(event, m)]) for m in (1, 5))
    assert many.drift == pytest.approx(5 * one.drift, rel=1e-12)
    assert many.tail == pytest.approx(5 * one.tail, rel=1e-12)
    assert of_user(event, 5).sigma == event.sigma


def test_a_delta_that_was_proved_for_one_row_is_not_multiplied() -> None:
    """Two rows of one user pass a threshold together far more easily than one: m times delta would be too little."""
    event = Event("thresholded", Budget("pure", 0.5), delta=1e-6)
    assert of_user(event, None) == of_user(event, 1) == event
    with pytest.raises(InvalidInput, match="'thresholded' spends a delta of its own"):
        of_user(event, 2)
    with pytest.raises(InvalidInput, match="proved for one row, and not for users with several"):
        Total(1.0, 1e-6, rows_per_user=2).measured({"pure"}, uses_delta=True)
    assert Total(1.0, 1e-6, rows_per_user=1).measured({"pure"}, uses_delta=True).delta == 1e-6


@pytest.mark.parametrize("given", [0, -1, 1.5, True, "3", 2**20 + 1])
def test_the_number_of_rows_is_a_whole_number(given: Any) -> None:
    with pytest.raises(InvalidInput, match="give a whole number from 1 to 1048576"):
        Total(1.0, rows_per_user=given)


@given(st.sampled_from(MEASURES), st.floats(1e-6, 100.0), st.integers(1, 2**20))
def test_rows_never_get_more_than_their_user_pays(measure: Measure, amount: float, m: int) -> None:
    whole = Budget(measure, amount)
    back = of_user(Event("m", of_row(whole, m)), m).spent.amount
    assert amount * (1 - 1e-14) <= back <= amount


@settings(max_examples=30)
@given(st.sampled_from(MEASURES[:2]), st.floats(0.01, 8.0), st.integers(1, 100))
def test_a_run_that_spends_its_budget_is_admitted_and_one_that_spends_a_row_s_is_not(
    measure: Measure, epsilon: float, m: int
) -> None:
    total = Total(epsilon, 1e-6, rows_per_user=m)
    budget = total.measured({measure})
    accountant = Accountant(total, budget)
    spent = accountant.forecast([[Event("m", part) for part in budget.split(1, 2)]])
    assert spent.epsilon(1e-6) <= epsilon * (1 + 1e-9)
    assert spent.epsilon(1e-6) >= 0.99 * epsilon
    if m > 1:
        rows = Total(epsilon, 1e-6).measured({measure})
        with pytest.raises(BudgetExceeded):
            Accountant(total, budget).forecast([[Event("m", rows)]])
    accountant.charge(0, [Event("m", part) for part in budget.split(1, 2)])
    assert accountant.left <= 1e-9 * total.paid(budget).amount


@pytest.mark.parametrize(("measure", "rho"), [("pure", 0.5), ("gaussian", None), ("zcdp", None)])
def test_a_ledger_is_charged_what_the_user_pays(measure: Measure, rho: float | None) -> None:
    """Of every row's budget m^2 times the rho, and not what one row pays."""
    one, many = (Total(1.0, 1e-6, rows_per_user=m) for m in (1, 8))
    costs = [Cost.reserved(total, total.measured({measure})) for total in (one, many)]
    assert attrs.astuple(costs[1]) == pytest.approx(attrs.astuple(costs[0]), rel=1e-12)
    assert rho is None or costs[1].rho == pytest.approx(rho)


# exact laws


@pytest.mark.parametrize("m", [1, 2, 5, 17])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_counts_under_laplace_noise_are_as_private_for_m_rows_as_was_promised(m: int, epsilon: float) -> None:
    """The law is P(x) ~ e^(-|x| / s): with all m rows in one bucket its logarithm moves by m / s, and no further."""
    budget = Total(epsilon, rows_per_user=m).measured({"pure"})
    scale = made("FrequencyOracle", "discrete-laplace").open(Space((4,)), budget, CONTEXT).law.scale
    x = np.arange(-60, 60)
    moved = np.abs(np.abs(x) - np.abs(x - m)).max() / scale
    assert epsilon * (1 - 1e-9) <= moved <= epsilon


@pytest.mark.parametrize("m", [1, 2, 7])
def test_counts_under_gaussian_noise_are_as_private_for_m_rows_as_was_promised(m: int) -> None:
    """Renyi divergences by enumeration: of order a at most a rho, and nearly that."""
    rho = 1 / 50
    law = made("FrequencyOracle", "discrete-gaussian").open(Space((4,)), of_row(Budget("zcdp", rho), m), CONTEXT)
    sigma = law.law.sigma / 2.0**law.shift  # as wide, in whole rows
    x = np.arange(-int(60 * sigma), int(60 * sigma))
    log_p, log_q = (-((x - shift) ** 2) / (2 * sigma**2) for shift in (0, m))
    norm = math.log(np.exp(log_p).sum())
    for order in (1.5, 2.0, 8.0):
        divergence = (math.log(np.exp(order * log_p + (1 - order) * log_q).sum()) - norm) / (order - 1)
        assert 0.999 * order * rho <= divergence <= order * rho * (1 + 1e-9)


# the kit's worst neighbours


@attrs.frozen
class Group:
    """An oracle whose rows stand for users: each has m rows, all alike, and is released as one m-th of their total."""

    oracle: Any
    m: int
    generous: float = 1.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.oracle, name)

    def opened(self, space: Space, budget: Budget, context: Any, *bound: Any) -> Any:
        row = of_row(budget, self.m)
        row = attrs.evolve(row, amount=row.amount * self.generous ** (1 if row.measure == "pure" else 2))
        return GroupChannel(self.oracle.open(space, row, context, *bound), self.m, budget)


class GroupCounts(Group):
    def open(self, space: Space, budget: Budget, context: Any) -> Any:
        return self.opened(space, budget, context)


class GroupSums(Group):
    def open(self, space: Space, budget: Budget, context: Any, bound: Any) -> Any:
        return self.opened(space, budget, context, bound)


GROUPS: dict[str, type[Group]] = {"FrequencyOracle": GroupCounts, "VectorSumOracle": GroupSums}


@attrs.frozen
class GroupChannel:
    channel: Any
    m: int
    budget: Budget

    @property
    def events(self) -> Any:
        return tuple(Event(event.mechanism, self.budget) for event in self.channel.events)

    def encode(self, items: Any, users: Any, rng: Any) -> Any:
        every: Any = np.repeat(np.arange(len(users)), self.m)
        if isinstance(items, BucketedVectors):
            return self.channel.encode(BucketedVectors(items.buckets[every], items.values[every]), users[every], rng)
        return self.channel.encode(items[every], users[every], rng)

    def absorb(self, report: Any) -> Any:
        return self.channel.absorb(report)

    def decode(self, summary: Any, rng: Any) -> Any:
        return GroupTable(self.channel.decode(summary, rng), self.m)


@attrs.frozen
class GroupTable:
    table: Any
    m: int

    def at(self, ids: Any, level: int = 0) -> Any:
        return self.table.at(ids, level) / self.m

    def standard_error(self, ids: Any, level: int = 0) -> Any:
        return self.table.standard_error(ids, level) / self.m


def oracles() -> list[Any]:
    """Every central oracle that promises privacy, without a delta of its own."""
    found = [
        (role, s.name)
        for role in ("FrequencyOracle", "VectorSumOracle")
        for s in registry().specs(role)  # type: ignore[arg-type]
        if s.trust == "Central" and s.private and not made(role, s.name).uses_delta
    ]
    return [pytest.param(role, name, id=f"{role} {name}") for role, name in found]


@pytest.mark.thorough
@pytest.mark.parametrize("m", [2, 5])
@pytest.mark.parametrize(("role", "name"), oracles())
def test_m_rows_of_one_user_are_hidden_by_every_central_oracle(role: str, name: str, m: int) -> None:
    one_row_moves_no_mean_too_far(GROUPS[role](made(role, name), m))
    neighbours_are_hard_to_tell_apart(GROUPS[role](made(role, name), m))


@pytest.mark.thorough
@pytest.mark.parametrize(("role", "name"), oracles())
def test_noise_that_is_too_small_by_a_fifth_for_m_rows_is_seen(role: str, name: str) -> None:
    """By events; of Gaussian noise, whose means move as far as its budget allows, by means too."""
    narrow = GROUPS[role](made(role, name), 3, generous=1.2)
    with pytest.raises(Broken):
        neighbours_are_hard_to_tell_apart(narrow)
    if narrow.measure == "gaussian":
        with pytest.raises(Broken):
            one_row_moves_no_mean_too_far(narrow)
