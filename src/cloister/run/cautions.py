"""Warnings about a run, the same at the command line and in Python: what public figures say before anything is spent,
and what the released ones say afterwards."""

from __future__ import annotations

import math
from collections.abc import Iterator

from cloister.core.errors import PrivacyWarning, UtilityWarning
from cloister.run import beyond
from cloister.run.beyond import unlisted
from cloister.run.request import PreparedRun
from cloister.run.result import Result
from cloister.run.statement import large_delta

LOUD = 10.0
"""Epsilons above hide little: the promise is a factor of e^epsilon, here 22,026."""

HARDLY_ANY = 0.01
"""A centre with less than this share of the average noisy size holds hardly any rows."""


def before(plan: PreparedRun) -> Iterator[UserWarning]:
    """Warnings by public figures, before a row is read. Those that depend on the number of rows wait for it: if it is
    still to be counted, ``after`` and the statement have them."""
    if not plan.composed.private:
        return
    epsilon, delta = plan.total.epsilon, plan.total.delta
    if epsilon > LOUD:
        times = f"e^{epsilon:g}" + (f" = {math.exp(epsilon):,.0f}" if epsilon < 20 else "")
        yield PrivacyWarning(
            f"epsilon = {epsilon:g} hides little: a result may be {times} times as likely with a person's row as "
            f"without it. At most 1 protects well, above {LOUD:g} hardly"
        )
    if plan.rows is None:
        return
    if text := large_delta(delta, plan.rows):
        yield PrivacyWarning(text)
    if text := plan.warning:
        yield UtilityWarning(text)


def after(result: Result) -> Iterator[UserWarning]:
    """Warnings of the released centres, by released figures."""
    if result.weights is not None and (empty := int((result.weights < HARDLY_ANY * result.weights.mean()).sum())):
        yield UtilityWarning(
            f"{empty} of {len(result.centers)} centres hold hardly any rows by their noisy counts: fewer centres, "
            f"narrower bounds or more budget would use them better"
        )
    for text in beyond.warnings(result):
        yield UtilityWarning(text)
    if text := result.details.get("auto", {}).get("warning"):
        yield UtilityWarning(text)
    for text in unlisted(result):
        yield UtilityWarning(text)
