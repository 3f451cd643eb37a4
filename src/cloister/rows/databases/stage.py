"""A table on its way to an answer: every step names what it computes, so that nothing is computed twice. Beside them
stand what a round's public objects say of themselves for compiling, and exact arithmetic in SQL.

Numbers are doubles that hold integers below 2^53, and single operations that IEEE 754 rounds correctly. Every engine
has DOUBLE, and its sums, products, quotients and square roots of two numbers are the same everywhere: so what is
written here gives the bits that NumPy gives, as long as no number passes 2^53 where exactness is claimed. What an
engine does with each operation is tried when it is connected (``rows.databases.database``).
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, Self, TypeAlias, final

import attrs
import ibis
import numpy as np

from cloister.core.buckets import BundleArrays, described
from cloister.core.errors import CloisterError, Refused
from cloister.core.lattice import EXACT, Bound
from cloister.core.types import AnyArray, Floats, Ints

Expr: TypeAlias = Any
"""An expression of Ibis: one value per row of a table."""

LARGEST = sys.float_info.max
"""Largest finite double."""

TO_EVEN = 3 * 2**51
"""Added to a double of at most 2^51 and taken away again, it leaves the nearest integer, ties to the even one."""


def number(value: float) -> Expr:
    """A double, as it is: engines read some texts of numbers as decimals."""
    if float(value).is_integer() and abs(value) < 2**53:
        return ibis.literal(int(value)).cast("float64")
    return ibis.literal(repr(float(value))).cast("float64")


def total(terms: Sequence[Expr]) -> Expr:
    """Their sum."""
    return _in_pairs(operator.add, terms) if terms else number(0)


def every(conditions: Sequence[Expr]) -> Expr:
    """Whether all of them, at least one, are true."""
    return _in_pairs(operator.and_, conditions)


def _in_pairs(joined: Callable[[Expr, Expr], Expr], terms: Sequence[Expr]) -> Expr:
    """Engines, and what writes SQL, limit how deep an expression may be."""
    while len(terms) > 1:
        pairs = [joined(terms[i], terms[i + 1]) for i in range(0, len(terms) - 1, 2)]
        terms = [*pairs, *(terms[-1:] if len(terms) % 2 else [])]
    return terms[0]


def finite(double: Expr) -> Expr:
    """Whether it is there, a number, and not infinite."""
    return double.between(number(-LARGEST), number(LARGEST)).fill_null(False)


def product(factors: Sequence[float] | Ints | Floats, row: Sequence[Expr]) -> Expr:
    """The inner product of public integers (d,) and a row."""
    return total([number(a) * x for a, x in zip(factors, row, strict=True) if a])


def squared(row: Sequence[Expr]) -> Expr:
    """The squared length of a row."""
    return total([x * x for x in row])


def rounded(x: Expr, unit: float = 1.0) -> Expr:
    """The nearest multiple of the unit, ties to the even one. Args: x, at most 2^51 units; unit, a power of two."""
    return (x + number(TO_EVEN * unit)) - number(TO_EVEN * unit)


def floored(x: Expr) -> Expr:
    """The integer below, as a double."""
    return x.floor().cast("float64")


def integer(value: int) -> Expr:
    """An integer of 64 bits, as it is."""
    return ibis.literal(int(value), "int64")


def truncated(x: Expr) -> Expr:
    """The integer next to it towards zero, as a double."""
    return ibis.ifelse(x < 0, -floored(-x), floored(x))


def clipped(x: Expr, low: float, high: float) -> Expr:
    """Within low and high. Args: x, a column, since it is written out three times: greatest(least()) is slower."""
    return ibis.ifelse(x > number(high), number(high), ibis.ifelse(x < number(low), number(low), x))


def where_below(x: Expr, cuts: Sequence[float] | Ints | Floats, values: Sequence[Expr]) -> Expr:
    """values[i], with i how many of the ascending cuts (m,) are at most x. Args: values (m + 1), expressions."""
    if len(values) == 1:
        return values[0]
    middle = len(cuts) // 2
    return ibis.ifelse(
        x < number(cuts[middle]),
        where_below(x, cuts[:middle], values[: middle + 1]),
        where_below(x, cuts[middle + 1 :], values[middle + 1 :]),
    )


def selected(index: Expr, values: Sequence[float] | Ints | Floats, first: int = 0) -> Expr:
    """values[index - first], a double. Args: index, an integer (if it is beyond the ends, the nearest of these)."""
    if all(value == values[0] for value in values):
        return number(values[0])
    middle = len(values) // 2
    low, high = selected(index, values[:middle], first), selected(index, values[middle:], first + middle)
    return ibis.ifelse(index < first + middle, low, high)


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


Description: TypeAlias = Mapping[str, Any]


class NotCompiled(CloisterError):
    """Something that has no form in SQL here, or one that is too long: rows are then located in Python."""


@final
class Described:
    """Descriptions of public objects, and what their arrays hold."""

    def __init__(self) -> None:
        self._arrays = BundleArrays()

    def of(self, part: object) -> Description:
        """Raises: NotCompiled: it does not describe itself."""
        try:
            return described(part, self._arrays)
        except Refused as error:
            raise NotCompiled(str(error)) from None

    def array(self, entry: Description) -> AnyArray:
        """The array that stands for this entry of a description."""
        kind, shape = np.dtype(f"<{entry['type']}"), entry["shape"]
        values = np.frombuffer(bytes(self._arrays.content), kind, int(np.prod(shape, dtype=np.int64)), entry["at"])
        return values.reshape(shape).astype(np.float64 if kind.kind == "f" else np.int64)


PLACES = 2**13
"""Most constants that a row's number is looked up among: engines take seconds to read more."""


