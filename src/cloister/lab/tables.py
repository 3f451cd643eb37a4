"""Tables with named columns, saved as CSV, Parquet, NPY or NPZ."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, final

import attrs
import numpy as np

from cloister.core.errors import InvalidInput, MissingExtra
from cloister.core.types import AnyArray, Ints
from cloister.run.result import replace

ENDINGS: Final = (".csv", ".parquet", ".npy", ".npz")

NAMED: Final = (".csv", ".parquet")
"""Endings of files that keep the names of columns."""

MOST_CELLS: Final = 2**30
"""Most cells of a table that is made: it is made in memory."""


@final
@attrs.frozen(eq=False)
class NamedTable:
    """Rows that were made.

    Args: columns (values (n,) by name: numbers, texts or booleans), bounds (a public pair by the name of each column of
    numbers), labels (n,) of the group that each row is from, -1 for none.
    """

    columns: Mapping[str, AnyArray]
    bounds: Mapping[str, tuple[float, float]]
    labels: Ints

    @classmethod
    def of(cls, rows: AnyArray, bounds: Sequence[tuple[float, float]], labels: Ints) -> NamedTable:
        """A table of rows (n, d) with columns x1, x2 ..."""
        names = [f"x{j + 1}" for j in range(rows.shape[1])]
        columns = dict(zip(names, np.asarray(rows).T, strict=True))
        return cls(columns, dict(zip(names, bounds, strict=True)), labels)

    @classmethod
    def plain(cls, rows: AnyArray) -> NamedTable:
        """A table of rows (n, d) of which nobody has stated bounds or groups."""
        return cls({f"x{j + 1}": column for j, column in enumerate(rows.T)}, {}, np.full(len(rows), -1))

    @property
    def numbers(self) -> AnyArray:
        """The columns of numbers (n, d)."""
        return np.column_stack([values for values in self.columns.values() if values.dtype.kind == "f"])

    def save(self, path: Path) -> None:
        """Write the table by the path's ending; NPY and NPZ take only numbers.

        Raises: InvalidInput: it has other columns, or the place cannot be written. MissingExtra: pyarrow.
        """
        if path.suffix not in NAMED and self.numbers.shape[1] < len(self.columns):
            raise InvalidInput(f"{path.name} can hold numbers only: save this table as .csv or .parquet")
        content = self._content(path.suffix)

        def write(file: BinaryIO) -> None:
            file.write(content)

        replace(path, write)

    def _content(self, suffix: str) -> bytes:
        file = io.BytesIO()
        if suffix == ".csv":
            return _csv(self.columns)
        if suffix == ".parquet":
            _write_parquet(self.columns, file)
        elif suffix == ".npy":
            np.save(file, self.numbers)
        else:
            np.savez_compressed(file, X=self.numbers)
        return file.getvalue()

    def save_bounds(self, path: Path) -> None:
        """Write the bounds as TOML, as ``--bounds`` takes them. Raises: InvalidInput."""
        lines = [f"{name} = [{low:g}, {high:g}]" for name, (low, high) in self.bounds.items()]
        text = "# publicly known bounds, a pair per column\n" + "\n".join(lines) + "\n"

        def write(file: BinaryIO) -> None:
            file.write(text.encode())

        replace(path, write)

    def save_labels(self, path: Path) -> None:
        """Write the labels as NPY. Raises: InvalidInput."""

        def write(file: BinaryIO) -> None:
            np.save(file, self.labels)

        replace(path, write)


def refuse_huge(rows: int, columns: int) -> None:
    """Raises: InvalidInput: a table of so many cells is not made."""
    if rows * columns > MOST_CELLS:
        raise InvalidInput(f"{rows} rows of {columns} columns are too many to be made: take at most 2^30 cells")


def _csv(columns: Mapping[str, AnyArray]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    shown = [_texts(values) for values in columns.values()]
    writer.writerows(zip(*shown, strict=True))
    return text.getvalue().encode()


def _texts(values: AnyArray) -> list[Any]:
    plain: list[Any] = values.tolist()
    return [str(value).lower() for value in plain] if values.dtype.kind == "b" else plain


def _write_parquet(columns: Mapping[str, AnyArray], file: io.BytesIO) -> None:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtra("pyarrow", "files", "a Parquet file") from None
    pq.write_table(pa.table({name: pa.array(values) for name, values in columns.items()}), file)
