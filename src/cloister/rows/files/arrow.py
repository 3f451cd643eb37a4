"""Parquet, Arrow and CSV files, read a piece at a time by pyarrow, without its threads.

Measured on 20 million rows of 8 float32 columns in one row group: with a buffered stream per column, reading needs
60 MB more than importing pyarrow; without it the whole row group is loaded.
"""

from __future__ import annotations

import codecs
import mmap
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import Any, TypeAlias, final

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet

from cloister.core.errors import InvalidInput
from cloister.core.plain_data import parsed
from cloister.core.types import AnyArray, Floats
from cloister.rows.categories import MISSING, Category, canonical
from cloister.rows.columns import Kind, TableColumn, not_plain_numbers
from cloister.rows.files import joined
from cloister.rows.files.csv_form import Form, check_head, not_unicode
from cloister.rows.files.csv_rows import WholeRows
from cloister.rows.keywords import Texts
from cloister.rows.reading import Piece, piece_rows
from cloister.rows.selection import Selection
from cloister.rows.users import Names

Reads: TypeAlias = Sequence[tuple[str, Callable[[Any], Any]]]
"""Columns to read, each with the function that converts its Arrow array."""

BUFFERS = 2**25
"""Total bytes of all columns' buffers."""

BLOCK = 2**21
"""Bytes per read of a CSV file, and the maximum length of a row."""

END = b"\xff\xff\xff\xff\0\0\0\0"
"""Final bytes of a complete Arrow stream."""

NUMBER = re.compile(r" *[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)? *")
"""Cell that holds a number."""


COMPUTE: Any = pyarrow.compute  # its functions are created at import, invisible to type checkers

NULLS = frozenset(pyarrow.csv.ConvertOptions().null_values)
"""Cells of a CSV file that stand for a missing value."""


def _kind(kind: Any) -> Kind:
    """Return the kind of a column type; writers use the null type where no cell determined one."""
    is_a = pa.types
    if is_a.is_null(kind):
        return "untyped"
    if is_a.is_boolean(kind):
        return "booleans"
    if is_a.is_integer(kind) or is_a.is_floating(kind) or is_a.is_decimal(kind):
        return "numbers"
    if is_a.is_duration(kind) or is_a.is_interval(kind):
        return "spans"
    if is_a.is_temporal(kind):
        return "dates"
    lists = is_a.is_list, is_a.is_large_list, is_a.is_fixed_size_list
    if any(is_list(kind) for is_list in lists):
        return "lists"
    if is_a.is_dictionary(kind) and _kind(kind.value_type) == "numbers":
        return "wrapped"
    texts = is_a.is_string, is_a.is_large_string, is_a.is_string_view, is_a.is_dictionary
    return "text" if any(is_text(kind) for is_text in texts) else "other"


def _known(schema: Any) -> list[TableColumn]:
    index = _pandas_index(schema)
    return [
        TableColumn(
            field.name,
            _kind(field.type),
            index=field.name in index,
            convert=f"of type {field.type}: convert them, as in column.cast(pyarrow.float64())",
        )
        for field in schema
    ]


def _pandas_index(schema: Any) -> set[str]:
    """Return the columns that hold a pandas index, according to the schema's metadata."""
    try:
        metadata = parsed((schema.metadata or {}).get(b"pandas", b"{}"))
        return {name for name in metadata.get("index_columns", ()) if isinstance(name, str)}
    except (ValueError, AttributeError, TypeError):
        return set()


def numbers_of(column: Any) -> AnyArray:
    """Convert an Arrow column to numbers that float64 represents with one correct rounding; nulls become NaN."""
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.string())  # converting the two halves of a decimal would round twice
    if column.null_count or not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        column = column.cast(pa.float64(), safe=False)
    numbers: AnyArray = column.to_numpy(zero_copy_only=False)
    return numbers


def _cells(column: Any) -> Any:
    """Return the raw cells of an Arrow column.

    Numbers become an array (floats with NaN for null); other types become Python objects, with None for null.
    """
    plain = pa.types.is_floating(column.type) or (pa.types.is_integer(column.type) and not column.null_count)
    return column.to_numpy(zero_copy_only=False) if plain else column.to_pylist()


