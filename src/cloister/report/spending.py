"""What was spent where: the lines of the statement's budget, with each line's share."""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs

from cloister.run.statement import UNITS, Spend, alike

ASKED = {"counts": "how many rows fall in each bucket", "sums": "what the rows of each bucket add up to"}

SYMBOLS = {"pure": "ε", "gaussian": "μ²", "zcdp": "\N{GREEK SMALL LETTER RHO}", "exact": UNITS["exact"]}
"""The letter of each unit."""


@attrs.frozen
class BudgetLine:
    """One line of the budget.

    Args:
        round: counted from 1.
        first: whether it is the first of its round.
        asked: what was asked.
        mechanism: what made the answer private.
        amount: with its unit, and whom it was asked of.
        share: of everything that was spent in this unit, in percent; None if that is without bound.
    """

    round: int
    first: bool
    asked: str
    mechanism: str
    amount: str
    share: float | None


def lines_of(spends: Sequence[Spend]) -> list[BudgetLine]:
    """The budget, line by line: questions of a round that read alike share one."""
    totals: dict[str, float] = {}
    for s in spends:
        totals[s.measure] = totals.get(s.measure, 0.0) + s.amount * s.users
    found, before = list[BudgetLine](), -1
    for spend, questions in alike(spends):
        total, paid = totals[spend.measure], spend.amount * spend.users * len(questions)
        share = 100 * paid / total if math.isfinite(total) and total > 0 else None
        found.append(
            BudgetLine(spend.round + 1, spend.round != before, _asked(spend, len(questions)), spend.mechanism,
                 _amount(spend, len(questions)), share)
        )  # fmt: skip
        before = spend.round
    return found


def _asked(spend: Spend, questions: int) -> str:
    kind = spend.question.partition(" (")[2].removesuffix(")")
    what = ASKED.get(kind, kind)
    return what if questions == 1 else f"{what} ({questions} questions)"


def _amount(spend: Spend, questions: int) -> str:
    unit = SYMBOLS[spend.measure]
    amount = unit if not math.isfinite(spend.amount) else f"{unit} {spend.amount:.4g}"
    each = "" if questions == 1 else " each"
    own = f", δ {spend.delta:.3g}" if spend.delta else ""
    users = "" if spend.users == 1.0 else f" of {spend.users:.1%} of the people"
    return f"{amount}{each}{own}{users}"
