"""Where reports are read from: files, which may change while they are read, open streams, and bytes in memory."""

from __future__ import annotations

import glob
import io
import os
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from typing import Any, BinaryIO, TypeAlias, final

import attrs

from cloister.collection.wire.batches import Bytes
from cloister.core.errors import InvalidInput, cause

Path: TypeAlias = str | os.PathLike[str]
EXTENSIONS = (".reports", ".messages")
"""Of what people send, and of what a shuffler releases."""


def listed(paths: Path | Sequence[Path]) -> tuple[list[str], int]:
    """Find files. Returns: their paths sorted by file name, each once, and the number of other files in the folders.

    Args: paths (files, patterns, or folders: their files with these ``EXTENSIONS``, without hidden ones and *.tmp,
        which are unfinished). A file that has several names, by links of either kind, is one.
    Raises: InvalidInput: there is no file, or a named one cannot be opened.
    """
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    found, others = list[str](), 0
    for path in [os.fspath(one) for one in given]:
        if os.path.isdir(path):
            inside = [os.path.join(path, name) for name in os.listdir(path) if _finished(name)]
            mine = [one for one in inside if one.lower().endswith(EXTENSIONS) and os.path.isfile(one)]
            found, others = found + mine, others + len(inside) - len(mine)
        elif os.path.exists(path) or not glob.has_magic(path):
            found.append(path)
        else:
            found += [one for one in glob.glob(path, recursive=True) if _finished(os.path.basename(one))]
    if not found:
        raise InvalidInput(f"there are no files of reports ({' or '.join(EXTENSIONS)}) in {_few(given)}")
    for path in found:
        _openable(path)
    once = {_number(path): path for path in sorted(found, reverse=True)}
    return sorted(once.values(), key=lambda path: (os.path.basename(path), path)), others


def _number(path: str) -> Hashable:
    """Return what all names of a file have in common: hard links too, whose reports would count twice."""
    facts = os.stat(path)
    return (facts.st_dev, facts.st_ino) if facts.st_ino else os.path.realpath(path)


def _finished(name: str) -> bool:
    return not name.startswith(".") and not name.endswith(".tmp")


def _openable(path: str) -> None:
    """Raises: InvalidInput: the file is missing or not ours to read, which is no fault of any report."""
    if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
        raise InvalidInput(f"'{path}' is no file: give - and send the reports to this program's standard input")
    try:
        with open(path, "rb"):
            pass
    except IsADirectoryError:
        raise InvalidInput(f"'{path}' is a folder: give it by itself, or a pattern of its files") from None
    except OSError as error:
        raise InvalidInput(f"'{path}' cannot be opened: {cause(error)}") from None


def identity(path: str) -> tuple[int, int, int]:
    """Size, time of the last change and number of a file, which another one does not have. Raises: InvalidInput: it is
    gone."""
    try:
        facts = os.stat(path)
    except OSError:
        raise InvalidInput(changed(path)) from None
    return facts.st_size, facts.st_mtime_ns, facts.st_ino


def changed(path: str) -> str:
    """What to say of a file that is not what it was."""
    return (
        f"'{path}' changed while it was read: nothing was counted. Leave files alone while they are decoded, and start "
        f"again"
    )


def _few(paths: Sequence[Path]) -> str:
    return ", ".join(f"'{os.fspath(p)}'" for p in paths[:3]) + (", ..." if len(paths) > 3 else "")


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
