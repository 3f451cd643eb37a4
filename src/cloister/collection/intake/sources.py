"""Sources of reports: files, which may change while they are read, open streams, and bytes in memory."""

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
"""Extensions of files of users' reports, and of a shuffler's releases."""


def find_files(paths: Path | Sequence[Path]) -> tuple[list[str], int]:
    """Find files by path, by pattern or in folders.

    In folders, files with one of ``EXTENSIONS`` are found, but no unfinished ones (hidden or ``*.tmp``).

    Returns:
        The paths sorted by file name, each file once even if links give it several names, and the number of other
        files in the folders.

    Raises:
        InvalidInput: there is no file, or a named one cannot be opened.
    """
    listed_paths = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    files, other_files = list[str](), 0
    for path in [os.fspath(path) for path in listed_paths]:
        if os.path.isdir(path):
            inside = [os.path.join(path, name) for name in os.listdir(path) if _finished(name)]
            matches = [name for name in inside if name.lower().endswith(EXTENSIONS) and os.path.isfile(name)]
            files, other_files = files + matches, other_files + len(inside) - len(matches)
        elif os.path.exists(path) or not glob.has_magic(path):
            files.append(path)
        else:
            files += [name for name in glob.glob(path, recursive=True) if _finished(os.path.basename(name))]
    if not files:
        raise InvalidInput(f"there are no files of reports ({' or '.join(EXTENSIONS)}) in {_few(listed_paths)}")
    for path in files:
        _check_openable(path)
    unique = {_inode(path): path for path in sorted(files, reverse=True)}
    return sorted(unique.values(), key=lambda path: (os.path.basename(path), path)), other_files


def _inode(path: str) -> Hashable:
    """Return a key that all names of a file share: reports under two hard links would count twice."""
    facts = os.stat(path)
    return (facts.st_dev, facts.st_ino) if facts.st_ino else os.path.realpath(path)


def _finished(name: str) -> bool:
    return not name.startswith(".") and not name.endswith(".tmp")


def _check_openable(path: str) -> None:
    """Raise InvalidInput if a file cannot be opened, which is no fault of any report."""
    if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
        raise InvalidInput(f"'{path}' is not a regular file: give - and send the reports to standard input")
    try:
        with open(path, "rb"):
            pass
    except IsADirectoryError:
        raise InvalidInput(f"'{path}' is a folder: give it alone, or a pattern of its files") from None
    except OSError as error:
        raise InvalidInput(f"'{path}' cannot be opened: {cause(error)}") from None


def identity(path: str) -> tuple[int, int, int]:
    """Return size, modification time and inode of a file. Raises: InvalidInput: it is gone."""
    try:
        facts = os.stat(path)
    except OSError:
        raise InvalidInput(changed_message(path)) from None
    return facts.st_size, facts.st_mtime_ns, facts.st_ino


def changed_message(path: str) -> str:
    """Return the message for a file that changed."""
    return (
        f"'{path}' changed while it was read: nothing was counted. Do not change files while they are decoded, and "
        f"start again"
    )


def _few(paths: Sequence[Path]) -> str:
    return ", ".join(f"'{os.fspath(p)}'" for p in paths[:3]) + (", ..." if len(paths) > 3 else "")


ReportInput: TypeAlias = Path | Bytes | BinaryIO | Iterable[Path | Bytes | BinaryIO]
"""Folders, files or patterns; bytes; open binary files; or any number of these, paths first."""


@final
@attrs.frozen(eq=False)
class Stream:
    """Open file of reports; if it is ``complete``, nothing can follow, and an incomplete end is damage."""

    name: str
    file: BinaryIO
    complete: bool = False
    size, start = None, 0

    def open(self) -> AbstractContextManager[BinaryIO]:
        """Return the file; it stays open."""
        return nullcontext(self.file)


@final
@attrs.frozen
class FileRange:
    """Range of a file of reports: its path, start and stop, in bytes."""

    name: str
    start: int
    stop: int

    @classmethod
    def of_file(cls, path: str) -> FileRange:
        """Return the range of a whole file, as it is now. Raises: InvalidInput: it is gone."""
        return cls(path, 0, identity(path)[0])

    @property
    def size(self) -> int:
        """Number of bytes to read."""
        return self.stop - self.start

    def open(self) -> AbstractContextManager[BinaryIO]:
        """Open the file at the start of the range. Raises: InvalidInput: it is gone, or shorter than it was."""
        try:
            file = open(self.name, "rb")  # noqa: SIM115
        except OSError:
            raise InvalidInput(changed_message(self.name)) from None
        if os.fstat(file.fileno()).st_size < self.stop:
            file.close()
            raise InvalidInput(changed_message(self.name))
        file.seek(self.start)
        return file


@final
@attrs.frozen(eq=False)
class Sources:
    """Sources of reports, in order.

    Args:
        files: paths in the order of their names.
        other_files: number of other files in the folders.
        streams: streams, read once, after the files.
        only_files: whether there are no streams.
    """

    files: list[str]
    other_files: int
    streams: Iterator[Stream]
    only_files: bool

    def in_order(self) -> Iterator[FileRange | Stream]:
        """Yield all sources in order; a file as it is when its turn comes."""
        yield from map(FileRange.of_file, self.files)
        yield from self.streams

    @classmethod
    def of(cls, sources: ReportInput) -> Sources:
        """Find and open sources. Raises: InvalidInput: there are none, or a file cannot be opened."""
        items = iter([sources] if _is_single(sources) else sources)  # type: ignore[arg-type]
        paths, streams = list[Path](), list[Any]()
        for item in items:
            if not isinstance(item, (str, os.PathLike)):
                streams.append(item)
                break
            paths.append(item)
        files, other_files = ([], 0) if streams and not paths else find_files(paths)
        return cls(files, other_files, (_stream(item) for item in chain(streams, items)), not streams)


def _is_single(sources: ReportInput) -> bool:
    return isinstance(sources, (str, os.PathLike, bytes, bytearray, memoryview)) or hasattr(sources, "read")


def _stream(item: Any) -> Stream:
    if isinstance(item, (bytes, bytearray, memoryview)):
        return Stream("bytes", io.BytesIO(item), complete=True)
    if isinstance(item, io.TextIOBase) or not hasattr(item, "read"):
        raise InvalidInput(f"reports are paths, then bytes or open binary files: not a {type(item).__name__}")
    return Stream(str(getattr(item, "name", "stream")), item)