def _as_is(column: Any) -> Any:
    return column


def _text_as_is(column: Any) -> Any:
    """Return CSV cells unchanged, including NA and null; an empty cell becomes a null."""
    if not pa.types.is_string(column.type):
        return column
    return COMPUTE.if_else(COMPUTE.equal(column, ""), None, column)


def _without_nulls(column: Any) -> list[Any]:
    """Return CSV cells, with None for ``NULLS``."""
    missing = COMPUTE.is_in(column, pa.array(sorted(NULLS), column.type))
    cells: list[Any] = COMPUTE.if_else(missing, None, column).to_pylist()
    return cells


def _words(texts: Texts, csv: bool, column: Any) -> Floats:
    return texts.halves(len(column), lambda part: _without_nulls(column[part]) if csv else column[part].to_pylist())


@attrs.frozen
class _Codes:
    """Converter of an Arrow column to the codes of a category.

    Args:
        category: its values.
        texts: whether ``NULLS`` are missing cells.
    """

    category: Category
    texts: bool

    def __call__(self, column: Any) -> Floats:
        packed = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        cells, listed = packed.dictionary.to_pylist(), self.category.values
        if self.texts:  # a declared value is never missing: "NA" may be Namibia
            cells = [None if cell in NULLS and canonical(cell) not in listed else cell for cell in cells]
        codes = np.append(self.category.codes(cells), MISSING)
        places: Any = packed.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return np.asarray(codes[places], np.float64)


def _pieces(batches: Iterable[Any], reads: Reads) -> Iterator[list[Any]]:
    size = piece_rows(len(reads))
    for batch in batches:
        for start in range(0, batch.num_rows, size):
            piece = batch.slice(start, size)
            yield [read(piece.column(name)) for name, read in reads]


class _Reader(ABC):
    """Base class of the readers of Arrow's formats."""

    by_name = True
    texts = False

    @abstractmethod
    def _read(self, reads: Reads, only: range | None) -> Iterator[list[Any]]:
        """Yield pieces of these columns, each converted by its function."""

    def pieces(self, chosen: Selection, only: range | None = None) -> Iterator[Piece]:
        return (chosen.spread(piece) for piece in self._read(self._reads(chosen), only))

    def names(self, column: str, only: range | None = None) -> Iterator[Names]:
        return (piece[0] for piece in self._read([(column, _without_nulls if self.texts else _cells)], only))

    def beside(self, chosen: Selection, extra_columns: Sequence[str]) -> Iterator[tuple[Piece, list[Any]]]:
        feature_reads = self._reads(chosen)
        as_is = _text_as_is if self.texts else _as_is
        used, reads = len(feature_reads), [*feature_reads, *((name, as_is) for name in extra_columns)]
        return ((chosen.spread(piece[:used]), piece[used:]) for piece in self._read(reads, None))

    def _reads(self, chosen: Selection) -> Reads:
        def read(column: str) -> Callable[[Any], Any]:
            category = chosen.category(column)
            return numbers_of if category is None else _Codes(category, self.texts)

        words = [(texts.column, partial(_words, texts, self.texts)) for texts in chosen.texts]
        return [*((column, read(column)) for column in chosen.used), *words]


