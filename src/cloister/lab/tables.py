"""Tables with named columns, saved as CSV, Parquet, NPY or NPZ."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, final
from zipfile import ZIP_DEFLATED, ZipFile

import attrs
import numpy as np

from cloister.core.errors import InvalidInput, MissingExtra
from cloister.core.types import AnyArray, Ints
from cloister.run.saving import replace

ENDINGS: Final = (".csv", ".parquet", ".npy", ".npz")

NAMED: Final = (".csv", ".parquet")
"""Endings of files with names of columns."""

PIECE: Final = 2**18
"""Number of rows written at once."""

MOST_CELLS: Final = 2**30
"""Maximum number of cells of a table, which is made in memory."""


@final
@attrs.frozen(eq=False)
class NamedTable:
    """Table of generated rows.

    Args:
        columns: values (n,) by name: numbers, texts or booleans.
        bounds: public pairs by column of numbers.
        labels: (n,) group of each row, -1 for none.
    """

    columns: Mapping[str, AnyArray]
    bounds: Mapping[str, tuple[float, float]]
    labels: Ints

    @classmethod
    def of(cls, rows: AnyArray, bounds: Sequence[tuple[float, float]], labels: Ints) -> NamedTable:
        """Return a table of rows (n, d) with columns x1, x2 ..."""
        names = [f"x{j + 1}" for j in range(rows.shape[1])]
        columns = dict(zip(names, np.asarray(rows).T, strict=True))
        return cls(columns, dict(zip(names, bounds, strict=True)), labels)

    @classmethod
    def plain(cls, rows: AnyArray) -> NamedTable:
        """Return a table of rows (n, d) without bounds and groups."""
        return cls({f"x{j + 1}": column for j, column in enumerate(rows.T)}, {}, np.full(len(rows), -1))

    @property
    def numbers(self) -> AnyArray:
        """Columns of numbers (n, d)."""
        return _numbers(self.columns)

    def save(self, path: Path, advance: Callable[[int, int], None] = lambda done, rows: None) -> None:
        """Write the table in the format of the path's ending; NPY and NPZ take only numbers.

        Args:
            path: of the file.
            advance: called with the number of rows written and of all rows.

        Raises:
            InvalidInput: the format cannot hold a column, or the path cannot be written.
            MissingExtra: pyarrow is not installed.
        """
        if path.suffix not in NAMED and any(values.dtype.kind != "f" for values in self.columns.values()):
            raise InvalidInput(f"{path.name} can hold numbers only: save this table as .csv or .parquet")
        if path.suffix == ".parquet":
            _needs_pyarrow()
        put = {".csv": self._csv, ".parquet": self._parquet, ".npy": self._npy, ".npz": self._npz}[path.suffix]

        def write(file: BinaryIO) -> None:
            for done in put(file):
                advance(done, self.rows)

        replace(path, write)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.labels)

    def _pieces(self) -> Iterator[tuple[int, dict[str, AnyArray]]]:
        """Yield ``PIECE`` rows at a time by column, each with the number of rows up to there."""
        for start in range(0, max(self.rows, 1), PIECE):
            piece = {name: values[start : start + PIECE] for name, values in self.columns.items()}
            yield min(start + PIECE, self.rows), piece

    def _csv(self, file: BinaryIO) -> Iterator[int]:
        head: Any = [self.columns]
        for done, piece in self._pieces():
            text = io.StringIO(newline="")
            csv.writer(text, lineterminator="\n").writerows([*head, *zip(*map(_texts, piece.values()), strict=True)])
            file.write(text.getvalue().encode())
            head = []
            yield done

    def _parquet(self, file: BinaryIO) -> Iterator[int]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        writer = None
        for done, piece in self._pieces():
            table = pa.table({name: pa.array(values) for name, values in piece.items()})
            writer = writer or pq.ParquetWriter(file, table.schema)
            writer.write_table(table)
            yield done
        assert writer is not None
        writer.close()

    def _npy(self, file: Any) -> Iterator[int]:
        kind, shape = np.result_type(*self.columns.values()), (self.rows, len(self.columns))
        descr = np.lib.format.dtype_to_descr(kind)
        np.lib.format.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": shape})
        for done, piece in self._pieces():
            file.write(np.ascontiguousarray(_numbers(piece), kind).tobytes())
            yield done

    def _npz(self, file: BinaryIO) -> Iterator[int]:
        with ZipFile(file, "w", ZIP_DEFLATED) as archive, archive.open("X.npy", "w", force_zip64=True) as member:
            yield from self._npy(member)

    def save_bounds(self, path: Path) -> None:
        """Write the bounds as TOML for ``--bounds``. Raises: InvalidInput: the path cannot be written."""
        lines = [f"{name} = [{low:.15g}, {high:.15g}]" for name, (low, high) in self.bounds.items()]
        text = "# publicly known bounds, a pair per column\n" + "\n".join(lines) + "\n"

        def write(file: BinaryIO) -> None:
            file.write(text.encode())

        replace(path, write)

    def save_labels(self, path: Path) -> None:
        """Write the labels as NPY. Raises: InvalidInput: the path cannot be written."""

        def write(file: BinaryIO) -> None:
            np.save(file, self.labels)

        replace(path, write)


def refuse_huge(rows: int, columns: int) -> None:
    """Raise InvalidInput if a table has more than ``MOST_CELLS`` cells."""
    if rows * columns > MOST_CELLS:
        raise InvalidInput(f"{rows} rows of {columns} columns are too many: take at most 2^30 cells")


def _numbers(columns: Mapping[str, AnyArray]) -> AnyArray:
    return np.column_stack([values for values in columns.values() if values.dtype.kind == "f"])


def _texts(values: AnyArray) -> list[Any]:
    plain: list[Any] = values.tolist()
    return [str(value).lower() for value in plain] if values.dtype.kind == "b" else plain


def _needs_pyarrow() -> None:
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        raise MissingExtra("pyarrow", "files", "a Parquet file") from None
