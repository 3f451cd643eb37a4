"""The accountant of one run: forecast, then charge, then touch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import attrs

from cloister.accounting.checks import ROUNDING as ROUNDING
from cloister.accounting.composition import Spent
from cloister.accounting.total import Total
from cloister.accounting.users import of_user
from cloister.core.budget import Budget, Event, Measure
from cloister.core.errors import BudgetExceeded, Refused, WrongComposition

_FITS: dict[Measure, frozenset[Measure]] = {
    "pure": frozenset({"pure"}),
    "gaussian": frozenset({"gaussian"}),
    "zcdp": frozenset({"pure", "gaussian", "zcdp"}),
    "exact": frozenset({"pure", "gaussian", "zcdp", "exact"}),
}


@final
@attrs.define
class Accountant:
    """Adds up what the oracles declare, and refuses events that were not forecast or are not covered. It sees no rows.

    Args: total (the (epsilon, delta) that the run may cost a row, or a user), budget (what it buys each row, from
        ``total.measured``).
    """

    total: Total = attrs.field(on_setattr=attrs.setters.frozen)
    budget: Budget = attrs.field(on_setattr=attrs.setters.frozen)
    _rounds: tuple[tuple[Event, ...], ...] = attrs.field(default=(), init=False)
    _charged: int = attrs.field(default=0, init=False)

    def forecast(self, rounds: Sequence[Sequence[Event]]) -> Spent:
        """Check, before any row is read, that all rounds together are within the budget and the total.

        Both must hold: the sum in the budget's measure is at most the budget, and the epsilon of everything at the
        total's delta, discreteness included, is at most the total's epsilon. A run with exact answers is not checked.

        Args: rounds (the events of each round, in order). Returns: the cost of the whole run.

        Raises:
            BudgetExceeded: the sum is too large, or the noise is too coarse in integers for the Gaussian accounting.
            WrongComposition: an event in a measure that the budget cannot pay.
            Refused: a round was charged already.
        """
        if self._charged:
            raise Refused("a forecast comes before the first round: this run has charged rounds already")
        plan = tuple(tuple(events) for events in rounds)
        spent = self._spent_on(plan)
        for event in (event for events in plan for event in events):
            if event.spent.measure not in _FITS[self.budget.measure]:
                raise WrongComposition(
                    f"'{event.mechanism}' pays in {event.spent.measure}, the budget is {self.budget.measure}: make the "
                    "budget with Total.measured from the measures of all oracles"
                )
        if self.budget.measure != "exact":
            self._check(spent)
        self._rounds = plan
        return spent

    def charge(self, index: int, events: Sequence[Event]) -> None:
        """Charge round ``index``: once each, in order. Earlier rounds count as charged with it: the process that this
        one resumes has asked them.

        Raises: Refused: no such round was forecast, its events differ from the forecast, or it was charged before.
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
    def spent(self) -> Spent:
        """The cost of the rounds up to the last one charged, to a row or, where users are counted, to a user."""
        return self._spent_on(self._rounds[: self._charged])

    @property
    def left(self) -> float:
        """The rest of the budget of a row or user, in its own measure."""
        if self.budget.measure == "exact":
            return self.budget.amount
        return max(0.0, self._whole.amount - self.spent.amount(self.budget.measure))

    @property
    def _whole(self) -> Budget:
        """The budget of a row or, where users are counted, of a user."""
        return self.total.paid(self.budget)

    def _spent_on(self, rounds: Sequence[Sequence[Event]]) -> Spent:
        return Spent.on(of_user(event, self.total.rows_per_user) for events in rounds for event in events)

    def _check(self, spent: Spent) -> None:
        measure, amount = self.budget.measure, self._whole.amount
        if not spent.delta <= self.budget.delta * ROUNDING:
            raise BudgetExceeded(
                f"{spent.delta:.6g}", f"{self.budget.delta:.6g}", "the delta that was set aside for thresholds"
            )
        if not spent.amount(measure) <= amount * ROUNDING:
            raise BudgetExceeded(f"{spent.amount(measure):.6g}", f"{amount:.6g}", f"the run's {measure} budget")
        epsilon = spent.epsilon(self.total.delta * (ROUNDING if spent.delta else 1))
        if not epsilon <= self.total.epsilon * ROUNDING:
            asked = (
                f"{epsilon:.6g} (delta is too small, or epsilon too large, for what discrete Gaussian noise pays: "
                f"choose a larger delta, or pure noise)"
            )
            raise BudgetExceeded(asked, f"{self.total.epsilon:.6g}", f"the run's epsilon at delta {self.total.delta:g}")


def _names(events: Sequence[Event]) -> str:
    parts = (f"{e.mechanism} {e.spent.measure} {e.spent.amount:.4g}" for e in events)
    return ", ".join(parts) or "none"
