"""What answering a plan costs a person, in words: for the plan's page and for every device that answers it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from cloister.accounting.composition import Spent
from cloister.collection.plan.plan import CollectionPlan
from cloister.core.questions import Round
from cloister.run.statement import state


def promise(plan: CollectionPlan, rounds: Sequence[Round[Any]]) -> list[str]:
    """The promise to a person, as lines. Args: rounds (all of them, as ``plan.rounds()`` has them)."""
    privacy = state(
        rounds, plan.total.epsilon, plan.total.delta, trust=plan.trust, rows=plan.rows, seeded=False, private=True,
        epsilon_without_shuffler=math.inf if plan.crowd is None else plan.crowd.epsilon_without_shuffler,
    )  # fmt: skip
    sent = [] if plan.crowd is None else plan.crowd.lines()
    return [*privacy.text().splitlines(), *sent, *_cost(plan, rounds).splitlines()]


def _cost(plan: CollectionPlan, rounds: Sequence[Round[Any]]) -> str:
    """What answering costs a user, in one round, all rounds and over several plans."""
    if plan.length == 1:
        return (
            "A person answers once. Two answers under one plan, or one under each of two plans, cost her the sum of "
            "their epsilons."
        )
    spent = Spent.on(event for round in rounds for event in round.events)
    own = f", of which mechanisms take {spent.delta:.4g} themselves" if spent.delta else ""
    return (
        f"All {plan.length} rounds together cost a person who answers each of them epsilon = "
        f"{spent.epsilon(plan.total.delta):.6g} at delta = {plan.total.delta:.6g}{own}, as the accountant adds them "
        f"up.\nA person answers each round once, if it costs what this plan says. Two answers in one round, or "
        f"answers under two plans, cost her the sum of their epsilons and of their deltas."
    )
