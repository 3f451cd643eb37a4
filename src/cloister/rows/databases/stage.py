"""Tables under construction whose steps are named columns, and exact arithmetic in SQL.

Also the descriptions of a round's public objects from which they are compiled.

Numbers are doubles that hold integers below 2^53, and single operations that IEEE 754 rounds correctly. Every engine
has DOUBLE, and its sums, products, quotients and square roots of two numbers are the same everywhere: so the results
equal NumPy's bit for bit, as long as no number passes 2^53 where exactness is claimed. Each engine's arithmetic is
checked on connection (``rows.databases.probe``).
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

from cloister.core.buckets import BundleArrays, describe_part
from cloister.core.errors import CloisterError, Refused
from cloister.core.lattice import EXACT, Bound
from cloister.core.types import AnyArray, Floats, Ints

Expr: TypeAlias = Any
"""Ibis expression: one value per row of a table."""

LARGEST = sys.float_info.max
"""Largest finite double."""

TO_EVEN = 3 * 2**51
"""Adding and subtracting this rounds a double of at most 2^51 to the nearest integer, ties to even."""


def number(value: float) -> Expr:
    """Return an exact double literal: engines read some numeric texts as decimals."""
    if float(value).is_integer() and abs(value) < 2**53:
        return ibis.literal(int(value)).cast("float64")
    return ibis.literal(repr(float(value))).cast("float64")


def total(terms: Sequence[Expr]) -> Expr:
    """Return the sum of the terms."""
    return _in_pairs(operator.add, terms) if terms else number(0)


def every(conditions: Sequence[Expr]) -> Expr:
    """Return whether all conditions (at least one) are true."""
    return _in_pairs(operator.and_, conditions)


def _in_pairs(joined: Callable[[Expr, Expr], Expr], terms: Sequence[Expr]) -> Expr:
    """Combine terms as a balanced tree: engines and SQL writers limit the depth of an expression."""
    while len(terms) > 1:
        pairs = [joined(terms[i], terms[i + 1]) for i in range(0, len(terms) - 1, 2)]
        terms = [*pairs, *(terms[-1:] if len(terms) % 2 else [])]
    return terms[0]


def finite(double: Expr) -> Expr:
    """Return whether a double is present, a number, and not infinite."""
    return double.between(number(-LARGEST), number(LARGEST)).fill_null(False)


def product(factors: Sequence[float] | Ints | Floats, row: Sequence[Expr]) -> Expr:
    """Return the inner product of public integers (d,) and a row."""
    return total([number(a) * x for a, x in zip(factors, row, strict=True) if a])


def squared(row: Sequence[Expr]) -> Expr:
    """Return the squared length of a row."""
    return total([x * x for x in row])


def rounded(x: Expr, unit: float = 1.0) -> Expr:
    """Return the nearest multiple of the unit (a power of two), ties to even; x is at most 2^51 units."""
    return (x + number(TO_EVEN * unit)) - number(TO_EVEN * unit)


def floored(x: Expr) -> Expr:
    """Round down to an integer, as a double."""
    return x.floor().cast("float64")


def integer(value: int) -> Expr:
    """Return a 64-bit integer literal."""
    return ibis.literal(int(value), "int64")


def truncated(x: Expr) -> Expr:
    """Round towards zero to an integer, as a double."""
    return ibis.ifelse(x < 0, -floored(-x), floored(x))


def clipped(x: Expr, low: float, high: float) -> Expr:
    """Clip a column to low and high; not by greatest(least()), which is slower. x is written out three times."""
    return ibis.ifelse(x > number(high), number(high), ibis.ifelse(x < number(low), number(low), x))


def where_below(x: Expr, cuts: Sequence[float] | Ints | Floats, values: Sequence[Expr]) -> Expr:
    """Return values[i] (m + 1 expressions), where i is the number of the ascending cuts (m,) that are at most x."""
    if len(values) == 1:
        return values[0]
    middle = len(cuts) // 2
    return ibis.ifelse(
        x < number(cuts[middle]),
        where_below(x, cuts[:middle], values[: middle + 1]),
        where_below(x, cuts[middle + 1 :], values[middle + 1 :]),
    )


def selected(index: Expr, values: Sequence[float] | Ints | Floats, first: int = 0) -> Expr:
    """Return values[index - first] as a double; an index out of range takes the nearest end."""
    if all(value == values[0] for value in values):
        return number(values[0])
    middle = len(values) // 2
    low, high = selected(index, values[:middle], first), selected(index, values[middle:], first + middle)
    return ibis.ifelse(index < first + middle, low, high)


Fence: TypeAlias = Callable[[Any], Any]
"""Function that returns the same table, but keeps the engine from merging it with later steps."""

Steps: TypeAlias = Callable[[Expr, Ints, Ints, int], Expr]
"""Signature of ``stepped``."""


def stepped(x: Expr, cuts: Ints, values: Ints, reach: int) -> Expr:
    """Return values[i] (m + 1,), where i is the number of the ascending cuts (m,) that are at most x.

    x is a column of integer-valued doubles with |x| <= reach.
    """
    return where_below(x, cuts, [integer(value) for value in values])


TERMS = 2**12
"""Maximum number of products in a query: Ibis and some engines take ten seconds to write and parse longer ones."""


@final
@attrs.frozen(eq=False)
class Stage:
    """Rows in an engine, with the columns computed so far.

    Args:
        table: of Ibis.
        row: names of the columns (d,) that hold the rows, as doubles.
        fence: ``Dialect.fence``.
        terms: maximum number of products per row in one query.
        bound: norm bound of rows on the lattice, which is public: the domain determines it.
        steps: ``Dialect.steps``.
        names: counter for the names of new columns.
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
        """Columns of the rows' numbers (d,)."""
        return [self.table[name] for name in self.row]

    def add(self, *computed: Expr) -> tuple[Self, list[str]]:
        """Return the stage with new columns, and their names."""
        made = [f"v{next(self.names)}" for _ in computed]
        table = self.table.mutate(**dict(zip(made, computed, strict=True)))
        return attrs.evolve(self, table=self.fence(table)), made

    def with_row(self, row: Sequence[Expr]) -> Self:
        """Return the stage with other numbers as its rows."""
        stage, made = self.add(*row)
        return attrs.evolve(stage, row=tuple(made))

    def __getitem__(self, name: str) -> Expr:
        return self.table[name]


