"""Durable writing of files: whole or not at all, and readable by their owner alone where needed."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from cloister.core.errors import InvalidInput, cause

OWNER, OWNERS_FOLDER = 0o600, 0o700
"""Permissions of files and folders that only their owner may read."""


def temporary_path(target: Path) -> Path:
    """Return a new hidden path beside a target, to be renamed into place."""
    return target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")


@contextmanager
def reading(target: object) -> Iterator[None]:
    """Turn OSError of reading ``target`` into InvalidInput."""
    try:
        yield
    except OSError as error:
        raise InvalidInput(f"cannot read {target}: {cause(error)}") from error


@contextmanager
def writing(target: object, otherwise: str = "") -> Iterator[None]:
    """Turn OSError of writing ``target`` into InvalidInput, whose message ends with ``otherwise``."""
    try:
        yield
    except OSError as error:
        raise InvalidInput(f"cannot write {target}: {cause(error)}{otherwise}") from error


@contextmanager
def created_folder(folder: Path, mode: int = 0o777) -> Iterator[None]:
    """Create a folder, and its parents, if missing; remove them if the block fails and leaves them empty.

    Raises: OSError: it cannot be created.
    """
    new = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(mode, parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        with suppress(OSError):  # not empty
            for path in new:
                path.rmdir()
        raise


@contextmanager
def atomic_file(
    target: Path, rename: Callable[[Path, Path], None] | None = None, private: bool = False
) -> Iterator[BinaryIO]:
    """Open a file that gets its name once it is complete and on the disk, or never.

    Args:
        target: the path.
        rename: function that gives the name; default: replace an old file (``os.link`` would fail).
        private: whether only its owner may read it.

    Raises:
        OSError: it cannot be written.
    """
    temporary = temporary_path(target)
    try:
        with create_private(temporary) if private else temporary.open("xb") as file:
            yield file
            flush(file)
        (rename or os.replace)(temporary, target)
        sync(target.parent)
    finally:
        temporary.unlink(missing_ok=True)


def create_private(path: Path) -> BinaryIO:
    """Create a file that only its owner can read, and open it for writing."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER), "wb")


def flush(file: BinaryIO) -> None:
    """Flush a file to the disk."""
    file.flush()
    os.fsync(file.fileno())


def sync(folder: Path) -> None:
    """Flush a folder's entries to the disk, if the system allows it."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
