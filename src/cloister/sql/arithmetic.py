"""Exact arithmetic in SQL: doubles that hold integers below 2^53, and single operations that IEEE 754 rounds correctly.

Every engine has DOUBLE, and its sums, products, quotients and square roots of two numbers are the same everywhere: so
what is written here gives the bits that NumPy gives, as long as no number passes 2^53 where exactness is claimed. What
an engine does with each operation is tried when it is connected (``sql.database``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import ibis

from cloister.core.types import Floats, Ints

Expr: TypeAlias = Any
"""An expression of Ibis: one value per row of a table."""

TO_EVEN = 3 * 2**51
"""Added to a double of at most 2^51 and taken away again, it leaves the nearest integer, ties to the even one."""


def number(value: float) -> Expr:
    """A double, as it is: engines read some texts of numbers as decimals."""
    if float(value).is_integer() and abs(value) < 2**53:
        return ibis.literal(int(value)).cast("float64")
    return ibis.literal(repr(float(value))).cast("float64")


def total(terms: Sequence[Expr]) -> Expr:
    """Their sum, in pairs: engines limit how deep an expression may be."""
    terms = list(terms) or [number(0)]
    while len(terms) > 1:
        pairs = [terms[i] + terms[i + 1] for i in range(0, len(terms) - 1, 2)]
        terms = pairs + (terms[-1:] if len(terms) % 2 else [])
    return terms[0]


def product(factors: Sequence[float] | Ints | Floats, row: Sequence[Expr]) -> Expr:
    """The inner product of public integers (d,) and a row."""
    return total([number(a) * x for a, x in zip(factors, row, strict=True) if a])


def squared(row: Sequence[Expr]) -> Expr:
    """The squared length of a row."""
    return total([x * x for x in row])


def rounded(x: Expr) -> Expr:
    """The nearest integer, ties to the even one. Args: x, at most 2^51."""
    return (x + number(TO_EVEN)) - number(TO_EVEN)


def floored(x: Expr) -> Expr:
    """The integer below, as a double."""
    return x.floor().cast("float64")


def truncated(x: Expr) -> Expr:
    """The integer next to it towards zero, as a double."""
    return ibis.ifelse(x < 0, -floored(-x), floored(x))


def clipped(x: Expr, low: Expr, high: Expr) -> Expr:
    return ibis.greatest(ibis.least(x, high), low)


def where_below(x: Expr, cuts: Sequence[int] | Ints, values: Sequence[Any]) -> Expr:
    """values[i], with i how many of the ascending cuts (m,) are at most x. Args: values (m + 1), integers."""
    if len(values) == 1:
        return ibis.literal(int(values[0]), "int64")
    middle = len(cuts) // 2
    return ibis.ifelse(
        x < number(cuts[middle]),
        where_below(x, cuts[:middle], values[: middle + 1]),
        where_below(x, cuts[middle + 1 :], values[middle + 1 :]),
    )


def selected(index: Expr, values: Sequence[float] | Ints | Floats) -> Expr:
    """values[index]. Args: index, from 0 to len(values) - 1 (the nearest of these elsewhere)."""
    if len(values) == 1:
        return number(values[0])
    middle = len(values) // 2
    return ibis.ifelse(index < middle, selected(index, values[:middle]), selected(index, values[middle:]))
