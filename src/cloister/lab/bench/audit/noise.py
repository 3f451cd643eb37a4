"""Checks of an entrant's noise and of its own account of the budget."""

from __future__ import annotations

import numpy as np

from cloister.core.types import Floats
from cloister.lab.bench.audit.form import NO_GUARANTEE
from cloister.lab.bench.audit.subject import AuditTable, Subject
from cloister.lab.bench.audit.verdicts import Verdict, failed, not_applicable, passed
from cloister.lab.bench.running import RunFailure
from cloister.lab.bench.statement import BadStatement, composed

ROUNDING = 1e-6
"""Relative excess of a sum over the budget that is put down to rounding."""


def equal_seeds(subject: Subject) -> Verdict:
    """Check that the noise differs between runs on the same rows with the same seed."""
    facts = subject.entrant.facts
    if not facts.private:
        return not_applicable("equal seeds", NO_GUARANTEE)
    seeds = (1, 1, 1) if facts.seed == "public" else (1, 2, 3)
    rows = np.random.default_rng(11).uniform(-0.9, 0.9, (200, 2))
    releases = list[Floats]()
    for seed in seeds:
        answer = subject.run(AuditTable(rows=rows, k=3, n=200), seed=seed)
        if isinstance(answer, RunFailure):
            return failed("equal seeds", f"it fails on 200 rows: {answer.text}")
        releases.append(answer.centers[0])
    same = all(np.array_equal(releases[0], release) for release in releases[1:])
    which = "the same seed" if facts.seed == "public" else "different seeds"
    if same:
        return failed(
            "equal seeds", f"three runs on the same rows with {which} gave the same centres: its noise is fixed"
        )
    if facts.seed == "test-only":
        return passed("equal seeds", "its noise follows the seed, as it states: for tests only, nobody is protected")
    return passed("equal seeds", f"three runs on the same rows with {which} gave different centres")


def budget(subject: Subject) -> Verdict:
    """Check that the mechanisms of its statement add up to no more than it was given."""
    if not subject.entrant.facts.private:
        return not_applicable("budget", NO_GUARANTEE)
    rows, given = np.random.default_rng(13).uniform(-0.9, 0.9, (200, 2)), (1.0, subject.delta)
    answer = subject.run(AuditTable(rows=rows, k=3, n=200), epsilon=given[0])
    if isinstance(answer, RunFailure):
        return failed("budget", f"it fails on 200 rows: {answer.text}")
    if answer.statement is None:
        return not_applicable("budget", "it writes no statement of its mechanisms")
    try:
        epsilon, delta = composed(answer.statement, given[1])
    except BadStatement as error:
        return failed("budget", str(error))
    text = (
        f"its mechanisms add up to epsilon = {epsilon:.4g}, delta = {delta:.3g}; given were {given[0]:g}, {given[1]:g}"
    )
    enough = epsilon <= given[0] * (1 + ROUNDING) and delta <= given[1] * (1 + ROUNDING)
    return (passed if enough else failed)("budget", text, epsilon=epsilon, delta=delta)
