"""Labels of rows by the centres of a result, in bounded memory. NOT private."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, final

import attrs
import numpy as np

from cloister import metrics
from cloister.core.errors import InvalidInput, MissingExtra, UnknownName
from cloister.core.types import Floats, Ints
from cloister.rows.options import Reading
from cloister.rows.selection import few, in_order, table_columns
from cloister.run.fit import source
from cloister.run.result import Result
from cloister.run.saving import replace

if TYPE_CHECKING:
    import pyarrow as pa

ENDINGS = ".parquet", ".csv", ".npy"

NOT_PRIVATE = "NOT private: labels were computed from the rows themselves. Do not publish them with the result."
"""Notice on labels, which a Parquet file also carries in its schema."""

UNUSED = -1
"""Label of a row that cannot be used, since a cell is missing or infinite."""


def rows_of(
    result: Result,
    rows: Sequence[str],
    reading: Reading,
    told: Callable[[str], None] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Any:
    """Open the rows that a result's centres are compared with, in the result's columns and categories.

    Args:
        result: the result.
        rows: paths, patterns, or an address.
        reading: its columns are the names of the result's columns in these rows, in the result's order, or the result's
            own names in any order. Default: the result's own; for a result without names those of the files.
        told: as of ``source``.
        progress: as of ``source``.

    Raises:
        CloisterError: there are no such columns, or another number of them.
    """
    categories = result.problem.get("categories", {})
    own_columns = table_columns(result.columns, categories)
    columns = reading.names or own_columns
    reading = attrs.evolve(reading, missing=reading.missing_of(result), told=told, progress=progress)
    try:
        population = source(rows, reading, columns=columns, categories=categories)
        if (used := list(population.selection.used)) != own_columns and in_order(used, own_columns) == own_columns:
            population.close()
            population = source(rows, reading, columns=own_columns, categories=categories)
    except UnknownName:
        if reading.columns or list(result.columns) != [str(i) for i in range(len(result.columns))]:
            raise
        population = source(rows, reading)  # the files name columns and the result does not: an error asks which
    try:
        check_columns(result, population.columns)
    except InvalidInput:
        population.close()
        raise
    if told is not None and reading.columns and population.columns != result.columns:
        pairs = zip(population.columns, result.columns, strict=True)
        renamed = [f"{name} as {column}" for name, column in pairs if name != column]
        told(f"columns are read as the result's: {few(renamed)}")
    return population


def check_columns(result: Result, named: Sequence[str]) -> None:
    """Raise InvalidInput unless these features are as many as the result's, with the same categories."""
    categories = result.problem.get("categories", {})
    if categories and tuple(named) != result.columns:
        raise InvalidInput(
            f"the result has categories, and is of the columns {few(table_columns(result.columns, categories))}: rows "
            f"for it have columns of these names, not {few(table_columns(named, categories))}"
        )
    if len(named) != len(result.columns):
        raise InvalidInput(
            f"the result is of the columns {', '.join(result.columns[:8])}{', ...' if len(result.columns) > 8 else ''} "
            f"({len(result.columns)}), these are {len(named)}: name them in that order (--columns)"
        )


@final
@attrs.frozen
class LabelCounts:
    """Numbers of rows. NOT private. Args: rows (all), unused (without a label), sizes (of each centre)."""

    rows: int
    unused: int
    sizes: tuple[int, ...]


