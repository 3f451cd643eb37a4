"""One file of rows, of any format, that must stay what it is while a run lasts."""

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
"""How files of other formats become data frames, by extension."""

STRETCH = 2**20
"""Rows that are worth a task of their own: blocks of a file are put together until there are so many."""

ENDS = 2**16
"""Bytes at both ends of a file by which it is known again."""


SAVE = "rows are read more than once, so save them in a file first, and give its path"
"""Advice on a stream."""


class Source(Protocol):
    """One file of one format. It stays closed between passes, and pickles."""

    by_name: bool
    """Whether the file itself names its columns."""

    @property
    def known(self) -> Sequence[TableColumn]: ...

    @property
    def blocks(self) -> tuple[int, ...] | None:
        """Rows of the stretches that can be read by themselves; None for a format that does not tell before all is
        read."""
        ...

    def pieces(self, chosen: Selection, only: range | None = None) -> Iterator[Piece]:
        """The rows' features in the file's order, a bounded number of rows at a time. A piece is gone when the next one
        is asked for.

        Args:
            only: which blocks, if the file has more than one; by default all.
        """
        ...

    def names(self, column: str, only: range | None = None) -> Iterator[Names]:
        """The cells of a column that names users, as they are, in the file's order; a missing one is None."""
        ...

    def beside(self, chosen: Selection, kept: Sequence[str]) -> Iterator[tuple[Piece, list[Any]]]:
        """As ``pieces``, with the cells of other columns as they are: Arrow's arrays, or NumPy's."""
        ...


@final
class File:
    """A file, stamped when it is first seen. A copy that was sent to a worker still compares size and time of the last
    change.

    Raises:
        InvalidInput: there is no such file, or it cannot be used. MissingExtra: pyarrow is needed and not installed.
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
        """Whether it names its columns itself."""
        return self._source.by_name

    @property
    def rows(self) -> int:
        """How many rows it has; -1 while nobody knows."""
        return self._rows if self._source.blocks is None else sum(self._source.blocks)

    @property
    def facts(self) -> tuple[int, int]:
        """Its size, and the time of its last change, as they were when it was first seen."""
        return self._stamp[0], self._stamp[1]

    def ends(self) -> tuple[bytes, bytes]:
        """Its first and last bytes: of Parquet and Arrow, how many rows there are and what they are like. Raises:
        InvalidInput."""
        try:
            with open(self.path, "rb") as file:
                first = file.read(ENDS)
                file.seek(max(0, self._stamp[0] - ENDS))
                return first, file.read(ENDS)
        except OSError as error:
            raise InvalidInput(f"'{self.path}' cannot be opened: {cause(error)}") from None

    def match(self, chosen: Selection, reading: Reading) -> None:
        """Raises: InvalidInput unless the same columns are chosen of this file as of the first, whatever their order.

        Args: as of ``rows.columns.select``.
        """
        try:
            mine = select(self.known, reading, not chosen.by_name)
        except InvalidInput as error:
            raise InvalidInput(f"'{self.path}' does not go with the files before it: {error}") from None
        if sorted(mine.used) != sorted(chosen.used):
            raise InvalidInput(
                f"'{self.path}' has the columns {', '.join(mine.used)}, the files before it "
                f"{', '.join(chosen.used)}: say which columns to use"
            )

    def stretches(self) -> Iterator[tuple[range | None, int]]:
        """Blocks that are worth a task of their own, with the rows before them; at least one."""
        blocks = self._source.blocks
        if blocks is None or len(blocks) < 2:
            yield None, 0
            return
        first, before, held = 0, 0, 0
        for i, rows in enumerate(blocks):
            held += rows
            if held >= STRETCH or i == len(blocks) - 1:
                yield range(first, i + 1), before
                first, before, held = i + 1, before + held, 0

    def chunks(self, chosen: Selection, size: int, only: range | None = None) -> Iterator[Floats]:
        """The rows of one pass, or of some blocks. Raises: InvalidInput before the last one if the file is not what it
        was."""
        rows = 0
        for chunk in self._guarded(regroup(self._source.pieces(chosen, only), len(chosen.features), size)):
            rows += len(chunk)
            yield chunk
        self.learn(rows, only)

    def owners(self, column: str, only: range | None = None) -> Owners:
        """Whose the rows are, by a column that names users. Raises: InvalidInput: as ``chunks``, or it names none."""
        named = self._guarded(self._source.names(column, only))
        return Owners.joined([Owners.read([]), *(Owners.read(names) for names in named)])

    def beside(self, chosen: Selection, kept: Sequence[str]) -> Iterator[tuple[Piece, list[Any]]]:
        """All rows, a bounded number at a time, with cells of other columns. Raises: InvalidInput: as ``chunks``."""
        return self._guarded(self._source.beside(chosen, kept))

    def _guarded(self, pieces: Iterator[V]) -> Iterator[V]:
        """What is read of the file. Raises: InvalidInput before the end if it is not what it was."""
        self.unchanged()
        try:
            yield from pieces
        except Exception as error:  # a foreign decoder, as above
            self.unchanged()
            if isinstance(error, CloisterError):
                raise
            raise InvalidInput(_unreadable(self.path, error)) from None
        self.unchanged()

    def learn(self, rows: int, only: range | None = None) -> None:
        """So many rows were there. Raises: InvalidInput unless that is what they were before, or what the file says."""
        blocks = self._source.blocks
        before = self._rows if blocks is None else sum(blocks if only is None else (blocks[i] for i in only))
        if before not in (-1, rows):
            raise InvalidInput(_changed(self.path))
        if blocks is None:
            self._rows = rows

    def unchanged(self) -> None:
        """Raises: InvalidInput unless the file is what it was."""
        if _stamp(self.path)[: len(self._stamp)] != self._stamp:
            raise InvalidInput(_changed(self.path))

    def __getstate__(self) -> dict[str, Any]:
        """For a worker, perhaps on another machine, where a shared file can have another identity."""
        return {**self.__dict__, "_stamp": self._stamp[:2]}


def _stamp(path: str) -> tuple[int, int, int]:
    """Size, time of the last change, and identity of a file."""
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
    """Whether a file is one of CSV, by its name."""
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
"""Readers by extension, each imported when it is needed."""


def _source(path: str, form: Form) -> Source:
    extension = next((e for e in sorted(FORMATS, key=len, reverse=True) if path.lower().endswith(e)), None)
    if extension is None:
        raise InvalidInput(_elsewhere(path))
    try:
        return FORMATS[extension](path, form)
    except ImportError as error:
        raise MissingExtra("pyarrow", "files", "reading Parquet, Arrow and CSV") from error


def _elsewhere(path: str) -> str:
    """Advice for a file of another format."""
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
    """Whether a file begins as DuckDB's databases do, whatever it is called."""
    try:
        with open(path, "rb") as file:
            return file.read(12)[8:] == b"DUCK"
    except OSError:
        return False
