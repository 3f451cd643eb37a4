"""The (epsilon, delta) that a caller is willing to pay, and the budget that it buys.

What a user with several rows pays, from what one row pays.

Neighbours are data sets of which one has all rows of one user more. Of every user at most m rows are used, by a choice
that another user's rows do not change (``core.capabilities.HoldsUsers``): so what is used differs by at most m rows,
D_0, D_1, ..., D_m, each of which is the one before it and one row. Questions, oracles and budgets below this module are
those of rows, and every event says what one row pays, given any history. Then, given that history, for one user

* epsilon is m times as large: P_0 <= e^epsilon P_1 <= e^(2 epsilon) P_2 ... pointwise;
* rho is m^2 times as large (Bun and Steinke 2016, Proposition 1.9), of pure noise that is paid in rho, too;
* mu is m times, mu^2 m^2 times as large (Dong, Roth and Su 2022, Theorem 2.14). For additive Gaussian noise that is the
  L2 sensitivity of m rows in one bucket, exactly.

No sharper figure is claimed: all m rows may fall in one bucket. These hold for every mechanism of the measure, whatever
its noise. None of them is group privacy of (epsilon, delta), which would multiply delta by e^epsilon.

*Discrete Gaussian noise.* The proof of ``accounting.composition`` is about any two data sets: H, with real noise on the
coordinates where their answers differ, is mu-GDP for the mu of their distance, m times a row's; the coordinates that m
rows touch are at most m times those of one row; the law of one noise does not change. So ``l0_sensitivity`` is m times
as large, ``sigma`` and ``ratio`` are as they were.

*Deltas of mechanisms* are refused for m > 1. What an event's delta says is proved for one row more: that it is alone in
a bucket, for instance, where two rows of one user would pass a threshold together.

Source: as above; the derivation for discrete noise is this module's.

From a run's (epsilon, delta) to a budget in the measure of the questions that are asked.

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

import math
from collections.abc import Collection
from numbers import Integral
from typing import Any, ClassVar, Literal, TypeAlias, final

import attrs

from cloister.accounting.composition import Spent
from cloister.accounting.conversions import largest, mu_of, rho_of
from cloister.accounting.mixed import delta_of_mixed
from cloister.core.budget import Budget, Event, Measure, PrivacyNotion
from cloister.core.clustering import Problem
from cloister.core.defaults import DELTA
from cloister.core.domains import Domain
from cloister.core.doubles import as_float
from cloister.core.errors import CloisterError, InvalidInput
from cloister.core.randomness import ANY_KEY
from cloister.core.registry.compose import Composed
from cloister.core.reproducible_math import fewer_bits
from cloister.core.session import Session, forecast

MOST_ROWS = 2**20
"""Largest m: beyond it noise for one user drowns any number of rows that a run can read."""

DOWN = 1 - 2.0**-50
"""Rounding never gives a row more than its part of what a user pays."""


def checked_rows_per_user(value: Any) -> int | None:
    """A public number of rows per user, or None where rows are not users'. Raises: InvalidInput: anything else."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, Integral) or not 1 <= int(value) <= MOST_ROWS:
        raise InvalidInput(f"rows_per_user is {value!r}: give a whole number from 1 to {MOST_ROWS}")
    return int(value)


def of_row(budget: Budget, rows_per_user: int | None) -> Budget:
    """Share of a budget that each row may pay where a user may pay ``budget``."""
    m = rows_per_user or 1
    return budget if m == 1 else attrs.evolve(budget, amount=budget.amount / _times(budget, m) * DOWN)


def of_user(event: Event, rows_per_user: int | None) -> Event:
    """A user's price of an event of which a row pays ``event``.

    Raises: InvalidInput: the mechanism has a delta of its own.
    """
    if rows_per_user is None or rows_per_user == 1:
        return event
    if event.delta:
        raise InvalidInput(
            f"'{event.mechanism}' spends a delta of its own, which is proved for one row and not for users with "
            f"several: choose a component without, such as discrete-laplace for thresholded"
        )
    m, spent = rows_per_user, event.spent
    return attrs.evolve(
        event,
        l0_sensitivity=m * event.l0_sensitivity,
        pure=m * event.pure,
        spent=attrs.evolve(spent, amount=spent.amount * _times(spent, m)),
    )


def _times(budget: Budget, m: int) -> int:
    """How many times as much m rows pay as one."""
    return m if budget.measure == "pure" else m**2


Unit: TypeAlias = Literal["rows", "users"]
"""Whom a guarantee protects: every row, or every user with all her rows. The two do not add up."""

SLACK = 1e-4
"""Share of epsilon and of delta that a Gaussian run keeps to pay for its noise being discrete (see ``discrete``).

With noise of 2^16 and more it covers 25,000 touched coordinates at epsilon 1; the accountant checks each run.
"""

ASIDE = 0.5
"""Share of delta set aside for mechanisms with a delta of their own, where the noise needs the rest."""


