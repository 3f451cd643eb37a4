"""A table on its way to an answer: every step names what it computes, so that nothing is computed twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, Self, TypeAlias, final

import attrs

from cloister.core.lattice import Bound
from cloister.core.types import Ints
from cloister.sql.arithmetic import Expr, integer, where_below

Fence: TypeAlias = Callable[[Any], Any]
"""From a table to the same one, that an engine does not merge with what is made of it."""

Steps: TypeAlias = Callable[[Expr, Ints, Ints, int], Expr]
"""As ``stepped``."""


def stepped(x: Expr, cuts: Ints, values: Ints, reach: int) -> Expr:
    """values[i], with i how many of the ascending cuts (m,) are at most x.

    Args: x, a column of whole doubles; values (m + 1,); reach, what no |x| is beyond.
    """
    return where_below(x, cuts, [integer(value) for value in values])


TERMS = 2**12
"""Products in a query: longer ones take Ibis, and some engines, ten seconds to write and read."""


@final
@attrs.frozen(eq=False)
class Stage:
    """Rows in an engine, with what was computed of them so far.

    Args:
        table: of Ibis.
        row: names of the columns (d,) that hold the rows, as doubles.
        fence: keeps a step a step.
        terms: most products of a row's numbers in one query.
        bound: norms that no row is beyond, once rows are on the lattice: public, they are of the domain.
        steps: which of many steps a number is on, as the engine finds it fastest.
        names: of columns that are still to be made.
    """

    table: Any
    row: tuple[str, ...]
    fence: Fence
    terms: int = TERMS
    bound: Bound | None = None
    steps: Steps = stepped
    names: Any = attrs.field(factory=count, repr=False)

    @property
    def x(self) -> list[Expr]:
        """The rows' numbers (d,)."""
        return [self.table[name] for name in self.row]

    def add(self, *computed: Expr) -> tuple[Self, list[str]]:
        """The same with new columns, and their names."""
        made = [f"v{next(self.names)}" for _ in computed]
        table = self.table.mutate(**dict(zip(made, computed, strict=True)))
        return attrs.evolve(self, table=self.fence(table)), made

    def moved(self, row: Sequence[Expr]) -> Self:
        """The same with other numbers as its rows."""
        stage, made = self.add(*row)
        return attrs.evolve(stage, row=tuple(made))

    def __getitem__(self, name: str) -> Expr:
        return self.table[name]
