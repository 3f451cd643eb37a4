"""Rows in files, read a chunk at a time in every round."""

from __future__ import annotations

import glob
import importlib
import os
from collections.abc import Iterator, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from cloister.core.encoding import absorb, chunk_rows, encode_rows, map_merge, merge_summaries
from cloister.core.errors import CloisterError, InvalidInput, MissingExtra
from cloister.core.questions import Round
from cloister.core.randomness import NoiseRng
from cloister.core.types import Floats
from cloister.plugins.populations.reading import (
    Missing,
    Piece,
    Progress,
    as_first,
    as_missing,
    chosen,
    collected,
    fit,
    keep_memory,
    refuse_too_many,
    regroup,
    user_numbers,
    validate,
)

Path: TypeAlias = str | os.PathLike[str]

FORMATS = {
    ".parquet": "arrow:Parquet", ".arrow": "arrow:Ipc", ".feather": "arrow:Ipc", ".csv": "arrow:Csv",
    ".csv.gz": "arrow:Csv", ".npy": "npy:Npy", ".npz": "npy:Npz",
}  # fmt: skip
"""What reads files of each extension: a module of this folder, imported when it is needed, and its class."""


class Source(Protocol):
    """One file of one format. It stays closed between passes."""

    @property
    def known(self) -> list[tuple[str, bool]]:
        """Each column's name, and whether it holds numbers."""
        ...

    def pieces(self, columns: Sequence[str]) -> Iterator[Piece]:
        """The rows in the file's order, a bounded number at a time. A piece is gone when the next one is asked for."""
        ...


class Files:
    """A curator's rows in files, read once per round, a chunk at a time: memory does not grow with the files.

    Rows with a missing or infinite cell are dropped, by a rule that looks at each row alone; whether ``check`` lets them
    pass is said by ``missing``. User i is the row's position, over the files in their order, plus ``first``. Numbers are
    integers, floats, booleans and decimals; the same numbers give the same answers whatever file they are in.

    Args:
        paths: a file, a glob pattern (sorted), or several of them; .parquet, .arrow, .feather, .csv, .csv.gz, .npy, .npz
            (the array 'X' or the only two-dimensional one).
        columns: names to use, in this order; by default all that hold numbers, by the file's schema. CSV has none: by
            default all its columns must hold numbers. Columns of NPY and NPZ are called '0', '1', ...
        missing: 'refuse' or 'drop'.
        first: number of the first user.
        progress: told how many more rows of a round are done.

    Attributes:
        columns: names of the columns in use.
        dimension: how many they are.

    Raises:
        UnknownName, InvalidInput: there is no such file or column, or it cannot be used; no message quotes a row.
        MissingExtra: pyarrow is needed and not installed.
    """

    def __init__(
        self, paths: Path | Sequence[Path], columns: Sequence[str | int] | str | None = None, missing: Missing = "refuse",
        first: int = 0, progress: Progress | None = None,
    ) -> None:  # fmt: skip
        self._missing: Missing = as_missing(missing)
        self._first, self._progress = as_first(first), progress
        self._files = [_File(path) for path in _listed(paths)]
        self.columns = chosen(columns, self._files[0].known)
        for file in self._files[1:]:
            file.match(self.columns, strict=columns is None)

    @property
    def dimension(self) -> int:
        return len(self.columns)

    def check(self) -> None:
        """The validation pass, for the data holder's eyes: rows outside the bounds are fine.

        Raises:
            InvalidInput: a file cannot be read to its end, there are no rows, too many, or missing or infinite cells that
                were not to be dropped.
        """
        validate((rows for _, rows in self._chunks()), self._missing)

    def table(self) -> Floats:
        """The usable rows (n, d) themselves, all in memory, for the data holder. NOT private."""
        return collected((rows for _, rows in self._chunks()), self.dimension)

    def gather(self, round: Round[Any], rng: NoiseRng) -> tuple[Any, ...]:
        """Raises: InvalidInput if a file cannot be read to its end or is not what it was."""
        keep_memory()
        fit(round.domain, self.columns)

        def encoded(chunk: tuple[int, Floats]) -> tuple[Any, ...]:
            start, rows = chunk
            users = user_numbers(self._first + start, len(rows))
            summary = absorb(round, encode_rows(round, rows, users, rng.child("chunk", start)))
            if self._progress is not None:
                self._progress(len(rows))
            return summary

        return map_merge(self._chunks(), encoded, merge_summaries)

    def chunks(self) -> Iterator[tuple[int, Floats]]:
        """All rows for their holder's own use, each chunk with the position of its first; gone when the next one is asked for."""
        return self._chunks()

    def _chunks(self) -> Iterator[tuple[int, Floats]]:
        """All rows, each chunk with the position of its first; at least one chunk, which may be empty."""
        start = 0
        for file in self._files:
            for rows in file.chunks(self.columns):
                refuse_too_many(start + len(rows))
                yield start, rows
                start += len(rows)
        if not start:
            yield 0, np.empty((0, self.dimension))