@final
@attrs.define
class Labels:
    """Labels of rows that are read a piece at a time, and the columns written beside them.

    Args:
        result: the result.
        population: the rows, from ``rows_of``.
        copied: columns that are copied.
        distances: also write the distances to the rows' centres, in the units of the run.
        missing: "refuse" or "drop".
        advance: called with the number of rows just read.
        threads: None: one per core.
        group_names: also write the groups' names.
    """

    result: Result
    population: Any
    copied: Sequence[str] = ()
    distances: bool = False
    missing: str = "refuse"
    advance: Callable[[int], None] = lambda n: None
    threads: int | None = None
    group_names: bool = False
    _sizes: Ints = attrs.field(init=False)
    _unused: int = attrs.field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self._sizes = np.zeros(len(self.result.centers), np.int64)
        if len(set(self.copied)) < len(self.copied):
            raise InvalidInput("--keep names a column twice: name each once")
        for name in self._added:
            if name in self.copied:
                raise InvalidInput(f"--keep cannot copy '{name}': the file of labels has a column of that name")

    @property
    def _added(self) -> list[str]:
        """Columns that cloister adds to the file."""
        return ["cluster", *(["group"] if self.group_names else []), *(["distance"] if self.distances else [])]

    def save(self, target: Path) -> LabelCounts:
        """Write all labels into a file, whole or not at all.

        Raises:
            CloisterError: it is one of the rows' files, has another ending, or rows cannot be read.
        """
        for path in self.population.paths:
            if target.exists() and os.path.samefile(path, target):
                raise InvalidInput(f"{target} holds the rows themselves: give the labels another file")
        if target.suffix == ".npy":
            if self.copied or len(self._added) > 1:
                raise InvalidInput("an .npy file holds labels alone: give .parquet or .csv to have more beside them")
            replace(target, self._as_npy)
        else:
            replace(target, self._as_parquet if target.suffix == ".parquet" else self._as_csv)
        return LabelCounts(int(self._sizes.sum()) + self._unused, self._unused, tuple(self._sizes.tolist()))

    def _pieces(self) -> Iterator[tuple[Ints, Floats, list[Any]]]:
        """Yield labels, distances and copied cells, a piece of the rows at a time."""
        units = 1.0 if self.result.units is None else self.result.units
        centers = self.result.centers / units
        for rows, cells in self.population.beside(self.copied):
            usable = np.isfinite(rows).all(axis=1)
            if self.missing == "refuse" and not usable.all():
                raise InvalidInput(
                    "some cells are missing or infinite: fill them with a public constant, or give such rows the label "
                    "-1 with --missing drop"
                )
            labels, distances = np.full(len(rows), UNUSED), np.full(len(rows), np.nan)
            if usable.any():
                labels[usable] = metrics.labels(rows[usable], self.result.centers, self.threads, self.result.units)
                distances[usable] = np.linalg.norm(rows[usable] / units - centers[labels[usable]], axis=1)
            self._sizes += np.bincount(labels[usable], minlength=len(centers))
            self._unused += int((~usable).sum())
            yield labels, distances, cells
            self.advance(len(rows))

    def _batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the file's rows: at least one batch, which may be empty."""
        arrow, schema = _pyarrow(), None
        names = [*self.copied, *self._added]
        group_names = arrow.array([*self.result.group_names, None])  # the last for rows without a label, -1
        for labels, distances, cells in self._pieces():
            arrays = [*(arrow.array(c) if isinstance(c, np.ndarray) else c for c in cells)]
            arrays.append(arrow.array(labels, arrow.int32()))
            arrays += [group_names.take(arrow.array(labels % len(group_names)))] if self.group_names else []
            arrays += [arrow.array(distances, from_pandas=True)] if self.distances else []
            if schema is None:
                types = list(zip(names, (column.type for column in arrays), strict=True))
                schema = arrow.schema(types, metadata={"cloister": NOT_PRIVATE})
            try:
                columns = [column.cast(field.type) for column, field in zip(arrays, schema, strict=True)]
            except arrow.ArrowInvalid:
                raise InvalidInput("a column of --keep has another type in a later file: leave it out") from None
            yield arrow.record_batch(columns, schema=schema)
        if schema is None:
            raise InvalidInput("there are no rows to label")

    def _as_parquet(self, file: IO[bytes]) -> None:
        _pyarrow()
        import pyarrow.parquet

        self._write(lambda schema: pyarrow.parquet.ParquetWriter(file, schema))

    def _as_csv(self, file: IO[bytes]) -> None:
        _pyarrow()
        import pyarrow.csv

        self._write(lambda schema: pyarrow.csv.CSVWriter(file, schema))

    def _write(self, writer: Callable[[Any], Any]) -> None:
        batches = self._batches()
        first = next(batches)
        try:
            with writer(first.schema) as sink:
                sink.write_batch(first)
                for batch in batches:
                    sink.write_batch(batch)
        except _pyarrow().ArrowInvalid:
            raise InvalidInput("a column of --keep has a type that this file cannot hold: leave it out") from None

    def _as_npy(self, file: IO[bytes]) -> None:
        """Write labels after a header that leaves room for the number of rows, which is known at the end."""
        form = {"descr": np.lib.format.dtype_to_descr(np.dtype(np.int32)), "fortran_order": False}
        np.lib.format.write_array_header_1_0(file, {**form, "shape": (0,)})
        start, n = file.tell(), 0
        for labels, _, _ in self._pieces():
            file.write(labels.astype(np.int32).tobytes())
            n += len(labels)
        file.seek(0)
        np.lib.format.write_array_header_1_0(file, {**form, "shape": (n,)})
        assert file.tell() == start
        file.seek(0, os.SEEK_END)


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise MissingExtra("pyarrow", "files", "writing Parquet and CSV") from error
    return pyarrow