@final
@attrs.frozen(eq=False)
class Near:
    """The centres (k, d) that rows are in the buckets of, and how far from them at most; None for any distance."""

    centers: Ints
    within: int | None


@final
@attrs.frozen(eq=False)
class Located:
    """Rows with their buckets.

    Args:
        stage: the rows.
        ids: names of columns of bucket ids, int64, -1 for none: what rows are counted by.
        levels: for each level, by which of ``ids`` it is counted, and how many bits its ids are shifted to the right.
        near: what is known of rows in a bucket.
    """

    stage: Stage
    ids: tuple[str, ...]
    levels: tuple[tuple[int, int], ...] = ((0, 0),)
    near: Near | None = None

    @property
    def first(self) -> str:
        """The name of the column of the first level's ids. Raises: NotCompiled: there is none, only a finer level's."""
        group, down = self.levels[0]
        if down:
            raise NotCompiled("vectors that differ by the buckets of a coarser level have no form in SQL")
        return self.ids[group]


Locate: TypeAlias = Callable[[Stage, Description, Described], Located]


def one_level(stage: Stage, ids: Expr, near: Near | None = None) -> Located:
    """Buckets of one level."""
    stage, names = stage.add(ids)
    return Located(stage, tuple(names), near=near)


def longest(stage: Stage) -> int:
    """The largest norm of a lattice row."""
    assert stage.bound is not None
    return stage.bound.l2


def refuse_long(stage: Stage, terms: int) -> None:
    """Raises: NotCompiled: a query would have more products than the engine works out in time."""
    if terms > stage.terms:
        raise NotCompiled(f"a query of {terms} products is slower than reading the rows (the most is {stage.terms})")


def refuse_wide(places: int) -> None:
    """Raises: NotCompiled: a query would have more constants than engines read in time."""
    if places > PLACES:
        raise NotCompiled(f"a query of {places} constants is too long")


def refuse_inexact(largest: float) -> None:
    """Args: largest, of all numbers on the way to a result. Raises: NotCompiled: doubles would not be exact."""
    if not largest < EXACT:
        raise NotCompiled("numbers of this size are not exact in doubles")
