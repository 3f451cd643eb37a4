"""Errors: what was given, what was expected, what to do next. The command line prints one line and exits with 2."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class CloisterError(Exception):
    """Base of all errors that a user can cause or should see."""


class InvalidInput(CloisterError):
    """An argument, option, file or row that cannot be used."""


class UnknownName(InvalidInput):
    """A component, slot, option or column that does not exist.

    Attributes: kind (what was looked for), name (what was given), near (the closest existing names, of capital or
    small letters).
    """

    def __init__(self, kind: str, name: str, known: Iterable[str], hint: str = "") -> None:
        choices, alike = sorted(known), dict[str, list[str]]()
        for choice in choices:
            alike.setdefault(choice.casefold(), []).append(choice)
        self.kind, self.name = kind, name
        near = difflib.get_close_matches(name.casefold(), alike, n=3, cutoff=0.5)
        self.near = [choice for text in near for choice in alike[text]][:3]
        offer = (
            f"did you mean {' or '.join(self.near)}?" if self.near else f"choose from: {', '.join(choices) or 'none'}"
        )
        super().__init__(f"no {kind} '{name}': {offer}{' ' + hint if hint else ''}")


class WrongComposition(InvalidInput):
    """Components that do not fit: names the slot, what it needs, what it was given, what is installed."""


class MissingExtra(CloisterError):
    """A library that an optional feature needs is not installed."""

    def __init__(self, library: str, extra: str, purpose: str) -> None:
        from cloister.core.installing import command  # reads what pip has written: only where it is needed

        self.library, self.extra = library, extra
        super().__init__(f"{purpose} needs {library}: {command(library, extra)}")


class BudgetExceeded(CloisterError):
    """More privacy was asked for than is left. No row was read.

    Attributes: asked, left (both as text in the budget's own measure).
    """

    def __init__(self, asked: str, left: str, where: str = "the budget") -> None:
        self.asked, self.left = asked, left
        super().__init__(f"{where} has {left} left, {asked} was asked: nothing was read or spent")


class PrivacyWarning(UserWarning):
    """A setting that protects people less than they may think."""


class UtilityWarning(UserWarning):
    """A run whose result tells hardly anything, or will."""


class Refused(CloisterError):
    """A round, record or plan that does not belong to this run. Nothing was answered."""


class Damaged(CloisterError):
    """A ledger, result or plan file that cannot be trusted."""
