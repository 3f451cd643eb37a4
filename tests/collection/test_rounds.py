"""Rounds over files: what a server publishes, what people answer, and that both together are what ``fit`` simulates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.accounting.composition import Spent
from cloister.collection.client.encoder import PlanEncoder, State, encode, transcript_of
from cloister.collection.plan.costs import sent_bytes
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.plan.publish import words
from cloister.collection.server.aggregator import advance, result_of
from cloister.core.errors import BudgetExceeded, CloisterError, InvalidInput
from cloister.core.randomness import NoiseRng
from cloister.run.fit import fit, source
from tests.asking import asking
from tests.collection.rounds_fakes import (
    ASKED,
    EPSILON,
    ROUNDS,
    ROWS,
    USERS,
    N,
    advanced,
    answered,
    planned,
    prepared,
    up_to,
)


@pytest.fixture(scope="module")
def plan() -> CollectionPlan:
    return planned()


def test_files_and_fit_find_the_same_centres_with_the_same_noise(tmp_path: Path, plan: CollectionPlan) -> None:
    noise = NoiseRng.for_tests(5)
    # as rows in memory are read: in chunks, of which this is the only one
    up_to(tmp_path, plan, ROUNDS, noise.child("chunk", 0))
    found = advanced(tmp_path).result
    simulated = fit(asking(**ASKED), source(ROWS), noise=noise)
    assert found is not None
    assert np.array_equal(found.centers, simulated.centers)
    assert found.privacy.spends == simulated.privacy.spends
    assert not found.privacy.simulated


def test_the_schedule_adds_up_to_the_budget(plan: CollectionPlan) -> None:
    rounds = plan.rounds()
    assert len(rounds) == plan.length == ROUNDS
    assert Spent.on(event for round in rounds for event in round.events).epsilon(0.0) == pytest.approx(
        EPSILON, rel=1e-9
    )
    planned = [event["amount"] for step in plan.schedule for event in step.events]
    assert sum(planned) == pytest.approx(EPSILON, rel=1e-9)
    text = words(plan, rounds)
    assert f"All {ROUNDS} rounds together cost a person who answers each of them epsilon = 9 at delta = 0" in text
    assert f"Over {ROUNDS} rounds a person sends {sum(map(sent_bytes, rounds)):.4g} bytes on average" in text
    assert all(f"round {number}: 100.0% of the users are asked" in text for number in range(1, ROUNDS + 1))


def test_asked_twice_she_says_the_same_and_pays_the_plan_once(tmp_path: Path, plan: CollectionPlan) -> None:
    """Over all rounds; whoever joins late pays the whole plan too. An older copy of the folder gets older answers, and
    the result is what is published, whatever the server breakdown_share, without any report."""
    place, first = prepared(tmp_path, plan) / "plan", list[np.ndarray]()
    state, late = State(tmp_path / "mine.state", lifetime=EPSILON), State(tmp_path / "late.state")
    for number in range(ROUNDS):
        first.append(encode(place, ROWS, USERS, state=state).answers)
        assert np.array_equal(first[-1], encode(place, -ROWS, USERS, state=state).answers)
        if number:
            encode(place, ROWS[:1], USERS[:1], state=late)
            assert (late.spent(0), late.spent_delta(0)) == (EPSILON, 0.0)
        answered(tmp_path)
        done = advanced(tmp_path, robust=0.01)
        assert state.spent(3) == state.spent(800) == EPSILON
    assert not np.array_equal(first[0], first[1])
    assert np.array_equal(encode(plan, ROWS, USERS, state=state).answers, first[0])
    with pytest.raises(BudgetExceeded, match="nothing was read or spent"):
        encode(planned(seed=2, epsilon=1.0), ROWS[:5], USERS[:5], state=state)
    assert state.spent(3) == EPSILON
    assert done.result is not None
    assert advance(place).result is not None
    assert result_of(transcript_of(place)).as_dict() == done.result.as_dict()
    assert [one["withstands"] for one in done.result.details["reports"]] == [0.01] * ROUNDS


def test_who_is_not_asked_sends_and_pays_nothing(
    tmp_path: Path, plan: CollectionPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared(tmp_path, plan)
    monkeypatch.setattr(PlanEncoder, "is_asked", lambda encoder, users: users % 3 == 1)
    path, count = answered(tmp_path)
    assert (path is not None, count) == (True, N // 3)
    state = State(tmp_path / "mine.state")
    assert encode(plan, ROWS, USERS, state=state).users.tolist() == list(range(1, N, 3))
    assert [state.spent(user) for user in (0, 1, 2)] == [0.0, EPSILON, 0.0]


def test_reports_of_a_closed_round_or_too_few_close_nothing(tmp_path: Path, plan: CollectionPlan) -> None:
    up_to(tmp_path, plan, 1)
    before = sorted((tmp_path / "plan").iterdir())
    with pytest.raises(InvalidInput, match="no report can be used; skipped 1 files of closed rounds"):
        advanced(tmp_path)
    answered(tmp_path)
    for minimum in (1000, N + 1):
        with pytest.raises(InvalidInput, match=f"900 reports count, fewer than {minimum:,}"):
            advanced(tmp_path, min_reports=minimum)
    assert sorted((tmp_path / "plan").iterdir()) == before
    assert advanced(tmp_path, min_reports=N).transcript.index == 2


def test_a_plan_has_no_more_rounds_than_a_report_can_name(
    tmp_path: Path, plan: CollectionPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody pays for a round that nobody could answer: neither a publisher's plan nor a read one has it."""
    prepared(tmp_path, plan)
    monkeypatch.setattr("cloister.collection.plan.plan.MAX_ROUNDS", ROUNDS - 1)
    with pytest.raises(InvalidInput, match=f"at most {ROUNDS - 1} rounds, and this one would have {ROUNDS}"):
        planned()
    with pytest.raises(CloisterError, match=f"at most {ROUNDS - 1} rounds"):
        CollectionPlan.read(tmp_path / "plan")


DELTA = 1e-6
BY_BUDGET = {"divide_steps": "budget", "divide_radii": "budget", "divide_repetitions": "budget"}


@pytest.mark.parametrize("options", [{}, BY_BUDGET], ids=["users", "budget"])
def test_rounds_of_which_a_public_coin_chooses_one_cost_the_budget_together_delta_included(
    options: dict[str, Any],
) -> None:
    """Stemmer's weighted centres: five rounds, of which a person answers one, or all."""
    given = {"method": "weighted-centers", "epsilon": 8.0, "delta": DELTA, "components": {"sums": "ldp-average"}}
    plan = planned(options=options, **given)
    rounds = plan.rounds()
    spent = Spent.on(event for round in rounds for event in round.events)
    assert plan.length == len(rounds) == 5
    assert spent.epsilon(DELTA) == pytest.approx(8.0, rel=1e-9)
    assert spent.delta == pytest.approx(DELTA, rel=1e-9)
    said = "All 5 rounds together cost a person who answers each of them epsilon = 8 at delta = 1e-06"
    assert f"{said}, of which mechanisms take {DELTA:.4g} themselves" in words(plan, rounds)
    assert sum(step.asked for step in plan.schedule) == pytest.approx(5.0 if options else 1.0)
    assert plan.size.total == pytest.approx(sum(step.size.total for step in plan.schedule))
