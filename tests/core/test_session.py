"""What a method sees: one round per ``ask``, charged before it is read, written down before it is seen."""

from __future__ import annotations

import pickle
from typing import Any

import attrs
import numpy as np
import pytest

from cloister.accounting import PrivacyTarget
from cloister.core.budget import Budget, Share
from cloister.core.clustering import Problem
from cloister.core.errors import BudgetExceeded, InvalidInput, Refused
from cloister.core.questions import count
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.record import Record
from cloister.core.session import Session, forecast, next_round
from cloister.plugins.methods.lloyd import Lloyd
from cloister.plugins.methods.sphere_packing import SpherePacking
from cloister.plugins.oracles.central.discrete_gaussian import DiscreteGaussian
from tests.core.core_fakes import BOX, LOOKS, SEED, Charges, Durable, Explorer, InMemory, LocalCounts, Strips, same

TOTAL = PrivacyTarget(1.0, 1e-6)
PROBLEM = Problem(3, BOX, 200, TOTAL.measured(["gaussian"]))
ROWS = np.random.default_rng(0).normal(0, 0.5, (200, 2))


def session_of(population: Any, **others: Any) -> Session[Any]:
    return Session(PROBLEM, SEED, population, noise=NoiseRng.for_tests(1), **others)


def lloyd(**options: Any) -> Lloyd[Any]:
    return Lloyd(start=SpherePacking(), counts=DiscreteGaussian(), sums=DiscreteGaussian(), **options)


def test_a_round_is_charged_opened_read_closed_and_every_look_is_written_before_it_is_seen() -> None:
    log: list[str] = []
    method = Explorer(seen=lambda _: log.append("seen"))
    session = session_of(InMemory(ROWS, log), accountant=Charges(log), journal=Durable(log=log))
    method.cluster(PROBLEM, session, SEED.child("method"))
    looks = ["look", "seen"] * LOOKS
    assert log == [entry for i in (0, 1) for entry in (f"charge {i}", f"open {i}", f"gather {i}", f"close {i}", *looks)]


def test_what_a_method_writes_into_the_record_is_no_round_that_was_paid_before() -> None:
    log: list[str] = []
    session = session_of(InMemory(ROWS, log), accountant=Charges(log))
    session.record.digests.append(next_round(Explorer(), PROBLEM, SEED).digest())
    session.ask(*Explorer().questions(PROBLEM, 0))
    assert log == ["charge 0", "gather 0"]


@pytest.mark.parametrize("error", [BudgetExceeded("2", "1"), Refused("no")])
def test_what_the_accountant_refuses_reads_no_row_and_opens_no_round(error: Exception) -> None:
    population, journal = InMemory(ROWS), Durable()
    session = session_of(population, accountant=Charges(error=error), journal=journal)
    with pytest.raises(type(error)):
        Explorer().cluster(PROBLEM, session, SEED)
    assert population.log == journal.log == []
    assert session.record == Record()


def test_a_round_is_of_one_trust_model_and_shares_users_under_that_of_users_alone() -> None:
    population, cells = InMemory(ROWS), Strips(BOX.max_norm)
    session = session_of(population)
    central = count(cells, oracle=DiscreteGaussian(), budget=PROBLEM.budget)
    local = count(cells, oracle=LocalCounts(), budget=Budget("pure", 1.0))
    shared = attrs.evolve(central, budget=PROBLEM.budget.split_users(SEED, 1, 1)[0])
    for questions, told in (
        ((central, local), r"share one trust model, not \['Central', 'Local'\]"),
        ((), "share one trust model"),
        ((shared,), "split the budget, not the users"),
        ((central, shared), "split the budget, not the users"),
        ((shared, central), "split the budget, not the users"),
    ):
        with pytest.raises(Refused, match=told):
            session.ask(*questions)
    assert population.log == []


def test_a_method_that_asks_a_thousand_rounds_is_refused() -> None:
    class Patient(Explorer):
        def cluster(self, problem: Problem, session: Session[Any], rng: PublicRng) -> Any:
            for _ in range(1000):
                session.ask(count(Strips(BOX.max_norm), oracle=LocalCounts(), budget=Budget("pure", 1e-9)))

    with pytest.raises(Refused, match="more than 999 rounds"):
        forecast(Patient(), Problem(3, BOX, 200, Budget("pure", 1.0)), SEED)


