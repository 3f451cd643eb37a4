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
        """Whether the method within works in units of its own. Of wrapped wrappers at most the innermost one has."""
        ...

    def share_of(self, problem: Problem) -> float:
        """The share of the problem's budget that the wrapper itself spends."""
        ...

    def inner(self, problem: Problem) -> Problem:
        """The problem of the method within. Raises: InvalidInput: the wrapper cannot ask what it has to."""
        ...

    def price(self, problem: Problem, columns: ColumnNames, part: float) -> str:
        """What the wrapper spends, and how exact that is. Args: part, of the run's budget that the problem has."""
        ...

    def warning(self, problem: Problem) -> str:
        """What to expect where the budget buys hardly anything."""
        ...

    def notes(self, problem: Problem, columns: ColumnNames, part: float, details: Mapping[str, Any]) -> tuple[str, ...]:
        """Sentences of a run's privacy statement. Args: details, of the result; others as of ``price``."""
        ...

    def facts(self, columns: ColumnNames) -> dict[str, Any]:
        """Public facts that a result records with its problem, by name."""
        ...
