"""What a run's (epsilon, delta) buys: a budget in the measure of the questions that are asked, all of which they can
spend."""

from __future__ import annotations

import itertools
import math
from typing import Any

import attrs
import pytest

from cloister.accounting import budgeting
from cloister.accounting.accountant import Accountant
from cloister.accounting.budgeting import joint_problem, problem_of
from cloister.accounting.composition import Spent
from cloister.accounting.mixed import delta_of_mixed
from cloister.accounting.privacy_target import PrivacyTarget
from cloister.core.budget import Budget, PrivacyNotion
from cloister.core.clustering import Clustering, Problem
from cloister.core.domains import Box
from cloister.core.errors import InvalidInput
from cloister.core.questions import count
from cloister.core.randomness import PublicRng
from cloister.core.registry.components import Spec, component, slot
from cloister.core.registry.compose import Composed
from cloister.core.registry.registry import registry
from cloister.core.reproducible_math import fewer_bits
from cloister.core.roles import FrequencyOracle
from cloister.core.session import Session
from cloister.core.trust import Central
from cloister.plugins.oracles.central.discrete_gaussian import DiscreteGaussian
from cloister.plugins.oracles.central.discrete_laplace import DiscreteLaplace
from cloister.plugins.oracles.central.thresholded import ThresholdedCounts
from cloister.plugins.trees.grid import Grid
from cloister.run.request import PreparedRun, prepare
from tests.asking import asking

SEED = PublicRng.from_seed(5)
LAPLACE = {"counts": "discrete-laplace"}


def plan(
    dimension: int = 2, method: str = "tree-coreset", components: dict[str, str] = LAPLACE, **given: Any
) -> PreparedRun:
    facts = {"k": 3, "epsilon": 1.0, "delta": 1e-6, "bounds": (-1, 1), "rows": 10_000, **given}
    return prepare(asking(method=method, components=components, **facts), [str(j) for j in range(dimension)])


def spent(made: PreparedRun) -> Spent:
    """What a run spends, as its accountant adds it up."""
    return Accountant(made.total, made.problem.budget).forecast([round.events for round in made.forecast(SEED)])


def measure_of(made: PreparedRun) -> str:
    """The measure of the oracles that are asked; rho if they differ."""
    session: Session[Any] = Session(made.problem, SEED, forecasting=True)
    made.composed.value.cluster(made.problem, session, SEED.child("method"))
    kinds = {currency.measure for currency in session.notions}
    return kinds.pop() if len(kinds) == 1 else "zcdp"


# a slot that nobody asks


def test_a_slot_that_nobody_asks_does_not_decide_the_measure() -> None:
    """In two columns tree-coreset asks counts alone: with pure noise they get all of epsilon, not the 0.22 that rho
    leaves, and need no delta."""
    made = plan()
    assert made.problem.budget == Budget("pure", 1.0)
    assert (spent(made).pure, spent(made).epsilon(0.0)) == (1.0, 1.0)
    assert spent(plan(delta=0.0)).pure == 1.0


# methods that choose what to ask by their budget


@component
class Fickle:
    """Asks one question or another, as ``choose`` has it."""

    first: FrequencyOracle[Central] = slot("discrete-laplace", help="asked, or not")
    second: FrequencyOracle[Central] = slot("discrete-gaussian", help="asked, or not")
    third: FrequencyOracle[Central] = slot("thresholded", help="asked, or not")

    def cluster(self, problem: Problem, session: Session[Any], rng: PublicRng) -> Clustering:
        chosen = choose(problem.budget)
        for name, part in zip(chosen, problem.budget.split(*(1.0 for _ in chosen)), strict=True):
            session.ask(count(Grid().open(problem, rng), oracle=getattr(self, name), budget=part))
        return Clustering(problem.domain.middle[None])


def choose(budget: Budget) -> tuple[str, ...]:
    raise NotImplementedError


def fickle() -> Composed:
    oracles = {"first": DiscreteLaplace(), "second": DiscreteGaussian(), "third": ThresholdedCounts()}
    inner = {name: Composed(o, Spec(name, "FrequencyOracle", "a:B", ""), {}, "Central") for name, o in oracles.items()}
    return Composed(Fickle(**oracles), Spec("fickle", "Method", "a:B", ""), inner, "Central")


def budget_of(monkeypatch: pytest.MonkeyPatch, chosen: Any, delta: float = 1e-6) -> Budget:
    monkeypatch.setitem(globals(), "choose", chosen)
    return problem_of(fickle(), PrivacyTarget(1.0, delta), 1, Box((0.0,), (1.0,)), 1000).budget


CURRENCIES = {
    "first": PrivacyNotion("pure"),
    "second": PrivacyNotion("gaussian"),
    "third": PrivacyNotion("pure", uses_delta=True),
}
CHOICES = [chosen for size in range(1, 4) for chosen in itertools.combinations(CURRENCIES, size)]


def test_a_budget_is_that_of_the_oracles_that_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for chosen in CHOICES:
        kinds = [CURRENCIES[name] for name in chosen]
        expected = PrivacyTarget(1.0, 1e-6).measured({c.measure for c in kinds}, any(c.uses_delta for c in kinds))
        found = budget_of(monkeypatch, lambda budget, chosen=chosen: chosen)
        assert attrs.evolve(found, amount=min(found.amount, expected.amount)) == expected


