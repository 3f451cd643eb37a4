"""The columns of a table that are used, and the features that they become."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, final, runtime_checkable

import attrs

from cloister.core.domains import Lattice
from cloister.core.frames import DropColumns
from cloister.core.types import AnyArray
from cloister.rows.categories import Category, categories_of
from cloister.rows.words import Texts

SHOWN = 20
"""Most columns that a message names."""


@final
@attrs.frozen
class Selection:
    """The columns of a table that are used.

    Args:
        used: their names in the table, in order.
        categories: those of them that hold categories.
        booleans: those that are declared to hold booleans.
        left_out: name and reason of each of the others.
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
    def wordless(self) -> Selection:
        """The columns without the one whose words are counted."""
        return attrs.evolve(self, texts=())

    def needed(self, lattice: Lattice | None) -> Selection:
        """The same, without a look at words that a lattice keeps nothing of. Args: lattice (None: nothing is kept)."""
        others = lattice.others if isinstance(lattice, DropColumns) else 0
        unread = lattice is None or others >= sum(len(texts.features) for texts in self.texts)
        return attrs.evolve(self, texts=tuple(attrs.evolve(t, read=False) for t in self.texts)) if unread else self

    @property
    def clustered(self) -> Selection:
        """The columns that are clustered by."""
        used = self.used[: len(self.used) - self.beside]
        categories = tuple(category for category in self.categories if category.column in used)
        booleans = tuple(name for name in self.booleans if name in used)
        return attrs.evolve(self, used=used, categories=categories, booleans=booleans, described=(), beside=0, texts=())

    def place(self, column: str) -> int:
        """Position of a column in use among the features: of a category its first value."""
        return sum(len(self._features(name)) for name in self.used[: self.used.index(column)])

    def describing(self, told: Sequence[str | Texts]) -> Selection:
        """These columns, where no table tells of others, with numbers and words beside them that groups are described
        by too."""
        names = tuple(dict.fromkeys(each for each in told if isinstance(each, str)))
        texts = tuple(each for each in told if isinstance(each, Texts))
        more = tuple(name for name in names if name not in self.used)
        return attrs.evolve(self, used=self.used + more, described=names, beside=len(more), texts=texts)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of what is clustered by: columns, and a category's values, as in 'ward=A'; and of rows' words."""
        words = (name for texts in self.texts for name in texts.features)
        return (*(name for column in self.used for name in self._features(column)), *words)

    @property
    def numbers(self) -> tuple[str, ...]:
        """Names of the columns in use that are no categories."""
        return tuple(name for name in self.used if name not in self._by_column)

    @property
    def one_hot(self) -> tuple[int, ...]:
        """For each feature, how many values its category has, 0 for one of numbers; empty if all are."""
        kinds = tuple(self._values(column) for column in self.used for _ in self._features(column))
        return kinds if any(kinds) else ()

    @property
    def words(self) -> str:
        """One line for people."""
        named = [*(f"{name} (category)" if name in self._by_column else name for name in self.used)]
        used = few(named[: len(named) - self.beside])
        used += f"; described only: {few(named[-self.beside :])}" if self.beside else ""
        used += "".join(f"; words of: {texts.column}" for texts in self.texts)
        rest = few([f"{name} ({why})" for name, why in self.left_out])
        return f"columns used: {used}" + (f"; left out: {rest}" if rest else "")

    def category(self, column: str) -> Category | None:
        return self._by_column.get(column)

    def spread(self, piece: Sequence[AnyArray]) -> list[AnyArray]:
        """The features of some rows, given the columns in use as numbers (n,), categories as their codes (n,), and
        last texts as their words' halves (2 m, n)."""
        found, d = list[AnyArray](), len(self.used)
        for column, cells in zip(self.used, piece[:d], strict=True):
            category = self.category(column)
            found += [cells] if category is None else category.one_hot(cells)
        return [*found, *(half for halves in piece[d:] for half in halves)]

    def recorded(self) -> dict[str, list[str]]:
        """The categories, as a result records them."""
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
    """A population whose ``columns`` come from those of a table, by a rule that looks at no cell."""

    @property
    def selection(self) -> Selection | None:
        """Which columns are used, and which are left out; None where the rows are no table's."""


def table_columns(features: Sequence[str], categories: Mapping[str, Sequence[str]]) -> list[str]:
    """The columns of a table that these features were made of: what ``Selection.features`` names, turned back."""
    made = {feature: category.column for category in categories_of(categories) for feature in category.features}
    return list(dict.fromkeys(made.get(feature, feature) for feature in features))


def in_order(names: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """Return names in the order in which they are wanted, where they are the same ones: nobody names the same columns
    in another order, or a pattern of them, to have one read as another. Else as they are."""
    return list(wanted) if sorted(names) == sorted(wanted) else list(names)


def few(texts: Sequence[str]) -> str:
    shown = [text if text and text[0] != " " else f"''{text}" for text in texts[:SHOWN]]
    more = len(texts) - len(shown)
    return ", ".join(shown) + (f", and {more} more" if more else "")
