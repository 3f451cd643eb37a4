"""Validation of rows given as arrays, lists or data frames, with scikit-learn's messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from cloister.core.errors import InvalidInput
from cloister.core.types import AnyArray, Bools
from cloister.rows.frames import refuse_structured
from cloister.rows.places import refuse_lazy, refuse_path
from cloister.rows.reading import UNUSABLE

ROWS = "give a table of numbers, an array (rows, columns) or a data frame"

HARMLESS = (
    "Found array with 0 ",
    "Found array with dim",
    "X has ",
    "The feature names should match",
    "Expected a 2-dimensional container",
)
"""Beginnings of scikit-learn's messages that name only types, columns and shapes."""

QUOTING = {
    "Input X contains": UNUSABLE,
    "could not convert": "some cells are not numbers: encode them as numbers, or leave their columns out",
    "too large to convert": "some cells are numbers beyond all of 64 bits: leave their rows out",
    "Complex data": "Complex data not supported: give real numbers, such as rows.real",
    "inhomogeneous": "rows have different numbers of cells: " + ROWS,
    "Expected 2D array": "Expected 2D array, got another. Reshape your data: rows.reshape(-1, 1) is one column, "
    "rows.reshape(1, -1) one row",
}
"""Replacements of messages that quote cells or give unsuitable advice, by a part of the message."""


class InvalidRows(InvalidInput, ValueError):
    """An input error of cloister that is also a ValueError, as callers of scikit-learn expect."""


@contextmanager
def refusing() -> Iterator[None]:
    """Turn every ``InvalidInput`` into ``InvalidRows``, which is a ValueError."""
    try:
        yield
    except InvalidInput as error:
        if isinstance(error, ValueError):
            raise
        raise InvalidRows(str(error)) from error


def refuse_names(columns: Any, categories: Any, users: Any) -> None:
    """Raise InvalidInput if columns of an array are named: it has no names."""
    if users is not None:
        raise InvalidInput(
            f"there is no column '{users}' that could name users: give a data frame that has it, or users=names"
        )
    if columns is not None or categories:
        raise InvalidInput("columns and categories are named in data frames: of an array take X[:, [0, 2]], say")


def table(estimator: Any, rows: Any, reset: bool, drop: bool = False) -> AnyArray:
    """Return rows (n, d) validated by scikit-learn: shape, feature names, and (unless ``drop``) finite numbers.

    Args:
        estimator: the estimator that reads the rows.
        rows: array, list or data frame.
        reset: the estimator is being fitted.
        drop: accept missing and infinite cells, whose rows are dropped later.

    Raises:
        InvalidRows: (a ValueError) the rows are refused; the message quotes no cell.
        TypeError: an array of objects, or a sparse matrix.
    """
    with refusing():
        refuse_path(rows)
        refuse_lazy(rows)
        refuse_structured(rows)
    if isinstance(rows, np.ma.MaskedArray):
        raise InvalidRows("rows are a masked array: fill masked cells with NaN, as in rows.filled(numpy.nan)")
    if getattr(getattr(rows, "dtype", None), "kind", None) in ("m", "M"):
        raise InvalidRows(f"rows are an array of {rows.dtype.name}: turn them into numbers, of days or hours say")
    try:
        checked: Any = validate_data(
            estimator, rows, reset=reset, dtype=[np.float64, np.float32], ensure_all_finite=not drop
        )
    except (ValueError, OverflowError) as error:
        raise InvalidRows(_without_cells(str(error))) from None
    except TypeError:
        if isinstance(rows, np.ndarray) or hasattr(rows, "toarray"):
            raise  # as scikit-learn's callers expect of arrays of objects and of sparse matrices
        raise InvalidRows(f"rows are a {type(rows).__qualname__}: {ROWS}") from None
    return np.asarray(checked)


def _without_cells(message: str) -> str:
    """Return a message of scikit-learn or NumPy, replaced if it may quote cells or how many there are."""
    if message.startswith(HARMLESS):
        return message
    return next((words for part, words in QUOTING.items() if part in message), "rows cannot be used: " + ROWS)


def refuse_others(arguments: Mapping[str, Any], method: str) -> None:
    """Refuse keyword arguments that a method does not take.

    Raises:
        InvalidRows: row weights.
        TypeError: any other.
    """
    if arguments.get("sample_weight") is not None:
        raise InvalidRows(
            "sample_weight is refused: a weight would let one row count as many, and the noise hides one row that "
            "counts once. Leave it out"
        )
    if unknown := [name for name in arguments if name != "sample_weight"]:
        raise TypeError(f"{method}() got an unexpected keyword argument '{unknown[0]}'")


def among(used: Bools, values: AnyArray, fill: float) -> AnyArray:
    """Return values of the used rows (m, ...) spread over all rows (n, ...), with ``fill`` for unused ones."""
    spread = np.full((len(used), *values.shape[1:]), fill, values.dtype)
    spread[used] = values
    return spread
