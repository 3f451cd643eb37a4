"""Append-only files of a collector's reports, ``round-001-000001.reports``, holding one batch after the other.

When ``append`` returns, its reports are written and synced. A process killed before leaves a torn batch at the end of
its last file, which was never acknowledged; the next process cuts it off. User numbers that have reported are read back
from the files, after a sync: a report that is called a duplicate must be as safe as an acknowledged one.

A failed write or sync is undone: the file is cut back to the acknowledged batches and a new one is begun, since after a
failed sync the state of a file's later pages is unknown.

Batches are in order of arrival; within a batch, reports are sorted by user number.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import final
from zlib import crc32

import numpy as np

from cloister.collection.plan.durable_files import OWNER, OWNERS_FOLDER, sync, writing
from cloister.collection.wire.answers import Packed
from cloister.collection.wire.batches import BATCH, BATCH_HEAD, PREFIX, BatchForm, parse_file
from cloister.collection.wire.user_set import UserSet
from cloister.core.errors import Damaged, Refused
from cloister.core.types import Ids

SIZE = 2**26
"""Maximum size of a file, in bytes, before a new one is begun."""

PIECE = 2**16
"""Bytes examined where a file cannot be parsed: a power cut leaves zeros at its end."""

CANDIDATES = 1000
"""Maximum number of places in a torn batch examined for the start of another: answers may look like one."""

TORN = 2 * SIZE
"""Maximum length of a torn batch, in bytes.

