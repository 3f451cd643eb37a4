"""Runs whose number of rows nobody gave: a noisy count first, then the method with what is left."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any, cast

import attrs
import numpy as np
import pytest

from cloister.accounting.budgeting import problem_of
from cloister.accounting.ledger.ledger import Ledger
from cloister.accounting.privacy_target import PrivacyTarget
from cloister.core.budget import Budget, Measure, PrivacyNotion
from cloister.core.clustering import Clustering, Problem
from cloister.core.domains import Box
from cloister.core.errors import InvalidInput
from cloister.core.questions import count
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.registry.draft import Kit
from cloister.core.registry.registry import registry
from cloister.core.session import Session
from cloister.plugins.oracles.central.discrete_gaussian import DiscreteGaussian
from cloister.plugins.oracles.central.discrete_laplace import DiscreteLaplace
from cloister.plugins.populations.arrays import Arrays
from cloister.run.account import Account
from cloister.run.fit import fit, source
from cloister.run.method_selection import Planned
from cloister.run.request import PreparedRun, Request, prepare
from cloister.run.row_count import SHARE, SingleBucket, after_count, counted, counter_of, shares, with_count
from cloister.run.statement import PrivacyStatement
from tests.asking import asking

MEASURES: dict[str, dict[str, Any]] = {
    "gaussian": {"method": "fastlloyd", "delta": 1e-6},
    "zcdp": {"method": "fastlloyd", "delta": 1e-6, "components": {"counts": "discrete-laplace"}},
    "pure": {"method": "su-lloyd"},
}


COLUMNS = ("a", "b")


def rows(n: int = 4000) -> np.ndarray:
    return np.random.default_rng(0).normal(0, 0.3, (n, 2))


def request(measure: str = "gaussian", **more: Any) -> Request:
    return asking(**{"k": 3, "epsilon": 1.0, "bounds": (-1, 1), "zoom": "off", **MEASURES[measure], **more})


@pytest.mark.parametrize("measure", list(MEASURES))
def test_the_count_and_the_method_add_up_to_the_budget(measure: str) -> None:
    plan = prepare(request(measure), COLUMNS)
    told = fit(request(measure), source(rows())).privacy
    assert {spend.measure for spend in told.spends} == {plan.budget.measure} == {measure}
    assert f"{told.rows:,} is a noisy count" in told.text()
    assert PrivacyStatement.from_dict(told.as_dict()) == told
    first, *others = [spend.amount for spend in told.spends]
    assert first == pytest.approx(SHARE * plan.budget.amount)
    assert first + math.fsum(others) == pytest.approx(plan.budget.amount, rel=1e-9)
    given = prepare(request(measure, rows=4000), COLUMNS)
    assert given.budget == given.problem.budget
    assert attrs.evolve(given.budget, amount=plan.budget.amount) == plan.budget
    assert given.budget.amount > plan.budget.amount if measure == "zcdp" else given.budget == plan.budget


def count_of(n: int, budget: Budget, k: int, seed: int = 0) -> tuple[int, Any]:
    """The count of so many rows, and the question that was asked."""
    problem, rng = Problem(k, Box((-1.0,), (1.0,)), 1000, budget), PublicRng.from_seed(seed)
    session: Session[Any] = Session(problem, rng, Arrays(np.zeros((n, 1))), noise=NoiseRng.for_tests(seed))
    found = counted(session, counter_of(Kit(registry()), budget.measure), budget, k)
    ((part,),) = (round.parts for round in session.rounds)
    return found, part


@pytest.mark.parametrize("budget", [Budget("pure", 0.01), Budget("gaussian", 4e-4), Budget("zcdp", 2e-4)])
def test_every_row_is_counted_once_with_noise_of_the_stated_scale(budget: Budget) -> None:
    """One question of one bucket that is paid with all of the budget; that noise follows its law the tests of oracles
    say."""
    found, asked = count_of(3000, budget, 1)
    assert asked.cells.space.sizes == (1,)
    assert [event.spent for event in asked.channel.events] == [budget]
    deviation = math.sqrt(2) / budget.amount if budget.measure == "pure" else 1 / budget.mu
    assert asked.channel.deviation == pytest.approx(deviation, rel=1e-3)
    assert 0 < abs(found - 3000) < 5 * deviation


@pytest.mark.parametrize("given", [4000, None])
def test_whoever_watches_a_run_is_told_its_plan_and_rounds_and_again_once_the_rows_are_counted(
    given: int | None,
) -> None:
    calls = list[tuple[PreparedRun, int, Any]]()
    fit(request(rows=given), source(rows()), started=lambda *told: calls.append(told))
    assert [plan.rows for plan, _, _ in calls][:1] == [given]
    assert len(calls) == (1 if given else 2)
    plan, number, opened = calls[-1]
    assert plan.problem.rows == pytest.approx(4000, abs=2000)
    assert number == len(opened) > 2


def test_a_count_below_k_becomes_k() -> None:
    """The noise is a hundred times the number of rows: half of all counts are negative."""
    found = {count_of(40, Budget("pure", 1e-4), 3, seed)[0] for seed in range(25)}
    assert min(found) == 3
    assert max(found) > 40


def test_the_schedule_is_that_of_the_count() -> None:
    """hst-means cuts more levels for more rows."""
    asked = request(method="hst-means", seed=1)
    result = fit(asked, source(rows(20_000)))

    def levels(plan: PreparedRun) -> list[int]:
        return [part.cells.space.levels for round in plan.forecast(PublicRng.from_seed(1)) for part in round.parts]

    told = prepare(attrs.evolve(asked, rows=result.problem["rows"]), COLUMNS)
    likely = prepare(asked, COLUMNS)
    assert len(result.privacy.spends) == 1 + len(levels(told))
    assert levels(likely)[1:] != levels(told)
    assert likely.digest() != told.digest()


def test_a_count_that_is_mostly_noise_or_of_no_more_rows_than_centres_is_warned_of() -> None:
    """Of rows whose number nobody gave, a run finds out only when it has paid."""

    def told(asked: Request, n: int) -> str:
        return fit(asked, source(rows(n)), noise=NoiseRng.for_tests(1)).privacy.text()

    few, noisy = (
        "no more rows were counted than centres were asked for (50)",
        "the count of the rows has a standard error",
    )
    assert few in told(request(method="hst-means", k=50, epsilon=5.0), 30)
    assert noisy in told(request(epsilon=1e-4), 4000)
    sober = told(request(), 4000)
    assert [words for words in (few, noisy) if words in sober] == []


@pytest.mark.parametrize(
    ("method", "trust"),
    [("one-round", "Local"), ("fastlloyd", "Shuffled"), ("auto", "Shuffled"), ("hst-means", "Aggregated")],
)
def test_without_a_curator_the_number_of_rows_must_be_given(method: str, trust: str) -> None:
    """Also where all rows are in one place: a simulation that counted them would draw noise for a curator under
    another trust model's promise."""
    asked = request(method=method, epsilon=8.0, trust=trust)
    for begin in (lambda: prepare(asked, COLUMNS), lambda: fit(asked, source(rows()))):
        with pytest.raises(InvalidInput, match=f"no public number of rows: give --rows N .* as composed is {trust}"):
            begin()


