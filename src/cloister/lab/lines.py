"""File of JSON lines that one process appends to. Each is synced: a crash loses only what was unfinished."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, BinaryIO, final

from cloister.core.errors import InvalidInput, cause


@final
class LinesFile:
    """Open file of JSON lines, locked by this process.

    Attributes:
        path: of the file.
        entries: the complete lines that it held, unparsed.
    """

    def __init__(self, path: Path, prefix: bytes, content: str, work: str) -> None:
        """Open a file, or make it. A last line that a crash cut short is dropped.

        Args:
            path: of the file.
            prefix: that its first line begins with.
            content: what such a file is called, for messages, such as "a cloister study".
            work: what another process that has it open does, for messages.

        Raises: InvalidInput: it has other content, another process uses it, or it cannot be written.
        """
        self.path = path
        self._file = _opened(path, work)
        try:
            stored = self._file.read()
            if not (stored.startswith(prefix) or prefix.startswith(stored)):
                raise InvalidInput(f"{path} is not {content}: choose another file")
            complete = stored[: stored.rfind(b"\n") + 1]
            self._file.truncate(len(complete))
            self._file.seek(len(complete))
            self.entries = complete.splitlines()
        except BaseException:
            self.close()
            raise

    def append(self, entry: dict[str, Any]) -> None:
        """Write a line, and sync it. Raises: InvalidInput: the disk is full, or fails."""
        try:
            self._file.write(json.dumps(entry).encode() + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise InvalidInput(f"cannot write {self.path}: {cause(error)}") from error

    def close(self) -> None:
        """Close and unlock the file."""
        self._file.close()


def _opened(path: Path, work: str) -> BinaryIO:
    import fcntl

    try:
        file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b")
    except OSError as error:
        raise InvalidInput(f"cannot open {path}: {cause(error)}") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise InvalidInput(f"{path} is in use by another process: end that {work} first") from None
    return file
