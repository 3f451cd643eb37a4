"""A method that begins with another one: the start's centres, and what is left for the rest."""

from __future__ import annotations

import math
from typing import Any

from cloister.core.capabilities import PredictsError
from cloister.core.clustering import Clustering, Problem
from cloister.core.errors import InvalidInput
from cloister.core.randomness import PublicRng
from cloister.core.registry.components import option
from cloister.core.session import Method, Session

MISSED = 0.03
"""Share of the cells in which rounds from a packed start end in a bad optimum, on s1, birch2_25k, g10k_d32_k16, iris,
shuttle and adult at epsilon = 1: between 0.006 and 0.07."""


def share_option() -> Any:
    """An option that says what share of the budget the method in the slot ``start`` has."""
    return option(default=0.0, low=0.0, high=0.99, help="the start's share of the budget; 0 for one that asks nothing")


def begun(
    start: Method[Any], share: float, problem: Problem, session: Session[Any], rng: PublicRng
) -> tuple[Clustering, Problem]:
    """What the start finds with its share of the budget, and the problem with the rest of it.

    Raises:
        InvalidInput: the start asks questions and has no share, so that the budget would be spent twice; or it asks
            none, and its share would be lost. A forecast says so, before any row is read.
    """
    before, rest = problem.split(share)
    asked = len(session.rounds)
    found = start.cluster(before, session, rng.child("start"))
    asks = len(session.rounds) > asked
    if asks and not share:
        raise InvalidInput(
            "the start asks about the rows, and has no share of the budget: give it one (--set start_share=0.5)"
        )
    if share and not asks:
        raise InvalidInput(
            f"the start asks nothing, and its share of the budget, {share:g}, would be lost: leave it 0 "
            "(--set start_share=0)"
        )
    return found, rest


def expected_loss(start: Method[Any], problem: Problem) -> float:
    """Mean squared distance, over the domain's squared radius, that rows keep after the rounds for their start's fault.

    k equal cells have squared radii c = k^(-2 / d). A start that predicts an error v hands a share v / (v + c) of it
    on: rounds repair what lies within a cell. Any other one misses a fixed share of the cells, and nothing with k = 1.
    """
    cell = math.pow(problem.k, -2 / problem.domain.dimension)
    if isinstance(start, PredictsError):
        v = start.expected_error(problem)
        return v * v / (v + cell)
    return MISSED * cell * (1 - 1 / problem.k)