class TwoFaces:
    """Asks with pure noise where rows are few, and with Gaussian noise where they are many."""

    def cluster(self, problem: Problem, session: Session[Any], rng: PublicRng) -> Clustering:
        oracle = DiscreteLaplace() if problem.rows < 1000 else DiscreteGaussian()
        session.ask(count(SingleBucket(), oracle=oracle, budget=problem.budget))
        return Clustering(np.zeros((problem.k, problem.domain.dimension)))


def test_the_measure_is_fixed_before_the_count_for_any_number_of_rows() -> None:
    currencies = frozenset({PrivacyNotion("pure"), PrivacyNotion("gaussian")})
    composed: Any = SimpleNamespace(value=TwoFaces(), currencies=currencies, private=True, trust="Central")
    total, domain = PrivacyTarget(1.0, 1e-6), Box((-1.0,), (1.0,))

    def planned(rows: int) -> Planned:
        return composed, problem_of(composed, total, 3, domain, rows), None

    (_, problem, _), budget = with_count(planned, total, 3, None)
    assert budget.measure == "zcdp"
    assert problem.budget.amount == pytest.approx(0.99 * budget.amount)


def test_a_run_is_priced_for_hundreds_to_millions_of_rows_and_never_for_fewer_than_centres() -> None:
    def asked(k: int) -> list[int]:
        numbers, composed = (
            list[int](),
            SimpleNamespace(trust="Central", currencies=frozenset([PrivacyNotion("gaussian")])),
        )

        def planned(rows: int) -> Planned:
            numbers.append(rows)
            problem = Problem(k, Box((-1.0,), (1.0,)), rows, Budget("gaussian", 1.0))
            return cast("Any", composed), problem, None

        with_count(planned, PrivacyTarget(1.0, 1e-6), k, None)
        return numbers

    assert asked(3) == [100, 10_000, 1_000_000]
    assert asked(20_000) == [20_000, 20_000, 1_000_000]