A batch holds no more than all pending requests. A longer tail was not written by a collector: it is neither read into
memory nor cut off.
"""

LOCK = ".collector.lock"

_NAME = re.compile(r"round-([0-9]{3})-([0-9]{6,})\.reports")


@contextmanager
def locked_folder(folder: Path, private: bool) -> Iterator[None]:
    """Create the folder, for its owner alone, and lock it for as long as the block or the process runs.

    With ``private``, a folder that others may read is refused: a shuffler's messages come with their senders.

    Raises: InvalidInput: it cannot be made or written. Refused: another collector uses it, or others may read it.
    """
    with writing(folder):
        folder.mkdir(OWNERS_FOLDER, parents=True, exist_ok=True)
        if private and folder.stat().st_mode & 0o077:
            raise Refused(f"others may read {folder}, but messages name their senders: chmod 700 {folder}")
        # O_NONBLOCK: opening a pipe fails instead of waiting
        descriptor = os.open(folder / LOCK, os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK, OWNER)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise Refused(f"another collector uses {folder}: end it first, or choose another folder") from error
        yield
    finally:
        os.close(descriptor)


@final
class Segments:
    """Files of one round, for one process (``locked_folder``) and one thread at a time.

    Args:
        folder: existing folder.
        form: form of the round's reports.
        users: planned number of users.
        size: maximum size of a file, in bytes.

    Attributes:
        seen: user numbers whose reports are on the disk.
        damaged: number of unreadable batches in earlier files; their user numbers are unknown.

    Raises: Damaged: a file is of another plan, or cannot be parsed. InvalidInput: a file cannot be read or written.
    """

    def __init__(self, folder: Path, form: BatchForm, users: int, size: int = SIZE) -> None:
        self.seen, self.damaged = UserSet(users), 0
        self._folder, self._form, self._size = folder, form, size
        self._file: int | None = None
        self._path, self._end, self._torn = folder, 0, False
        with writing(folder):
            self._next = self._recover()

    def append(self, users: Ids, answers: Packed) -> int:
        """Write and sync the reports of new users (n,), sorted; return the number of bytes.

        Raises: OSError: none of them is kept.
        """
        self.repair()
        data = b"".join(self._form.batches(users, answers))
        if self._file is not None and self._end + len(data) > self._size:
            self._leave()
        self._torn = True
        try:
            if self._file is None:
                self._begin()
            self._write(data)
        except OSError:
            with suppress(OSError):
                self.repair()
            raise
        self._torn, self._end = False, self._end + len(data)
        self.seen.add(users)
        return len(data)

    def repair(self) -> None:
        """Cut off a batch that was not fully written, and close its file. Raises: OSError: not possible now."""
        if self._torn and self._file is not None:
            os.ftruncate(self._file, self._end)
            os.fsync(self._file)
            self._leave()
        self._torn = False

    def try_again(self) -> None:
        """Repair, and probe the disk with a batch of moderate size. Raises: OSError: it still fails."""
        self.repair()
        probe = self._folder / ".probe"
        try:
            probe.unlink(missing_ok=True)  # a pipe of that name would block
            descriptor = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER)
            try:
                os.write(descriptor, bytes(2**16))
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        finally:
            probe.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the open file, if there is one."""
        with suppress(OSError):
            self.repair()
        self._leave()

    def _begin(self) -> None:
        while self._file is None:
            path = self._folder / f"round-{self._form.round:03}-{self._next:06}.reports"
            with suppress(FileExistsError):  # a stranger's file: the next number may be free
                self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, OWNER)
                self._path, self._end = path, 0
            self._next += 1
        sync(self._folder)

    def _write(self, data: bytes) -> None:
        assert self._file is not None
        unwritten = memoryview(data)
        while unwritten:
            unwritten = unwritten[os.write(self._file, unwritten) :]
        os.fsync(self._file)
        if not os.fstat(self._file).st_nlink:  # an unlinked file dies with this process
            raise FileNotFoundError(errno.ENOENT, f"{self._path.name} was removed")

    def _leave(self) -> None:
        """Close the open file and clear its times; remove it if empty."""
        if self._file is None:
            return
        os.close(self._file)
        self._file = None
        with suppress(OSError):
            _clear_times(self._path) if self._end else self._path.unlink()

    def _recover(self) -> int:
        """Read the round's files; return the number of the next one."""
        last = 0
        for number, path in sorted(_segment_paths(self._folder, self._form.round)):
            last = number
            if not path.is_file():  # opening a pipe would block for ever
                raise Damaged(f"{path} is not a regular file: move it out of the folder")
            end = self._read(path)
            with path.open("r+b") as file:
                if end < os.fstat(file.fileno()).st_size:
                    file.truncate(end)
                os.fsync(file.fileno())
            _clear_times(path) if end else path.unlink()
        sync(self._folder)
        return last + 1

    def _read(self, path: Path) -> int:
        """Add a file's users to ``seen``; return the end of its last whole batch."""
        end, problem = 0, None
        with path.open("rb") as file:
            for batch in parse_file(file, self._form):
                end, problem, self.damaged = end + batch.end, batch.error, self.damaged + batch.damaged
                new = np.unique(batch.users[batch.users < self.seen.size])
                self.seen.add(new[~self.seen.has(new)])
            file.seek(end)
            tail = file.read(TORN + 1)
            if (problem is not None and tail[:PIECE].strip(b"\0")) or len(tail) > TORN or self._batch_follows(tail):
                raise Damaged(
                    f"{path} cannot be read from byte {end:,} on ({problem or 'damaged'}): move it out of the "
                    f"folder, or choose another folder"
                )
        return end

    def _batch_follows(self, tail: bytes) -> bool:
        """Return True if a whole batch follows a seemingly torn one, whose length is then damaged."""
        at, head = 0, PREFIX + BATCH_HEAD.size
        for _ in range(CANDIDATES):
            at = tail.find(self._form.prefix(BATCH), at + 1)
            if at < 0:
                return False
            length = self._form.length(tail, at)
            if length is not None and head < length <= len(tail) - at:
                _, checksum = BATCH_HEAD.unpack_from(tail, at + PREFIX)
                if crc32(tail[at + head : at + length]) == checksum:
                    return True
        return False


def _segment_paths(folder: Path, round: int) -> Iterator[tuple[int, Path]]:
    """Yield the numbers and paths of a round's files."""
    for name in os.listdir(folder):
        match = _NAME.fullmatch(name)
        if match and int(match[1]) == round:
            yield int(match[2]), folder / name


def _clear_times(path: Path) -> None:
    """Set a finished file's times to the epoch: they would reveal when the last report came."""
    os.utime(path, (0, 0))