def test_the_search_for_a_mixed_budget_begins_at_four_times_the_rho_of_gaussian_noise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen, total, everything = list[Budget](), PrivacyTarget(1.0, 1e-6), frozenset(CURRENCIES.values())
    monkeypatch.setitem(globals(), "choose", lambda budget: seen.append(budget) or ("first", "second"))
    start = Problem(1, Box((0.0,), (1.0,)), 1000, Budget("pure", 1.0))
    found = joint_problem(fickle().value, everything, total, start)
    aside = total.measured({"pure", "gaussian"}, uses_delta=True).delta
    mu = total.measured({"gaussian"}).mu
    assert seen[0] == Budget("zcdp", fewer_bits(4 * mu * mu / 2, 10), delta=aside)
    assert found
    assert found.budget == seen[-1]


def test_a_mixed_run_grows_until_its_loss_is_at_the_target_less_the_slack_and_the_mechanisms_deltas(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(budgeting, "SCALE_BITS", 40)  # the search ends where the condition turns
    spent, total = Spent((0.3, 0.2), mu_squared=0.04, delta=2e-7), PrivacyTarget(1.0, 1e-6)
    factor, delta = budgeting._factor(spent, total), (1e-6 - 2e-7) * (1 - 1e-4)

    def loss(factor: float) -> float:
        root = math.sqrt(factor)
        return delta_of_mixed([0.3 * root, 0.2 * root], 0.2 * root, 1 - 1e-4)

    assert loss(factor) <= delta < loss(factor * (1 + 1e-9))
    for own in (1e-6, 2e-6):
        assert budgeting._factor(attrs.evolve(spent, delta=own), total) == 0.0


def test_a_problem_has_the_figures_it_is_given() -> None:
    """Where one kind of oracle leaves nothing to look for."""
    several, box = fickle(), Box((0.0,), (1.0,))
    one = attrs.evolve(several, inner={"first": several.inner["first"]})
    assert problem_of(one, PrivacyTarget(1.0, 1e-6), 2, box, 1000) == Problem(2, box, 1000, Budget("pure", 1.0))


def test_a_method_without_a_guarantee_has_the_figures_it_is_given_and_an_infinite_budget() -> None:
    box, several = Box((0.0,), (1.0,)), fickle()
    open_one = attrs.evolve(several, inner={}, spec=attrs.evolve(several.spec, private=False))
    found = problem_of(open_one, PrivacyTarget(1.0, 1e-6), 2, box, 1000)
    assert found == Problem(2, box, 1000, Budget("exact", math.inf))


def test_pure_and_gaussian_questions_are_priced_together_unless_that_is_ruled_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(globals(), "choose", lambda budget: ("first", "second"))
    figures = (fickle(), PrivacyTarget(1.0, 1e-6), 1, Box((0.0,), (1.0,)), 1000)
    together, apart = problem_of(*figures), problem_of(*figures, jointly=False)
    assert together == problem_of(*figures, jointly=True)
    assert together.budget.amount > 1.2 * apart.budget.amount


@pytest.mark.parametrize("of_pure", CHOICES[:4])
def test_whatever_a_method_asks_under_whatever_budget_the_search_ends_and_the_budget_pays(
    monkeypatch: pytest.MonkeyPatch, of_pure: tuple[str, ...]
) -> None:
    """The method may ask something else under each measure, of what its oracles can be opened with there or not."""
    for others in itertools.product(CHOICES[:4], repeat=2):
        answers, looked = dict(zip(("pure", "gaussian", "zcdp"), (of_pure, *others), strict=True)), list[Budget]()

        def chosen(budget: Budget, answers: Any = answers, looked: list[Budget] = looked) -> tuple[str, ...]:
            looked.append(budget)
            assert len(looked) < 10, answers
            return answers[budget.measure]

        found = budget_of(monkeypatch, chosen)
        asked = [CURRENCIES[name] for name in chosen(found)]
        paid = {"pure", "gaussian"} if found.measure == "zcdp" else {found.measure}
        assert {c.measure for c in asked} <= paid, answers
        assert found.delta > 0 or not any(c.uses_delta for c in asked), answers


def test_a_method_that_stumbles_over_a_budget_of_another_measure_gets_the_one_of_all_its_slots(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def chosen(budget: Budget) -> tuple[str, ...]:
        if budget.measure != "zcdp":
            raise ZeroDivisionError
        return ("first",)

    assert budget_of(monkeypatch, chosen).measure == "zcdp"


def test_exact_answers_that_nobody_asks_are_exact_answers_still() -> None:
    with pytest.raises(InvalidInput, match="NOT private"):
        plan(components={**LAPLACE, "sums": "exact"})
    with pytest.raises(InvalidInput, match="exact answers have an infinite budget"):
        plan(components={**LAPLACE, "sums": "exact"}, not_private=True)


# every method


METHODS = [
    s.name for s in registry().specs("Method") if s.private and s.name not in ("sphere-packing", "given-centers")
]
"""All that ask anything."""


@pytest.mark.thorough
@pytest.mark.parametrize("method", METHODS)
def test_a_run_spends_its_budget(method: str) -> None:
    """At least 0.99 of it, in its measure, and never more than all; in two columns some slots are not asked."""
    for dimension in (2, 5):
        made = plan(dimension, method, {}, rows=1_000_000)
        budget = made.problem.budget
        assert budget.measure == measure_of(made), dimension
        assert 0.99 <= spent(made).amount(budget.measure) / budget.amount <= 1 + 1e-9, dimension