def test_shares_of_the_users_are_scaled_up_and_told_their_public_number() -> None:
    """Under local trust the questions of a round are asked of different users; their counts stand for all."""
    everybody = Budget("pure", 1.0)
    session, cells, shares = session_of(InMemory(ROWS)), Strips(BOX.max_norm), everybody.split_users(SEED, 1, 3)
    tables = session.ask(*(count(cells, oracle=LocalCounts(), budget=spend) for spend in (*shares, everybody)))
    assert [event.mechanism for event in session.released] == ["local-50", "local-150", "local-200"]
    assert isinstance(shares[0].user_share, Share)
    held, inside = shares[0].user_share.holds(np.arange(200, dtype=np.uint64)), cells.locate(BOX.snap(ROWS))[:, 0]
    for table, asked, scale in zip(tables, (held, ~held, held | ~held), (4, 4 / 3, 1), strict=True):
        assert table.at(np.arange(4)) == pytest.approx(np.bincount(inside[asked], minlength=4) * scale)


def test_every_question_has_a_seed_and_noise_of_its_own() -> None:
    """Of two mechanisms with one seed, noises cancel."""
    seeds = []

    @attrs.frozen
    class Spy(DiscreteGaussian):
        def open(self, space: Any, budget: Any, context: Any) -> Any:  # type: ignore[override]
            seeds.append(context.seed)
            return DiscreteGaussian().open(space, budget, context)

    session, cells = session_of(InMemory(ROWS[:0])), Strips(BOX.max_norm)
    tables = [
        table
        for _ in range(2)
        for table in session.ask(*(count(cells, oracle=Spy(), budget=PROBLEM.budget) for _ in range(3)))
    ]
    assert len({*seeds, SEED}) == 7
    assert len({tuple(table.at(np.arange(8), 1)) for table in tables}) == 6


def test_a_method_that_works_in_place_on_its_answers_and_ids_does_not_change_the_record() -> None:
    journals = Durable(), Durable()
    for journal in journals:
        session = session_of(InMemory(ROWS), journal=journal)
        Explorer(spoil=journal is journals[0]).cluster(PROBLEM, session, SEED)
        assert same(session.record.lookups, journals[0].kept.lookups)
    assert same(journals[0].kept.lookups, journals[1].kept.lookups)
    ids = np.arange(2)
    session = session_of(InMemory(ROWS))
    session.ask(*Explorer().questions(PROBLEM, 0))[0].at(ids, 0)
    ids[:] = 3
    assert session.record.lookups[0].ids.tolist() == [0, 1]


def test_a_digest_covers_everything_public() -> None:
    def of(problem: Problem = PROBLEM, seed: PublicRng = SEED, **options: Any) -> str:
        return next_round(lloyd(**options), problem, seed).digest()

    larger = attrs.evolve(PROBLEM.budget, amount=PROBLEM.budget.amount * 1.001)
    changes = {"k": 4}, {"domain": attrs.evolve(BOX, upper=(1.0, 1.5))}, {"budget": larger}
    found = [of(), *(of(attrs.evolve(PROBLEM, **change)) for change in changes)]
    found += [of(seed=PublicRng(b"t" * 32)), of(updates="absolute"), of(rounds=4)]
    assert len(set(found)) == 7
    assert of() == found[0]


def test_tables_neither_travel_nor_print() -> None:
    counts, sums = session_of(InMemory(ROWS)).ask(*Explorer().questions(PROBLEM, 0))
    value = f"{counts.at(np.array([0]))[0]:.4f}"
    for table in (counts, sums):
        with pytest.raises(TypeError, match="never pickled"):
            pickle.dumps(table)
        assert value not in repr(table)


def test_a_look_outside_the_space_is_refused_and_not_recorded() -> None:
    session = session_of(InMemory(ROWS))
    tables = session.ask(*Explorer().questions(PROBLEM, 0))
    for ids, level in (([4], 0), ([-1], 0), ([0, 8], 1), ([0], 2), ([0], -1), ([[0]], 0), ([2**62], 0)):
        for look in (look for table in tables for look in (table.at, table.standard_error)):
            with pytest.raises(InvalidInput, match="level"):
                look(np.array(ids), level)
    assert session.record.lookups == []
    assert session.release("points").events == session.released
