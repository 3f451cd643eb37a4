"""A privacy filter over all runs on one data set, with figures fixed when the data set is declared.

A filter admits a run iff the sum of what was admitted before and the run itself stays within fixed figures, while each
run's own budget may have been chosen after seeing what earlier runs released. Both filters here are valid in that fully
adaptive setting, and only add numbers:

* ``basic``: the epsilons add up to at most epsilon and the deltas to at most delta (Rogers, Roth, Ullman and Vadhan
  2016). Best for a few large runs.
* ``zcdp``: the rhos add up to at most the rho that (epsilon, delta) admits (Feldman and Zrnic 2021; Whitehouse, Ramdas,
  Rogers and Wu 2023). Best for many small runs. A pure run enters as epsilon^2 / 2 and a Gaussian run as mu^2 / 2,
  which the discrete Gaussian satisfies exactly, so that no run spends delta: all of it pays for the conversion. Runs
  that set delta aside for thresholds are refused.

Runs may overlap in time: a filter for (epsilon, delta), or for Renyi divergence of one order, also holds for
interactive mechanisms that run concurrently (Haney et al. 2023), and the rule for rho is the same at every order.

Runs are never composed numerically: the figures of all of them would have to be known before the first one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal, Self, TypeAlias, final

import attrs

from cloister.accounting.composition import Spent
from cloister.accounting.conversions import ROUNDING, epsilon_of_rho, rho_of, rho_of_pure
from cloister.accounting.privacy_target import PrivacyTarget, Unit
from cloister.core.budget import Budget
from cloister.core.errors import BudgetExceeded, InvalidInput, Refused

Composition: TypeAlias = Literal["basic", "zcdp"]


@final
@attrs.frozen
class Cost:
    """Cost of runs under both compositions: epsilon (nats) with delta, and rho."""

    epsilon: float = 0.0
    delta: float = 0.0
    rho: float = 0.0

    @classmethod
    def reserved(cls, total: PrivacyTarget, budget: Budget) -> Self:
        """Return the most that a run under this target and budget can cost.

        Raises:
            InvalidInput: the budget is for exact answers, which no lifetime can pay.
        """
        paid = total.paid(budget).amount
        match budget.measure:
            case "pure":  # no delta beyond what its mechanisms spend themselves
                return cls(total.epsilon, budget.delta, rho_of_pure(paid))
            case "gaussian":
                return cls(total.epsilon, total.delta, paid / 2)
            case "zcdp":
                return cls(total.epsilon, total.delta, paid)
            case "exact":
                raise InvalidInput(
                    "a run with exact answers has no privacy: run it without a ledger, on data that needs none"
                )

    def actual(self, spent: Spent) -> Cost:
        """Return the actual cost of a run that has ended normally: never more than this reservation.

        Its epsilon is the least at this delta; its delta is the mechanisms' own, if that epsilon needs no more.
        """
        epsilon, own_delta = min(self.epsilon, spent.epsilon(self.delta)), min(self.delta, spent.delta)
        delta = own_delta if spent.epsilon(own_delta) <= epsilon else self.delta
        return Cost(epsilon, delta, min(self.rho, spent.all_rho))

    @classmethod
    def summed(cls, costs: Iterable[Cost]) -> Self:
        """Return the sum, independent of the order to the last digit."""
        return cls(*(math.fsum(figure) for figure in zip(*map(attrs.astuple, costs), strict=True)))


@final
@attrs.frozen
class Lifetime:
    """Lifetime budget of one data set.

    Args:
        dataset: its declared name.
        total: what all runs together may cost.
        composition: how runs add up.
        unit: the unit of privacy.
    """

    dataset: str
    total: PrivacyTarget
    composition: Composition
    unit: Unit = "rows"

    @property
    def rho(self) -> float:
        """Largest sum of rho under ``zcdp``."""
        return rho_of(self.total.epsilon, self.total.delta)

    def check_run(self, unit: Unit, budget: Budget) -> None:
        """Check that a run has this lifetime's unit of privacy and a budget that its composition can add up.

        Raises:
            Refused: it has not.
        """
        if unit != self.unit:
            ways = {"rows": "without --user-column", "users": "with --user-column and --rows-per-user"}
            raise Refused(
                f"data set '{self.dataset}' protects {self.unit} and this run protects {unit}, and their costs do not "
                f"add up: run it {ways[self.unit]}, or declare another data set with --unit {unit}"
            )
        if self.composition == "zcdp" and budget.delta > 0:
            raise Refused(
                f"data set '{self.dataset}' composes runs in zCDP, which leaves no delta for thresholds: leave out "
                f"--describe-words (describe_words=), and count with discrete-laplace or discrete-gaussian instead of "
                f"thresholded"
            )

    def admit(self, spent: Cost, requested: Cost) -> None:
        """Check that a run may be admitted.

        Args:
            spent: the cost of the runs admitted before.
            requested: the cost of this one.

        Raises:
            BudgetExceeded: the sum would be too large; says what is left.
        """
        after = Cost.summed((spent, requested))
        if self.composition == "zcdp":
            if not after.rho <= self.rho * ROUNDING:
                raise BudgetExceeded(f"rho {requested.rho:.6g}", self.left(spent), f"data set '{self.dataset}'")
        elif not (after.epsilon <= self.total.epsilon * ROUNDING and after.delta <= self.total.delta * ROUNDING):
            figures = f"epsilon {requested.epsilon:.6g}, delta {requested.delta:.6g}"
            raise BudgetExceeded(
                figures, self.left(spent), f"data set '{self.dataset}'", self._delta_advice(spent, requested)
            )

    def _delta_advice(self, spent: Cost, requested: Cost) -> str:
        """Return what to do where delta is missing; empty where epsilon alone is."""
        if spent.delta + requested.delta <= self.total.delta * ROUNDING:
            return ""
        if not self.total.delta:
            return (
                f"Delta is what is missing: the data set was declared without any. Ask for --delta 0 (delta=0), or "
                f"declare another data set with --delta {requested.delta:g} or more"
            )
        return "Delta is what is missing: ask for a smaller --delta (delta=), or for 0"

    def left(self, spent: Cost) -> str:
        """Return the rest of the budget, as text for people."""
        if self.composition == "zcdp":
            rho, delta = max(0.0, self.rho - spent.rho), self.total.delta
            return f"rho {rho:.6g} (alone: epsilon {epsilon_of_rho(rho, delta):.4g} at delta {delta:g})"
        epsilon, delta = max(0.0, self.total.epsilon - spent.epsilon), max(0.0, self.total.delta - spent.delta)
        return f"epsilon {epsilon:.6g}, delta {delta:.6g}"
