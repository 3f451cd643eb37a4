"""NPY and NPZ files, read a piece at a time.

Plain reads instead of a memory map: mapped pages count as this process's memory, and truncating a mapped file kills the
process instead of raising.
"""

from __future__ import annotations

import io
import math
import os
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import IO, Any, final

import attrs
import numpy as np

from cloister.core.errors import InvalidInput
from cloister.core.types import AnyArray
from cloister.rows.columns import TableColumn
from cloister.rows.files.joined import refuse
from cloister.rows.reading import Piece, encoded
from cloister.rows.selection import Selection
from cloister.rows.users import Names

PIECE = 2**20
"""Bytes per read."""

HEAD = 2**14
"""Maximum length of a header; NumPy accepts 10,000 bytes, but first reads whatever length the header states."""

WIDEST, STREAMS = 100_000, 1000
"""Maximum number of columns, and of columns unpacked in parallel, each from a stream of its own."""


@final
@attrs.frozen
class _Header:
    """Header of an NPY file.

    Args:
        shape, dtype: of the array.
        by_columns: whether it is in Fortran order.
        offset: position of the first byte of data.
    """

    shape: tuple[int, ...]
    by_columns: bool
    dtype: np.dtype[np.generic]
    offset: int

    @classmethod
    def read(cls, file: IO[bytes], size: int) -> _Header:
        """Read the header of a file of ``size`` bytes; raise ValueError if it does not match the size."""
        head = io.BytesIO(file.read(HEAD))
        version = np.lib.format.read_magic(head)
        if version == (1, 0):
            shape, by_columns, dtype = np.lib.format.read_array_header_1_0(head)
        elif version == (2, 0):
            shape, by_columns, dtype = np.lib.format.read_array_header_2_0(head)
        else:
            raise ValueError("an array of numbers needs no other version")
        states = head.tell() + math.prod(shape) * dtype.itemsize
        if not dtype.hasobject and (states != size or min(shape, default=0) < 0):
            raise ValueError("the file is longer or shorter than its array")
        return cls(shape, by_columns, dtype, head.tell())

    def known(self, path: str, max_columns: int = WIDEST) -> list[TableColumn]:
        """Return the columns.

        Raises:
            InvalidInput: the array is not a table of numbers, or has more than ``max_columns``.
        """
        if len(self.shape) != 2 or self.dtype.kind not in "biuf":
            raise InvalidInput(
                f"'{path}' holds an array of {self.dtype.name} with {len(self.shape)} dimensions: "
                "save numbers of shape (rows, columns)"
            )
        if self.shape[1] > max_columns:
            raise InvalidInput(
                f"'{path}' has {self.shape[1]:,} columns, and at most {max_columns:,} are read"
                f"{' of a packed file that is laid out by columns' if max_columns < WIDEST else ''}: "
                "save those that are used"
            )
        return [TableColumn(str(j), "numbers") for j in range(self.shape[1])]

    def pieces(self, files: Sequence[IO[bytes]], columns: Sequence[int]) -> Iterator[Piece]:
        """Yield pieces of these columns.

        Args:
            files: one handle per column (possibly the same one).
            columns: their positions.
        """
        return self._by_columns(files, columns) if self.by_columns else self._by_rows(files[0], columns)

    def _by_rows(self, file: IO[bytes], columns: Sequence[int]) -> Iterator[Piece]:
        n, width = self.shape
        all_columns = list(columns) == list(range(width))
        block = np.empty((max(1, PIECE // (width * self.dtype.itemsize)), width), self.dtype)
        _to(file, self.offset)
        for start in range(0, n, len(block)):
            rows = block[: n - start]
            _fill(file, rows)
            yield rows.T if all_columns else [rows[:, j] for j in columns]
        _end(file)

    def _by_columns(self, files: Sequence[IO[bytes]], columns: Sequence[int]) -> Iterator[Piece]:
        n, size = self.shape[0], self.dtype.itemsize
        block = np.empty((len(columns), max(4096, PIECE // (len(columns) * size))), self.dtype)
        for start in range(0, n, block.shape[1]):
            length = min(block.shape[1], n - start)
            for row, column, file in zip(block, columns, files, strict=True):
                _to(file, self.offset + (column * n + start) * size)
                _fill(file, row[:length])
            yield block[:, :length]
        _to(files[-1], self.offset + n * self.shape[1] * size)
        _end(files[-1])


def _to(file: IO[bytes], at: int) -> None:
    """Seek to a position; in a zip file by reading, since from Python 3.12 on a seek skips the checksum."""
    if not isinstance(file, zipfile.ZipExtFile):
        file.seek(at)
        return
    while distance := at - file.tell():
        if distance < 0:
            raise ValueError("a zip file is read forwards")
        if not file.read(min(distance, PIECE)):
            raise EOFError


def _fill(file: IO[bytes], out: AnyArray) -> None:
    """Read exactly this array; raise EOFError if the file ends first."""
    room = out.reshape(-1).view(np.uint8).data
    while room:
        got = file.readinto(room)  # type: ignore[attr-defined]  # all binary files have it; IO[bytes] does not say so
        if not got:
            raise EOFError
        room = room[got:]


def _end(file: IO[bytes]) -> None:
    """Raise ValueError unless the file ends after the array; this also makes a zip file verify its checksum."""
    if file.read(1):
        raise ValueError("the file goes on after the array")


class _Reader(ABC):
    """Base class of the readers of NumPy's formats."""

    by_name = False

    @abstractmethod
    def _pieces(self, columns: Sequence[str]) -> Iterator[Piece]:
        """Yield the raw cells of these columns, a bounded number of rows at a time."""

    def pieces(self, chosen: Selection, only: range | None = None) -> Iterator[Piece]:
        return (encoded(piece, chosen) for piece in self._pieces(chosen.used))

    def names(self, column: str, only: range | None = None) -> Iterator[Names]:
        return (piece[0] for piece in self._pieces([column]))

    def beside(self, chosen: Selection, extra_columns: Sequence[str]) -> Iterator[tuple[Piece, list[Any]]]:
        used = len(chosen.used)
        pieces = self._pieces([*chosen.used, *extra_columns])
        return ((encoded(piece[:used], chosen), [np.array(cells) for cells in piece[used:]]) for piece in pieces)


@final
class Npy(_Reader):
    """Reader of an NPY file; its columns are called '0', '1', ..."""

    def __init__(self, path: str) -> None:
        self._path = path
        with open(path, "rb") as file:
            self._header = _Header.read(file, os.fstat(file.fileno()).st_size)
        self.known = self._header.known(path)
        self.blocks = (self._header.shape[0],)

    def _pieces(self, columns: Sequence[str]) -> Iterator[Piece]:
        with open(self._path, "rb") as file:
            yield from self._header.pieces([file] * len(columns), [int(name) for name in columns])


@final
class Npz(_Reader):
    """Reader of the array 'X', or the only two-dimensional one, of an NPZ file, unpacked while it is read.

    An array in Fortran order is unpacked once per column.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        with zipfile.ZipFile(path) as archive:
            headers = dict[str, _Header]()
            if min((member.header_offset for member in archive.infolist()), default=0):
                refuse(path)
            for member in archive.infolist():
                if member.filename.endswith(".npy"):
                    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                        raise ValueError("NumPy writes no other, and a piece of others unpacks to any length")
                    with archive.open(member) as file:
                        headers[member.filename] = _Header.read(file, member.file_size)
        tables = ["X.npy"] if "X.npy" in headers else [name for name, h in headers.items() if len(h.shape) == 2]
        if len(tables) != 1:
            raise InvalidInput(
                f"'{path}' holds {'no array' if not tables else 'more than one array'} of shape (rows, columns): "
                "save the rows under the name X"
            )
        self._member, self._header = tables[0], headers[tables[0]]
        self.known = self._header.known(path, STREAMS if self._header.by_columns else WIDEST)
        self.blocks = (self._header.shape[0],)

    def _pieces(self, columns: Sequence[str]) -> Iterator[Piece]:
        with ExitStack() as stack:
            archive = stack.enter_context(zipfile.ZipFile(self._path))
            streams = len(columns) if self._header.by_columns else 1
            files = [stack.enter_context(archive.open(self._member)) for _ in range(streams)]
            yield from self._header.pieces(files, [int(name) for name in columns])
