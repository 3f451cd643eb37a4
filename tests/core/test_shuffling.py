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
from cloister.accounting.privacy_target import PrivacyTarget
from cloister.core.budget import Budget, Event
from cloister.core.clustering import Problem
from cloister.core.domains import Box
from cloister.core.encoding import encode_lattice, encode_owned
from cloister.core.errors import Refused
from cloister.core.lattice import Bound
from cloister.core.questions import Question, Round, Rows, count, vector_sum
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.session import Pending, Session
from cloister.core.shuffling import min_honest_users as people_needed, roles
from cloister.core.types import Floats, Ints
from cloister.plugins.oracles.local.counts.hadamard_response import HadamardResponse
from cloister.plugins.oracles.shuffled.split_and_mix import SplitAndMix
from cloister.run.statement import state
from tests.alarms import Alarm
from tests.core.core_fakes import Charges, Strips
from tests.core.shuffled_fakes import ToyHidden

N = 4_000
BOX = Box((-1.0,), (1.0,))
SEED = PublicRng.from_seed(70)
BUDGET = Budget("pure", 1.0, delta=1e-6)
MIXED = Budget("gaussian", 0.1, delta=1e-6)
HIDDEN = ToyHidden(report=HadamardResponse())


CELLS = Strips(BOX.max_norm)


def opened(*questions: Question[Any, Any], people: int = N) -> Round[Any]:
    session: Session[Any] = Session(Problem(2, BOX, people, BUDGET), SEED)
    with pytest.raises(Pending) as pending:
        session.ask(*questions)
    return pending.value.round


def by_roles(*oracles: Any) -> Round[Any]:
    shares = BUDGET.split_users(SEED, *(1.0,) * len(oracles))
    return opened(*(count(CELLS, oracle=o, budget=s) for o, s in zip(oracles, shares, strict=True)))


TWO = by_roles(HIDDEN, HIDDEN)
BOTH = opened(*(count(CELLS, oracle=HIDDEN, budget=BUDGET.over(2)),) * 2)
"""A question to each half of the people, and two to everybody."""


def paid(events: Any) -> tuple[float, float, float | None]:
    spent = Spent.on(events)
    return spent.pure, spent.delta, spent.epsilon_without_shuffler


def numbers(round: Round[Any], rng: NoiseRng) -> list[set[int]]:
    """Whose numbers are in the reports to each question."""
    return [set(report.columns()["users"].tolist()) for report in encode_lattice(round, ROWS, USERS, rng)]


def raw(lattice: Ints) -> Floats:
    """In the caller's units."""
    return lattice * BOX.unit + BOX.middle


ROWS = np.random.default_rng(71).integers(-BOX.max_norm, BOX.max_norm, (N, 1), endpoint=True)
USERS = np.arange(N, dtype=np.uint64)


