"""Columns of categories, one-hot encoded over public values.

A column with m listed values becomes m features, each 1 in rows that hold its value and 0 in all others.

**Sensitivity.** A row's features are a function of that row's cell and of the listed values, which are public: no
other row enters, and no value is ever learned from the data. At most one of the m is not 0, and all lie in the public
box [0, 1]^m whatever the cell is. So they are columns like any others: the box that every row is clipped to bounds a
row's influence, and a list of values that suits the rows badly costs accuracy, never privacy.

**Cells that are not listed** are like rows outside the bounds: all m features are 0, and they never decide whether a
run goes or is refused. A *missing* cell makes its row unusable, as in columns of numbers.

**Equality.** Values may be texts, whole numbers and booleans, and are compared as text: 3, 3.0, "3" and "3.0" are one
value, and so are True, "True" and "true"; "03" differs from 3, and "A" from "a".
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, final

import attrs
import numpy as np

from cloister.core.errors import InvalidInput
from cloister.core.types import Floats

UNLISTED, MISSING = -1.0, math.nan
"""Codes of a cell whose value is not listed, and of a missing cell; others have the position of their value."""

BOOLEAN = "true"
"""The one value that a column of booleans lists: others are false."""

WHOLE = re.compile(r"(-?(?:0|[1-9][0-9]*))\.0*")
"""Text of a whole number that was written as a float."""

HELP = "list the column's public values, as in --category ward=A,B,C (categories={'ward': ['A', 'B', 'C']})"


@final
@attrs.frozen
class Category:
    """Column of categories.

    Args:
        column: its name.
        values: as ``canonical`` writes them, in the order of the features.
    """

    column: str
    values: tuple[str, ...]

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features, as in 'ward=A'."""
        return tuple(f"{self.column}={value}" for value in self.values)

    def codes(self, cells: Iterable[Any]) -> Floats:
        """Return the position (n,) of each cell's value, ``UNLISTED`` or ``MISSING``: a function of that cell alone."""
        listed = {value: float(place) for place, value in enumerate(self.values)}
        cache = dict[tuple[type, Any], float]()

        def code(cell: Any) -> float:
            return MISSING if _missing(cell) else listed.get(canonical(cell), UNLISTED)

        def remembered(cell: Any) -> float:
            if type(cell) not in WRITTEN_ALIKE:
                return code(cell)
            place = cache.get((type(cell), cell))
            if place is None:
                place = code(cell)
                if len(cache) < REMEMBERED:
                    cache[(type(cell), cell)] = place
            return place

        return np.array([remembered(cell) for cell in cells], np.float64)

    def one_hot(self, codes: Floats) -> list[Floats]:
        """Return the features, one array (n,) per value, of cells with these codes; NaN for a missing cell."""
        missing = np.isnan(codes)
        return [np.where(missing, np.nan, codes == place) for place in range(len(self.values))]


REMEMBERED = 2**16
"""Limit on the distinct cells of a piece whose codes are cached: memory stays bounded."""

WRITTEN_ALIKE: frozenset[type] = frozenset({str, int, float, bool})
"""Types whose equal cells have one text, so that codes can be cached by cell: 0.0 and -0.0 are both 0. Of other types
the first cell would decide about those that equal it: 1.5 and 1.50 of decimals, one moment in two time zones.
"""

LONGEST = 640
"""Limit on the digits of a whole number that is written out: Python may refuse to write more."""

BEYOND = 10**LONGEST
TOO_LONG = ""
"""Text of a longer number. No list has it, so that such a cell is none of the values."""


def _missing(cell: Any) -> bool:
    if isinstance(cell, Real):
        return not _bounded(cell)
    if isinstance(cell, Decimal):
        return not cell.is_finite()
    return cell is None or type(cell).__name__ in ("NAType", "NaTType")


def _bounded(cell: Real) -> bool:
    """Return True unless the cell is NaN or infinite. A number beyond all floats is a number, too."""
    try:
        return math.isfinite(cell)
    except OverflowError:
        return True


def canonical(value: Any) -> str:
    """Return a value as text, by which values are compared."""
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value)).lower()
    if isinstance(value, Integral):
        return str(int(value)) if abs(int(value)) < BEYOND else TOO_LONG
    if isinstance(value, (float, np.floating)) and math.isfinite(value) and float(value).is_integer():
        return str(int(float(value)))
    text = _decimal(value) if isinstance(value, Decimal) else as_text(value)
    if text.lower() in ("true", "false"):
        return text.lower()
    number = WHOLE.fullmatch(text)
    return text if number is None else "0" if number[1] == "-0" else number[1]


def _decimal(value: Decimal) -> str:
    """Return a decimal's text without an exponent: '0E-10' is 0."""
    if not value:
        return "0"
    return format(value, "f") if abs(value.adjusted()) < LONGEST else TOO_LONG


def as_text(value: Any) -> str:
    """Return a cell as text, empty if Python does not write it out."""
    try:
        return str(value)
    except ValueError:  # a fraction of numbers that Python does not write out
        return TOO_LONG


def categories_of(given: Mapping[str, Any] | Sequence[Category] | None) -> tuple[Category, ...]:
    """Return categories as callers give them: sequences of public values by column, as in ``{"ward": ["A", "B"]}``.

    Raises:
        InvalidInput: there are no values, equal ones, or others than texts, whole numbers and booleans.
    """
    if given is None:
        return ()
    if not isinstance(given, Mapping):
        return tuple(given)
    names = [str(column) for column in given]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InvalidInput(f"category '{twice}' is given more than once: list all its values in one option")
    return tuple(_category(name, values) for name, values in zip(names, given.values(), strict=True))


def _category(column: str, values: Any) -> Category:
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise InvalidInput(f"the values of category '{column}' are {values!r}: {HELP}")
    listed = list(values)
    for value in listed:
        if not isinstance(value, (str, Integral, np.bool_)) or value == "":
            raise InvalidInput(f"a value of category '{column}' is {value!r}: give texts, whole numbers or booleans")
    texts = [canonical(value) for value in listed]
    if TOO_LONG in texts:
        raise InvalidInput(f"a value of category '{column}' is a number of more than {LONGEST} digits: {HELP}")
    if not texts:
        raise InvalidInput(f"category '{column}' has no values: {HELP}")
    if len(set(texts)) < len(texts):
        twice = next(text for text in texts if texts.count(text) > 1)
        raise InvalidInput(f"category '{column}' lists '{twice}' more than once: {HELP}")
    return Category(column, tuple(texts))
