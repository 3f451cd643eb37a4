"""Neighbouring tables of the distinguishing attack, chosen so that one row shows as much as it can."""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

import attrs
import numpy as np

from cloister.core.types import Floats
from cloister.lab.bench.audit.form import FAR
from cloister.lab.bench.audit.subject import AuditTable

COUNT = 5
"""Number of scenarios of each relation."""


WIDE = 8
"""Columns of the scenario in which a budget is shared by many columns."""


@final
@attrs.frozen(eq=False)
class Scenario:
    """Two neighbouring tables. Args: name, description, without (the row), having (it)."""

    name: str
    description: str
    without: AuditTable
    having: AuditTable


def scenarios(relation: str) -> Iterator[Scenario]:
    """Yield the scenarios. Args: relation ('add-or-remove' or 'replace')."""
    rng = np.random.default_rng(17)
    corner = rng.uniform(-1, -0.98, (20, 2))
    away = "a row in one corner, all others in the opposite one"
    yield _scenario("one centre", f"{away}, one centre", corner, [1.0, 1.0], 1, relation)
    yield _scenario("two centres", f"{away}, two centres", corner, [1.0, 1.0], 2, relation)
    if relation == "replace":  # where every centre may be one person's report
        yield _scenario("few", f"{away}, two rows and two centres", corner[:1], [1.0, 1.0], 2, relation)
    else:
        middle = rng.uniform(-0.01, 0.01, (4, 2))
        yield _scenario(
            "few", "a row in a corner, four others in the middle, one centre", middle, [1.0, 1.0], 1, relation
        )
    wide = rng.uniform(-1, -0.98, (20, WIDE))
    yield _scenario("wide", f"{away}, {WIDE} columns, one centre", wide, [1.0] * WIDE, 1, relation)
    crowd = rng.uniform(-0.9, 0.9, (20, 2))
    yield _scenario("outside", f"a row at {FAR:g}, outside the bounds -1 and 1", crowd, [FAR, FAR], 2, relation)


def _scenario(name: str, description: str, crowd: Floats, row: list[float], k: int, relation: str) -> Scenario:
    """Return a scenario in which a row is added to a crowd, or replaces another copy of the crowd's first row."""
    having = np.concatenate([crowd, [row]])
    without = crowd if relation == "add-or-remove" else np.concatenate([crowd, crowd[:1]])
    n = len(having)
    return Scenario(name, description, AuditTable(rows=without, k=k, n=n), AuditTable(rows=having, k=k, n=n))