@pytest.mark.alarm(1e-8)
def test_no_public_number_is_in_a_shuffled_report(alarm: Alarm) -> None:
    one, two = numbers(TWO, NoiseRng.secret())
    found = np.array([*one, *two], np.uint64)
    assert len(found) == N
    assert not np.isin(found, USERS).any()
    bits = ((found[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)).sum(axis=0)
    assert ((2 * bits - N) ** 2 / N).sum() < chi2.isf(alarm.each(), 64)  # uniform, bit by bit


@pytest.mark.alarm(1e-8)
def test_roles_are_drawn_afresh_and_do_not_depend_on_rows_or_public_numbers(alarm: Alarm) -> None:
    def asked(lattice: Ints, seed: int) -> list[set[int]]:
        owned = encode_owned(TWO, raw(lattice), USERS, NoiseRng.for_tests(seed))
        return [set(USERS[o.rows].tolist()) for o in owned]

    once, again = asked(ROWS, 1), asked(ROWS, 2)
    assert all(len(a | b) == N and not a & b for a, b in (once, again))
    alarm.near(len(once[0] & again[0]), N / 4, math.sqrt(N * 3 / 16))
    assert asked(-ROWS, 1) == once


def test_questions_that_share_the_users_go_by_one_number_and_others_by_their_own() -> None:
    for round, people in ((TWO, N), (BOTH, 2 * N)):
        one, two = numbers(round, NoiseRng.for_tests(72))
        assert not one & two
        assert len(one | two) == people


class Few:
    """A population that says how many people it has, perhaps only once they have answered."""

    def __init__(self, people: Any, later: bool = False) -> None:
        self.people, self._later, self.gathered = None if later else people, people, 0

    def gather(self, round: Round[Any], rng: NoiseRng) -> Any:
        self.gathered, self.people = self.gathered + 1, self._later
        return tuple(None for _ in round.parts)


def questions(*least: int) -> list[Question[Any, Any]]:
    """Questions that need so many people of N."""
    hiding = (ToyHidden(report=HadamardResponse(), honest=n / N) for n in least)
    return [count(CELLS, oracle=oracle, budget=BUDGET) for oracle in hiding]


def asked_of(population: Any, *least: int) -> list[str]:
    """What is asked of the accountant until there is an error."""
    log = list[str]()
    session: Session[Any] = Session(Problem(2, BOX, N, BUDGET), SEED, population, accountant=Charges(log))
    with pytest.raises(Refused, match="there are 99 people, and the guarantee needs at least 100"):
        session.ask(*questions(*least))
    return log


@pytest.mark.parametrize("least", [(100, 7), (7, 100)])
def test_a_round_of_fewer_people_than_any_of_its_questions_needs_is_neither_charged_nor_gathered(
    least: tuple[int, ...],
) -> None:
    assert people_needed(opened(*questions(*least))) == 100
    population = Few(99)
    assert asked_of(population, *least) == []
    assert population.gathered == 0


def test_nothing_is_decoded_of_a_population_that_knows_only_then_that_they_are_too_few() -> None:
    """Its summaries are ``None``, which no channel can decode."""
    population = Few(99, later=True)
    assert asked_of(population, 100) == ["charge 0"]
    assert population.gathered == 1
    with pytest.raises(AttributeError):
        Session[Any](Problem(2, BOX, N, BUDGET), SEED, Few(100, later=True)).ask(*questions(100))


def test_a_population_that_cannot_say_how_many_people_it_has_is_refused() -> None:
    silent: Any = SimpleNamespace(gather=lambda round, rng: tuple(None for _ in round.parts))
    with pytest.raises(Refused, match="a SimpleNamespace has no number of people"):
        Session[Any](Problem(2, BOX, N, BUDGET), SEED, silent).ask(*questions(100))


@pytest.mark.parametrize(
    ("facts", "said"),
    [({}, "how many people"), ({"min_honest_users": 2, "pooled": None}, "split the budget, not the users")],
)
def test_a_channel_says_how_many_people_it_needs_and_asks_all_where_each_owes_noise(facts: Any, said: str) -> None:
    @attrs.frozen
    class Odd(ToyHidden):
        def open(self, *_: Any) -> Any:
            return SimpleNamespace(events=(), **facts)

    share, _ = BUDGET.split_users(SEED, 1.0, 1.0)
    odd: Any = Odd(report=HadamardResponse())
    sums = vector_sum(Rows(CELLS, Bound(BOX.max_norm, 1)), oracle=odd, budget=share)
    for question in (count(CELLS, oracle=odd, budget=share), sums):
        with pytest.raises(Refused, match=said):
            opened(question)


def test_roles_cost_the_largest_and_questions_to_everybody_and_rounds_add_up() -> None:
    assert paid(by_roles(HIDDEN, ToyHidden(report=HadamardResponse(), louder=3.0)).events) == (1.0, 1e-6, 3.0)
    assert paid(BOTH.events) == (1.0, 1e-6, 2.0)
    total = PrivacyTarget(1.0, 1e-6)
    Accountant(total, total.measured({"pure"}, uses_delta=True)).forecast([TWO.events])
    # half of the people in each of two rounds: some answer both, whatever the shares are
    session: Session[Any] = Session(Problem(2, BOX, N, BUDGET), SEED, forecasting=True)
    for share in BUDGET.split_users(SEED, 1.0, 1.0):
        session.ask(count(CELLS, oracle=HIDDEN, budget=share))
    assert paid(session.released) == (2.0, 2e-6, 4.0)
    spent = Spent.on([Event("x", Budget("zcdp", 0.1), delta=1e-6)])
    assert spent.epsilon(2e-6) == Spent(rho=0.1, all_rho=0.1).epsilon(2e-6 - 1e-6)
    with pytest.raises(Exception, match="epsilon_without_shuffler"):
        Spent.on([Event("x", BUDGET, epsilon_without_shuffler=math.nan)])


def test_two_questions_to_one_share_cannot_be_linked_and_their_costs_add_up() -> None:
    """Each goes by a number of its own, which decides the role anew; numbers that two messages share would make them
    one report."""
    first, second = BUDGET.over(2).split_users(SEED, 1.0, 1.0)
    round = opened(*(count(CELLS, oracle=HIDDEN, budget=spend) for spend in (first, first, second, second)))
    assert roles(round) == ((0, 2), (1, 3))
    users = numbers(round, NoiseRng.secret())
    assert len(set[int]().union(*users)) == sum(map(len, users))
    assert len(users[0]) + len(users[2]) == len(users[1]) + len(users[3]) == N
    assert paid(round.events) == (1.0, 1e-6, 2.0)


def said(round: Round[Any]) -> Any:
    alone = Spent.on(round.events).epsilon_without_shuffler
    return state(
        [round], 1.0, 1e-6, trust="Shuffled", rows=N, seeded=False, private=True, epsilon_without_shuffler=alone
    )


def test_the_statement_says_what_holds_without_an_honest_shuffler() -> None:
    for round, least, alone, told in (
        (TWO, 2000, 2.0, ("at least 2,000 people", "cost her at most epsilon = 2, delta = 0")),
        (
            opened(count(CELLS, oracle=SplitAndMix(), budget=MIXED)),
            3600,
            None,
            ("at least 3,600 people", "Without that nothing holds"),
        ),
    ):
        statement = said(round)
        assert all(text in statement.text() for text in told)
        assert (statement.min_honest_users, statement.epsilon_without_shuffler) == (least, alone)
        assert type(statement).from_dict(statement.as_dict()) == statement
