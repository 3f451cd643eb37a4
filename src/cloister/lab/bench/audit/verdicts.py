"""Verdict of a check, and the badge of an entrant that all verdicts make."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, final

import attrs

State: TypeAlias = Literal["passed", "failed", "not applicable"]


@final
@attrs.frozen
class Verdict:
    """Outcome of a check.

    Args:
        check: its name.
        state: ``passed``, ``failed`` or ``not applicable``.
        reason: in one line.
        command: that shows it.
        figures: of the check, for programs.
    """

    check: str
    state: State
    reason: str
    command: str = ""
    figures: dict[str, Any] = attrs.field(factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        return attrs.asdict(self)


def passed(check: str, reason: str, **figures: Any) -> Verdict:
    """Return the verdict of a check that found no fault."""
    return Verdict(check, "passed", reason, figures=figures)


def failed(check: str, reason: str, **figures: Any) -> Verdict:
    """Return the verdict of a check that found a fault."""
    return Verdict(check, "failed", reason, figures=figures)


def not_applicable(check: str, reason: str, **figures: Any) -> Verdict:
    """Return the verdict of a check that has nothing to test, or could not."""
    return Verdict(check, "not applicable", reason, figures=figures)


def badge(private: bool, verdicts: Sequence[Verdict]) -> str:
    """Return the badge in a few words. Args: private (whether the entrant states a guarantee), verdicts."""
    faults = [verdict.check for verdict in verdicts if verdict.state == "failed"]
    tested = sum(verdict.state == "passed" for verdict in verdicts)
    prefix = "" if private else "not private; "
    if faults:
        return f"{prefix}failed: {', '.join(faults)}"
    return f"{prefix}passed {tested} of {len(verdicts)} checks" if verdicts else f"{prefix}not audited"
