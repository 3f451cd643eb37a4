"""A method that begins with another one: the start's centres, and what is left for the rest."""

from __future__ import annotations

from typing import Any

from cloister.core.clustering import Clustering, Problem
from cloister.core.errors import InvalidInput
from cloister.core.randomness import PublicRng
from cloister.core.registry.components import option
from cloister.core.session import Method, Session


def share_option() -> Any:
    """An option that says what share of the budget the method in the slot ``start`` has."""
    return option(default=0.0, low=0.0, high=0.99, help="the start's share of the budget; 0 for one that asks nothing")


def begun(
    start: Method[Any], share: float, problem: Problem, session: Session[Any], rng: PublicRng
) -> tuple[Clustering, Problem]:
    """The start's centres, found with its share of the budget, and the problem with the rest of it.

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
