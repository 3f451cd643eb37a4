"""Exact arithmetic in SQL: doubles that hold integers below 2^53, and single operations that IEEE 754 rounds correctly.

Every engine has DOUBLE, and its sums, products, quotients and square roots of two numbers are the same everywhere: so
what is written here gives the bits that NumPy gives, as long as no number passes 2^53 where exactness is claimed. What
an engine does with each operation is tried when it is connected (``rows.databases.database``).
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import ibis

from cloister.core.types import Floats, Ints

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
