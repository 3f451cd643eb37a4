"""What a run's (epsilon, delta) buys: a budget in the measure of the questions that are asked.

A slot that nobody asks decides nothing: beside Gaussian noise that is never drawn, pure noise would get sqrt(2 rho) of
its epsilon, a fifth. Which oracles a method asks may depend on its budget, and the budget on which oracles are asked,
so a set S of currencies (measure, and whether an oracle spends delta itself) is looked for that is closed: under the
budget of S the method asks oracles of S.

The search. S begins as what is asked under the budget of all slots together. While something outside S is asked under
the budget of S, it joins S; if the method cannot even be run under that budget, and shows nothing new, S becomes all
slots. S only grows, by at least one of at most eight currencies (four measures, with and without delta), so that the
search ends after at most nine forecasts, as a rule two. What it ends with is closed, or it is all slots, under which
every oracle opens. No row is read and no seed enters: whoever holds the plan finds the same budget. Were another
schedule asked with the run's own seed all the same, the accountant refuses it before any row is read.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from cloister.accounting.total import Total
from cloister.core.budget import Budget, Currency
from cloister.core.clustering import Problem
from cloister.core.domains import Domain
from cloister.core.randomness import ANY_KEY
from cloister.core.registry.compose import Composed
from cloister.core.session import Session

TRIAL_DELTA = 1e-6
"""Where a run has no delta, what all slots together are given to see which of them are asked. Nobody spends it."""


def problem_of(composed: Composed, total: Total, k: int, domain: Domain, rows: int) -> Problem:
    """What a composed method is asked for, with the budget that ``total`` buys. Args: k, domain, rows, as of
    ``Problem``.

    Raises:
        InvalidInput: these figures make no problem, or buy no budget in the measures that are asked.
    """
    everything = composed.currencies
    if not composed.private:
        return Problem(k, domain, rows, budget_of(total, everything | {Currency("exact")}))
    return afforded(composed.value, everything, total, k, domain, rows)


def afforded(method: Any, everything: frozenset[Currency], total: Total, k: int, domain: Domain, rows: int) -> Problem:
    """The same for a method whose slots hold oracles of these currencies.

    Raises:
        InvalidInput: as ``problem_of``.
    """
    if len(everything) < 2:
        return Problem(k, domain, rows, budget_of(total, everything))
    trial = total if total.delta else Total(total.epsilon, TRIAL_DELTA)
    found, _ = _asked(method, Problem(k, domain, rows, budget_of(trial, everything)))
    while True:
        problem = Problem(k, domain, rows, budget_of(total, found))
        asked, whole = _asked(method, problem)
        if asked <= found:
            return problem if whole else Problem(k, domain, rows, budget_of(total, everything | found))
        found |= asked


def budget_of(total: Total, currencies: Collection[Currency]) -> Budget:
    """What ``total`` buys for oracles of these currencies."""
    return total.measured({c.measure for c in currencies}, any(c.uses_delta for c in currencies))


def _asked(method: Any, problem: Problem) -> tuple[frozenset[Currency], bool]:
    """The currencies of what a method asks under this budget, and whether it came to its end."""
    session: Session[Any] = Session(problem, ANY_KEY, forecasting=True)
    try:
        method.cluster(problem, session, ANY_KEY.child("method"))
    except (
        Exception
    ):  # the budget may be in a measure that its oracles cannot spend, over which a method stumbles in any way
        return frozenset(session.currencies), False
    return frozenset(session.currencies), True
