"""The accountant of one run: it checks the forecast, then charges each round before a row is read.

**Two stages.** A run may ask a first stage, whose schedule depends on no answer, and then a second one, whose schedule
is a function of what the first released (a noisy number of rows, say) and of public figures. Let b be the second
stage's budget, fixed before the first. The second is forecast when the first is over, and refused unless it is within
b; so *whatever* was released, it is a mechanism that keeps b, and the pair is an adaptive composition with fixed
budgets, whose amounts add in each measure: epsilon; rho (Bun and Steinke 2016, Lemma 1.7); mu^2 (Dong, Roth and Su
2022, Theorem 3.2). Deltas of mechanisms add too, as they hold given any history (``composition``). A path is what the
first stage may release; on every path the sum of both stages' deltas is checked against the whole delta.

That alone is not enough for discrete Gaussian noise in mu^2. Its conversion to epsilon compares the run with one whose
noise is real, and needs a drift and a tail that hold on *every* path (``discrete``). It is not enough that each path
passes with its own drift and tail: one path may have the larger drift, and another one the larger tail. So both are
measured by one figure: with T = max(drift / eta(2^20), tail / BEYOND) a path's drift is at most T*eta(2^20), and its
tail at most T*BEYOND. The check with these in place of its own, and with the whole budget in place of what the path
spends, then depends on T alone, and gets no easier as T grows. As all paths pass it, so does the largest T, which
covers them all.

A budget in rho is not Gaussian on every path: pure events, and events that are known only to be zCDP, cost more epsilon
than a Gaussian of the same rho. So both stages together are priced by the conversion of zCDP, which holds for every
path that keeps rho, discrete Gaussian noise included (Canonne, Kamath and Steinke 2020, Theorem 4).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import final

import attrs

from cloister.accounting.composition import Spent
from cloister.accounting.conversions import ROUNDING as ROUNDING
from cloister.accounting.discrete import BEYOND, eta
from cloister.accounting.privacy_target import PrivacyTarget
from cloister.accounting.users import of_user
from cloister.core.budget import Budget, Event, Measure
from cloister.core.errors import BudgetExceeded, Refused, WrongComposition

_PAYABLE: dict[Measure, frozenset[Measure]] = {
    "pure": frozenset({"pure"}),
    "gaussian": frozenset({"gaussian"}),
    "zcdp": frozenset({"pure", "gaussian", "zcdp"}),
    "exact": frozenset({"pure", "gaussian", "zcdp", "exact"}),
}


WIDE = 2.0**20
"""The least sigma of discrete Gaussian noise that is paid in mu^2 (``wide_gaussian``)."""


@final
@attrs.define
class Accountant:
    """Adds up what the oracles declare, and refuses events that were not forecast or are not covered. It sees no rows.

    Args:
        total: the (epsilon, delta) that the run may cost a row, or a user.
        budget: what it buys each row, from ``total.measured``.
    """

    total: PrivacyTarget = attrs.field(on_setattr=attrs.setters.frozen)
    budget: Budget = attrs.field(on_setattr=attrs.setters.frozen)
    _rounds: tuple[tuple[Event, ...], ...] = attrs.field(default=(), init=False)
    _charged: int = attrs.field(default=0, init=False)

    def forecast(self, rounds: Sequence[Sequence[Event]]) -> Spent:
        """Check, before any row is read, that all rounds together are within the budget and the privacy target.

        Both must hold: the sum in the budget's measure is at most the budget, and the epsilon of everything at the
        target's delta, discreteness included, is at most the target's epsilon. A run with exact answers is not checked.

        Args:
            rounds: the events of each round, in order.

        Returns:
            The cost of the whole run.

        Raises:
            BudgetExceeded: the sum is too large, or the noise is too coarse in integers for the Gaussian accounting.
            WrongComposition: an event is in a measure that the budget cannot pay.
            Refused: a round was charged already.
        """
        if self._charged:
            raise Refused("a forecast comes before the first round: this run has charged rounds already")
        plan, spent = self._priced(rounds)
        if self.budget.measure != "exact":
            self._check(spent)
        self._rounds = plan
        return spent

    def forecast_second(self, rounds: Sequence[Sequence[Event]], within: Budget) -> Spent:
        """Check a second stage, whose rounds follow those that were forecast, all of which are over.

        Args:
            rounds: as in ``forecast``.
            within: the stage's budget, fixed before the first stage was asked.

        Returns:
            The cost of the whole run.

        Raises:
            BudgetExceeded, WrongComposition: as in ``forecast``, and if both stages may cost more than the budget.
        """
        if within.measure != self.budget.measure:
            raise WrongComposition(
                f"the second stage's budget is {within.measure}, the run's is {self.budget.measure}: give a share of it"
            )
        first_stage = self._spent_on(self._rounds)
        plan, spent = self._priced(rounds)
        if self.budget.measure != "exact":
            self._within(spent, within, "the second stage's")
            self._within(
                first_stage, attrs.evolve(self.budget, amount=self.budget.amount - within.amount), "the first stage's"
            )
            self._within_delta(first_stage.plus(spent), self.budget)
            self._check(self._covering(first_stage.plus(spent)))
        self._charged, self._rounds = len(self._rounds), self._rounds + plan
        return first_stage.plus(spent)

    def _covering(self, spent: Spent) -> Spent:
        """Return the whole budget, with a drift and a tail that cover every path's (see the module)."""
        # A path of a zCDP budget need not be Gaussian: it counts as zCDP and nothing better, without drift or tail.
        if self._whole.measure == "zcdp":
            return Spent(rho=self._whole.amount, all_rho=self._whole.amount, delta=self.budget.delta)
        touched = math.ceil(min(2.0**62, max(spent.drift / eta(WIDE), spent.tail / BEYOND)))
        return Spent.on([Event("all", self._whole, touched, WIDE if touched else math.inf, self.budget.delta)])

    def _priced(self, rounds: Sequence[Sequence[Event]]) -> tuple[tuple[tuple[Event, ...], ...], Spent]:
        """Return the rounds and what they cost.

        Raises:
            WrongComposition: as in ``forecast``.
        """
        plan = tuple(tuple(events) for events in rounds)
        for event in (event for events in plan for event in events):
            if event.spent.measure not in _PAYABLE[self.budget.measure]:
                raise WrongComposition(
                    f"'{event.mechanism}' pays in {event.spent.measure}, the budget is {self.budget.measure}: make the "
                    "budget with PrivacyTarget.measured from the measures of all oracles"
                )
        return plan, self._spent_on(plan)

    def charge(self, index: int, events: Sequence[Event]) -> None:
        """Charge round ``index``: each round once, in order.

        Earlier rounds count as charged with it: a resumed run asked them in an earlier process.

        Raises:
            Refused: no such round was forecast, its events differ from the forecast, or it was charged before.
        """
        if not 0 <= index < len(self._rounds):
            raise Refused(f"round {index} was not forecast: the forecast has {len(self._rounds)} rounds")
        if tuple(events) != self._rounds[index]:
            raise Refused(
                f"round {index} asks for other events than its forecast: a schedule must not depend on answers "
                f"(forecast: {_names(self._rounds[index])}; asked: {_names(events)})"
            )
        if index < self._charged:
            raise Refused(f"round {index} was charged already: a round is asked once")
        self._charged = index + 1

    @property
    def rounds(self) -> int:
        """Number of rounds that were forecast."""
        return len(self._rounds)

    @property
    def spent(self) -> Spent:
        """Cost of the rounds up to the last one charged, to a row or, where users are counted, to a user."""
        return self._spent_on(self._rounds[: self._charged])

    @property
    def left(self) -> float:
        """Rest of the budget of a row or user, in its own measure."""
        if self.budget.measure == "exact":
            return self.budget.amount
        return max(0.0, self._whole.amount - self.spent.amount(self.budget.measure))

    @property
    def _whole(self) -> Budget:
        """Budget of a row or, where users are counted, of a user."""
        return self.total.paid(self.budget)

    def _spent_on(self, rounds: Sequence[Sequence[Event]]) -> Spent:
        return Spent.on(of_user(event, self.total.rows_per_user) for events in rounds for event in events)

    def _within(self, spent: Spent, budget: Budget, whose: str) -> None:
        """Check that the cost, in the budget's measure, is at most what a row or user may pay.

        Raises:
            BudgetExceeded: it is more.
        """
        measure, amount = budget.measure, self.total.paid(budget).amount
        self._within_delta(spent, budget)
        if not spent.amount(measure) <= amount * ROUNDING:
            raise BudgetExceeded(f"{spent.amount(measure):.6g}", f"{amount:.6g}", f"{whose} {measure} budget")

    def _within_delta(self, spent: Spent, budget: Budget) -> None:
        """Check that the mechanisms' own deltas add up to at most the budget's.

        Raises:
            BudgetExceeded: they add up to more.
        """
        if not spent.delta <= budget.delta * ROUNDING:
            raise BudgetExceeded(
                f"{spent.delta:.6g}", f"{budget.delta:.6g}", "the delta that was set aside for thresholds"
            )

    def _check(self, spent: Spent) -> None:
        self._within(spent, self.budget, "the run's")
        epsilon = spent.epsilon(self.total.delta * (ROUNDING if spent.delta else 1))
        if not epsilon <= self.total.epsilon * ROUNDING:
            required_epsilon = (
                f"{epsilon:.6g} (at so small a delta, or so large an epsilon, discrete Gaussian noise is too far from "
                f"a real Gaussian: choose a larger delta, or pure noise)"
            )
            raise BudgetExceeded(
                required_epsilon, f"{self.total.epsilon:.6g}", f"the run's epsilon at delta {self.total.delta:g}"
            )


def _names(events: Sequence[Event]) -> str:
    parts = (f"{e.mechanism} {e.spent.measure} {e.spent.amount:.4g}" for e in events)
    return ", ".join(parts) or "none"
