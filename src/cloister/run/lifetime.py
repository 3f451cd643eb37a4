"""Number of times that a lifetime budget admits the same run, by the ledger's own privacy filter."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

import attrs

from cloister.accounting.ledger.ledger import Ledger, checked_lifetime
from cloister.accounting.ledger.privacy_filter import Cost, Lifetime
from cloister.core.errors import BudgetExceeded, InvalidInput, UnknownName
from cloister.run.account import Account
from cloister.run.request import PreparedRun

MOST = 10_000
"""Runs at which counting ends; the answer is then "at least"."""


@attrs.frozen
class Lasting:
    """Repetitions of one run within a lifetime budget.

    Args:
        every: runs a year.
        cost: of one run.
        runs: number that the lifetime admits, by composition.

    Attributes:
        at_least: compositions whose number is only where counting ended.
    """

    every: int
    cost: Cost
    runs: dict[str, int]
    at_least: list[str] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "at_least", [how for how, runs in self.runs.items() if runs >= MOST])

    @property
    def text(self) -> str:
        """Summary for people."""
        one = f"One run costs at most epsilon = {self.cost.epsilon:.4g}, delta = {self.cost.delta:.3g}"
        amounts = (
            f"{'at least ' if how in self.at_least else ''}{runs:,} ({how} composition): {runs / self.every:.3g} years"
            f"{' or more' if how in self.at_least else ''}"
            for how, runs in self.runs.items()
        )
        return f"{one}. Of {self.every} a year the lifetime still holds {', or '.join(amounts)}."


def lasting(plan: PreparedRun, every: int, account: Account | None, epsilon: float | None, delta: float) -> Lasting:
    """Return how many runs of a plan (up to ``MOST``) a lifetime budget still admits.

    The lifetime is a ledger's, or (epsilon, delta) under each composition.

    Raises:
        InvalidInput: no lifetime is given, or two.
        UnknownName: the ledger has no such data set.
        Refused: it admits no such run, whatever is left.
    """
    if every < 1:
        raise InvalidInput(f"every is {every}: give how many runs there are in a year, such as 12")
    if (account is None) == (epsilon is None):
        raise InvalidInput("a lifetime is a ledger's or of its own: give --ledger and --dataset, or --lifetime-epsilon")
    if account is None and plan.total.delta and not delta:
        raise InvalidInput(
            f"a run may cost delta = {plan.total.delta:g}, and the lifetime has none: give --lifetime-delta, such as "
            f"{plan.total.delta * every * 10:.3g}"
        )
    cost, unit = Cost.reserved(plan.total, plan.budget), plan.total.unit
    if account is not None:
        statuses = {entry.dataset: entry for entry in Ledger.open(account.ledger).status()}
        if account.dataset not in statuses:
            raise UnknownName("data set", account.dataset, statuses)
        status = statuses[account.dataset]
        lives = [(Lifetime(status.dataset, status.lifetime, status.composition, status.unit), status.spent)]
        lives[0][0].check_run(unit, plan.budget)
    else:
        ways: Any = ("basic", "zcdp") if delta and not plan.budget.delta else ("basic",)
        lives = [(checked_lifetime("lifetime", epsilon or 0.0, delta, how, unit), Cost()) for how in ways]
    return Lasting(every, cost, {life.composition: _held(life, spent, cost) for life, spent in lives})


def _held(life: Lifetime, spent: Cost, cost: Cost) -> int:
    def full(runs: int) -> bool:
        try:
            life.admit(Cost.summed([spent, *[cost] * runs]), cost)
        except BudgetExceeded:
            return True
        return False

    return bisect_left(range(MOST), True, key=full)