def _number(value: float) -> float:
    try:
        return as_float(value)
    except (TypeError, ValueError):
        raise InvalidInput(f"epsilon and delta are numbers, given: {value!r}") from None


MAX_EPSILON = 1e4
"""Largest epsilon: beyond it the promise is worth nothing, and noise rounds to nothing."""


def _check_epsilon(_: object, __: object, value: float) -> None:
    if not 0 < value < math.inf:
        raise InvalidInput(f"epsilon is {value}, expected a finite number > 0: pass epsilon=1, or what you may spend")
    if value > MAX_EPSILON:
        raise InvalidInput(f"epsilon is {value}, which protects nobody: pass epsilon=1, or what you may spend")


def _check_delta(_: object, __: object, value: float) -> None:
    if not 0 <= value < 1:
        raise InvalidInput(
            f"delta is {value}, expected a probability in [0, 1): pass delta=0 for pure noise, or less than one over "
            "the number of rows"
        )


@final
@attrs.frozen
class PrivacyTarget:
    """The (epsilon, delta) of a run, or of a data set's life.

    Args:
        epsilon: nats, > 0 and finite. 1 is customary; above 10 little is promised.
        delta: probability in [0, 1), well below one over the number of rows. 0 is pure differential privacy.
        rows_per_user: m, if that is what a user pays, of whom at most m rows are used; None: it is what a row pays.

    Raises: InvalidInput: anything else, NaN included.
    """

    digest_tag: ClassVar = "cloister.Total"

    epsilon: float = attrs.field(converter=_number, validator=_check_epsilon)
    delta: float = attrs.field(default=DELTA, converter=_number, validator=_check_delta)
    rows_per_user: int | None = attrs.field(default=None, converter=checked_rows_per_user, kw_only=True)

    @property
    def unit(self) -> Unit:
        return "rows" if self.rows_per_user is None else "users"

    def measured(self, measures: Collection[Measure], uses_delta: bool = False) -> Budget:
        """The budget that this total buys each row, in the measure that all these noises share.

        All pure: epsilon. All Gaussian: mu^2, calibrated at (epsilon, delta) less ``SLACK``, which the discreteness of
        the noise then spends. Pure and Gaussian together, or anything in rho: rho (basic composition would fix the
        split between the two in advance; zCDP leaves it to the method). All exact: no privacy, an infinite budget.

        mu and rho are rounded down to ``BITS`` bits, since they come from special functions and enter plans.

        Where an oracle has a delta of its own (``uses_delta``), the budget carries one, shared as the budget is: all of
        delta where all noise is pure, otherwise ``ASIDE`` of it, and the noise is calibrated at the rest.

        Args:
            measures: of the oracles that will share the budget, in any order; without any it counts as pure.
            uses_delta: whether one of them spends delta itself, as thresholding does.

        Raises: InvalidInput: noise or thresholds that need delta > 0 at delta = 0; exact answers beside private ones;
            deltas of mechanisms where users have several rows.
        """
        return of_row(self._measured(set(measures), uses_delta), self.rows_per_user)

    def paid(self, budget: Budget) -> Budget:
        """Price of a row or, where users are counted, of a user, if each row pays ``budget``."""
        return of_user(Event("budget", budget), self.rows_per_user).spent

    def _measured(self, kinds: set[Measure], uses_delta: bool) -> Budget:
        """The budget before it is divided over a user's rows."""
        if uses_delta and (self.rows_per_user or 1) > 1:
            raise InvalidInput(
                "thresholds spend a delta that is proved for one row, and not for users with several: take components "
                "without a delta of their own, such as discrete-laplace for thresholded"
            )
        if uses_delta and self.delta == 0:
            raise InvalidInput(
                "delta is 0, but thresholds, shuffled reports and Gaussian noise on a person's own report need delta "
                "> 0: pass delta (less than one over the number of rows, 1e-6 say), or take components without a "
                "delta of their own, such as discrete-laplace for thresholded, hadamard-vector for ldp-average"
            )
        if "exact" in kinds:
            if len(kinds) > 1:
                raise InvalidInput(
                    "exact answers have an infinite budget, in which no noise is calibrated: fill every slot that "
                    "takes an oracle with an exact one (--with slot=exact), or none"
                )
            return Budget("exact", math.inf, delta=self.delta if uses_delta else 0.0)
        if kinds <= {"pure"}:
            return Budget("pure", self.epsilon, delta=self.delta if uses_delta else 0.0)
        if self.delta == 0:
            raise InvalidInput(
                "delta is 0, but Gaussian noise and zCDP need delta > 0: pass delta (less than one over the number of "
                "rows, 1e-6 say), or choose components with pure noise, such as discrete Laplace"
            )
        aside = self.delta * ASIDE if uses_delta else 0.0
        left = self.delta - aside
        if kinds == {"gaussian"}:
            mu = fewer_bits(mu_of(self.epsilon * (1 - SLACK), left * (1 - SLACK)))
            return Budget("gaussian", mu * mu, delta=aside)
        return Budget("zcdp", fewer_bits(rho_of(self.epsilon, left)), delta=aside)


