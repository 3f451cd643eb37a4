"""The columns of a table that are used, and the features that they become."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, final, runtime_checkable

import attrs

from cloister.core.domains import Lattice
from cloister.core.frames import DropColumns
from cloister.core.types import AnyArray
from cloister.rows.categories import Category, categories_of
from cloister.rows.keywords import Texts

SHOWN = 20
"""Number of columns that a message names at most."""


@final
@attrs.frozen
class Selection:
    """The columns of a table that are used.

    Args:
        used: their names in the table, in order.
        categories: those of them that hold categories.
        booleans: those that are declared to hold booleans.
        left_out: name and reason of each other column.
        by_name: whether the table names its columns.
        described: those of them that groups are described by.
        beside: how many of the last ones are described only, and not clustered by.
        texts: the column whose words are counted, after all others, if there is one.
    """

    used: tuple[str, ...]
    categories: tuple[Category, ...] = ()
    booleans: tuple[str, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    by_name: bool = True
    described: tuple[str, ...] = ()
    beside: int = 0
    texts: tuple[Texts, ...] = ()

    @property
    def without_keywords(self) -> Selection:
        """The selection without the column whose words are counted."""
        return attrs.evolve(self, texts=())

    def needed(self, lattice: Lattice | None) -> Selection:
        """Return the selection as a pass needs it: words that a lattice drops are not looked at.

        Args:
            lattice: that rows are put on; None: rows are not kept.
        """
        dropped = lattice.others if isinstance(lattice, DropColumns) else 0
        unread = lattice is None or dropped >= sum(len(texts.features) for texts in self.texts)
        return attrs.evolve(self, texts=tuple(attrs.evolve(t, read=False) for t in self.texts)) if unread else self

    @property
    def clustered(self) -> Selection:
        """The columns that are clustered by."""
        used = self.used[: len(self.used) - self.beside]
        categories = tuple(category for category in self.categories if category.column in used)
        booleans = tuple(name for name in self.booleans if name in used)
        return attrs.evolve(self, used=used, categories=categories, booleans=booleans, described=(), beside=0, texts=())

    def place(self, column: str) -> int:
        """Return the position of a column among the features; of a category that of its first value."""
        return sum(len(self._features(name)) for name in self.used[: self.used.index(column)])

    def with_described(self, described: Sequence[str | Texts]) -> Selection:
        """Return the selection with columns that groups are described by, where no table has been asked for them.

        Those that are not in use stand beside the others.
        """
        names = tuple(dict.fromkeys(column for column in described if isinstance(column, str)))
        texts = tuple(column for column in described if isinstance(column, Texts))
        beside = tuple(name for name in names if name not in self.used)
        return attrs.evolve(self, used=self.used + beside, described=names, beside=len(beside), texts=texts)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features: columns, a category's values, as in 'ward=A', and the halves of rows' words."""
        words = (name for texts in self.texts for name in texts.features)
        return (*(name for column in self.used for name in self._features(column)), *words)

    @property
    def numbers(self) -> tuple[str, ...]:
        """Names of the columns in use that are no categories."""
        return tuple(name for name in self.used if name not in self._by_column)

    @property
    def one_hot(self) -> tuple[int, ...]:
        """Number of values of the category of each feature, 0 for numbers; empty if all are numbers."""
        kinds = tuple(self._values(column) for column in self.used for _ in self._features(column))
        return kinds if any(kinds) else ()

    @property
    def words(self) -> str:
        """One line for people."""
        named = [*(f"{name} (category)" if name in self._by_column else name for name in self.used)]
        used = few(named[: len(named) - self.beside])
        used += f"; described only: {few(named[-self.beside :])}" if self.beside else ""
        used += "".join(f"; words of: {texts.column}" for texts in self.texts)
        left_out = few([f"{name} ({why})" for name, why in self.left_out])
        return f"columns used: {used}" + (f"; left out: {left_out}" if left_out else "")

    def category(self, column: str) -> Category | None:
        return self._by_column.get(column)

    def spread(self, piece: Sequence[AnyArray]) -> list[AnyArray]:
        """Return the features of some rows.

        Args:
            piece: the columns in use as numbers (n,), categories as their codes (n,), and last the halves of words (2
                m, n).
        """
        features, d = list[AnyArray](), len(self.used)
        for column, cells in zip(self.used, piece[:d], strict=True):
            category = self.category(column)
            features += [cells] if category is None else category.one_hot(cells)
        return [*features, *(half for halves in piece[d:] for half in halves)]

    def recorded(self) -> dict[str, list[str]]:
        """Return the categories as a result records them."""
        return {category.column: list(category.values) for category in self.categories}

    @property
    def _by_column(self) -> dict[str, Category]:
        return {category.column: category for category in self.categories}

    def _values(self, column: str) -> int:
        category = self.category(column)
        return 0 if category is None else len(category.values)

    def _features(self, column: str) -> tuple[str, ...]:
        category = self.category(column)
        return (column,) if category is None else category.features


@runtime_checkable
class SelectsColumns(Protocol):
    """Population whose ``columns`` are chosen from those of a table, by a rule that looks at no cell."""

    @property
    def selection(self) -> Selection | None:
        """The columns in use and those left out; None where the rows are no table's."""


def table_columns(features: Sequence[str], categories: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the columns of a table that these features were made of: the inverse of ``Selection.features``."""
    made = {feature: category.column for category in categories_of(categories) for feature in category.features}
    return list(dict.fromkeys(made.get(feature, feature) for feature in features))


def in_order(names: Sequence[str], order: Sequence[str]) -> list[str]:
    """Return names in this order if they are the same ones, else as they are.

    So nobody who names a result's columns in another order, or by a pattern, has one read as another.
    """
    return list(order) if sorted(names) == sorted(order) else list(names)


def few(texts: Sequence[str]) -> str:
    """Return the first names as one text, and how many there are besides."""
    shown = [text if text and text[0] != " " else f"''{text}" for text in texts[:SHOWN]]
    hidden = len(texts) - len(shown)
    return ", ".join(shown) + (f", and {hidden} more" if hidden else "")
