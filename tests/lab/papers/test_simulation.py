"""Simulated runs: their noise is that which the oracles state, and what they find is what runs find."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from cloister.core.questions import count
from cloister.core.randomness import PublicRng
from cloister.core.registry.making import make
from cloister.lab.papers.cells import PaperCell
from cloister.lab.papers.chang import measure
from cloister.lab.papers.simulation import SimulatedSession
from cloister.run.request import Request, prepare
from tests.alarms import Alarm


def session(rows: int, sample: int) -> tuple[Any, Any]:
    """A stand-in of a plan, and the plan."""
    request = Request(k=2, method="one-round", epsilon=1.0, bounds=(-1, 1), rows=rows)
    plan = prepare(request, ["x", "y"])
    points = np.full((sample, 2), 0.25)
    return SimulatedSession(plan.problem, points, PublicRng.from_seed(1), np.random.default_rng(5)), plan


@pytest.mark.alarm(1e-6)
@pytest.mark.parametrize("share", [1.0, 0.25])
def test_counts_are_scaled_and_have_the_variance_that_their_question_states(share: float, alarm: Alarm) -> None:
    """Those of empty buckets; a table of no reports states a tenth of it."""
    simulated, plan = session(50_000, 500)
    tree = make("TreeBuilder", "grid", side=32).open(plan.problem, PublicRng.from_seed(2))
    oracle = make("FrequencyOracle", "optimised-local-hashing")
    budget = (
        plan.problem.budget
        if share == 1.0
        else plan.problem.budget.split_users(PublicRng.from_seed(3), share, 1 - share)[0]
    )
    question = count(tree, oracle=oracle, budget=budget)
    (table,) = simulated.ask(question)
    full = int(tree.locate(plan.problem.domain.snap(np.full((1, 2), 0.25)))[0, 0])
    ids = np.array([bucket for bucket in range(1000) if bucket != full])
    stated = math.sqrt(question.variance(plan.problem.context(budget))) / share
    assert table.standard_error(ids) == pytest.approx(np.full(len(ids), stated))
    values = table.at(ids)
    assert np.array_equal(values, table.at(ids))  # a bucket keeps its noise
    alarm.near((values**2).mean() / stated**2, 1, math.sqrt(2 / len(ids)))
    assert abs(table.at(np.array([full]))[0] - 50_000) < 10 * stated


@pytest.mark.thorough
def test_a_simulated_run_costs_what_a_run_costs() -> None:
    """Means of five, within a third."""
    costs = [
        np.mean([measure(_cell(how), number) for number in range(5)])
        for how in ("mixture 100000 4 10 8 drawn", "mixture 100000 4 10 8 simulated")
    ]
    assert 2 / 3 < costs[0] / costs[1] < 3 / 2


def _cell(data: str) -> PaperCell:
    return PaperCell("figure 1", "n", "one-round", 1.0, data, "one-round", 4, 1.0, 1)
