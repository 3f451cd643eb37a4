"""From a run's (epsilon, delta) to a budget in the measure of the questions that are asked.

A slot that nobody asks must not influence the measure: beside Gaussian noise that is never drawn, pure noise would get
sqrt(2 rho) of its epsilon, a fifth. Which oracles a method asks may depend on its budget, and the budget on which
oracles are asked, so the search is for a closed set S of currencies (a currency is a measure, and whether the oracle
spends delta itself): under the budget of S the method asks oracles of S only.

The search. S begins as what is asked under the budget of all slots together. While something outside S is asked under
the budget of S, it joins S; if the method cannot even be run under that budget, and shows nothing new, S becomes all
slots. S only grows, by at least one of at most eight currencies (four measures, with and without delta), so that the
search ends after at most nine forecasts, as a rule two. The final S is closed, or it is all slots, under which every
oracle opens. No row is read and no seed enters: whoever holds the plan finds the same budget. Were another schedule
asked with the run's own seed all the same, the accountant refuses it before any row is read.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import attrs

from cloister.accounting.total import Total
from cloister.core.budget import Budget, Currency
from cloister.core.clustering import Problem
from cloister.core.domains import Domain
from cloister.core.randomness import ANY_KEY
from cloister.core.registry.compose import Composed
from cloister.core.session import Session

TRIAL_DELTA = 1e-6
"""Stands in for a delta of 0 while looking which slots are asked under all of them together. Nobody spends it."""


def problem_of(composed: Composed, total: Total, k: int, domain: Domain, rows: int) -> Problem:
    """The problem for a composed method, with the budget that ``total`` buys. Args: k, domain, rows, as of ``Problem``.

    Raises: InvalidInput: these figures make no problem, or buy no budget in the measures that are asked.
    """
    everything = composed.currencies
    if not composed.private:
        return Problem(k, domain, rows, budget_of(total, everything | {Currency("exact")}))
    return afforded(composed.value, everything, total, k, domain, rows)


def afforded(method: Any, everything: frozenset[Currency], total: Total, k: int, domain: Domain, rows: int) -> Problem:
    """``problem_of`` for a method whose slots hold oracles of these currencies; it raises the same."""
    if len(everything) < 2:
        return Problem(k, domain, rows, budget_of(total, everything))
    trial = attrs.evolve(total, delta=total.delta or TRIAL_DELTA, rows_per_user=None)
    found, _ = _asked(method, Problem(k, domain, rows, budget_of(trial, everything)))
    while True:
        problem = Problem(k, domain, rows, budget_of(total, found))
        asked, whole = _asked(method, problem)
        if asked <= found:
            return problem if whole else Problem(k, domain, rows, budget_of(total, everything | found))
        found |= asked


def budget_of(total: Total, currencies: Collection[Currency]) -> Budget:
    """The budget that ``total`` buys for oracles of these currencies."""
    return total.measured({c.measure for c in currencies}, any(c.uses_delta for c in currencies))


def _asked(method: Any, problem: Problem) -> tuple[frozenset[Currency], bool]:
    """The currencies that a method asks under this budget, and whether it ran to its end."""
    session: Session[Any] = Session(problem, ANY_KEY, forecasting=True)
    try:
        method.cluster(problem, session, ANY_KEY.child("method"))
    except Exception:  # a budget in a measure that its oracles cannot spend makes a method fail in any way
        return frozenset(session.currencies), False
    return frozenset(session.currencies), True