Description: TypeAlias = Mapping[str, Any]


class NotCompiled(CloisterError):
    """The object has no form in SQL, or only one that is too long; rows are then located in Python."""


@final
class Described:
    """Descriptions of public objects, and their arrays."""

    def __init__(self) -> None:
        self._arrays = BundleArrays()

    def of(self, part: object) -> Description:
        """Describe an object; raise NotCompiled if it does not describe itself."""
        try:
            return describe_part(part, self._arrays)
        except Refused as error:
            raise NotCompiled(str(error)) from None

    def array(self, entry: Description) -> AnyArray:
        """Return the array of an entry of a description."""
        kind, shape = np.dtype(f"<{entry['type']}"), entry["shape"]
        values = np.frombuffer(bytes(self._arrays.content), kind, int(np.prod(shape, dtype=np.int64)), entry["at"])
        return values.reshape(shape).astype(np.float64 if kind.kind == "f" else np.int64)


PLACES = 2**13
"""Maximum number of constants in a lookup: engines take seconds to read more."""


@final
@attrs.frozen(eq=False)
class Near:
    """Centres whose buckets hold the rows, with the maximum distance.

    Args:
        centers: (k, d).
        within: maximum distance of a bucket's rows from its centre; None for any.
    """

    centers: Ints
    within: int | None


@final
@attrs.frozen(eq=False)
class Located:
    """Rows with their buckets.

    Args:
        stage: the rows.
        ids: names of columns of bucket ids, int64, -1 for none, by which rows are counted.
        levels: for each level, the index in ``ids`` by which it is counted, and the right shift of its ids in bits.
        near: centres of the buckets, if they have any.
    """

    stage: Stage
    ids: tuple[str, ...]
    levels: tuple[tuple[int, int], ...] = ((0, 0),)
    near: Near | None = None

    @property
    def first(self) -> str:
        """Name of the column of the first level's ids.

        Raises:
            NotCompiled: it has none, only a finer level's.
        """
        group, down = self.levels[0]
        if down:
            raise NotCompiled("vectors that differ by the buckets of a coarser level have no form in SQL")
        return self.ids[group]


Locate: TypeAlias = Callable[[Stage, Description, Described], Located]


def one_level(stage: Stage, ids: Expr, near: Near | None = None) -> Located:
    """Return buckets of one level."""
    stage, names = stage.add(ids)
    return Located(stage, tuple(names), near=near)


def longest(stage: Stage) -> int:
    """Return the norm bound of lattice rows."""
    assert stage.bound is not None
    return stage.bound.l2


def refuse_long(stage: Stage, terms: int) -> None:
    """Raise NotCompiled if a query would have more products than the engine computes in time."""
    if terms > stage.terms:
        raise NotCompiled(f"a query of {terms} products is slower than reading the rows (limit {stage.terms})")


def refuse_wide(places: int) -> None:
    """Raise NotCompiled if a query would have more constants than engines read in time."""
    if places > PLACES:
        raise NotCompiled(f"a query of {places} constants is too long")


def refuse_inexact(largest: float) -> None:
    """Raise NotCompiled if a number of this size, the largest in the computation, is not exact in doubles."""
    if not largest < EXACT:
        raise NotCompiled("numbers of this size are not exact in doubles")
