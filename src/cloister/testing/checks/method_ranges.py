"""Checks of methods that choose the number of centres (``ChoosesK``): what they choose changes no question's cost."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from cloister.core.capabilities import chooses_k
from cloister.core.clustering import Clustering, Problem
from cloister.core.session import forecast
from cloister.testing.check import require
from cloister.testing.checks.methods import problems, told
from cloister.testing.scripts import SCRIPTS


def the_number_it_chooses_changes_no_question(method: Any) -> None:
    """Given a range of numbers of centres, rounds, events, buckets and bounds are those of the forecast, whatever is
    answered and so chosen; and it returns as many centres as it says."""
    if not chooses_k(method):
        return
    for problem, seed in problems(method):
        if problem.k < 3:
            continue
        ranged = attrs.evolve(problem, fewest=2)
        forecasted = _shapes(forecast(method, ranged, seed))
        for script in SCRIPTS:
            found, session = told(method, ranged, seed, script)
            where = f"2 to {ranged.k} centres, answers: {script.name}"
            require(_shapes(session.rounds) == forecasted, f"{where}: its questions are not those of the forecast")
            _judge(found, ranged, where)


def _shapes(rounds: Any) -> list[list[Any]]:
    """What can be seen of each question without its answer."""
    return [
        [
            (part.channel.events, part.cells.space, None if part.vectors is None else part.vectors.bound)
            for part in round.parts
        ]
        for round in rounds
    ]


def _judge(found: Clustering, problem: Problem, where: str) -> None:
    curve, k = found.details.get("curve", {}), len(found.centers)
    require(problem.fewest is not None and problem.fewest <= k <= problem.k, f"{where}: {k} centres")
    require(curve.get("suggested") == k, f"{where}: {k} centres, and the curve suggests {curve.get('suggested')}")
    numbers, costs = np.asarray(curve.get("k", [])), np.asarray(curve.get("costs", []))
    require(k in numbers and numbers.shape == costs.shape, f"{where}: the curve has {len(costs)} costs of {numbers}")
    require(bool(np.isfinite(costs).all() and (costs >= 0).all()), f"{where}: a cost is negative, or not finite")
    require(found.weights is None or found.weights.shape == (k,), f"{where}: weights of {k} centres")


METHOD_RANGES = (the_number_it_chooses_changes_no_question,)
