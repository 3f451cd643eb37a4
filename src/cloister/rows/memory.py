"""Tables in memory, read piece by piece as those in files are: an array, or a data frame."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator
from typing import Any, final

import numpy as np

from cloister.core.errors import InvalidInput
from cloister.core.types import AnyArray, Floats
from cloister.rows.categories import Category
from cloister.rows.columns import TableColumn
from cloister.rows.frames import column_of, frame_of, refuse_structured
from cloister.rows.keywords import Texts
from cloister.rows.reading import Piece, encoded, piece_rows
from cloister.rows.selection import Selection
from cloister.rows.users import MISSING, Names

SHORT = {"float32", "float", "halffloat", "float16"}
"""Names of floats of up to 32 bits in libraries of data frames, in lower case."""


@final
class ArrayTable:
    """An array as a table whose columns are called by their positions."""

    def __init__(self, rows: AnyArray) -> None:
        if isinstance(rows, np.ma.MaskedArray):
            raise InvalidInput("rows are a masked array: fill masked cells with NaN, as in rows.filled(numpy.nan)")
        refuse_structured(rows)
        if rows.ndim != 2:
            advice = "use rows.reshape(-1, 1) for a single column" if rows.ndim == 1 else "it needs two dimensions"
            raise InvalidInput(f"rows are an array of shape (rows, columns), not {rows.ndim}-dimensional: {advice}")
        if rows.dtype.kind not in "biuf":
            raise InvalidInput(
                f"rows are an array of {rows.dtype.name}: convert it to numbers, as in rows.astype(float)"
            )
        self._rows, self.length = np.asarray(rows), len(rows)
        place, _ = self._rows.__array_interface__["data"]
        self.origin: Hashable = (place, rows.shape, rows.strides) if rows.size else id(self)
        self.known = [TableColumn(str(j), "numbers") for j in range(rows.shape[1])]

    def pieces(self, chosen: Selection, only: slice) -> Iterable[Piece]:
        rows = self._rows[only]
        if list(chosen.used) == [column.name for column in self.known]:
            return [encoded(rows.T, chosen)]
        return [encoded([rows[:, int(name)] for name in chosen.used], chosen)]

    def names(self, column: str) -> Iterable[Names]:
        return [self._rows[:, int(column)]]


@final
class FrameTable:
    """A data frame, converted a piece of its columns at a time."""

    def __init__(self, rows: Any) -> None:
        self._frame, self._given = frame_of(rows), rows
        if self._frame is None:
            raise InvalidInput(
                f"rows are a {type(rows).__qualname__}: give a NumPy array (rows, columns), or a data frame of pandas, "
                "polars or pyarrow that is in memory"
            )
        schema = self._frame.schema
        self.length = len(self._frame)
        self._names = {str(name): name for name in schema}
        self.known = [column_of(self._frame.get_column(name), str(name), kind) for name, kind in schema.items()]

    @property
    def origin(self) -> Hashable:
        """Identity of the object, which is held: no other one can have it."""
        return id(self._given)

    def pieces(self, chosen: Selection, only: slice) -> Iterator[Piece]:
        size = piece_rows(len(chosen.used))
        low, high, _ = only.indices(self.length)
        for start in range(low, high, size):
            stretch = self._frame[start : min(start + size, high)]
            words = [_words(texts, stretch.get_column(self._names[texts.column])) for texts in chosen.texts]
            yield chosen.spread([*(self._read(stretch, name, chosen.category(name)) for name in chosen.used), *words])

    def _read(self, stretch: Any, name: str, category: Category | None) -> Floats:
        column = stretch.get_column(self._names[name])
        return _numbers(column) if category is None else category.codes(column.to_list())

    def names(self, column: str) -> Iterable[Names]:
        return [listed(self._frame.get_column(self._names[column]).to_native())]


def _words(texts: Texts, column: Any) -> Floats:
    return texts.halves(len(column), lambda cells: column[cells].to_list())


def listed(users: Any) -> Names:
    """Return names of users as an array of numbers, or a list."""
    kind = getattr(users, "dtype", getattr(users, "type", None))
    if isinstance(kind, np.dtype) and kind.kind in "iuf":
        return np.asarray(users)
    way = next((way for way in ("tolist", "to_list", "to_pylist") if hasattr(users, way)), None)
    listed = list(users if way is None else getattr(users, way)())
    if str(kind).lower() not in SHORT:
        return listed
    named = [type(name).__name__ not in MISSING for name in listed]  # as numbers again, so that their size is known
    return np.array([name if there else math.nan for name, there in zip(listed, named, strict=True)], np.float32)


def _numbers(column: Any) -> Floats:
    """Return a column in float64, each number rounded correctly; nulls become NaN."""
    import narwhals as nw

    if column.implementation.is_pyarrow():  # whose own cast refuses large integers, and quotes them
        from cloister.rows.files.arrow import numbers_of

        return np.asarray(numbers_of(column.to_native()), np.float64)
    if column.dtype == nw.Decimal:
        column = column.cast(nw.String)
    values: Floats = column.cast(nw.Float64).to_numpy()
    return values
