"""Rows put on the lattice in SQL: the domains of ``docs/reference/format.md``, operation for operation."""

from __future__ import annotations

from collections.abc import Callable

from cloister.sql.arithmetic import clipped, number, rounded
from cloister.sql.bundles import Description, NotCompiled
from cloister.sql.stage import Stage


def snapped(stage: Stage, domain: Description) -> Stage:
    """Rows of features to lattice rows. Raises: NotCompiled: there is no SQL for such a domain."""
    if domain["kind"] not in KINDS:
        raise NotCompiled(f"a domain of kind '{domain['kind']}' has no form in SQL")
    return KINDS[domain["kind"]](stage, domain)


def _box(stage: Stage, domain: Description) -> Stage:
    unit = float(domain["unit"])
    ends = zip(domain["lower"], domain["upper"], domain["middle"], domain["sides"], strict=True)
    return stage.moved([
        clipped(
            rounded((clipped(x, number(low), number(high)) - number(middle)) * number(1 / unit)),
            number(-side), number(side),
        )
        for x, (low, high, middle, side) in zip(stage.x, ends, strict=True)
    ])  # fmt: skip


KINDS: dict[str, Callable[[Stage, Description], Stage]] = {"box": _box}
"""How each kind of domain is compiled."""
