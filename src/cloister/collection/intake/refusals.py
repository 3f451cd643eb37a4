"""Statistics of an intake: how much was accepted, and how much was refused for which reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, final

import attrs

from cloister.core.errors import Refused


@final
@attrs.frozen
class InputKind:
    """A kind of input. Args: name, reasons (what each refuses), errors (ends of the error texts of a strict intake)."""

    name: str
    reasons: Mapping[str, str]
    errors: Mapping[str, str]


def _errors(reasons: Mapping[str, str]) -> dict[str, str]:
    return {r: f" is one of the {what}" if what.startswith("files") else f" has {what}" for r, what in reasons.items()}


_REPORTS = {
    "another plan": "files or batches of reports that answer another plan",
    "no reports": "files that hold no reports of this form",
    "damaged": "files or batches that are damaged or cut short",
    "out of range": "reports of user numbers that the plan does not have",
    "not as asked": "reports that answer what their user is not asked, or leave out what she is asked",
    "impossible": "reports with an answer that no encoder of this plan sends",
    "duplicate": "reports of users who have reported already",
}
_SHUFFLED = {
    "not as asked": "messages that answer no question, or more than one",
    "impossible": "messages with an answer that no encoder of this plan sends",
}
_MESSAGES = {
    "another plan": "files or batches that answer another plan",
    "no messages": "files that hold no messages of this form",
    "damaged": "files or batches that are damaged or cut short",
    "out of range": "people whose numbers the plan does not have",
    "not as asked": "people who sent too few messages, too many, or such as answer no question",
    "impossible": "people with a message that no encoder of this plan sends",
    "duplicate": "people who have sent messages already",
}
REPORTS = InputKind("reports", _REPORTS, _errors(_REPORTS))
SHUFFLED = InputKind("messages", _REPORTS, _errors(_SHUFFLED))
MESSAGES = InputKind("messages", _MESSAGES, {reason: f": refused {what}" for reason, what in _MESSAGES.items()})
"""Reports of users; messages released by a shuffler; messages of users on their way to the shuffler."""


@final
@attrs.define
class Intake:
    """How much of an input was accepted and refused. All of it is public: reports are, messages have no sender here.

    Args:
        kind: what was sent.
        strict: raise at the first refusal.
        files: number of files read.
        others: files in the folders with another extension; skipped.
        earlier: files of reports of closed rounds; skipped, and not in ``files``.
        accepted: number of users who count.
        questions: accepted reports or messages per question.
        refused: number of files, reports, messages or users refused, per reason.
        first: the first file with each reason.
        doubts: shares that chance does not explain (``collection.server.laws``), accepted all the same.
        withstands: the share of lies that answers were read for (``collection.server.robust``); None: as they are.
    """

    kind: InputKind
    strict: bool = False
    files: int = 0
    others: int = 0
    earlier: int = 0
    unfinished: int = 0
    accepted: int = 0
    questions: list[int] = attrs.field(factory=list)
    refused: Counter[str] = attrs.field(factory=Counter)
    first: dict[str, str] = attrs.field(factory=dict)
    doubts: list[str] = attrs.field(factory=list)
    withstands: float | None = None

    def refuse(self, reason: str, count: int, path: str) -> None:
        """Count refusals. Raises: Refused: the intake is strict."""
        self.refused[reason] += count
        self.first.setdefault(reason, path)
        if self.strict:
            raise Refused(f"'{path}'{self.kind.errors[reason]}")

    def add(self, other: Intake, files: Sequence[str]) -> None:
        """Add what was read elsewhere. Args: files (all that are read, in order, for the first with each reason).
        Raises: Refused: something was refused there, and the intake is strict."""
        self.files, self.accepted = self.files + other.files, self.accepted + other.accepted
        self.earlier, self.unfinished = self.earlier + other.earlier, self.unfinished + other.unfinished
        self.questions = [a + b for a, b in zip(self.questions, other.questions, strict=True)]
        self.refused += other.refused
        for reason, path in other.first.items():
            self.first[reason] = min(path, self.first.get(reason, path), key=files.index)
        if self.strict and other.first:
            reason, path = next(iter(other.first.items()))
            raise Refused(f"'{path}'{self.kind.errors[reason]}")

    @property
    def reasons(self) -> dict[str, int]:
        """Number of refusals for every reason, zeros included."""
        return {reason: self.refused[reason] for reason in self.kind.reasons}

    def as_dict(self, planned: int) -> dict[str, Any]:
        """Plain data. Args: planned (number of users in the plan)."""
        return {
            "accepted": self.accepted,
            "share of the planned users": self.accepted / planned,
            "per question": self.questions,
            "files": self.files,
            "refused": self.reasons,
            **({"doubts": self.doubts} if self.doubts else {}),
            **({} if self.withstands is None else {"withstands": self.withstands}),
        }

    def lines(self) -> list[str]:
        """For people: a line for each reason, kind of skipped file and doubt."""
        words, left = self.kind.reasons, {"of another kind": self.others, "of rounds that are closed": self.earlier}
        found = [f"refused {n:,} {words[r]} (the first: '{self.first[r]}')" for r, n in self.reasons.items() if n]
        found += [f"left alone {count:,} files {what}" for what, count in left.items() if count]
        if self.unfinished:
            found.append(f"left alone {self.unfinished:,} bytes at the ends of files: no whole batch, or not yet")
        if self.withstands is not None:
            found.append(f"read as if {self.withstands:.3g} of the reports lied: what these can invent is left out")
        return found + [f"WARNING: {doubt}" for doubt in self.doubts]
