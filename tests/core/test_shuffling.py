"""Shuffled trust in the core: fresh numbers, roles, the ideal functionality, what is refused, what is said."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import attrs
import numpy as np
import pytest
from scipy.stats import chi2

from cloister.accounting.accountant import Accountant
from cloister.accounting.composition import Spent
from cloister.accounting.total import Total
from cloister.core.buckets import Space
from cloister.core.budget import Budget, Event
from cloister.core.clustering import Problem
from cloister.core.domains import Box
from cloister.core.encoding import encode_lattice, encode_owned
from cloister.core.errors import Refused, WrongComposition
from cloister.core.questions import Question, Round, count
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.registry.compose import compose
from cloister.core.registry.registry import registry
from cloister.core.session import Pending, Session
from cloister.core.shuffling import min_honest_users as people_needed, roles
from cloister.core.trust import Shuffled
from cloister.core.types import Floats, Ints
from cloister.plugins.oracles.local.counts.hadamard_response import HadamardResponse
from cloister.plugins.oracles.shuffled.split_and_mix import SplitAndMix
from cloister.run.statement import state
from tests.alarms import Alarm
from tests.core.shuffled_fakes import ToyHidden

N = 4_000
BOX = Box((-1.0,), (1.0,))
SEED = PublicRng.from_seed(70)
BUDGET = Budget("pure", 1.0, delta=1e-6)
MIXED = Budget("gaussian", 0.1, delta=1e-6)
HIDDEN = ToyHidden(report=HadamardResponse())


@attrs.frozen
class Quarters:
    """A row's quarter of [-1, 1]."""

    @property
    def space(self) -> Space:
        return Space((4,))

    def locate(self, rows: Any) -> Any:
        return np.clip((rows + BOX.max_norm) * 4 // (2 * BOX.max_norm + 1), 0, 3)


CELLS = Quarters()


def opened(*questions: Question[Any, Any], people: int = N) -> Round[Any]:
    session: Session[Any] = Session(Problem(2, BOX, people, BUDGET), SEED)
    with pytest.raises(Pending) as pending:
        session.ask(*questions)
    return pending.value.round


def by_roles(*oracles: Any) -> Round[Any]:
    shares = BUDGET.split_users(SEED, *(1.0,) * len(oracles))
    return opened(*(count(CELLS, oracle=o, budget=s) for o, s in zip(oracles, shares, strict=True)))


def raw(lattice: Ints) -> Floats:
    """In the caller's units."""
    return lattice * BOX.unit + BOX.middle


def rows(n: int = N) -> Any:
    return np.random.default_rng(71).integers(-BOX.max_norm, BOX.max_norm, (n, 1), endpoint=True)


USERS = np.arange(N, dtype=np.uint64)


def sent(round: Round[Any], seed: int = 72) -> tuple[Any, ...]:
    return encode_lattice(round, rows(), USERS, NoiseRng.for_tests(seed))


@pytest.mark.alarm(1e-8)
def test_no_public_number_is_in_a_shuffled_report(alarm: Alarm) -> None:
    reports = [r.columns() for r in encode_lattice(by_roles(HIDDEN, HIDDEN), rows(), USERS, NoiseRng.secret())]
    found = np.concatenate([columns["users"] for columns in reports])
    assert len(found) == N
    assert not np.isin(found, USERS).any()
    bits = ((found[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)).sum(axis=0)
    assert ((2 * bits - N) ** 2 / N).sum() < chi2.isf(alarm.each(), 64)  # uniform, bit by bit


@pytest.mark.alarm(1e-8)
def test_roles_are_drawn_afresh_and_do_not_depend_on_rows_or_public_numbers(alarm: Alarm) -> None:
    round = by_roles(HIDDEN, HIDDEN)
    asked = [
        [set(USERS[o.rows].tolist()) for o in encode_owned(round, raw(rows()), USERS, NoiseRng.for_tests(seed))]
        for seed in (1, 2)
    ]
    assert all(len(a | b) == N and not a & b for a, b in asked)
    again = len(asked[0][0] & asked[1][0])
    alarm.near(again, N / 4, math.sqrt(N * 3 / 16))
    moved = encode_owned(round, raw(-rows()), USERS, NoiseRng.for_tests(1))
    assert [set(USERS[o.rows].tolist()) for o in moved] == asked[0]


def test_questions_that_share_the_users_go_by_one_number_and_others_by_their_own() -> None:
    one, two = (set(r.columns()["users"].tolist()) for r in sent(by_roles(HIDDEN, HIDDEN)))
    assert not one & two
    assert len(one | two) == N
    half = BUDGET.over(2)
    a, b = (set(r.columns()["users"].tolist()) for r in sent(opened(*(count(CELLS, oracle=HIDDEN, budget=half),) * 2)))
    assert len(a) == len(b) == N
    assert not a & b


class Few:
    """A population that says how many people it has, perhaps only once they have answered."""

    def __init__(self, people: Any, later: bool = False) -> None:
        self.people, self._later, self.gathered = None if later else people, people, 0

    def gather(self, round: Round[Any], rng: NoiseRng) -> Any:
        self.gathered, self.people = self.gathered + 1, self._later
        return tuple(None for _ in round.parts)


class Charges:
    """An accountant that only counts."""

    def __init__(self) -> None:
        self.charged = 0

    def charge(self, index: int, events: Any) -> None:
        self.charged += 1


def questions(*least: int) -> list[Question[Any, Any]]:
    """Questions that need so many people of N."""
    hiding = (ToyHidden(report=HadamardResponse(), honest=n / N) for n in least)
    return [count(CELLS, oracle=oracle, budget=BUDGET) for oracle in hiding]


def asked_of(population: Any, accountant: Any, *least: int) -> None:
    session: Session[Any] = Session(Problem(2, BOX, N, BUDGET), SEED, population, accountant=accountant)
    session.ask(*questions(*least))


@pytest.mark.parametrize("least", [(100, 7), (7, 100)])
def test_a_round_of_fewer_people_than_any_of_its_questions_needs_is_neither_charged_nor_gathered(
    least: tuple[int, ...],
) -> None:
    assert people_needed(opened(*questions(*least))) == 100
    population, accountant = Few(99), Charges()
    with pytest.raises(Refused, match="there are 99 people, and the guarantee needs at least 100"):
        asked_of(population, accountant, *least)
    assert (population.gathered, accountant.charged) == (0, 0)


def test_nothing_is_decoded_of_a_population_that_knows_only_then_that_they_are_too_few() -> None:
    """Its summaries are ``None``, which no channel can decode."""
    population = Few(99, later=True)
    with pytest.raises(Refused, match="there are 99 people"):
        asked_of(population, Charges(), 100)
    assert population.gathered == 1
    with pytest.raises(AttributeError):
        asked_of(Few(100, later=True), Charges(), 100)


def test_a_population_that_cannot_say_how_many_people_it_has_is_refused() -> None:
    class Silent:
        def gather(self, round: Round[Any], rng: NoiseRng) -> Any:
            return tuple(None for _ in round.parts)

    with pytest.raises(Refused, match="a Silent does not say how many people"):
        asked_of(Silent(), Charges(), 100)


def test_a_delta_goes_with_rho_and_adds_up() -> None:
    rho = Budget("zcdp", 0.1, delta=1e-6)
    session = Session(Problem(2, BOX, N, rho), SEED, forecasting=True)
    session.ask(count(CELLS, oracle=HIDDEN, budget=rho))
    spent = Spent.on(session.released)
    assert spent.delta == 1e-6
    assert spent.rho == 0.1
    assert spent.epsilon(2e-6) == Spent(rho=0.1, all_rho=0.1).epsilon(2e-6 - 1e-6)


@pytest.mark.parametrize(
    ("facts", "said"),
    [({}, "how many people"), ({"min_honest_users": 2, "pooled": None}, "split the budget, not the users")],
)
def test_a_channel_says_how_many_people_it_needs_and_asks_all_where_each_owes_noise(facts: Any, said: str) -> None:
    @attrs.frozen
    class Odd:
        trust = Shuffled
        measure = "pure"
        uses_delta = asks_all_users = biased = False

        def open(self, *_: Any) -> Any:
            return SimpleNamespace(events=(), **facts)

        def variance(self, *_: Any) -> float:
            return 1.0

    share, _ = BUDGET.split_users(SEED, 1.0, 1.0)
    with pytest.raises(Refused, match=said):
        Session(Problem(2, BOX, N, BUDGET), SEED).ask(count(CELLS, oracle=Odd(), budget=share))


def test_roles_cost_the_largest_and_questions_to_everybody_add_up() -> None:
    disjoint = Spent.on(by_roles(HIDDEN, ToyHidden(report=HadamardResponse(), louder=3.0)).events)
    assert (disjoint.pure, disjoint.delta, disjoint.epsilon_without_shuffler) == (1.0, 1e-6, 3.0)
    both = Spent.on(opened(*(count(CELLS, oracle=HIDDEN, budget=BUDGET.over(2)),) * 2).events)
    assert (both.pure, both.delta, both.epsilon_without_shuffler) == (1.0, 1e-6, 2.0)
    total = Total(1.0, 1e-6)
    Accountant(total, total.measured({"pure"}, uses_delta=True)).forecast([by_roles(HIDDEN, HIDDEN).events])


def test_two_questions_to_one_share_cannot_be_linked_and_their_costs_add_up() -> None:
    """Each goes by a number of its own, which decides the role anew; numbers that two messages share would make them
    one report."""
    first, second = BUDGET.over(2).split_users(SEED, 1.0, 1.0)
    round = opened(*(count(CELLS, oracle=HIDDEN, budget=spend) for spend in (first, first, second, second)))
    assert roles(round) == ((0, 2), (1, 3))
    users = [
        set(report.columns()["users"].tolist()) for report in encode_lattice(round, rows(), USERS, NoiseRng.secret())
    ]
    assert all(not a & b for i, a in enumerate(users) for b in users[:i])
    assert len(users[0]) + len(users[2]) == len(users[1]) + len(users[3]) == N
    spent = Spent.on(round.events)
    assert (spent.pure, spent.delta, spent.epsilon_without_shuffler) == (1.0, 1e-6, 2.0)


def test_roles_that_are_drawn_anew_in_each_round_add_up() -> None:
    """Half of the people in each of two rounds: some answer both, whatever the shares are."""
    first, second = BUDGET.split_users(SEED, 1.0, 1.0)
    session: Session[Any] = Session(Problem(2, BOX, N, BUDGET), SEED, forecasting=True)
    session.ask(count(CELLS, oracle=HIDDEN, budget=first))
    session.ask(count(CELLS, oracle=HIDDEN, budget=second))
    spent = Spent.on(session.released)
    assert (spent.pure, spent.delta, spent.epsilon_without_shuffler) == (2.0, 2e-6, 4.0)


def test_alone_is_an_epsilon() -> None:
    with pytest.raises(Exception, match="epsilon_without_shuffler"):
        Spent.on([Event("x", BUDGET, epsilon_without_shuffler=math.nan)])


def said(round: Round[Any]) -> Any:
    alone = Spent.on(round.events).epsilon_without_shuffler
    return state(
        [round], 1.0, 1e-6, trust="Shuffled", rows=N, seeded=False, private=True, epsilon_without_shuffler=alone
    )


def test_the_statement_says_what_holds_without_an_honest_shuffler() -> None:
    hidden, mixed = said(by_roles(HIDDEN, HIDDEN)), said(opened(count(CELLS, oracle=SplitAndMix(), budget=MIXED)))
    assert "at least 2,000 people" in hidden.text()
    assert "cost her at most epsilon = 2, delta = 0" in hidden.text()
    assert "at least 3,600 people" in mixed.text()
    assert "Without that nothing holds" in mixed.text()
    assert (
        hidden.min_honest_users,
        hidden.epsilon_without_shuffler,
        mixed.min_honest_users,
        mixed.epsilon_without_shuffler,
    ) == (2000, 2.0, 3600, None)
    assert type(hidden).from_dict(hidden.as_dict()) == hidden


def test_what_does_not_fit_is_named() -> None:
    hiding = {"counts": "amplified-counts", "sums": "amplified-vectors"}
    for components, said in (
        ({"counts.report": "discrete-laplace"}, "slot 'counts.report' of 'amplified-counts' is Local; .*is Central"),
        ({"sums": "hadamard-vector"}, "is Shuffled because slot 'counts' holds 'amplified-counts'; .*is Local"),
    ):
        with pytest.raises(WrongComposition, match=said):
            compose(registry(), "Method", "fastlloyd", hiding | components, {})
