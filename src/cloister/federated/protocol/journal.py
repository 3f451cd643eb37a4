"""Journals of a session: entries in one file that survive a crash, each on the disk before the next byte leaves.

A party's journal holds its session's secrets and its own sums: it is made readable to its owner only, and stays with
the party. The coordinator's holds nonces and masked sums.

A journal must never go back to an older copy: from one a party would put other words (its share of the noise, drawn
again) under masks that it has used, and a coordinator would answer one round twice. So there is one copy of each, and
no error text here advises restoring one.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Protocol, final

from cloister.core.errors import Damaged, InvalidInput, cause

MAGIC = b"cloister journal 1\n"
HEAD = struct.Struct("<BI8s4s")
"""Kind, length of the body, seal of both with the body, seal of kind and length alone.

With the last one, a changed length is not mistaken for an entry that a crash cut off.
"""


class SessionJournal(Protocol):
    """Durable memory of entries; ``write`` returns once its entry would survive a crash."""

    @property
    def entries(self) -> list[tuple[int, bytes]]: ...

    def write(self, kind: int, body: bytes) -> None: ...


@final
class Memory:
    """Journal in memory, for simulations: they are not resumed."""

    def __init__(self) -> None:
        self.entries: list[tuple[int, bytes]] = []

    def write(self, kind: int, body: bytes) -> None:
        self.entries.append((kind, body))


@final
class FileJournal:
    """Journal in a file that this process alone holds.

    A last entry that a crash cut off is dropped: nothing that depends on it can have left.

    Raises:
        InvalidInput: it cannot be opened, or another process holds it.
        Damaged: anything but the end differs from what was written.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        import fcntl

        self.path = Path(path)
        try:
            self._file = os.fdopen(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600), "r+b")
        except OSError as error:
            raise InvalidInput(f"cannot open the journal {self.path}: {cause(error)}") from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise InvalidInput(f"the journal {self.path} is held by another process: end that one first") from None
        try:
            self._begin(self._file.read())
            os.fchmod(self._file.fileno(), 0o600)  # also of a journal that was copied here
        except Damaged:
            self._file.close()
            raise

    def _begin(self, data: bytes) -> None:
        self.entries, end = _entries(data, self.path)
        if end < len(data) or not data:
            self._file.truncate(end)
            self._file.seek(0)
            if not end:
                self._file.write(MAGIC)
            self._sync()
        self._file.seek(0, os.SEEK_END)

    def write(self, kind: int, body: bytes) -> None:
        """Append an entry.

        Raises:
            InvalidInput: it cannot be written (a full disk?) and may be there or not; no other entry follows it.
        """
        try:
            self._file.write(_head(kind, body) + body)
            self._sync()
        except (OSError, ValueError) as error:  # ValueError: it was closed below
            with suppress(OSError):
                self._file.close()
            why = error.strerror if isinstance(error, OSError) and error.strerror else "it was closed"
            raise InvalidInput(
                f"cannot write the journal {self.path}: {why}. Start again with it when it can be written"
            ) from error
        self.entries.append((kind, body))

    def close(self) -> None:
        """Release the file to other processes."""
        self._file.close()

    def _sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())


@contextmanager
def journal_at(path: Path | None) -> Iterator[SessionJournal]:
    """Open a journal in a file, closed at the end; in memory if there is no path.

    Raises:
        InvalidInput, Damaged: as in ``FileJournal``.
    """
    if path is None:
        yield Memory()
        return
    with closing(FileJournal(path)) as journal:
        yield journal


def _head(kind: int, body: bytes) -> bytes:
    length = len(body).to_bytes(4, "little")
    return HEAD.pack(kind, len(body), _seal(kind, body, 8), _seal(kind, length, 4))


def _seal(kind: int, content: bytes, size: int) -> bytes:
    return hashlib.sha256(bytes([kind]) + content).digest()[:size]


def _entries(data: bytes, path: Path) -> tuple[list[tuple[int, bytes]], int]:
    """Return every whole entry, and the position where they end."""
    if not data or MAGIC.startswith(data):
        return [], 0
    if not data.startswith(MAGIC):
        raise Damaged(f"{path} is not a journal of cloister: choose another file")
    entries, start = list[tuple[int, bytes]](), len(MAGIC)
    while len(data) - start >= HEAD.size:
        kind, length, seal, short = HEAD.unpack_from(data, start)
        end = start + HEAD.size + length
        head_intact = short == _seal(kind, length.to_bytes(4, "little"), 4)
        body = data[start + HEAD.size : end]
        if head_intact and end > len(data):
            break
        if not head_intact or seal != _seal(kind, body, 8):
            if (head_intact and end == len(data)) or not any(
                data[start:]
            ):  # a crash: the file grew without its content
                break
            raise Damaged(f"the journal {path} is damaged at byte {start}: begin a new session, with a new journal")
        entries.append((kind, body))
        start = end
    return entries, start
