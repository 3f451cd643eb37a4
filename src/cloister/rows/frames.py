"""Columns of data frames in memory by their types, and rows that are no table."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from cloister.core.errors import InvalidInput
from cloister.rows.columns import Kind, TableColumn

NUMBERS = re.compile("(u?int|float)[0-9]|halffloat|float|double|decimal")
"""Beginnings of the names of types of numbers, in libraries of data frames."""


def column_of(column: Any, name: str, kind: Any) -> TableColumn:
    """A column as its type has it, with what to do about a type that holds numbers and is not read."""
    found, native, convert = _kind(kind), column.to_native(), ""
    own: Any = getattr(native, "dtype", getattr(native, "type", None))
    cast = "cast(pyarrow.float64())" if column.implementation.is_pyarrow() else "astype(float)"
    how = f"convert them, as in column.{cast}"
    own = getattr(own, "pyarrow_dtype", own)
    inner = next((getattr(own, part) for part in ("subtype", "value_type") if hasattr(own, part)), own)
    inner = getattr(getattr(own, "categories", None), "dtype", inner)
    if str(own) == "object":  # whatever its cells are
        convert = how
    elif found in ("text", "untyped") and NUMBERS.match(str(inner).lower()):
        found, convert = "wrapped", f"of type {own}: {how}"
    return TableColumn(name, found, convert=convert, declared=False)


def _kind(kind: Any) -> Kind:
    """Kind of cells that a data frame's type holds."""
    import narwhals as nw

    if kind == nw.Boolean:
        return "booleans"
    if kind.is_numeric() or kind == nw.Decimal:
        return "numbers"
    if kind == nw.Duration:
        return "spans"
    if kind.is_temporal():
        return "dates"
    if kind in (nw.List, nw.Array):
        return "lists"
    return "text" if kind in (nw.String, nw.Categorical, nw.Enum) else "untyped"


def refuse_structured(rows: Any) -> None:
    """Raises: InvalidInput: rows are an array of records, or columns or records in dicts, which are no table yet."""
    records = isinstance(rows, (list, tuple)) and bool(rows) and isinstance(rows[0], Mapping)
    if hasattr(rows, "toarray"):  # a sparse matrix, of which scikit-learn speaks; some are dicts
        return
    if isinstance(rows, Mapping) or records or getattr(getattr(rows, "dtype", None), "names", None):
        what = "a dict" if isinstance(rows, Mapping) else "a list of dicts" if records else "a structured array"
        raise InvalidInput(
            f"rows are {what}: make a data frame of it, as in pandas.DataFrame(rows), or an array (rows, columns)"
        )


NAMELESS = {"nan", "NaN", "NaT", "None", "<NA>"}
"""Texts of what stands for a missing name in pandas. None of them is found again: NaN is not NaN."""


def frame_of(rows: Any) -> Any:
    """Rows as a data frame of narwhals; None if they are none that is in memory.

    Raises: InvalidInput: two columns have one name, one has none, or names have several levels.
    """
    import narwhals as nw
    from narwhals.exceptions import DuplicateError

    try:
        found = nw.from_native(rows, eager_only=True, pass_through=True)
    except DuplicateError:
        names = getattr(rows, "column_names", None)  # of pyarrow, whose columns are cells
        _refuse_twice([str(name) for name in (rows.columns if names is None else names)])
        raise InvalidInput("more than one column has the same name: rename them") from None
    if not isinstance(found, nw.DataFrame):
        return None
    if any(isinstance(name, tuple) for name in found.columns):
        raise InvalidInput(
            "columns have names of several levels: join them first, as in rows.columns = ['_'.join(map(str, name)) for "
            "name in rows.columns]"
        )
    if any(str(name) in NAMELESS and name not in NAMELESS for name in found.columns):  # texts are names
        raise InvalidInput("a column has no name: name it, as in rows.columns = ['age', 'income']")
    _refuse_twice([str(name) for name in found.columns])
    return found


def _refuse_twice(names: Sequence[str]) -> None:
    seen = set[str]()
    for name in names:
        if name in seen:
            raise InvalidInput(f"more than one column is called '{name}': rename them")
        seen.add(name)


def picked(frame: Any, columns: Sequence[str], named: bool = False) -> Any:
    """A data frame of these columns alone, as its own library has it.

    Args: frame (of narwhals), named (whether all names become texts, which they also do where some are: scikit-learn
        takes no others beside them).
    """
    import narwhals as nw

    own = {str(name): name for name in frame.columns}
    some = frame.select(nw.col(*(own[name] for name in columns)))
    if named or any(isinstance(own[name], str) for name in columns):
        some = some.rename({own[name]: name for name in columns})
    return some.to_native()