class _File:
    """A file that must stay what it is while a run lasts."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._stamp, self._rows = _stamp(path), -1
        if not self._stamp[0]:
            raise InvalidInput(f"'{path}' is empty")
        try:
            self._source = _source(path)
        except CloisterError:
            raise
        except Exception as error:  # a foreign decoder: whatever it raises may quote the file, so it goes no further
            raise InvalidInput(_unreadable(path, error)) from None

    @property
    def known(self) -> list[tuple[str, bool]]:
        return self._source.known

    def match(self, columns: Sequence[str], strict: bool) -> None:
        """Raises: InvalidInput unless this file has these columns, in numbers (and no others, when ``strict``)."""
        try:
            mine = chosen(None if strict else columns, self.known)
        except InvalidInput as error:
            raise InvalidInput(f"'{self.path}' does not go with the files before it: {error}") from None
        if sorted(mine) != sorted(columns):
            raise InvalidInput(
                f"'{self.path}' has other columns of numbers than the files before it: say which columns to use"
            )

    def chunks(self, columns: Sequence[str]) -> Iterator[Floats]:
        """The rows of one pass. Raises: InvalidInput before the last one if the file is not what it was."""
        self._unchanged()
        rows = 0
        try:
            for chunk in regroup(self._source.pieces(columns), len(columns), chunk_rows(len(columns))):
                rows += len(chunk)
                yield chunk
        except Exception as error:  # a foreign decoder, as above
            self._unchanged()
            if isinstance(error, CloisterError):
                raise
            raise InvalidInput(_unreadable(self.path, error)) from None
        self._unchanged()
        if self._rows not in (-1, rows):
            raise InvalidInput(_changed(self.path))
        self._rows = rows

    def _unchanged(self) -> None:
        if _stamp(self.path) != self._stamp:
            raise InvalidInput(_changed(self.path))


def _stamp(path: str) -> tuple[int, int, int]:
    """Size, time of the last change, and identity of a file."""
    try:
        facts = os.stat(path)
    except OSError as error:
        raise InvalidInput(f"'{path}' cannot be opened: {error.strerror}") from None
    return facts.st_size, facts.st_mtime_ns, facts.st_ino


def _changed(path: str) -> str:
    return f"'{path}' is not what it was when this run began: leave files alone while a run lasts, and start again"


def _unreadable(path: str, error: Exception) -> str:
    if isinstance(error, PermissionError):
        return f"'{path}' cannot be opened: permission denied"
    if isinstance(error, MemoryError):
        return f"'{path}' is damaged, or needs more memory than there is"
    return f"'{path}' cannot be read: it is damaged, cut short, or not what its extension says"


def _source(path: str) -> Source:
    extension = next((e for e in sorted(FORMATS, key=len, reverse=True) if path.lower().endswith(e)), None)
    if extension is None:
        raise InvalidInput(f"'{path}' has an extension that is not known: {', '.join(FORMATS)}")
    module, _, name = FORMATS[extension].partition(":")
    try:
        found = importlib.import_module(f"cloister.plugins.populations.{module}")
    except ImportError as error:
        raise MissingExtra("pyarrow", "files", "reading Parquet, Arrow and CSV") from error
    source: Source = getattr(found, name)(path)
    return source


def _listed(paths: Path | Sequence[Path]) -> list[str]:
    """Files in order; a pattern's in sorted order.

    Raises:
        InvalidInput: there is none, it is a folder, or one is given twice, so that its rows would count twice.
    """
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    found = [path for one in given for path in _matched(os.fspath(one))]
    if not found:
        raise InvalidInput("no file was given")
    seen = set[str]()
    for path in found:
        if os.path.isdir(path):
            raise InvalidInput(f"'{path}' is a folder: give its files, as in '{os.path.join(path, '*.parquet')}'")
        if os.path.realpath(path) in seen:
            raise InvalidInput(f"'{path}' was given twice: its rows would count twice")
        seen.add(os.path.realpath(path))
    return found


def _matched(path: str) -> list[str]:
    if os.path.exists(path) or not glob.has_magic(path):
        return [path]
    found = sorted(glob.glob(path, recursive=True))
    if not found:
        raise InvalidInput(f"no file matches '{path}'")
    return found
