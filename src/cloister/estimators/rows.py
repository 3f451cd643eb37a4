"""Rows as scikit-learn's callers hand them over: arrays, lists, data frames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from cloister.core.errors import InvalidInput
from cloister.core.types import AnyArray, Bools
from cloister.rows.frames import refuse_structured
from cloister.rows.reading import UNUSABLE
from cloister.run.places import refuse_lazy, refuse_path

ROWS = "give a table of numbers, an array (rows, columns) or a data frame"

HARMLESS = (
    "Found array with 0 ",
    "Found array with dim",
    "X has ",
    "The feature names should match",
    "Expected a 2-dimensional container",
)
"""How scikit-learn's messages begin that name types, columns and shapes of columns alone."""

QUOTING = {
    "Input X contains": UNUSABLE,
    "could not convert": "some cells are not numbers: encode them as numbers, or leave their columns out",
    "too large to convert": "some cells are numbers beyond all of 64 bits: leave their rows out",
    "Complex data": "Complex data not supported: give real numbers, such as rows.real",
    "inhomogeneous": "rows have different numbers of cells: " + ROWS,
    "Expected 2D array": "Expected 2D array, got another. Reshape your data: rows.reshape(-1, 1) is one column, "
    "rows.reshape(1, -1) one row",
}
"""By a part of a message that quotes cells, or advises what nobody pays for: what is said in its place."""


class InvalidRows(InvalidInput, ValueError):
    """An input error of cloister that is also a ValueError, as callers of scikit-learn expect."""


@contextmanager
def refusing() -> Iterator[None]:
    """Turn every refusal of an input into a ValueError. Raises: InvalidRows."""
    try:
        yield
    except InvalidInput as error:
        if isinstance(error, ValueError):
            raise
        raise InvalidRows(str(error)) from error


def refuse_names(columns: Any, categories: Any, users: Any) -> None:
    """Raises: InvalidInput: an array has no columns that could be meant by name."""
    if users is not None:
        raise InvalidInput(
            f"there is no column '{users}' that could name users: give a data frame that has it, or users=names"
        )
    if columns is not None or categories:
        raise InvalidInput("columns and categories are named in data frames: of an array take X[:, [0, 2]], say")


def table(estimator: Any, rows: Any, reset: bool, drop: bool = False) -> AnyArray:
    """Rows (n, d) by scikit-learn's own validation: shape, names of features, numbers, and finite ones unless rows with
    other cells are to be dropped.

    Args: estimator (that the rows are for), reset (it is being fitted), drop.

    Raises: ValueError.
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
    """Words of scikit-learn or NumPy on rows; where they may quote cells or how many there are, the same in other
    words."""
    if message.startswith(HARMLESS):
        return message
    return next((words for part, words in QUOTING.items() if part in message), "rows cannot be used: " + ROWS)


def refuse_others(given: Mapping[str, Any], where: str) -> None:
    """Refuse arguments that a method does not take. Args: given (by name), where (the method's name).

    Raises: InvalidRows: weights of rows. TypeError: any other.
    """
    if given.get("sample_weight") is not None:
        raise InvalidRows(
            "sample_weight is refused: a weight would let one row count as many, and the noise hides one row that "
            "counts once. Leave it out"
        )
    if unknown := [name for name in given if name != "sample_weight"]:
        raise TypeError(f"{where}() got an unexpected keyword argument '{unknown[0]}'")


def among(used: Bools, found: AnyArray, others: float) -> AnyArray:
    """Findings of the rows that can be used (m, ...), among all rows (n, ...)."""
    every = np.full((len(used), *found.shape[1:]), others, found.dtype)
    every[used] = found
    return every
