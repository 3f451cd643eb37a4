"""Categories in SQL: a column of public values as features of 0 and 1, equal where ``core.categories`` says so."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import ibis

from cloister.core.categories import LONGEST, Category, canonical
from cloister.sql.arithmetic import Expr, finite, number
from cloister.sql.dialect import Dialect, same

WHOLE = re.compile("0|-?[1-9][0-9]*")
"""A whole number, as ``canonical`` writes it."""


def one_hot(column: Expr, category: Category, dialect: Dialect) -> list[Expr]:
    """The features of a column, all NULL where its cell is missing."""
    there, equal = _compared(column, dialect)
    return [
        ibis.ifelse(there, ibis.ifelse(equal(value), number(1), number(0)), ibis.null("float64"))
        for value in category.values
    ]  # fmt: skip


def _compared(column: Expr, dialect: Dialect) -> tuple[Expr, Callable[[str], Any]]:
    """Whether a cell is there, and whether it equals a value. In a number nothing is spelled: it has one text."""
    kind = column.type()
    if kind.is_boolean():
        return column.notnull(), lambda value: {"true": column, "false": ~column}.get(value, False)
    if kind.is_integer():
        return column.notnull(), lambda value: _whole(column, value)
    if kind.is_floating():
        double = column.cast("float64")
        return finite(double), lambda value: _float(double, value)
    cells = dialect.text(column)
    there = cells.notnull()
    if kind.is_decimal():  # PostgreSQL's may be none
        for none in ("NaN", "Infinity", "-Infinity"):
            there = there & ~same(cells, none, dialect)
    return there, lambda value: _spelled(cells, value, dialect)


def _whole(column: Expr, value: str) -> Any:
    kind = column.type()
    if not WHOLE.fullmatch(value) or len(value) > LONGEST or not kind.bounds.lower <= int(value) <= kind.bounds.upper:
        return False
    return column == ibis.literal(int(value), kind)


def _float(column: Expr, value: str) -> Any:
    try:
        meant = float(value)
    except ValueError:
        return False
    return canonical(meant) == value and column == number(meant)


def _spelled(text: Expr, value: str, dialect: Dialect) -> Any:
    """Whether this is one of the texts that ``canonical`` makes this value of: 3 is also '3.' and '3.00'."""
    if value in ("true", "false"):
        return same(text.lower(), value, dialect)
    found = same(text, value, dialect)
    if WHOLE.fullmatch(value):
        for stem in (f"{value}.", "-0.")[: 2 if value == "0" else 1]:
            zeros_alone = same(text.replace("0", ""), stem.replace("0", ""), dialect)
            found = found | (same(text.left(len(stem)), stem, dialect) & zeros_alone)
    return found
