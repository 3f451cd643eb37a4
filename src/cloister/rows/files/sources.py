"""Files of rows, each of any supported format, which must not change during a run."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeVar, final

from cloister.core.errors import CloisterError, InvalidInput, MissingExtra, cause
from cloister.core.types import Floats
from cloister.rows.columns import TableColumn, select
from cloister.rows.files.csv_form import Form
from cloister.rows.options import Reading
from cloister.rows.reading import Piece, regroup
from cloister.rows.selection import Selection
from cloister.rows.users import Names, Owners

V = TypeVar("V")

READERS = {
    **dict.fromkeys((".xlsx", ".xls", ".xlsm", ".xlsb", ".ods"), "pandas.read_excel('{}')"),
    **dict.fromkeys((".db", ".sqlite", ".sqlite3"), "pandas.read_sql('SELECT ...', sqlite3.connect('{}'))"),
    ".sas7bdat": "pandas.read_sas('{}')",
    ".xpt": "pandas.read_sas('{}')",
    ".dta": "pandas.read_stata('{}')",
    ".sav": "pandas.read_spss('{}')",
    ".orc": "pandas.read_orc('{}')",
    ".jsonl": "pandas.read_json('{}', lines=True)",
    ".h5": "pandas.read_hdf('{}')",
}
"""Pandas call that reads each unsupported format, by extension."""

STRETCH = 2**20
"""Rows that are worth a task of their own; smaller blocks of a file are grouped."""

ENDS = 2**16
"""Bytes at each end of a file that identify it."""


SAVE = "rows are read more than once, so save them in a file first, and give its path"
"""Advice for streams."""


class Source(Protocol):
    """Reader of one file of one format; closed between passes, and picklable."""

    by_name: bool
    """True if the file names its columns."""

    @property
    def known(self) -> Sequence[TableColumn]: ...

    @property
    def blocks(self) -> tuple[int, ...] | None:
        """Rows of each block that can be read on its own; None if the format does not tell in advance."""
        ...

    def pieces(self, chosen: Selection, only: range | None = None) -> Iterator[Piece]:
        """Yield the rows' features in file order, of all blocks or ``only`` some, a bounded number of rows at a time.

        A piece is invalid once the next one is requested.
        """
        ...

    def names(self, column: str, only: range | None = None) -> Iterator[Names]:
        """Yield the raw cells of a user column in file order; missing ones are None."""
        ...

    def beside(self, chosen: Selection, extra_columns: Sequence[str]) -> Iterator[tuple[Piece, list[Any]]]:
        """Yield ``pieces`` with the raw cells of other columns (Arrow or NumPy arrays)."""
        ...


@final
class File:
    """File whose size, modification time and inode are recorded when it is first seen.

    A copy sent to a worker still compares size and modification time.

    Raises:
        InvalidInput: the file is missing or unusable.
        MissingExtra: pyarrow is needed and not installed.
    """

    def __init__(self, path: str, form: Form | None = None) -> None:
        self.path = path
        self._stamp: tuple[int, ...] = _stamp(path)
        self._rows = -1
        if not self._stamp[0]:
            raise InvalidInput(f"'{path}' is empty")
        try:
            self._source = _source(path, form or Form())
        except CloisterError:
            raise
        except Exception as error:  # a foreign decoder: whatever it raises may quote the file, so it goes no further
            raise InvalidInput(_unreadable(path, error)) from None

    @property
    def known(self) -> Sequence[TableColumn]:
        return self._source.known

    @property
    def by_name(self) -> bool:
        """True if the file names its columns."""
        return self._source.by_name

    @property
    def rows(self) -> int:
        """Number of rows; -1 while unknown."""
        return self._rows if self._source.blocks is None else sum(self._source.blocks)

    @property
    def facts(self) -> tuple[int, int]:
        """Size and modification time when the file was first seen."""
        return self._stamp[0], self._stamp[1]

    def ends(self) -> tuple[bytes, bytes]:
        """Return the first and last bytes; in Parquet and Arrow they hold the row count and column statistics.

        Raises:
            InvalidInput: the file cannot be opened.
        """
        try:
            with open(self.path, "rb") as file:
                first = file.read(ENDS)
                file.seek(max(0, self._stamp[0] - ENDS))
                return first, file.read(ENDS)
        except OSError as error:
            raise InvalidInput(f"'{self.path}' cannot be opened: {cause(error)}") from None

    def match(self, chosen: Selection, reading: Reading) -> None:
        """Raise InvalidInput unless this file has the chosen columns, in any order."""
        try:
            selection = select(self.known, reading, not chosen.by_name)
        except InvalidInput as error:
            raise InvalidInput(f"'{self.path}' does not go with the files before it: {error}") from None
        if sorted(selection.used) != sorted(chosen.used):
            raise InvalidInput(
                f"'{self.path}' has the columns {', '.join(selection.used)}, the files before it "
                f"{', '.join(chosen.used)}: say which columns to use"
            )

    def stretches(self) -> Iterator[tuple[range | None, int]]:
        """Yield groups of blocks that are worth a task each, with the number of rows before them; at least one."""
        blocks = self._source.blocks
        if blocks is None or len(blocks) < 2:
            yield None, 0
            return
        first, rows_before, stretch_rows = 0, 0, 0
        for i, rows in enumerate(blocks):
            stretch_rows += rows
            if stretch_rows >= STRETCH or i == len(blocks) - 1:
                yield range(first, i + 1), rows_before
                first, rows_before, stretch_rows = i + 1, rows_before + stretch_rows, 0

    def chunks(self, chosen: Selection, size: int, only: range | None = None) -> Iterator[Floats]:
        """Yield the rows of a whole pass, or of some blocks.

        Raises:
            InvalidInput: the file changed; raised before the iterator ends.
        """
        rows = 0
        for chunk in self._guarded(regroup(self._source.pieces(chosen, only), len(chosen.features), size)):
            rows += len(chunk)
            yield chunk
        self.check_row_count(rows, only)

    def owners(self, column: str, only: range | None = None) -> Owners:
        """Return the owners of the rows, read from a user column.

        Raises:
            InvalidInput: the file changed, or the column cannot name users.
        """
        named = self._guarded(self._source.names(column, only))
        return Owners.joined([Owners.read([]), *(Owners.read(names) for names in named)])

    def beside(self, chosen: Selection, extra_columns: Sequence[str]) -> Iterator[tuple[Piece, list[Any]]]:
        """Yield all rows, a bounded number at a time, with the raw cells of other columns.

        Raises:
            InvalidInput: the file changed.
        """
        return self._guarded(self._source.beside(chosen, extra_columns))

    def _guarded(self, pieces: Iterator[V]) -> Iterator[V]:
        """Yield the pieces; raise InvalidInput before the end if the file changed."""
        self.unchanged()
        try:
            yield from pieces
        except Exception as error:  # a foreign decoder, as above
            self.unchanged()
            if isinstance(error, CloisterError):
                raise
            raise InvalidInput(_unreadable(self.path, error)) from None
        self.unchanged()

    def check_row_count(self, rows: int, only: range | None = None) -> None:
        """Record the number of rows read.

        Raises:
            InvalidInput: it differs from the number read before, or from the one the file states.
        """
        blocks = self._source.blocks
        expected = self._rows if blocks is None else sum(blocks if only is None else (blocks[i] for i in only))
        if expected not in (-1, rows):
            raise InvalidInput(_changed(self.path))
        if blocks is None:
            self._rows = rows

    def unchanged(self) -> None:
        """Raise InvalidInput if the file changed since it was first seen."""
        if _stamp(self.path)[: len(self._stamp)] != self._stamp:
            raise InvalidInput(_changed(self.path))

    def __getstate__(self) -> dict[str, Any]:
        """Drop the inode: on a worker's machine a shared file can have another one."""
        return {**self.__dict__, "_stamp": self._stamp[:2]}


