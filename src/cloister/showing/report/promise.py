"""Promise of a run in plain English, with everything that breaks the promise first.

What was spent where: the lines of the statement's budget, with each line's share.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import attrs

from cloister.run.statement import UNITS, PrivacyStatement, Spend, alike, large_delta

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
            BudgetLine(
                spend.round + 1,
                spend.round != before,
                _asked(spend, len(questions)),
                spend.mechanism,
                _amount(spend, len(questions)),
                share,
            )
        )
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


WEAK = 10.0
"""An epsilon above this protects hardly anybody."""

SEEN = {
    "Central": "Whoever ran cloister saw the rows. You, who read this, see only figures that noise was added to.",
    "Aggregated": "Each party saw its own rows, and nobody saw another party's or a sum without noise. You, who read "
    "this, see only figures that noise was added to.",
    "Local": "Each person's row was randomised before it left their device: not even whoever collected the reports saw "
    "it.",
    "Shuffled": "Each person's row was randomised before it left their device, and a shuffler hid who sent what.",
}
"""Who saw rows, by trust model."""

GUESSES = {
    "add-or-remove one row": "whether your row was used at all",
    "replace one row": "which of two rows was yours",
}
"""Facts that the promise hides, by relation. Where users have several rows: whether they were there."""

USER = "whether you, with all rows of yours, were among them at all"


def warnings(privacy: PrivacyStatement, auto: Any) -> list[tuple[str, str]]:
    """Warning that a reader must see before anything else: a word or two, and why. Args: auto (what ``auto`` said, or
    None)."""
    found = _broken(privacy) or _weak(privacy)
    if isinstance(auto, dict) and auto.get("warning"):
        found.append(("MOSTLY NOISE", f"{auto['warning']}."))
    return found


def _broken(privacy: PrivacyStatement) -> list[tuple[str, str]]:
    """Why there is no promise at all, if so."""
    if not privacy.private:
        why = "Exact answers were released. This page may tell about single people: do not publish it."
        return [("NOT PRIVATE", why)]
    if privacy.seeded:
        why = "The noise can be repeated by whoever knows the seed, and taken away: it protects nobody."
        return [("NOT PRIVATE: SEEDED NOISE", why)]
    return []


def _weak(privacy: PrivacyStatement) -> list[tuple[str, str]]:
    """Reasons why a promise is smaller than it looks."""
    found = []
    if privacy.simulated:
        why = "The rows were all in one place, although this trust model says that they are not. Whoever ran this "
        found.append(("SIMULATED", f"{why}could see them; only the result is as promised."))
    if privacy.epsilon > WEAK:
        why = f"An ε of {privacy.epsilon:g} hardly protects anybody; usual values are 3 or less."
        found.append(("WEAK PROMISE", why))
    if caution := large_delta(privacy.delta, privacy.rows):
        found.append(("δ TOO LARGE", f"{caution.replace('delta', 'δ', 1)}."))
    return found


def in_a_line(privacy: PrivacyStatement) -> str:
    """The promise for whoever reads one line. Nothing is promised where the noise is none."""
    if _broken(privacy):
        return "None: nobody is protected by this run."
    delta = f", δ = {privacy.delta:g}" if privacy.delta else ""
    return (
        f"Whoever guesses {_guessed(privacy)}, and knows everybody else's rows and this page, is right at most "
        f"{_hundredths(chance(privacy.epsilon, privacy.delta))} times in 100; a coin is right 50 times (ε = "
        f"{privacy.epsilon:g}{delta}, {privacy.trust.lower()} trust)."
    )


def _guessed(privacy: PrivacyStatement) -> str:
    return USER if privacy.rows_per_user is not None else GUESSES[privacy.relation]


def meaning(privacy: PrivacyStatement) -> list[str]:
    """Meaning of the promise for one person, as paragraphs. Nothing is promised where the noise is none."""
    if not privacy.protects:
        return ["Nobody is protected by this run. Look at it, and do not show it to anybody who may not see the rows."]
    found = [
        f"{'Outside a simulation: ' if privacy.simulated else ''}{SEEN[privacy.trust]}",
        f"Suppose that somebody knows everybody else's rows, and tosses a coin to guess {_guessed(privacy)}. They are "
        f"right 50 times in 100. With this page and everything else that the run released they are right at most "
        f"{_hundredths(chance(privacy.epsilon, privacy.delta))} times in 100, whatever else they know.",
    ]
    if privacy.delta:
        found.append(
            f"The bound may fail with a probability of δ, {privacy.delta:g}: about 1 in {_round(1 / privacy.delta)}."
        )
    if privacy.trust == "Shuffled":
        found += privacy.without()
    if privacy.rows_per_user is None:
        found.append("One row is one person, unless you know otherwise: whoever has several is protected less.")
    return found


def chance(epsilon: float, delta: float) -> float:
    """Most probability with which one of two neighbouring data sets, drawn by a fair coin, is told by a release that is
    (epsilon, delta)-private: (e^epsilon + delta) / (e^epsilon + 1).

    Source: Kairouz, Oh, Viswanath, The composition theorem for differential privacy, 2015, theorem 2.1: errors of both
    kinds are on or above the lines of slope -e^epsilon and -e^-epsilon through (0, 1 - delta) and (1 - delta, 0).
    """
    return min(1.0, (1 + delta * math.exp(-epsilon)) / (1 + math.exp(-epsilon)))


def _hundredths(share: float) -> str:
    """Hundredths, rounded up."""
    digits = 0 if share < 0.99 else 2
    return f"{math.ceil(share * 100 * 10**digits - 1e-9) / 10**digits:g}"


def _round(value: float) -> str:
    return f"{float(f'{value:.2g}'):,.0f}"
