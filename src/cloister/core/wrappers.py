"""Methods that wrap another one: what a run's layers are made of, and what they tell about themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, final

import attrs

from cloister.core.clustering import Problem

METHOD = "method"
"""The slot of a wrapper that holds the method within."""


@final
@attrs.frozen
class ColumnNames:
    """Names of a problem's columns, for texts and records.

    Args:
        features: of every column, in order; of a category one for each value, as in 'ward=A'.
        categories: listed values by column.
        words: the column whose words are counted; empty if there is none.
    """

    features: tuple[str, ...]
    categories: Mapping[str, Sequence[str]]
    words: str = ""


class Wrapper(Protocol):
    """A method that adds something to the one in its slot ``method``; its ``Spec.adds`` says what.

    Law: the method within sees the problem's first columns in the caller's units, or in a frame (``has_frame``) all of
    them. Texts and records follow from public and released figures, and are empty where there is nothing to say.
    """

    @property
    def has_frame(self) -> bool:
        """True if the inner method works in units of its own; at most the innermost wrapper has such a frame."""
        ...

    def share_of(self, problem: Problem) -> float:
        """Return the share of the problem's budget that the wrapper itself spends."""
        ...

    def inner(self, problem: Problem) -> Problem:
        """Return the inner method's problem, or raise InvalidInput if the wrapper's own questions cannot be asked."""
        ...

    def price(self, problem: Problem, columns: ColumnNames, part: float) -> str:
        """Describe what the wrapper spends and its error; the problem has ``part`` of the run's budget."""
        ...

    def warning(self, problem: Problem) -> str:
        """Return a warning if the budget buys hardly anything; else empty."""
        ...

    def notes(self, problem: Problem, columns: ColumnNames, part: float, details: Mapping[str, Any]) -> tuple[str, ...]:
        """Return sentences for a run's privacy statement. Each begins with what happened, for the brief form."""
        ...

    def facts(self, columns: ColumnNames) -> dict[str, Any]:
        """Return public facts that a result records with its problem, by name."""
        ...
