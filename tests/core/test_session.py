"""What a method sees: one round per ``ask``, charged before it is read, written down before it is seen."""

from __future__ import annotations

import pickle
from typing import Any

import attrs
import numpy as np
import pytest

from cloister.accounting import Accountant, Total
from cloister.core.budget import Budget, Share
from cloister.core.clustering import Clustering, Problem
from cloister.core.errors import BudgetExceeded, InvalidInput, Refused
from cloister.core.questions import count
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.record import Record
from cloister.core.session import Pending, Session, forecast, next_round
from cloister.plugins.methods.lloyd import Lloyd
from cloister.plugins.methods.sphere_packing import SpherePacking
from cloister.plugins.oracles.central.discrete_gaussian import DiscreteGaussian
from cloister.plugins.oracles.central.exact import Exact
from tests.core.core_fakes import BOX, LOOKS, SEED, Charges, Durable, Explorer, InMemory, LocalCounts, Strips

TOTAL = Total(1.0, 1e-6)
PROBLEM = Problem(3, BOX, 200, TOTAL.measured(["gaussian"]))
ROWS = np.random.default_rng(0).normal(0, 0.5, (200, 2))


def seeded(i: int = 1) -> NoiseRng:
    return NoiseRng.for_tests(i)


def lloyd(**options: Any) -> Lloyd[Any]:
    return Lloyd(start=SpherePacking(), counts=DiscreteGaussian(), sums=DiscreteGaussian(), **options)


@pytest.mark.parametrize("method", [Explorer(), lloyd(), lloyd(rounds=5, radius="constant"), lloyd(updates="absolute")])
def test_the_forecast_is_the_schedule_of_the_run(method: Any) -> None:
    population = InMemory(ROWS)
    planned = forecast(method, PROBLEM, SEED)
    accountant = Accountant(TOTAL, PROBLEM.budget)
    spent = accountant.forecast([round.events for round in planned])
    session: Session[Any] = Session(PROBLEM, SEED, population, accountant=accountant, noise=seeded())
    method.cluster(PROBLEM, session, SEED.child("method"))
    assert [round.events for round in session.rounds] == [round.events for round in planned]
    assert [round.index for round in planned] == list(range(len(planned)))
    assert session.released == tuple(event for round in planned for event in round.events)
    assert accountant.spent == spent
    assert planned[0].digest() == session.rounds[0].digest() == next_round(method, PROBLEM, SEED).digest()


def test_a_round_is_charged_opened_read_closed_and_every_look_is_written_before_it_is_seen() -> None:
    log: list[str] = []
    method = Explorer(seen=lambda _: log.append("seen"))
    session: Session[Any] = Session(
        PROBLEM, SEED, InMemory(ROWS, log), accountant=Charges(log), journal=Durable(log=log), noise=seeded()
    )
    method.cluster(PROBLEM, session, SEED.child("method"))
    looks = ["look", "seen"] * LOOKS
    assert log == [
        "charge 0",
        "open 0",
        "gather 0",
        "close 0",
        *looks,
        "charge 1",
        "open 1",
        "gather 1",
        "close 1",
        *looks,
    ]


def test_the_answers_are_the_sums_of_the_rows_with_the_noise_of_their_standard_error() -> None:
    problem = attrs.evolve(PROBLEM, budget=Budget("gaussian", 1e5))
    session: Session[Any] = Session(problem, SEED, InMemory(ROWS), noise=seeded())
    counts, sums = session.ask(*Explorer().questions(problem, 0))
    points = BOX.snap(ROWS)
    coarse, fine = Strips(BOX.max_norm).locate(points).T
    ids = np.arange(4)
    assert np.allclose(counts.at(ids, 0), np.bincount(coarse, minlength=4), atol=0.1)
    assert np.allclose(counts.at(np.arange(8), 1), np.bincount(fine, minlength=8), atol=0.1)
    expected = np.array([points[coarse == i].sum(axis=0) for i in ids]) * BOX.unit
    assert np.allclose(sums.at(ids, 0), expected, atol=0.1)
    assert (counts.standard_error(ids) > 0).all()
    assert counts.standard_error(ids)[0] == pytest.approx(2**0.5 / (1e5 / 2 / 4) ** 0.5)


@attrs.frozen
class Spendthrift:
    """A method whose second round costs what the first one's answers say."""

    def cluster(self, problem: Problem, session: Session[Any], rng: PublicRng) -> Clustering:
        share = 0.5
        for _ in range(2):
            cells = Strips(problem.domain.max_norm)
            spend = attrs.evolve(problem.budget, amount=problem.budget.amount * share)
            (counts,) = session.ask(count(cells, oracle=DiscreteGaussian(), budget=spend))
            share = 0.5 if not counts.at(np.arange(4), 0).any() else 0.25
        return Clustering(np.zeros((1, 2)))


