"""Where a collector keeps reports: files that only grow, ``round-001-000001.reports``, of batches one after the other.

What ``append`` has returned for is on the disk: written and synced. A process that is killed in between leaves a torn
batch at the end of its last file, of which nobody was told; the next one cuts it off. Numbers that have reported are
worked out again from the files, and files of an earlier process are synced before these count as known: a report that
is called a duplicate must be as safe as an acknowledged one.

A write or sync that fails is undone: the file is cut back to what was acknowledged, and left for a new one, since after
a failed sync nobody knows what the system keeps of a file's later pages.

The order of reports in a file is the order of their arrival, batch by batch; within a batch they are sorted by number.
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

from cloister.collection.plan.canonical_json import OWNER, OWNERS_FOLDER, sync, writing
from cloister.collection.wire.answers import Packed
from cloister.collection.wire.batches import BATCH, COUNTED, PREFIX, BatchForm, parsed
from cloister.collection.wire.user_set import UserSet
from cloister.core.errors import Damaged, Refused
from cloister.core.types import Ids

SIZE = 2**26
"""Bytes at which a file is left for a new one."""

PIECE = 2**16
"""Bytes that are looked at where a file cannot be read: zeros are what a power cut leaves of a file's end."""

CANDIDATES = 1000
"""Places in a torn batch, at most, where another one may begin: answers may look like that."""

TORN = 2 * SIZE
"""Bytes behind a file's last whole batch, at most: a batch holds no more than all requests under way do. A longer end
is not ours: it is neither read into memory nor cut off."""

LOCK = ".collector.lock"

_NAME = re.compile(r"round-([0-9]{3})-([0-9]{6,})\.reports")


@contextmanager
def collecting(folder: Path, private: bool) -> Iterator[None]:
    """Make the folder, for its owner alone, and lock it for as long as the block or the process runs.

    Args: private (refuse a folder that others may read, as is due to messages with their senders).
    Raises: InvalidInput: it cannot be made or written. Refused: another collector uses it, or others may read it.
    """
    with writing(folder):
        folder.mkdir(OWNERS_FOLDER, parents=True, exist_ok=True)
        if private and folder.stat().st_mode & 0o077:
            raise Refused(f"others may read {folder}, and messages name their senders: chmod 700 {folder}")
        descriptor = os.open(folder / LOCK, os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK, OWNER)  # fails for a pipe
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise Refused(f"another collector writes to {folder}: end it first, or choose another folder") from error
        yield
    finally:
        os.close(descriptor)


@final
class Segments:
    """One round's files. For one thread at a time, and one process (``collecting``).

    Args:
        folder: which is there.
        form: of the round's reports.
        users: planned number of users.
        size: bytes at which a file is left for a new one.

    Attributes:
        seen: the numbers whose reports are on the disk.
        damaged: batches of earlier files that cannot be read; their numbers are not known.

    Raises: Damaged: a file is of another plan, or cannot be read. InvalidInput: nor written.
    """

    def __init__(self, folder: Path, form: BatchForm, users: int, size: int = SIZE) -> None:
        self.seen, self.damaged = UserSet(users), 0
        self._folder, self._form, self._size = folder, form, size
        self._file: int | None = None
        self._path, self._end, self._torn = folder, 0, False
        with writing(folder):
            self._next = self._recovered()

    def append(self, users: Ids, answers: Packed) -> int:
        """Write the reports of new users (n,), sorted, durably. Returns: bytes written. Raises: OSError: nothing of
        them is kept."""
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
        """Cut off a batch that was not written, and leave its file. Raises: OSError: not possible now."""
        if self._torn and self._file is not None:
            os.ftruncate(self._file, self._end)
            os.fsync(self._file)
            self._leave()
        self._torn = False

    def try_again(self) -> None:
        """See whether the disk takes as much as a batch of moderate size. Raises: OSError: it does not."""
        self.repair()
        probe = self._folder / ".probe"
        try:
            probe.unlink(missing_ok=True)  # whatever it is: a pipe of that name would never open
            descriptor = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER)
            try:
                os.write(descriptor, bytes(2**16))
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        finally:
            probe.unlink(missing_ok=True)

    def close(self) -> None:
        """Leave the open file, if there is one."""
        with suppress(OSError):
            self.repair()
        self._leave()

    def _begin(self) -> None:
        while self._file is None:
            path = self._folder / f"round-{self._form.round:03}-{self._next:06}.reports"
            with suppress(FileExistsError):  # somebody put a file of that name here: the next number may be free
                self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, OWNER)
                self._path, self._end = path, 0
            self._next += 1
        sync(self._folder)

    def _write(self, data: bytes) -> None:
        assert self._file is not None
        left = memoryview(data)
        while left:
            left = left[os.write(self._file, left) :]
        os.fsync(self._file)
        if not os.fstat(self._file).st_nlink:  # what was written has no name any more, and dies with this process
            raise FileNotFoundError(errno.ENOENT, f"{self._path.name} was removed")

    def _leave(self) -> None:
        """Close the open file, with no time of a report on it; an empty one is removed."""
        if self._file is None:
            return
        os.close(self._file)
        self._file = None
        with suppress(OSError):
            _timeless(self._path) if self._end else self._path.unlink()

    def _recovered(self) -> int:
        """Read the round's files. Returns: the number of the next one."""
        last = 0
        for number, path in sorted(_of_round(self._folder, self._form.round)):
            last = number
            if not path.is_file():  # to open a pipe would take for ever
                raise Damaged(f"{path} is no file, but has the name of one: move it out of the folder")
            end = self._read(path)
            with path.open("r+b") as file:
                if end < os.fstat(file.fileno()).st_size:
                    file.truncate(end)
                os.fsync(file.fileno())
            _timeless(path) if end else path.unlink()
        sync(self._folder)
        return last + 1

    def _read(self, path: Path) -> int:
        """Note a file's users. Returns: where its last whole batch ends."""
        end, wrong = 0, None
        with path.open("rb") as file:
            for found in parsed(file, self._form):
                end, wrong, self.damaged = end + found.end, found.wrong, self.damaged + found.damaged
                new = np.unique(found.users[found.users < self.seen.size])
                self.seen.add(new[~self.seen.has(new)])
            file.seek(end)
            rest = file.read(TORN + 1)
            if (wrong is not None and rest[:PIECE].strip(b"\0")) or len(rest) > TORN or self._goes_on(rest):
                raise Damaged(
                    f"{path} cannot be read from byte {end:,} on ({wrong or 'damaged'}): move it out of the folder, or "
                    f"choose another folder"
                )
        return end

    def _goes_on(self, rest: bytes) -> bool:
        """Whether a whole batch stands behind what seems to be a torn one: then its length is what is damaged."""
        at, head = 0, PREFIX + COUNTED.size
        for _ in range(CANDIDATES):
            at = rest.find(self._form.prefix(BATCH), at + 1)
            if at < 0:
                return False
            length = self._form.length(rest, at)
            if length is not None and head < length <= len(rest) - at:
                _, checksum = COUNTED.unpack_from(rest, at + PREFIX)
                if crc32(rest[at + head : at + length]) == checksum:
                    return True
        return False


def _of_round(folder: Path, round: int) -> Iterator[tuple[int, Path]]:
    """The files of a round, with their numbers."""
    for name in os.listdir(folder):
        match = _NAME.fullmatch(name)
        if match and int(match[1]) == round:
            yield int(match[2]), folder / name


def _timeless(path: Path) -> None:
    """Set the times of a file that is finished to the epoch: they would say when the last report came."""
    os.utime(path, (0, 0))
