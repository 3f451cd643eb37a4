"""Cost of answering a plan, and warnings, in words: for the plan's page and for every device that answers it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from cloister.accounting import PrivacyTarget, Spent
from cloister.collection.plan.plan import CollectionPlan
from cloister.core.questions import Round

WEAK_EPSILON = 8.0
"""Epsilon above which users are warned that a report hides little."""


def promise(plan: CollectionPlan, rounds: Sequence[Round[Any]]) -> list[str]:
    """Return the promise to a person, as lines; ``rounds`` are ``plan.rounds()``."""
    privacy = plan.statement(rounds)
    messages = [] if plan.crowd is None else plan.crowd.lines()
    return [*privacy.text().splitlines(), *messages, *_cost(plan, rounds).splitlines()]


def _cost(plan: CollectionPlan, rounds: Sequence[Round[Any]]) -> str:
    """Describe the cost of answering, in one round, all rounds and over several plans."""
    summed = "the sum of their epsilons" + (" and of their deltas" if plan.total.delta else "")
    if plan.length == 1:
        return f"A person answers once. Two answers under one plan, or one under each of two plans, cost her {summed}."
    spent = Spent.on(event for round in rounds for event in round.events)
    delta = f", of which mechanisms take {spent.delta:.4g} themselves" if spent.delta else ""
    return (
        f"All {plan.length} rounds together cost a person who answers each of them epsilon = "
        f"{spent.epsilon(plan.total.delta):.6g} at delta = {plan.total.delta:.6g}{delta}, as the accountant adds them "
        f"up.\nA person answers each round once, if it costs what this plan says. Two answers in one round, or "
        f"answers under two plans, cost her {summed}."
    )


def weakness_warnings(total: PrivacyTarget, rows: int) -> tuple[str, ...]:
    """Return warnings that a report hides little, whatever its plan says of itself; ``rows`` is the number of users."""
    epsilon, delta = total.epsilon, total.delta
    times = f"e^{epsilon:g} = {math.exp(epsilon):,.0f}" if epsilon < 20 else f"e^{epsilon:g}"
    texts = list[str]()
    if epsilon > WEAK_EPSILON:
        texts.append(
            f"a report of epsilon = {epsilon:g} hides little: it may be {times} times as likely under one row as "
            f"under another"
        )
    if delta * rows >= 1:
        texts.append(
            f"a report of delta = {delta:g} may tell its row as it is with that probability: some {delta * rows:,.0f} "
            f"of {rows:,} people. Less than one over their number is customary"
        )
    return tuple(texts)
