"""What reports are read from: files, open streams, and bytes in memory."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from typing import Any, BinaryIO, TypeAlias, final

import attrs

from cloister.collection.wire.batches import Bytes
from cloister.collection.wire.listing import Path, changed, identity, listed
from cloister.core.errors import InvalidInput

Given: TypeAlias = Path | Bytes | BinaryIO | Iterable[Path | Bytes | BinaryIO]
"""Folders, files or patterns; bytes; binary files that are open; or any number of these, paths first."""


@final
@attrs.frozen(eq=False)
class Stream:
    """An open file of reports. Args: name (for messages), file, whole (whether more cannot follow: what is cut
    short at its end is damaged)."""

    name: str
    file: BinaryIO
    whole: bool = False
    size, start = None, 0

    def opened(self) -> AbstractContextManager[BinaryIO]:
        """The file, which is left open."""
        return nullcontext(self.file)


@final
@attrs.frozen
class Stretch:
    """A part of a file of reports. Args: name (path), start, stop (bytes)."""

    name: str
    start: int
    stop: int

    @classmethod
    def whole(cls, path: str) -> Stretch:
        """All that a file holds now. Raises: InvalidInput: it is gone."""
        return cls(path, 0, identity(path)[0])

    @property
    def size(self) -> int:
        """Bytes to read."""
        return self.stop - self.start

    def opened(self) -> AbstractContextManager[BinaryIO]:
        """The file, from its start on. Raises: InvalidInput: it is gone, or shorter than it was."""
        try:
            file = open(self.name, "rb")  # noqa: SIM115
        except OSError:
            raise InvalidInput(changed(self.name)) from None
        if os.fstat(file.fileno()).st_size < self.stop:
            file.close()
            raise InvalidInput(changed(self.name))
        file.seek(self.start)
        return file


@final
@attrs.frozen(eq=False)
class Sources:
    """Everything that reports are read from.

    Args: files (paths in the order of their names), others (files in the folders of another kind), streams (read once,
    after the files, as they come), only_files (whether there are no streams).
    """

    files: list[str]
    others: int
    streams: Iterator[Stream]
    only_files: bool

    def opened(self) -> Iterator[Stretch | Stream]:
        """All of them, in order; a file as it is when its turn comes."""
        yield from map(Stretch.whole, self.files)
        yield from self.streams

    @classmethod
    def of(cls, given: Given) -> Sources:
        """Raises: InvalidInput: there are none, or a file cannot be opened."""
        left = iter([given] if _one(given) else given)  # type: ignore[arg-type]
        paths, first = list[Path](), list[Any]()
        for item in left:
            if not isinstance(item, (str, os.PathLike)):
                first.append(item)
                break
            paths.append(item)
        files, others = ([], 0) if first and not paths else listed(paths)
        return cls(files, others, (_stream(item) for item in chain(first, left)), not first)


def _one(given: Given) -> bool:
    return isinstance(given, (str, os.PathLike, bytes, bytearray, memoryview)) or hasattr(given, "read")


def _stream(item: Any) -> Stream:
    if isinstance(item, (bytes, bytearray, memoryview)):
        return Stream("bytes", io.BytesIO(item), whole=True)
    if isinstance(item, io.TextIOBase) or not hasattr(item, "read"):
        raise InvalidInput(f"reports are bytes, binary files or, first of all, paths: not a {type(item).__name__}")
    return Stream(str(getattr(item, "name", "stream")), item)
