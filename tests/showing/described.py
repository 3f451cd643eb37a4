"""A made result whose groups are described: three groups in two columns, by a category, numbers and booleans."""

from __future__ import annotations

from typing import Any

from cloister.run.result import Result
from tests.showing.report.pages import made

COUNTS = {
    "ward": [[700.0, 200, 100], [100, 1700, 200], [30, 20, 50]],
    "stay": [[1000.0, 0, 0, 0], [0, 1000, 1000, 0], [0, 0, 0, 100]],
    "urgent": [[900.0, 100], [500, 1500], [50, 50]],
}
"""Rows of each group by value: of sizes 1,000, 2,000 and 100."""

VALUES: dict[str, list[str]] = {"ward": ["A", "B"], "stay": [], "urgent": ["true"]}


def described(error: float = 3.0, values: dict[str, list[str]] = VALUES, **changes: Any) -> Result:
    """Args: error (standard error of each count), values (that each column lists, in this order)."""
    counts = list(COUNTS.values())
    told = {
        "columns": [0, 1, 2],
        "edges": [[], [0.0, 5.0, 10.0, 15.0, 20.0], []],
        "counts": counts,
        "errors": [[[error] * len(row) for row in each] for each in counts],
    }
    problem = {**made(2).problem, "described": values}
    return made(2, **{"problem": problem, "details": {"described": told}, **changes})