def test_a_round_that_differs_from_its_forecast_is_refused_before_a_row_is_read() -> None:
    population, accountant, journal = InMemory(ROWS), Accountant(TOTAL, PROBLEM.budget), Durable()
    accountant.forecast([round.events for round in forecast(Spendthrift(), PROBLEM, SEED)])
    session: Session[Any] = Session(PROBLEM, SEED, population, accountant=accountant, journal=journal, noise=seeded())
    with pytest.raises(Refused, match="round 1 asks for other events than its forecast"):
        Spendthrift().cluster(PROBLEM, session, SEED)
    assert population.log == ["gather 0"]
    assert len(journal.kept.digests) == 1


@pytest.mark.parametrize("error", [BudgetExceeded("2", "1"), Refused("no")])
def test_what_the_accountant_refuses_reads_no_row_and_opens_no_round(error: Exception) -> None:
    population, journal = InMemory(ROWS), Durable()
    session: Session[Any] = Session(
        PROBLEM, SEED, population, accountant=Charges(error=error), journal=journal, noise=seeded()
    )
    with pytest.raises(type(error)):
        Explorer().cluster(PROBLEM, session, SEED)
    assert population.log == journal.log == []
    assert session.record == Record()


def test_a_forecast_answers_zero_everywhere_with_an_error_of_one() -> None:
    seen: list[np.ndarray] = []
    forecast(Explorer(seen=lambda values: seen.append(values.copy()), rounds=1), PROBLEM, SEED)
    assert [values.shape for values in seen] == [(3,), (2, 2), (3,), (2,), (0,), (8,), (4, 2), (3,)]
    assert (seen[3] == 1).all()
    assert not any(values.any() for values in (*seen[:3], *seen[4:]))


def test_questions_of_two_trust_models_or_none_are_no_round() -> None:
    session: Session[Any] = Session(PROBLEM, SEED, InMemory(ROWS), noise=seeded())
    cells = Strips(BOX.max_norm)
    mixed = (
        count(cells, oracle=DiscreteGaussian(), budget=PROBLEM.budget),
        count(cells, oracle=LocalCounts(), budget=Budget("pure", 1.0)),
    )
    with pytest.raises(Refused, match=r"share one trust model, not \['Central', 'Local'\]"):
        session.ask(*mixed)
    with pytest.raises(Refused, match="share one trust model"):
        session.ask()


def test_under_add_or_remove_users_are_not_shared() -> None:
    population = InMemory(ROWS)
    session: Session[Any] = Session(PROBLEM, SEED, population, noise=seeded())
    share = PROBLEM.budget.split_users(SEED, 1, 1)[0]
    with pytest.raises(Refused, match="split the budget, not the users"):
        session.ask(count(Strips(BOX.max_norm), oracle=DiscreteGaussian(), budget=share))
    assert population.log == []


def test_shares_of_the_users_are_scaled_up_and_told_their_public_number() -> None:
    """Under local trust the questions of a round are asked of different users; their counts stand for all."""
    shares = Budget("pure", 1.0).split_users(SEED, 1, 3)
    session: Session[Any] = Session(PROBLEM, SEED, InMemory(ROWS), noise=seeded())
    cells = Strips(BOX.max_norm)
    one, other, everybody = session.ask(
        *(count(cells, oracle=LocalCounts(), budget=spend) for spend in (*shares, Budget("pure", 1.0)))
    )
    assert [event.mechanism for event in session.released] == ["local-50", "local-150", "local-200"]
    ids = np.arange(4)
    share = shares[0].user_share
    assert isinstance(share, Share)
    held = share.holds(np.arange(200, dtype=np.uint64))
    inside = Strips(BOX.max_norm).locate(BOX.snap(ROWS))[:, 0]
    assert one.at(ids).tolist() == pytest.approx((np.bincount(inside[held], minlength=4) * 4).tolist())
    assert other.at(ids).tolist() == pytest.approx((np.bincount(inside[~held], minlength=4) * 4 / 3).tolist())
    assert everybody.at(ids).tolist() == np.bincount(inside, minlength=4).tolist()


def test_every_question_has_a_seed_of_its_own() -> None:
    seeds = []

    @attrs.frozen
    class Spy:
        trust = Exact.trust
        measure = "exact"
        uses_delta = asks_all_users = biased = False

        def open(self, space: Any, budget: Any, context: Any) -> Any:
            seeds.append(context.seed)
            return Exact().open(space, budget, context)

        def variance(self, space: Any, budget: Any, context: Any) -> float:
            return 0.0

    session: Session[Any] = Session(PROBLEM, SEED, InMemory(ROWS), noise=seeded())
    for _ in range(2):
        session.ask(*(count(Strips(BOX.max_norm), oracle=Spy(), budget=PROBLEM.budget) for _ in range(3)))
    assert len(set(seeds)) == 6
    assert SEED not in seeds