def _stamp(path: str) -> tuple[int, int, int]:
    """Return size, modification time and inode of a file."""
    try:
        facts = os.stat(path)
    except OSError as error:
        if path == "-":
            raise InvalidInput(f"'-' is no file: {SAVE}") from None
        raise InvalidInput(f"'{path}' cannot be opened: {cause(error)}") from None
    if not (stat.S_ISREG(facts.st_mode) or stat.S_ISDIR(facts.st_mode)):
        raise InvalidInput(f"'{path}' is a pipe or a device: {SAVE}")
    return facts.st_size, facts.st_mtime_ns, facts.st_ino


def _changed(path: str) -> str:
    return f"'{path}' is not what it was when this run began: leave files alone while a run lasts, and start again"


def _unreadable(path: str, error: Exception) -> str:
    if isinstance(error, PermissionError):
        return f"'{path}' cannot be opened: {cause(error)}"
    if isinstance(error, MemoryError):
        return f"'{path}' is damaged, or needs more memory than there is"
    return f"'{path}' cannot be read: it is damaged, cut short, or not what its extension says"


def is_csv(path: str) -> bool:
    """Return True if the file name has a CSV extension."""
    return path.lower().endswith((".csv", ".csv.gz"))


def _parquet(path: str, _: Form) -> Source:
    from cloister.rows.files.arrow import Parquet

    return Parquet(path)


