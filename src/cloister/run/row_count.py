"""First stage of a run without a public number of rows: a noisy count, paid from the run's budget.

Schedules (rounds, cells, shares) depend on the public number of rows. Without one, round 1 counts the rows with
``SHARE`` of the budget, and the method has the rest. The answer, rounded and clipped to k and the cap, is a released
value that takes the place of ``rows``; its error affects utility only.

Guarantee (Central; add-or-remove one row): the count has sensitivity 1, and the oracle of the run's measure makes it
private. The method is then forecast anew, as a function of the count, and refused unless it keeps the budget fixed for
it beforehand: an adaptive composition of two mechanisms with fixed budgets (proof: ``accounting.accountant``). What a
method leaves unspent may depend on the count, so nothing is returned to a ledger.

Other trust models need ``rows``: under Local and Shuffled trust the number of people is public, and each of them, or
each party, acts on the plan before anything could be counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, final

import attrs
import numpy as np

from cloister.accounting.budgeting import budget_of
from cloister.accounting.privacy_target import PrivacyTarget
from cloister.core.buckets import BundleArrays, Space
from cloister.core.budget import Budget, Measure, PrivacyNotion
from cloister.core.clustering import Problem
from cloister.core.errors import CloisterError, InvalidInput, Refused
from cloister.core.lattice import CAP
from cloister.core.questions import count
from cloister.core.registry.draft import Kit
from cloister.core.roles import FrequencyOracle
from cloister.core.session import Session
from cloister.core.types import Ints
from cloister.run.method_selection import Planned

SHARE = 0.01
"""Share of the budget that counts the rows. In mu^2 it increases all other noise by half a percent."""

DOUBTED = 0.3
"""Relative standard error of the count above which a warning is given: methods need the rows' order of magnitude."""

STAND_IN = 10**4
"""Number of rows that a plan assumes before the count."""

LIKELY = 10**2, STAND_IN, 10**6
"""Numbers of rows for which a method is priced before the count; those too few for it are skipped."""


@final
@attrs.frozen(eq=False)
class SingleBucket:
    """Space of a single bucket that holds every row."""

    digest_tag: ClassVar = "cloister.Everybody"

    @property
    def space(self) -> Space:
        return Space((1,))

    def locate(self, rows: Ints) -> Ints:
        return np.zeros((len(rows), 1), np.int64)

    def bundled(self, arrays: BundleArrays) -> Mapping[str, Any]:
        return {"kind": "one", "sizes": [1]}


def shares(budget: Budget) -> tuple[Budget, Budget]:
    """Return the count's and the method's parts of a run's budget. The count spends no delta."""
    first, remainder = budget.split(SHARE, 1 - SHARE)
    return attrs.evolve(first, delta=0.0), attrs.evolve(remainder, delta=budget.delta)


def with_count(
    planned: Callable[[int], Planned], total: PrivacyTarget, k: int, rows: int | None
) -> tuple[Planned, Budget]:
    """Return a run's plan (without ``rows``, for a likely number) and the whole run's budget.

    The measure is fixed before the count too: the one that the methods for all likely numbers need.

    Args:
        planned: makes the plan for a number of rows.
        total: the run's guarantee.
        k: number of centres.
        rows: the public number of rows, or None.

    Raises:
        InvalidInput: as ``planned``, or under this trust model nobody can count.
    """
    if rows is not None:
        plan = planned(rows)
        return plan, plan[1].budget
    plans, refused = dict[int, Planned](), dict[int, CloisterError]()
    for n in LIKELY:
        try:
            plans[n] = planned(max(k, n))
        except CloisterError as error:
            refused[n] = error
    if STAND_IN in refused:
        if LIKELY[-1] in refused:
            raise refused[STAND_IN]
        raise InvalidInput(f"{refused[STAND_IN]}; or, if there are more rows, their public number (--rows N, rows=N)")
    composed, problem, choice = plans[STAND_IN]
    if composed.trust not in (None, "Central"):
        raise InvalidInput(
            f"no public number of rows: give --rows N (rows=N), a round figure of the right size. It steers the number "
            f"of rounds and the shares; only a curator can count instead, and the method as composed is "
            f"{composed.trust}"
        )
    same = len({problem.budget for _, problem, _ in plans.values()}) == 1
    currencies = frozenset[PrivacyNotion]().union(*(composed.currencies for composed, _, _ in plans.values()))
    budget = problem.budget if same else budget_of(total, currencies)
    return (composed, attrs.evolve(problem, budget=shares(budget)[1]), choice), budget


def after_count(planned: Callable[[int], Planned], picked: Planned, rows: int) -> Planned:
    """Return the plan for the counted number of rows, within the budget fixed for it beforehand.

    If the method picked for that number pays in another measure, the one picked before is kept.

    Raises:
        Refused: no plan exists for so many rows (the range of unknown columns cannot be found).
    """
    budget = picked[1].budget
    try:
        composed, problem, choice = planned(rows)
    except CloisterError as error:
        raise Refused(f"about {rows:,} rows were counted, which is paid for, and {error}") from None
    if problem.budget.measure != budget.measure:
        composed, problem, choice = picked
    return composed, attrs.evolve(problem, rows=rows, budget=budget), choice


def counted(session: Session[Any], oracle: FrequencyOracle[Any], budget: Budget, k: int) -> int:
    """Ask for the number of rows; return the released value, at least k."""
    (table,) = session.ask(count(SingleBucket(), oracle=oracle, budget=budget))
    return int(np.clip(np.rint(table.at(np.zeros(1, np.int64))[0]), k, CAP))


def count_warnings(oracle: FrequencyOracle[Any], budget: Budget, problem: Problem) -> tuple[str, ...]:
    """Return warnings if the count is mostly noise, or at most k; budget is the whole run's, problem has the count."""
    first, texts = shares(budget)[0], list[str]()
    if problem.rows <= problem.k:
        texts.append(
            f"WARNING: no more rows were counted than centres were asked for ({problem.k}), and that number "
            f"was taken in place of the count: ask for far fewer centres."
        )
    question = count(SingleBucket(), oracle=oracle, budget=first)
    error = math.sqrt(question.variance(problem.context(first)))
    if error > DOUBTED * problem.rows:
        texts.append(
            f"WARNING: the count of the rows has a standard error of {error:,.0f}. What was planned by it may suit "
            f"other numbers: give --rows N (rows=N), a round public figure, if there is one."
        )
    return tuple(texts)


def counter_of(kit: Kit, measure: Measure) -> FrequencyOracle[Any]:
    """Return the curator's first oracle of counts in this measure (for rho, with Gaussian noise).

    Raises:
        InvalidInput: none is installed.
    """
    for draft in kit.exact_counters if measure == "exact" else kit.counters:
        oracle: FrequencyOracle[Any] = draft.composed().value
        if oracle.measure == ("gaussian" if measure == "zcdp" else measure):
            return oracle
    raise InvalidInput("no installed oracle can count the rows: give their public number (--rows N, rows=N)")