@final
class Parquet(_Reader):
    """Reader of a Parquet file: only the requested columns are read, page by page, however large a row group is."""

    def __init__(self, path: str) -> None:
        self._path = path
        with pyarrow.parquet.ParquetFile(path) as file:
            self.known = _known(file.schema_arrow)
            groups = range(file.metadata.num_row_groups)
            self.blocks = tuple(file.metadata.row_group(i).num_rows for i in groups)
            with _mapped(path) as memory:
                joined.check_parquet(path, file.metadata, memory)

    def _read(self, reads: Reads, only: range | None) -> Iterator[list[Any]]:
        columns = _named(reads)
        buffer = max(2**14, min(2**20, BUFFERS // len(columns)))
        options = {"pre_buffer": False, "buffer_size": buffer, "page_checksum_verification": True}
        with pyarrow.parquet.ParquetFile(self._path, **options) as file:
            size = piece_rows(len(reads))
            groups = list(range(len(self.blocks)) if only is None else only)
            batches = file.iter_batches(size, row_groups=groups, columns=columns, use_threads=False)
            yield from _pieces(batches, reads)


@final
class Ipc(_Reader):
    """Reader of an Arrow (Feather) file or stream, through a memory map.

    The used columns of a compressed record batch are unpacked as a whole, so memory is bounded by the size of a batch.
    """

    blocks = None

    def __init__(self, path: str) -> None:
        self._path, memory = path, _mapped(path)
        reader, _ = _ipc(memory, None)
        if isinstance(reader, pyarrow.ipc.RecordBatchFileReader):
            joined.check_arrow(path, memory)
        self.known = _known(reader.schema)
        self._position = {column.name: i for i, column in enumerate(self.known)}
        self._packed = _outside(next(_batches(reader), None), memory)

    def _read(self, reads: Reads, only: range | None) -> Iterator[list[Any]]:
        memory, bytes_read = _mapped(self._path), 0
        # selecting fields makes pyarrow copy the batch, which only pays off if it avoids unpacking the others
        reader, source = _ipc(memory, [self._position[name] for name in _named(reads)] if self._packed else None)
        for piece in _pieces(_batches(reader), reads):
            yield piece
            bytes_read += 8 * len(piece[0]) * len(reads)
            if bytes_read >= BUFFERS and hasattr(memory, "madvise"):
                memory.madvise(mmap.MADV_DONTNEED)  # release pages already read; the file still has them
                bytes_read = 0
        if isinstance(reader, pyarrow.ipc.RecordBatchStreamReader) and source.tell() < source.size():
            joined.refuse(self._path)


def _mapped(path: str) -> mmap.mmap:
    with open(path, "rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _ipc(memory: mmap.mmap, fields: list[int] | None) -> tuple[Any, Any]:
    """Return a reader and its source."""
    options, source = pyarrow.ipc.IpcReadOptions(included_fields=fields, use_threads=False), pa.BufferReader(memory)
    try:
        return pyarrow.ipc.open_file(source, options=options), source
    except pa.ArrowInvalid:
        if memory[-len(END) :] != END:
            raise  # without the end marker a truncated stream looks complete
        source.seek(0)
        return pyarrow.ipc.open_stream(source, options=options), source


def _outside(batch: Any, memory: mmap.mmap) -> bool:
    """Return True if a record batch was copied out of the mapped memory, as a compressed one is."""
    mapped = pa.py_buffer(memory)
    used = [b for column in batch or () for b in column.buffers() if b is not None and b.size]
    return not all(mapped.address <= b.address < mapped.address + mapped.size for b in used)


def _batches(reader: Any) -> Iterator[Any]:
    if isinstance(reader, pyarrow.ipc.RecordBatchFileReader):
        return (reader.get_batch(i) for i in range(reader.num_record_batches))
    return iter(reader)


@final
class Csv(_Reader):
    """Reader of a CSV file with a header line.

    The file has no types: every column is numeric, read as float64 with correct rounding, and a cell that is not a
    number makes the whole file refused. If text columns were skipped, one row would decide which columns a result has.

    An empty line of a file with one column is a row whose cell is missing: if it were skipped, one person's cell would
    shift the user numbers of everyone after them. In files of several columns it is not a row.
    """

    blocks = None
    texts = True

    def __init__(self, path: str, form: Form) -> None:
        self._path, self._form, self._empty, self._schema = path, form, False, pa.schema([])
        check_head(path, form)
        self._schema = self._first_schema()
        self.known = [TableColumn(name, "cells") for name in self._schema.names]
        if len(self.known) == 1 and (delimiters := re.findall(r"[;\t|]", self.known[0].name)):
            raise InvalidInput(
                f"the first line of '{path}' is parted by {delimiters[0]!r}: say so with --delimiter (delimiter=)"
            )
        if len(self.known) == 1:
            self._empty = True
            if self._first_schema().names != self._schema.names:
                raise InvalidInput(f"'{path}' begins with an empty line: its first line holds the column's name")
        positions = [str(i) for i in range(len(self._schema.names))]  # written by data frames without column names
        if self._schema.names != positions and any(NUMBER.fullmatch(name) for name in self._schema.names):
            raise InvalidInput(
                f"the first line of '{path}' looks like a row: a CSV file starts with the columns' names, which are "
                f"no numbers"
            )

    def _read(self, reads: Reads, only: range | None) -> Iterator[list[Any]]:
        kinds = {name: pa.string() for name, _ in reads}
        kinds |= {name: self._kind(name) for name, read in reads if read is numbers_of}
        options = {
            "include_columns": _named(reads),
            "strings_can_be_null": False,
        }  # each converter decides what is missing
        numeric = [i for i, name in enumerate(self._schema.names) if (name, numbers_of) in reads]
        with closing(self._tables(pyarrow.csv.ConvertOptions(column_types=kinds, **options), numeric)) as tables:
            yield from _pieces((batch for table in tables for batch in table.to_batches()), reads)

    def _first_schema(self) -> Any:
        """Return the schema of the first block: the column names, and whether the first cells look boolean."""
        with closing(self._tables(None)) as tables:
            return next(tables).schema

    def _tables(self, convert: Any, numeric: Sequence[int] = ()) -> Generator[Any]:
        """Yield the rows as tables, one per block; at least one.

        pyarrow parses each block as a separate file: its streaming reader would split blocks itself, and its read-ahead
        threads do not stop when reading ends early.

        Args:
            convert: options of pyarrow, None to infer the types.
            numeric: positions of the numeric columns.
        """
        parsing = pyarrow.csv.ParseOptions(
            delimiter=self._form.delimiter, ignore_empty_lines=not self._empty, newlines_in_values=True
        )
        packing = "gzip" if self._path.lower().endswith(".gz") else None
        names: list[str] = []
        try:
            with pa.input_stream(self._path, compression=packing) as stream:
                rows = WholeRows(self._path, self._form.delimiter, BLOCK, len(self._schema), numeric)
                for block in rows.blocks(self._decoded(stream)):
                    # a byte order mark here belongs to a cell; pyarrow strips one, so it is doubled
                    mark = codecs.BOM_UTF8 if block.startswith(codecs.BOM_UTF8) else b""
                    options = pyarrow.csv.ReadOptions(use_threads=False, block_size=len(block) + 3, column_names=names)
                    table = pyarrow.csv.read_csv(pa.BufferReader(mark + block), options, parsing, convert)
                    yield table
                    names = self._schema.names  # only the first block starts with the header
        except pa.ArrowInvalid as error:
            raise InvalidInput(f"'{self._path}' {self._advice(str(error))}") from None

    def _decoded(self, stream: Any) -> Any:
        """Return the stream transcoded to UTF-8."""
        encoding = codecs.lookup(self._form.encoding).name
        return stream if encoding == "utf-8" else pa.transcoding_input_stream(stream, self._form.encoding, "utf8")

    def _kind(self, name: str) -> Any:
        kind = self._schema.field(name).type
        return kind if pa.types.is_boolean(kind) else pa.float64()

    def _advice(self, error: str) -> str:
        """Describe the fault of a CSV file without the line that pyarrow quotes."""
        if "invalid UTF8" in error:
            return not_unicode("has cells")
        if "conversion error" in error:
            column = re.match(r"In CSV column #(\d+)", error)
            name = self._schema.names[int(column[1])] if column else "?"
            return f"cannot be used as it is: {not_plain_numbers(name)}"
        if "CSV parse error" in error:
            return "has lines with more or fewer cells than its header"
        return "cannot be read as CSV: it is damaged, or something else"


def _named(reads: Reads) -> list[str]:
    """Return the names of the columns that are read, without duplicates."""
    return list(dict.fromkeys(name for name, _ in reads))


__all__ = ["Csv", "Ipc", "Parquet", "numbers_of"]