def _ipc(path: str, _: Form) -> Source:
    from cloister.rows.files.arrow import Ipc

    return Ipc(path)


def _csv(path: str, form: Form) -> Source:
    from cloister.rows.files.arrow import Csv

    return Csv(path, form)


def _npy(path: str, _: Form) -> Source:
    from cloister.rows.files.npy import Npy

    return Npy(path)


def _npz(path: str, _: Form) -> Source:
    from cloister.rows.files.npy import Npz

    return Npz(path)


FORMATS: dict[str, Callable[[str, Form], Source]] = {
    ".parquet": _parquet,
    ".arrow": _ipc,
    ".feather": _ipc,
    ".csv": _csv,
    ".csv.gz": _csv,
    ".npy": _npy,
    ".npz": _npz,
}
"""Readers by extension; each is imported on first use."""


def _source(path: str, form: Form) -> Source:
    extension = next((e for e in sorted(FORMATS, key=len, reverse=True) if path.lower().endswith(e)), None)
    if extension is None:
        raise InvalidInput(_elsewhere(path))
    try:
        return FORMATS[extension](path, form)
    except ImportError as error:
        raise MissingExtra("pyarrow", "files", "reading Parquet, Arrow and CSV") from error


def _elsewhere(path: str) -> str:
    """Return advice for a file of an unsupported format."""
    extension = os.path.splitext(path.lower())[1]
    if extension == ".tsv":
        return f"'{path}' has an extension that is not known: call it .csv, and give --delimiter tab"
    if extension == ".duckdb" or _is_duckdb(path):
        return f"'{path}' is a database: give its address, duckdb:///{path.lstrip('/')}, and --table NAME (table=)"
    if extension not in READERS:
        return f"'{path}' has an extension that is not known: {', '.join(FORMATS)}"
    name, reader = os.path.basename(path), READERS[extension]
    return (
        f"'{path}' is read by pandas or polars first: {reader.format(name)}.to_parquet('rows.parquet') makes a file of "
        f"it, and cloister.KMeans takes the data frame itself"
    )


def _is_duckdb(path: str) -> bool:
    """Return True if a file starts with DuckDB's magic bytes, whatever its name."""
    try:
        with open(path, "rb") as file:
            return file.read(12)[8:] == b"DUCK"
    except OSError:
        return False
