"""The budget of a run, in the measure of the questions that its method asks.

A slot that nobody asks must not influence the measure: beside Gaussian noise that is never drawn, pure noise would get
sqrt(2 rho) of its epsilon, a fifth. Which oracles a method asks may depend on its budget, and the budget on which
oracles are asked, so the search is for a closed set S of privacy notions (a notion is a measure, and whether the oracle
spends delta itself): under the budget of S the method asks oracles of S only.

The search. S begins as what is asked under the budget of all slots together. While something outside S is asked under
the budget of S, it joins S; if the method cannot even be run under that budget, and shows nothing new, S becomes all
slots. S only grows, by at least one of at most eight notions (four measures, with and without delta), so that the
search ends after at most nine forecasts, as a rule two. The final S is closed, or it is all slots, under which every
oracle opens. No row is read and no seed enters: whoever holds the plan finds the same budget. Were another schedule
asked with the run's own seed all the same, the accountant refuses it before any row is read.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import attrs

from cloister.accounting.composition import Spent
from cloister.accounting.conversions import largest
from cloister.accounting.mixed import delta_of_mixed
from cloister.accounting.privacy_target import SLACK, PrivacyTarget
from cloister.accounting.users import of_user
from cloister.core.budget import Budget, PrivacyNotion
from cloister.core.clustering import Problem
from cloister.core.domains import Domain
from cloister.core.errors import CloisterError
from cloister.core.randomness import ANY_KEY
from cloister.core.registry.compose import Composed
from cloister.core.reproducible_math import fewer_bits
from cloister.core.session import Session, forecast

SCALE_BITS = 10
"""Bits kept of a mixed run's budget: further ones come from special functions, and budgets enter plans."""

START_FACTOR = 4.0
"""Multiple of the rho of Gaussian noise alone at which the search for a mixed run's budget begins."""

STEPS, NEAR = 6, 2.0**-6
"""Largest number of steps of that search, and the part of the budget that may be left at its end."""


def joint_problem(
    method: Any, available: frozenset[PrivacyNotion], total: PrivacyTarget, start: Problem
) -> Problem | None:
    """Return the problem of a run that asks pure and Gaussian questions, with all that ``total`` buys them together.

    rho prices such a run too high. So a budget is looked for at which the privacy loss of all its events (``mixed``) is
    just within (epsilon, delta): the events of a forecast are shares of the budget, and the factor by which they may
    grow or shrink together is known. Another budget may mean another schedule, so that one is forecast and priced in
    its own right. The accountant prices it once more before any row is read.

    Returns:
        ``start`` with that budget; None where the method does not ask both kinds, or no budget was found.
    """
    if not {notion.measure for notion in available} >= {"pure", "gaussian"} or not total.delta:
        return None
    gaussian_budget = budget_of(total, {PrivacyNotion("gaussian")})
    generous = attrs.evolve(
        budget_of(total, available), amount=fewer_bits(START_FACTOR * gaussian_budget.amount / 2, SCALE_BITS)
    )
    notions, _ = _notions_asked(method, attrs.evolve(start, budget=generous))
    if {notion.measure for notion in notions} != {"pure", "gaussian"}:
        return None
    zcdp_budget = budget_of(total, notions)
    budget = attrs.evolve(zcdp_budget, amount=max(zcdp_budget.amount, generous.amount))
    for step in range(STEPS):
        try:
            spent = _forecast_cost(method, total, attrs.evolve(start, budget=budget))
        except CloisterError:
            return None
        if budget.amount < zcdp_budget.amount or not spent.mu_squared or not 0 < spent.pure < math.inf or spent.rho:
            return None
        factor = _factor(spent, total)
        if not factor:
            return None
        close = factor < 1 + NEAR or step == STEPS - 1
        if factor >= 1 and close and spent.epsilon(total.delta) <= total.epsilon:
            return attrs.evolve(start, budget=budget)
        budget = attrs.evolve(budget, amount=fewer_bits(budget.amount * factor, SCALE_BITS))
    return None


def _factor(spent: Spent, total: PrivacyTarget) -> float:
    """Return the largest factor by which all budgets may grow."""
    remaining = (total.delta - spent.delta) * (1 - SLACK)
    mu, epsilon = math.sqrt(spent.mu_squared), total.epsilon * (1 - SLACK)

    def holds(factor: float) -> bool:
        root = math.sqrt(factor)
        return delta_of_mixed([root * pure for pure in spent.pures], root * mu, epsilon) <= remaining

    return largest(holds, 2.0**-SCALE_BITS) if remaining > 0 else 0.0


def _forecast_cost(method: Any, total: PrivacyTarget, problem: Problem) -> Spent:
    """Return what a row or user pays for a run, by its forecast."""
    rounds = forecast(method, problem, ANY_KEY)
    return Spent.on(of_user(event, total.rows_per_user) for round in rounds for event in round.events)


TRIAL_DELTA = 1e-6
"""Stand-in for a delta of 0 while looking which slots are asked under all of them together. Nobody spends it."""


def problem_of(
    composed: Composed, total: PrivacyTarget, k: int, domain: Domain, rows: int, jointly: bool = True
) -> Problem:
    """Return the problem for a composed method, with the budget that ``total`` buys.

    ``jointly`` prices pure and Gaussian questions together: possible where the whole run is known before it and nothing
    adds up in rho.

    Raises:
        InvalidInput: these figures make no problem, or buy no budget in the measures that are asked.
    """
    available = composed.currencies
    if not composed.private:
        return Problem(k, domain, rows, budget_of(total, available | {PrivacyNotion("exact")}))
    problem = affordable_problem(composed.value, available, total, k, domain, rows)
    return (joint_problem(composed.value, available, total, problem) if jointly else None) or problem


def affordable_problem(
    method: Any, available: frozenset[PrivacyNotion], total: PrivacyTarget, k: int, domain: Domain, rows: int
) -> Problem:
    """Return ``problem_of`` for a method whose slots hold oracles of these notions; raise the same."""
    if len(available) < 2:
        return Problem(k, domain, rows, budget_of(total, available))
    trial = attrs.evolve(total, delta=total.delta or TRIAL_DELTA, rows_per_user=None)
    notions, _ = _notions_asked(method, Problem(k, domain, rows, budget_of(trial, available)))
    while True:
        problem = Problem(k, domain, rows, budget_of(total, notions))
        used, completed = _notions_asked(method, problem)
        if used <= notions:
            return problem if completed else Problem(k, domain, rows, budget_of(total, available | notions))
        notions |= used


def budget_of(total: PrivacyTarget, notions: Collection[PrivacyNotion]) -> Budget:
    """Return the budget that ``total`` buys for oracles of these notions."""
    return total.measured({notion.measure for notion in notions}, any(notion.uses_delta for notion in notions))


def _notions_asked(method: Any, problem: Problem) -> tuple[frozenset[PrivacyNotion], bool]:
    """Return the notions that a method asks under this budget, and whether it ran to its end."""
    session: Session[Any] = Session(problem, ANY_KEY, forecasting=True)
    try:
        method.cluster(problem, session, ANY_KEY.child("method"))
    except Exception:  # a budget in a measure that its oracles cannot spend makes a method fail in any way
        return frozenset(session.notions), False
    return frozenset(session.notions), True
