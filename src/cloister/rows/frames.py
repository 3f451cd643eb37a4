"""Columns of data frames by their types, and refusals of rows that are no table."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from cloister.core.errors import InvalidInput
from cloister.rows.columns import Kind, TableColumn

NUMBERS = re.compile("(u?int|float)[0-9]|halffloat|float|double|decimal")
"""Beginnings of the names of numeric types, in libraries of data frames."""


def column_of(column: Any, name: str, kind: Any) -> TableColumn:
    """Return a column by its declared type, with advice on a type that holds numbers and is not read."""
    column_kind, native, convert = _kind(kind), column.to_native(), ""
    native_type: Any = getattr(native, "dtype", getattr(native, "type", None))
    cast = "cast(pyarrow.float64())" if column.implementation.is_pyarrow() else "astype(float)"
    how = f"convert them, as in column.{cast}"
    native_type = getattr(native_type, "pyarrow_dtype", native_type)
    inner = next(
        (getattr(native_type, part) for part in ("subtype", "value_type") if hasattr(native_type, part)), native_type
    )
    inner = getattr(getattr(native_type, "categories", None), "dtype", inner)
    if str(native_type) == "object":  # whatever its cells are
        convert = how
    elif column_kind in ("text", "untyped") and NUMBERS.match(str(inner).lower()):
        column_kind, convert = "wrapped", f"of type {native_type}: {how}"
    return TableColumn(name, column_kind, convert=convert, declared=False)


def _kind(kind: Any) -> Kind:
    """Return the kind of cells that a data frame's type holds."""
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
    """Raise InvalidInput if rows are an array of records, or dicts of columns or records."""
    records = isinstance(rows, (list, tuple)) and bool(rows) and isinstance(rows[0], Mapping)
    if hasattr(rows, "toarray"):  # a sparse matrix, of which scikit-learn speaks; some are dicts
        return
    if isinstance(rows, Mapping) or records or getattr(getattr(rows, "dtype", None), "names", None):
        type_name = "a dict" if isinstance(rows, Mapping) else "a list of dicts" if records else "a structured array"
        raise InvalidInput(
            f"rows are {type_name}: make a data frame of it, as in pandas.DataFrame(rows), or an array (rows, columns)"
        )


NAMELESS = {"nan", "NaN", "NaT", "None", "<NA>"}
"""Texts of pandas' missing names. Such a column cannot be looked up by its name: NaN is not NaN."""


def frame_of(rows: Any) -> Any:
    """Return rows as a data frame of narwhals; None if they are none that is in memory.

    Raises:
        InvalidInput: two columns have one name, one has none, or names have several levels.
    """
    import narwhals as nw
    from narwhals.exceptions import DuplicateError

    try:
        frame = nw.from_native(rows, eager_only=True, pass_through=True)
    except DuplicateError:
        names = getattr(rows, "column_names", None)  # of pyarrow, whose columns are cells
        _refuse_twice([str(name) for name in (rows.columns if names is None else names)])
        raise InvalidInput("more than one column has the same name: rename them") from None
    if not isinstance(frame, nw.DataFrame):
        return None
    if any(isinstance(name, tuple) for name in frame.columns):
        raise InvalidInput(
            "columns have names of several levels: join them first, as in rows.columns = ['_'.join(map(str, name)) for "
            "name in rows.columns]"
        )
    if any(str(name) in NAMELESS and name not in NAMELESS for name in frame.columns):  # texts are names
        raise InvalidInput("a column has no name: name it, as in rows.columns = ['age', 'income']")
    _refuse_twice([str(name) for name in frame.columns])
    return frame


def _refuse_twice(names: Sequence[str]) -> None:
    earlier = set[str]()
    for name in names:
        if name in earlier:
            raise InvalidInput(f"more than one column is called '{name}': rename them")
        earlier.add(name)


def picked(frame: Any, columns: Sequence[str], named: bool = False) -> Any:
    """Return these columns of a data frame, as its own library has it.

    Args:
        frame: of narwhals.
        columns: their names as texts.
        named: whether all names become texts. They do so anyway where some are: scikit-learn takes no others beside
            texts.
    """
    import narwhals as nw

    native_names = {str(name): name for name in frame.columns}
    selected = frame.select(nw.col(*(native_names[name] for name in columns)))
    if named or any(isinstance(native_names[name], str) for name in columns):
        selected = selected.rename({native_names[name]: name for name in columns})
    return selected.to_native()
