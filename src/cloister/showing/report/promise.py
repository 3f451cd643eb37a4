"""Privacy promise of a run in plain English, and everything that breaks it."""

from __future__ import annotations

import math
from typing import Any

from cloister.run.statement import PrivacyStatement, large_delta

WEAK = 10.0
"""Epsilon above which a page warns."""

ACCESS = {
    "Central": "Whoever ran cloister saw the rows. Readers of this page see only noisy figures.",
    "Aggregated": "Each party saw its own rows, and nobody saw another party's or a sum without noise. Readers of this "
    "page see only noisy figures.",
    "Local": "Each person's row was randomised before it left their device: not even the collector saw it.",
    "Shuffled": "Each person's row was randomised before it left their device, and a shuffler hid who sent what.",
}
"""Access to the rows, by trust model."""

GUESSES = {
    "add-or-remove one row": "whether your row was used at all",
    "replace one row": "which of two rows was yours",
}
"""Fact that the promise hides, by neighbouring relation of rows."""

USER = "whether you, with all your rows, took part at all"
"""Fact that the promise hides if users have several rows."""


def warnings(privacy: PrivacyStatement, auto: Any) -> list[tuple[str, str]]:
    """Return warnings as titles and reasons. Args: auto (details of ``auto`` in the result, or None)."""
    entries = _broken(privacy) or _weak(privacy)
    if isinstance(auto, dict) and auto.get("warning"):
        entries.append(("MOSTLY NOISE", f"{auto['warning']}."))
    return entries


def _broken(privacy: PrivacyStatement) -> list[tuple[str, str]]:
    """Return why nobody is protected, if so."""
    if not privacy.private:
        why = "Exact answers were released. This page may reveal single people: do not publish it."
        return [("NOT PRIVATE", why)]
    if privacy.seeded:
        why = "Anyone who knows the seed can reproduce the noise and subtract it: it protects nobody."
        return [("NOT PRIVATE: SEEDED NOISE", why)]
    return []


def _weak(privacy: PrivacyStatement) -> list[tuple[str, str]]:
    """Return why a promise is weaker than it looks."""
    reasons = []
    if privacy.simulated:
        why = "All rows were in one place, although this trust model says they are not. Whoever ran this "
        reasons.append(("SIMULATED", f"{why}could see them; the promise covers the result alone."))
    if privacy.epsilon > WEAK:
        why = f"ε = {privacy.epsilon:g} protects hardly anybody; usual values are 3 or less."
        reasons.append(("WEAK PROMISE", why))
    if caution := large_delta(privacy.delta, privacy.rows):
        reasons.append(("δ TOO LARGE", f"{caution.replace('delta', 'δ', 1)}."))
    return reasons


def in_a_line(privacy: PrivacyStatement) -> str:
    """Return the promise in one line."""
    if _broken(privacy):
        return "None: this run protects nobody."
    delta = f", δ = {privacy.delta:g}" if privacy.delta else ""
    return (
        f"Somebody who knows everybody else's rows and this page, and guesses {_guessed(privacy)}, is right at most "
        f"{_hundredths(chance(privacy.epsilon, privacy.delta))} times in 100; a coin is right 50 times (ε = "
        f"{privacy.epsilon:g}{delta}, {privacy.trust.lower()} trust)."
    )


def _guessed(privacy: PrivacyStatement) -> str:
    return USER if privacy.rows_per_user is not None else GUESSES[privacy.relation]


def meaning(privacy: PrivacyStatement) -> list[str]:
    """Return what the promise means for one person, as paragraphs."""
    if not privacy.protects:
        return ["Nobody is protected by this run. Do not show it to anybody who may not see the rows."]
    paragraphs = [
        f"{'Outside a simulation: ' if privacy.simulated else ''}{ACCESS[privacy.trust]}",
        f"Suppose that somebody knows everybody else's rows, and guesses {_guessed(privacy)}. By tossing a coin they "
        f"are right 50 times in 100. With this page and everything else that the run released they are right at most "
        f"{_hundredths(chance(privacy.epsilon, privacy.delta))} times in 100, whatever else they know.",
    ]
    if privacy.delta:
        paragraphs.append(
            f"This includes δ = {privacy.delta:g}, the probability (1 in {_round(1 / privacy.delta)}) that ε alone may "
            "not hold."
        )
    if privacy.trust == "Shuffled":
        paragraphs += privacy.without()
    if privacy.rows_per_user is None:
        paragraphs.append("This assumes one row per person: whoever has several is protected less.")
    return paragraphs


def chance(epsilon: float, delta: float) -> float:
    """Return the maximum probability of guessing which of two neighbouring data sets was used, drawn by a fair coin.

    After an (epsilon, delta)-private release it is (e^epsilon + delta) / (e^epsilon + 1).

    Source: Kairouz, Oh, Viswanath, The composition theorem for differential privacy, 2015, theorem 2.1: errors of both
    kinds are on or above the lines of slope -e^epsilon and -e^-epsilon through (0, 1 - delta) and (1 - delta, 0).
    """
    return min(1.0, (1 + delta * math.exp(-epsilon)) / (1 + math.exp(-epsilon)))


def _hundredths(share: float) -> str:
    """Return a share in hundredths, rounded up."""
    digits = 0 if share < 0.99 else 2
    return f"{math.ceil(share * 100 * 10**digits - 1e-9) / 10**digits:g}"


def _round(value: float) -> str:
    return f"{float(f'{value:.2g}'):,.0f}"
