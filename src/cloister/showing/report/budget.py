"""Lines of the privacy budget, as a report and a registry record show them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs

from cloister.run.statement import UNITS, Spend, alike

QUESTIONS = {"counts": "how many rows fall in each bucket", "sums": "what the rows of each bucket add up to"}

SYMBOLS = {"pure": "ε", "gaussian": "μ²", "zcdp": "\N{GREEK SMALL LETTER RHO}", "exact": UNITS["exact"]}
"""Symbol of each unit."""


@attrs.frozen
class BudgetLine:
    """Line of the budget.

    Args:
        round: counted from 1.
        first: whether it is the first of its round.
        question: what was asked.
        mechanism: what made the answer private.
        amount: with its unit, and the share of the people who were asked.
        share: of the total spent in this unit, in percent; None if the total is infinite.
    """

    round: int
    first: bool
    question: str
    mechanism: str
    amount: str
    share: float | None


def lines_of(spends: Sequence[Spend]) -> list[BudgetLine]:
    """Return the budget, line by line: questions of a round with the same text share one."""
    totals: dict[str, float] = {}
    for s in spends:
        totals[s.measure] = totals.get(s.measure, 0.0) + s.amount * s.users
    lines, previous_round = list[BudgetLine](), -1
    for spend, questions in alike(spends):
        total, paid = totals[spend.measure], spend.amount * spend.users * len(questions)
        share = 100 * paid / total if math.isfinite(total) and total > 0 else None
        lines.append(
            BudgetLine(
                spend.round + 1,
                spend.round != previous_round,
                _question(spend, len(questions)),
                spend.mechanism,
                _amount(spend, len(questions)),
                share,
            )
        )
        previous_round = spend.round
    return lines


def _question(spend: Spend, questions: int) -> str:
    kind = spend.question.partition(" (")[2].removesuffix(")")
    text = QUESTIONS.get(kind, kind)
    return text if questions == 1 else f"{text} ({questions} questions)"


def _amount(spend: Spend, questions: int) -> str:
    unit = SYMBOLS[spend.measure]
    amount = unit if not math.isfinite(spend.amount) else f"{unit} {spend.amount:.4g}"
    per_question = "" if questions == 1 else " each"
    delta = f", δ {spend.delta:.3g}" if spend.delta else ""
    users = "" if spend.users == 1.0 else f" of {spend.users:.1%} of the people"
    return f"{amount}{per_question}{delta}{users}"
