"""Checks of an entrant's output where programs break: an empty cluster, a neighbouring table, rows out of bounds."""

from __future__ import annotations

import numpy as np

from cloister.core.types import Floats
from cloister.lab.bench.audit.subject import AuditTable, Subject
from cloister.lab.bench.audit.verdicts import Verdict, failed, not_applicable, passed
from cloister.lab.bench.running import RunFailure

FAR = 1e6
"""Coordinate of the row outside the bounds [-1, 1]."""

EDGE = 1e-6
"""Distance beyond the bounds that rounding may bring about."""

NO_GUARANTEE = "it states no guarantee"


def empty_cluster(subject: Subject) -> Verdict:
    """Check five centres for rows in two places, so that clusters are empty: no release may quote a row."""
    rng = np.random.default_rng(5)
    places = np.repeat(rng.uniform(-0.9, 0.9, (2, 2)), 40, axis=0)
    answer = subject.run(AuditTable(rows=places, k=5, n=80))
    if isinstance(answer, RunFailure):
        return failed("empty cluster", f"five centres of rows in two places: {answer.text}")
    if subject.entrant.facts.private and (count := quoted(answer.centers[0], places)):
        return failed("empty cluster", f"{count} of five centres equal a row to the last digit, without noise")
    return passed("empty cluster", "five finite centres of rows in two places")


def quoted(centers: Floats, rows: Floats) -> int:
    """Return the number of centres (k, d) that equal a row (n, d) in every bit."""
    known = {row.tobytes() for row in np.ascontiguousarray(rows)}
    return sum(center.tobytes() in known for center in np.ascontiguousarray(centers))


def neighbours(subject: Subject) -> Verdict:
    """Check that a row more or less, with the same public number of rows, changes nothing in how it ends."""
    rows = _blobs(61)
    ends = list[str]()
    for count in (59, 60, 61):
        answer = subject.run(AuditTable(rows=rows[:count], k=3, n=60))
        ends.append(answer.text if isinstance(answer, RunFailure) else "")
    if not any(ends):
        return passed("neighbours", "it runs alike on 59, 60 and 61 rows of which 60 are public")
    different = f"on 59, 60, 61 rows: {'; '.join(end or 'it runs' for end in ends)}"
    if len(set(ends)) == 1:
        return failed("neighbours", f"it fails on 60 rows: {ends[0]}")
    return failed("neighbours", f"it ends differently {different}: that tells their number")


def outside(subject: Subject) -> Verdict:
    """Check that centres stay in the public bounds, and that it runs, where a row lies far outside."""
    if not subject.entrant.facts.private:
        return not_applicable("outside", NO_GUARANTEE)
    rows = np.concatenate([_blobs(60), [[FAR, FAR]]])
    widest = 0.0
    for seed in (1, 2, 3):
        answer = subject.run(AuditTable(rows=rows, k=3, n=60), seed=seed)
        if isinstance(answer, RunFailure):
            return failed("outside", f"it fails where a row lies outside the bounds, which tells: {answer.text}")
        widest = max(widest, float(np.abs(answer.centers).max()))
    if widest > 1 + EDGE:
        return failed(
            "outside",
            f"a centre has the coordinate {widest:.4g}; the bounds are -1 and 1, and one row lies at {FAR:g}",
            widest=widest,
        )
    return passed("outside", f"all centres are within the bounds -1 and 1 where one row lies at {FAR:g}")


def _blobs(count: int) -> Floats:
    rng = np.random.default_rng(7)
    centers = np.array([[-0.6, -0.6], [0.6, -0.4], [0.0, 0.7]])
    return np.clip(centers[np.arange(count) % 3] + rng.normal(0, 0.08, (count, 2)), -1, 1)