def tables() -> tuple[Session[Any], Any, Any]:
    session: Session[Any] = Session(PROBLEM, SEED, InMemory(ROWS), noise=seeded())
    return session, *session.ask(*Explorer().questions(PROBLEM, 0))


def test_tables_neither_travel_nor_print() -> None:
    _, counts, sums = tables()
    value = f"{counts.at(np.array([0]))[0]:.4f}"
    for table in (counts, sums):
        with pytest.raises(TypeError, match="never pickled"):
            pickle.dumps(table)
        assert value not in repr(table)


@pytest.mark.parametrize(
    ("ids", "level"),
    [([4], 0), ([-1], 0), ([0, 8], 1), ([0], 2), ([0], -1), ([[0]], 0), ([2**62], 0)],
)
def test_a_look_outside_the_space_is_refused_and_not_recorded(ids: Any, level: int) -> None:
    session, counts, sums = tables()
    for table in (counts, sums):
        with pytest.raises(InvalidInput, match="level"):
            table.at(np.array(ids), level)
        with pytest.raises(InvalidInput, match="level"):
            table.standard_error(np.array(ids), level)
    assert session.record.lookups == []


def test_recorded_ids_do_not_follow_what_the_method_does_with_its_array() -> None:
    session, counts, _ = tables()
    ids = np.array([0, 1])
    counts.at(ids, 0)
    ids[:] = 3
    assert session.record.lookups[0].ids.tolist() == [0, 1]


def test_a_method_that_works_on_its_answers_in_place_does_not_change_the_record() -> None:
    journal = Durable()
    session: Session[Any] = Session(PROBLEM, SEED, InMemory(ROWS), journal=journal, noise=seeded())
    spoilt = Explorer(spoil=True).cluster(PROBLEM, session, SEED)
    for kept, held in zip(journal.kept.lookups, session.record.lookups, strict=True):
        assert np.array_equal(kept.values, held.values)
    again: Session[Any] = Session(PROBLEM, SEED, record=session.record)
    assert np.array_equal(Explorer(spoil=True).cluster(PROBLEM, again, SEED).centers, spoilt.centers)
    for kept, held in zip(journal.kept.lookups, again.record.lookups, strict=True):
        assert np.array_equal(kept.values, held.values)


def test_a_session_without_rows_stops_at_the_first_open_round_with_that_round() -> None:
    session: Session[Any] = Session(PROBLEM, SEED)
    with pytest.raises(Pending) as pending:
        Explorer().cluster(PROBLEM, session, SEED)
    assert pending.value.round.index == 0
    assert pending.value.round.digest() == next_round(Explorer(), PROBLEM, SEED).digest()
    assert not isinstance(pending.value, Exception)
    assert session.record == Record()


def test_an_opened_round_travels_and_keeps_its_digest() -> None:
    for method in (Explorer(), lloyd()):
        plan = next_round(method, PROBLEM, SEED)
        there = pickle.loads(pickle.dumps(plan))
        assert there.digest() == plan.digest()
        assert there.events == plan.events
        assert there.parts[1].vectors.cells is there.parts[0].cells
        rows = np.random.default_rng(1).uniform(-1, 1, (50, 2))
        one, other = (InMemory(rows).gather(round, seeded()) for round in (plan, there))
        assert all(np.array_equal(a.vector, b.vector) for a, b in zip(one, other, strict=True))


def test_a_digest_covers_everything_public() -> None:
    def of(problem: Problem = PROBLEM, seed: PublicRng = SEED, **options: Any) -> str:
        return next_round(lloyd(**options), problem, seed).digest()

    base = of()
    assert of() == base
    changed = [
        of(attrs.evolve(PROBLEM, k=4)),
        of(attrs.evolve(PROBLEM, domain=attrs.evolve(BOX, upper=(1.0, 1.5)))),
        of(attrs.evolve(PROBLEM, budget=attrs.evolve(PROBLEM.budget, amount=PROBLEM.budget.amount * 1.001))),
        of(seed=PublicRng(b"t" * 32)),
        of(updates="absolute"),
        of(rounds=4),
    ]
    assert len({base, *changed}) == 7


def test_the_questions_of_a_run_do_not_share_their_noise() -> None:
    """Two mechanisms with one seed: their noises cancel."""
    session: Session[Any] = Session(PROBLEM, SEED, InMemory(ROWS[:0]), noise=seeded())
    cells, spend = Strips(BOX.max_norm), PROBLEM.budget
    noises = []
    for _ in range(2):
        for table in session.ask(*(count(cells, oracle=DiscreteGaussian(), budget=spend) for _ in range(2))):
            noises.append(tuple(table.at(np.arange(8), 1)))
    assert len(set(noises)) == 4


def test_released_values_carry_what_was_spent_so_far() -> None:
    session, _, _ = tables()
    assert session.release("points").events == session.released
    assert len(session.released) == 2
    assert session.release("points").value == "points"
