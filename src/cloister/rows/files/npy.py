"""NPY and NPZ files, read a piece at a time.

By plain reads, not by a memory map: mapped pages count as this process's memory, and a map of a file that is cut short
while it is read kills the process instead of raising.
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
"""Bytes that are read at once."""

HEAD = 2**14
"""Bytes in which a header of numbers ends; NumPy takes up to 10,000 and reads first whatever length it states."""

WIDEST, STREAMS = 100_000, 1000
"""Most columns, and most that are unpacked beside one another, each by a stream of its own."""


@final
@attrs.frozen
class _Header:
    """Header of an NPY file. Args: shape, by_columns (Fortran order), dtype, offset of the first byte of
    data."""

    shape: tuple[int, ...]
    by_columns: bool
    dtype: np.dtype[np.generic]
    offset: int

    @classmethod
    def read(cls, file: IO[bytes], size: int) -> _Header:
        """The header of a file of so many bytes, which must be what it states. Raises: ValueError."""
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

    def known(self, path: str, most: int = WIDEST) -> list[TableColumn]:
        """The columns. Args: most (of them). Raises: InvalidInput: it is no table, or has more."""
        if len(self.shape) != 2 or self.dtype.kind not in "biuf":
            raise InvalidInput(
                f"'{path}' holds an array of {self.dtype.name} with {len(self.shape)} dimensions: "
                "save numbers of shape (rows, columns)"
            )
        if self.shape[1] > most:
            raise InvalidInput(
                f"'{path}' has {self.shape[1]:,} columns, and at most {most:,} are read"
                f"{' of a packed file that is laid out by columns' if most < WIDEST else ''}: save those that are used"
            )
        return [TableColumn(str(j), "numbers") for j in range(self.shape[1])]

    def pieces(self, files: Sequence[IO[bytes]], columns: Sequence[int]) -> Iterator[Piece]:
        """Args: files, one handle per column (they may be the same), and the columns' positions."""
        return self._by_columns(files, columns) if self.by_columns else self._by_rows(files[0], columns)

    def _by_rows(self, file: IO[bytes], columns: Sequence[int]) -> Iterator[Piece]:
        n, width = self.shape
        every = list(columns) == list(range(width))
        block = np.empty((max(1, PIECE // (width * self.dtype.itemsize)), width), self.dtype)
        _to(file, self.offset)
        for start in range(0, n, len(block)):
            some = block[: n - start]
            _fill(file, some)
            yield some.T if every else [some[:, j] for j in columns]
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
    """Go to a place. In a zip file forwards alone, by reading: from Python 3.12 on a seek leaves the checksum out."""
    if not isinstance(file, zipfile.ZipExtFile):
        file.seek(at)
        return
    while left := at - file.tell():
        if left < 0:
            raise ValueError("a zip file is read forwards")
        if not file.read(min(left, PIECE)):
            raise EOFError


def _fill(file: IO[bytes], out: AnyArray) -> None:
    """Read exactly this array. Raises: EOFError."""
    room = out.reshape(-1).view(np.uint8).data
    while room:
        got = file.readinto(room)  # type: ignore[attr-defined]  # all binary files have it; IO[bytes] does not say so
        if not got:
            raise EOFError
        room = room[got:]


def _end(file: IO[bytes]) -> None:
    """Raises: ValueError unless the array ends where the file does; a zip file checks its checksum here."""
    if file.read(1):
        raise ValueError("the file goes on after the array")


class _Reader(ABC):
    """Base of the readers of NumPy's formats."""

    by_name = False

    @abstractmethod
    def _pieces(self, columns: Sequence[str]) -> Iterator[Piece]:
        """These columns as they are, a bounded number of rows at a time."""

    def pieces(self, chosen: Selection, only: range | None = None) -> Iterator[Piece]:
        return (encoded(piece, chosen) for piece in self._pieces(chosen.used))

    def names(self, column: str, only: range | None = None) -> Iterator[Names]:
        return (piece[0] for piece in self._pieces([column]))

    def beside(self, chosen: Selection, kept: Sequence[str]) -> Iterator[tuple[Piece, list[Any]]]:
        used = len(chosen.used)
        pieces = self._pieces([*chosen.used, *kept])
        return ((encoded(piece[:used], chosen), [np.array(cells) for cells in piece[used:]]) for piece in pieces)


@final
class Npy(_Reader):
    """One NPY file. Columns are called '0', '1', ..."""

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
    """The array 'X', or the only two-dimensional one, of one NPZ file, unpacked while it is read.

    An array that was saved column by column (Fortran order) is unpacked once per column.
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
