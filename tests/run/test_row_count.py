"""Runs whose number of rows nobody gave: a noisy count first, then the method with what is left."""

from __future__ import annotations

import json
import math
from types import SimpleNamespace
from typing import Any

import attrs
import numpy as np
import pytest

from cloister.accounting.ledger.ledger import Ledger
from cloister.accounting.total import Total, problem_of
from cloister.core.budget import Budget, Currency
from cloister.core.clustering import Clustering, Problem
from cloister.core.domains import Box
from cloister.core.errors import InvalidInput
from cloister.core.questions import count
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.record import marking
from cloister.core.session import Session
from cloister.plugins.oracles.central.discrete_gaussian import DiscreteGaussian
from cloister.plugins.oracles.central.discrete_laplace import DiscreteLaplace
from cloister.plugins.populations.arrays import Arrays
from cloister.run.account import Account
from cloister.run.choosing import Planned
from cloister.run.fit import fit, source
from cloister.run.request import Request, prepare
from cloister.run.result import Result
from cloister.run.row_count import SHARE, Everybody, counted, shares, with_count
from cloister.run.statement import PrivacyStatement
from tests.killed import killed_after

MEASURES: dict[str, dict[str, Any]] = {
    "gaussian": {"method": "fastlloyd", "delta": 1e-6},
    "zcdp": {"method": "fastlloyd", "delta": 1e-6, "components": {"counts": "discrete-laplace"}},
    "pure": {"method": "su-lloyd"},
}


def rows(n: int = 4000) -> np.ndarray:
    return np.random.default_rng(0).normal(0, 0.3, (n, 2))


def request(measure: str = "gaussian", **more: Any) -> Request:
    return Request(**{"k": 3, "epsilon": 1.0, "bounds": (-1, 1), "zoom": "off", **MEASURES[measure], **more})


@pytest.mark.parametrize("measure", list(MEASURES))
def test_the_count_and_the_method_add_up_to_the_budget(measure: str) -> None:
    plan = prepare(request(measure), ["a", "b"])
    result = fit(request(measure), source(rows()))
    assert {spend.measure for spend in result.privacy.spends} == {plan.budget.measure} == {measure}
    assert f"{result.privacy.rows:,} is a noisy count" in result.privacy.text()
    assert PrivacyStatement.from_dict(result.privacy.as_dict()) == result.privacy
    first, *others = [spend.amount for spend in result.privacy.spends]
    assert first == pytest.approx(SHARE * plan.budget.amount)
    assert first + math.fsum(others) == pytest.approx(plan.budget.amount, rel=1e-9)
    given = prepare(request(measure, rows=4000), ["a", "b"])
    assert given.budget == given.problem.budget
    assert attrs.evolve(given.budget, amount=plan.budget.amount) == plan.budget
    assert given.budget.amount > plan.budget.amount if measure == "zcdp" else given.budget == plan.budget


def count_of(n: int, budget: Budget, k: int, seed: int = 0) -> tuple[int, Any]:
    """The count of so many rows, and the question that was asked."""
    problem, rng = Problem(k, Box((-1.0,), (1.0,)), 1000, budget), PublicRng.from_seed(seed)
    session: Session[Any] = Session(problem, rng, Arrays(np.zeros((n, 1))), noise=NoiseRng.for_tests(seed))
    found = counted(session, budget, k)
    ((part,),) = (round.parts for round in session.rounds)
    return found, part


@pytest.mark.parametrize("budget", [Budget("pure", 0.01), Budget("gaussian", 4e-4), Budget("zcdp", 2e-4)])
def test_every_row_is_counted_once_with_noise_of_the_stated_scale(budget: Budget) -> None:
    """One question of one bucket that is paid with all of the budget; that noise follows its law the tests of oracles
    say."""
    found, asked = count_of(3000, budget, 1)
    assert Everybody().locate(np.zeros((3, 1), np.int64)).tolist() == [[0]] * 3
    assert asked.cells.space.sizes == (1,)
    assert [event.spent for event in asked.channel.events] == [budget]
    deviation = math.sqrt(2) / budget.amount if budget.measure == "pure" else 1 / budget.mu
    assert asked.channel.deviation == pytest.approx(deviation, rel=1e-3)
    assert found != 3000
    assert abs(found - 3000) < 5 * deviation


def test_a_count_below_k_becomes_k() -> None:
    """The noise is a hundred times the number of rows: half of all counts are negative."""
    found = {count_of(40, Budget("pure", 1e-4), 3, seed)[0] for seed in range(25)}
    assert min(found) == 3
    assert max(found) > 40


def test_the_schedule_is_that_of_the_count() -> None:
    """hst-means cuts more levels for more rows."""
    asked = request(method="hst-means", seed=1)
    result = fit(asked, source(rows(20_000)))
    told = prepare(request(method="hst-means", rows=result.problem["rows"]), ["a", "b"])
    levels = [part.cells.space.levels for round in told.forecast(PublicRng.from_seed(1)) for part in round.parts]
    likely = prepare(asked, ["a", "b"]).forecast(PublicRng.from_seed(1))
    assert [part.cells.space.levels for round in likely[1:] for part in round.parts] != levels
    assert len(result.privacy.spends) == 1 + len(levels)