@pytest.mark.parametrize("thresholds", [{"many"}, {"few", "many"}, set()])
def test_a_budget_is_that_of_the_plans_only_if_it_is_one_for_any_number_of_rows(thresholds: set[str]) -> None:
    """Plans that pay in one measure may differ in the delta that they set aside, and slots may never be asked."""
    total, domain = PrivacyTarget(1.0, 1e-6), Box((-1.0,), (1.0,))
    slots = frozenset({PrivacyNotion("gaussian", uses_delta=True), PrivacyNotion("pure")})
    composed: Any = SimpleNamespace(currencies=slots, trust="Central")

    def planned(rows: int) -> Planned:
        budget = total.measured(["gaussian"], ("many" if rows > 10**4 else "few") in thresholds)
        return composed, Problem(3, domain, rows, budget), None

    (_, problem, _), budget = with_count(planned, total, 3, None)
    assert budget == (
        total.measured(["pure", "gaussian"], True)
        if thresholds == {"many"}
        else total.measured(["gaussian"], bool(thresholds))
    )
    assert problem.budget == shares(budget)[1]


@pytest.mark.parametrize("measure", ["gaussian", "pure"])
def test_after_the_count_the_plan_is_that_for_its_number_unless_it_pays_in_another_measure(measure: Measure) -> None:
    """In both cases with the rows that were counted, and the budget that was left."""
    domain, left = Box((-1.0,), (1.0,)), Budget("gaussian", 0.3, delta=1e-7)
    before: Any = SimpleNamespace(name="before"), Problem(3, domain, 10**4, left), "one"
    picked: Any = SimpleNamespace(name="picked"), Problem(3, domain, 500, Budget(measure, 0.4)), "another"
    composed, problem, choice = after_count(lambda rows: picked, before, 500)
    kept = picked if measure == "gaussian" else before
    assert (composed, choice) == (kept[0], kept[2])
    assert problem == Problem(3, domain, 500, left)


def test_the_count_takes_no_delta_that_thresholds_need() -> None:
    first, rest = shares(Budget("gaussian", 1.0, delta=1e-7))
    assert (first.delta, rest.delta) == (0.0, 1e-7)


# the ledger


def test_a_counted_run_gives_nothing_back(ledger: Ledger) -> None:
    """What is left of its budget may depend on the count, beside which a ledger adds up fixed figures only."""
    fit(request(), source(rows()), account=Account(ledger=ledger.path, dataset="mine"))
    (spent,) = ledger.runs()
    assert (spent.cost.epsilon, spent.cost.delta, spent.state) == (1.0, 1e-6, "done")
