"""Atomic writes, and checks of an output path before any budget is spent."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from cloister.core.errors import InvalidInput, cause


def replace(target: Path, write: Callable[[BinaryIO], None]) -> None:
    """Write a temporary file that replaces the target atomically: a crash leaves the old file.

    Raises:
        InvalidInput: the disk is full, or the path cannot be written.
    """
    temporary = _temporary(target)
    try:
        with temporary.open("xb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except OSError as error:
        raise InvalidInput(f"cannot write {target}: {cause(error)}") from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def put(target: Path, content: bytes) -> None:
    """Write a file atomically. Raises InvalidInput as ``replace`` does."""

    def write(file: BinaryIO) -> None:
        file.write(content)

    replace(target, write)


def _temporary(target: Path) -> Path:
    """Return an unguessable name beside the target."""
    # in a shared folder somebody could place a link at a guessable name, and the write would follow it
    return target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")


def checked_target(
    path: str | os.PathLike[str], endings: Sequence[str] = (".json", ".npz"), contents: str = "results"
) -> Path:
    """Return the path of a file to save, checked before any row is read.

    Raises:
        InvalidInput: wrong ending, no such folder, no permission.
    """
    target = Path(path)
    if target.suffix not in endings:
        raise InvalidInput(f"{contents} are saved as {' or '.join(endings)}, not '{target}'")
    folder = target.parent
    if not folder.is_dir():
        raise InvalidInput(f"cannot write {target}: there is no folder {folder}")
    if target.exists() and not target.is_file():
        raise InvalidInput(f"cannot write {target}: something that is no file has that name")
    if not os.access(target if target.exists() else folder, os.W_OK) or not os.access(folder, os.W_OK):
        raise InvalidInput(f"cannot write {target}: no permission")
    try:  # the only sure way to know that it can be made
        tried = _temporary(target)
        tried.open("xb").close()
        tried.unlink()
    except OSError as error:
        raise InvalidInput(f"cannot write {target}: {cause(error)}") from error
    return target