def test_before_the_count_a_plan_says_that_rows_are_unknown() -> None:
    plan = prepare(request(), ["a", "b"])
    assert plan.describe()["rows"] is None
    assert plan.digest() != prepare(request(rows=plan.problem.rows), ["a", "b"]).digest()


def test_a_count_of_no_more_rows_than_centres_is_warned_of() -> None:
    """Of rows whose number nobody gave, a run finds out only when it has paid."""
    noise = NoiseRng.for_tests(1)
    result = fit(request(method="hst-means", k=50, epsilon=5.0), source(rows(30)), noise=noise)
    assert any("no more rows were counted than centres were asked for (50)" in note for note in result.privacy.notes)


def test_a_count_that_is_mostly_noise_is_warned_of_and_another_is_not() -> None:
    said = [fit(request(epsilon=epsilon), source(rows())).privacy.text() for epsilon in (1.0, 1e-4)]
    assert ["the count of the rows has a standard error" in text for text in said] == [False, True]


def test_where_no_likely_number_of_rows_will_do_a_plan_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"too few to find .* or, if there are more rows, .*rows=N"):
        prepare(request(bounds="unknown", zoom="auto", epsilon=0.03), ["a", "b"])
    with pytest.raises(InvalidInput, match=r"delta is 0.*Laplace$"):
        prepare(request(delta=0), ["a", "b"])


@pytest.mark.parametrize(
    ("method", "trust"),
    [("one-round", "Local"), ("fastlloyd", "Shuffled"), ("auto", "Shuffled"), ("hst-means", "Aggregated")],
)
def test_without_a_curator_the_number_of_rows_must_be_given(method: str, trust: str) -> None:
    """Also where all rows are in one place: a simulation that counted them would draw noise for a curator under
    another trust model's promise."""
    asked = request(method=method, epsilon=8.0, trust=trust)
    says = f"no public number of rows: give --rows N .* as composed is {trust}"
    with pytest.raises(InvalidInput, match=says):
        prepare(asked, ["a", "b"])
    with pytest.raises(InvalidInput, match=says):
        fit(asked, source(rows()))


class TwoFaces:
    """Asks with pure noise where rows are few, and with Gaussian noise where they are many."""

    def cluster(self, problem: Problem, session: Session[Any], rng: PublicRng) -> Clustering:
        oracle = DiscreteLaplace() if problem.rows < 1000 else DiscreteGaussian()
        session.ask(count(Everybody(), oracle=oracle, budget=problem.budget))
        return Clustering(np.zeros((problem.k, problem.domain.dimension)))


def test_the_measure_is_fixed_before_the_count_for_any_number_of_rows() -> None:
    currencies = frozenset({Currency("pure"), Currency("gaussian")})
    composed: Any = SimpleNamespace(value=TwoFaces(), currencies=currencies, private=True, trust="Central")
    total, domain = Total(1.0, 1e-6), Box((-1.0,), (1.0,))

    def planned(rows: int) -> Planned:
        return composed, problem_of(composed, total, 3, domain, rows), None

    (_, problem, _), budget = with_count(planned, total, 3, None)
    assert budget.measure == "zcdp"
    assert problem.budget.amount == pytest.approx(0.99 * budget.amount)


def test_the_count_takes_no_delta_that_thresholds_need() -> None:
    first, rest = shares(Budget("gaussian", 1.0, delta=1e-7))
    assert (first.delta, rest.delta) == (0.0, 1e-7)


# the ledger


def charged(ledger: Ledger, population: Any, **more: Any) -> Result:
    return fit(request(), population, account=Account(ledger=ledger.path, dataset="mine", **more))


def test_a_method_that_is_picked_by_the_count_is_not_named_before_it(ledger: Ledger) -> None:
    for n in (None, 400):
        fit(request(method="auto", rows=n), source(rows(400)), account=Account(ledger=ledger.path, dataset="mine"))
    auto, named = (run.method for run in ledger.runs())
    assert auto == "auto"
    assert named not in ("", "auto")


@pytest.mark.thorough
@pytest.mark.parametrize("step", ["open_round", "close_round", "write"])
@pytest.mark.parametrize("calls", [1, 2])
def test_a_run_killed_around_the_count_goes_on_with_the_same_count(ledger: Ledger, step: str, calls: int) -> None:
    population = source(rows())
    with killed_after(calls, step):
        charged(ledger, population)
    name = ledger.runs()[-1].id
    plan = prepare(request(), population.columns).digest()
    before = ledger.resume(name, "mine", plan, marking(population)).record.lookups
    assert ledger.status()[0].spent.epsilon == 1.0
    result = charged(ledger, population, resume=name)
    assert not before or result.problem["rows"] == round(before[0].values[0])
    assert ledger.status()[0].spent.epsilon == 1.0
    again = charged(ledger, source(rows(5)), resume=name)
    assert json.dumps(again.as_dict()) == json.dumps(result.as_dict())


def test_a_counted_run_gives_nothing_back(ledger: Ledger) -> None:
    """What is left of its budget may depend on the count, beside which a ledger adds up fixed figures only."""
    charged(ledger, source(rows()))
    (spent,) = ledger.runs()
    assert (spent.cost.epsilon, spent.cost.delta) == (1.0, 1e-6)
    assert spent.state == "done"
