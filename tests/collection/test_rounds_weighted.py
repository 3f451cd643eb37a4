"""Stemmer's weighted centres over files: five rounds in which a public coin says who is asked, with and without
delta."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

from cloister.accounting.composition import Spent
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.plan.publish import publish, words
from cloister.core.randomness import NoiseRng
from cloister.run.fit import fit, source
from cloister.run.request import Request
from tests.alarms import Alarm
from tests.collection.rounds_fakes import advanced, answered, prepared

N, EPSILON, DELTA = 3000, 8.0, 1e-6
ROWS = np.array([[0.6, 0.6], [-0.6, -0.6], [0.6, -0.6]])[np.arange(N) % 3]
BY_BUDGET = {"divide_steps": "budget", "divide_radii": "budget", "divide_repetitions": "budget"}
REQUEST = Request(k=3, method="weighted-centers", epsilon=EPSILON, delta=DELTA, bounds="-1:1", rows=N, seed=1)


def planned(vectors: str, options: dict[str, Any]) -> CollectionPlan:
    return publish(attrs.evolve(REQUEST, components={"sums": vectors}, options=options), dimension=2)


@pytest.mark.parametrize("vectors", ["hadamard-vector", "ldp-average"])
@pytest.mark.parametrize("options", [{}, BY_BUDGET, {"assignment": "nearest"}], ids=["users", "budget", "nearest"])
def test_all_rounds_together_cost_the_budget_delta_included(vectors: str, options: dict[str, Any]) -> None:
    plan = planned(vectors, options)
    rounds = plan.rounds()
    spent = Spent.on(event for round in rounds for event in round.events)
    delta = DELTA if vectors == "ldp-average" else 0.0
    assert plan.length == len(rounds) == (4 if options.get("assignment") == "nearest" else 5)
    assert spent.epsilon(DELTA) == pytest.approx(EPSILON, rel=1e-9)
    assert spent.delta == pytest.approx(delta, rel=1e-9)
    own = f" at delta = 1e-06, of which mechanisms take {DELTA:.4g} themselves" if delta else " at delta = 1e-06,"
    assert f"All {plan.length} rounds together cost a person who answers each of them epsilon = 8{own}" in words(
        plan, rounds
    )
    asked = sum(step.asked for step in plan.schedule)
    assert asked == pytest.approx(plan.length if options is BY_BUDGET else 1.0)
    assert plan.size.total == pytest.approx(sum(step.size.total for step in plan.schedule))


@pytest.mark.alarm(1e-8)
@pytest.mark.thorough
@pytest.mark.parametrize("vectors", ["hadamard-vector", "ldp-average"])
def test_files_and_fit_find_the_same_centres_with_the_same_noise(tmp_path: Path, vectors: str, alarm: Alarm) -> None:
    request, noise = attrs.evolve(REQUEST, components={"sums": vectors}), NoiseRng.for_tests(3)
    plan = planned(vectors, {})
    prepared(tmp_path, plan)
    np.save(tmp_path / "mine.npy", ROWS)
    counts = list[int]()
    for _ in range(plan.length):
        counts.append(answered(tmp_path, noise.child("chunk", 0))[1])
        done = advanced(tmp_path)
    simulated = fit(request, source(ROWS, None, "refuse"), noise=noise)
    assert done.result is not None
    assert np.array_equal(done.result.centers, simulated.centers)
    assert done.result.weights is not None
    assert simulated.weights is not None
    assert np.array_equal(done.result.weights, simulated.weights)
    assert sum(counts) == N  # everybody is asked in one round
    assert [reports["accepted"] for reports in done.result.details["reports"]] == counts
    for share, step in zip(counts, plan.schedule, strict=True):  # binomial
        alarm.near(share, N * step.asked, np.sqrt(N * step.asked * (1 - step.asked)) + 0.2, of=len(counts))