SCALE_BITS = 10
"""Of a mixed run's budget: further ones come from special functions, and budgets enter plans."""

GENEROUS = 4.0
"""Times the rho of Gaussian noise alone, where the search for a mixed run's budget begins."""

STEPS, NEAR = 6, 2.0**-6
"""Most steps of that search, and what may be left of the budget at its end."""


def jointly_paid(
    method: Any, everything: frozenset[PrivacyNotion], total: PrivacyTarget, start: Problem
) -> Problem | None:
    """The problem of a run that asks pure and Gaussian questions, with all that ``total`` buys them together.

    rho prices such a run too high. So a budget is looked for at which the privacy loss of all its events (``mixed``) is
    just within (epsilon, delta): the events of a forecast are shares of the budget, and what factor they may grow or
    shrink by, together, is known. Another budget may mean another schedule, so that one is forecast, and priced in its
    own right. The accountant prices it once more before any row is read.

    Args: start, the problem with any budget. Returns: None where not both kinds are asked, or nothing was found.
    """
    if not {currency.measure for currency in everything} >= {"pure", "gaussian"} or not total.delta:
        return None
    alone = budget_of(total, {PrivacyNotion("gaussian")})
    generous = attrs.evolve(budget_of(total, everything), amount=fewer_bits(GENEROUS * alone.amount / 2, SCALE_BITS))
    asked, _ = _asked(method, attrs.evolve(start, budget=generous))
    if {currency.measure for currency in asked} != {"pure", "gaussian"}:
        return None
    least = budget_of(total, asked)
    budget = attrs.evolve(least, amount=max(least.amount, generous.amount))
    for step in range(STEPS):
        try:
            spent = _spent(method, total, attrs.evolve(start, budget=budget))
        except CloisterError:
            return None
        if budget.amount < least.amount or not spent.mu_squared or not 0 < spent.pure < math.inf or spent.rho:
            return None
        factor = _factor(spent, total)
        if not factor:
            return None
        near = factor < 1 + NEAR or step == STEPS - 1
        if factor >= 1 and near and spent.epsilon(total.delta) <= total.epsilon:
            return attrs.evolve(start, budget=budget)
        budget = attrs.evolve(budget, amount=fewer_bits(budget.amount * factor, SCALE_BITS))
    return None


def _factor(spent: Spent, total: PrivacyTarget) -> float:
    """The largest factor by which all budgets may grow."""
    left = (total.delta - spent.delta) * (1 - SLACK)
    mu, epsilon = math.sqrt(spent.mu_squared), total.epsilon * (1 - SLACK)

    def holds(factor: float) -> bool:
        root = math.sqrt(factor)
        return delta_of_mixed([root * pure for pure in spent.pures], root * mu, epsilon) <= left

    return largest(holds, 2.0**-SCALE_BITS) if left > 0 else 0.0


def _spent(method: Any, total: PrivacyTarget, problem: Problem) -> Spent:
    """What a row or user pays for a run, by its forecast."""
    rounds = forecast(method, problem, ANY_KEY)
    return Spent.on(of_user(event, total.rows_per_user) for round in rounds for event in round.events)


TRIAL_DELTA = 1e-6
"""Stands in for a delta of 0 while looking which slots are asked under all of them together. Nobody spends it."""


def problem_of(
    composed: Composed, total: PrivacyTarget, k: int, domain: Domain, rows: int, jointly: bool = True
) -> Problem:
    """The problem for a composed method, with the budget that ``total`` buys.

    Args: k, domain, rows, as of ``Problem``; jointly (whether pure and Gaussian questions are priced together, as they
    are where the whole run is known before it and nothing adds up in rho).

    Raises: InvalidInput: these figures make no problem, or buy no budget in the measures that are asked.
    """
    everything = composed.currencies
    if not composed.private:
        return Problem(k, domain, rows, budget_of(total, everything | {PrivacyNotion("exact")}))
    problem = afforded(composed.value, everything, total, k, domain, rows)
    return (jointly_paid(composed.value, everything, total, problem) if jointly else None) or problem


def afforded(
    method: Any, everything: frozenset[PrivacyNotion], total: PrivacyTarget, k: int, domain: Domain, rows: int
) -> Problem:
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


def budget_of(total: PrivacyTarget, currencies: Collection[PrivacyNotion]) -> Budget:
    """The budget that ``total`` buys for oracles of these currencies."""
    return total.measured({c.measure for c in currencies}, any(c.uses_delta for c in currencies))


def _asked(method: Any, problem: Problem) -> tuple[frozenset[PrivacyNotion], bool]:
    """The currencies that a method asks under this budget, and whether it ran to its end."""
    session: Session[Any] = Session(problem, ANY_KEY, forecasting=True)
    try:
        method.cluster(problem, session, ANY_KEY.child("method"))
    except Exception:  # a budget in a measure that its oracles cannot spend makes a method fail in any way
        return frozenset(session.notions), False
    return frozenset(session.notions), True
