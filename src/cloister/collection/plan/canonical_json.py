"""Plans and published answers as JSON that holds its own hash, and durable writing of files."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from cloister.core.errors import CloisterError, Damaged, InvalidInput, Refused, cause

T = TypeVar("T")

OWNER, OWNERS_FOLDER = 0o600, 0o700
"""Permissions of files and folders that only their owner may read."""


def hash_of(facts: Mapping[str, Any]) -> str:
    """SHA-256 of facts, in hex; independent of layout and key order."""
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def with_hash(facts: dict[str, Any]) -> dict[str, Any]:
    """The facts and their hash, under "hash"."""
    return {**facts, "hash": hash_of(facts)}


def check_format(given: Any, format: int) -> None:
    """Raises: Refused: another format."""
    if given != format:
        raise Refused(f"it has format {given!r}, this cloister reads {format}: use the version that made it")


def check_seal(given: Mapping[str, Any], format: int) -> None:
    """Raises: Refused: another format, or a hash that does not match the facts."""
    facts = {name: value for name, value in given.items() if name != "hash"}
    check_format(given["format"], format)
    if given["hash"] != hash_of(facts):
        raise Refused(
            "it was changed after it was published: its hash does not fit. Get it again from whoever published it"
        )


def laid_out(facts: Mapping[str, Any]) -> str:
    """Readable JSON: a name per line, lists of plain values on one line. Line breaks never occur inside values."""
    text = json.dumps(facts, indent=1, allow_nan=False)
    return re.sub(
        r"\[\n[^\[\]{}]*?\n *\]", lambda m: re.sub(r"\n *", " ", m.group()).replace("[ ", "[").replace(" ]", "]"), text
    )


def read(path: Path, what: str, most: int, build: Callable[[bytes], T], again: str) -> T:
    """Read and build what a file holds. Args: what (its kind), most (bytes), build (from its content), again (text of
    the error if it cannot be parsed). Raises: InvalidInput: unreadable file. Damaged: not as it was published."""
    with reading(f"the {what} {path}"):
        if path.exists() and not path.is_file():  # to open a pipe would take for ever
            raise InvalidInput(f"cannot read the {what} {path}: it is no file")
        with path.open("rb") as file:
            content = file.read(most + 1)
    if len(content) > most:
        raise Damaged(f"{path} is no {what} of cloister: it has more than {most} bytes")
    try:
        return build(content)
    except CloisterError as error:
        raise Damaged(f"{path} cannot be used: {error}") from error
    except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError, RecursionError) as error:
        raise Damaged(f"{path} {again}") from error


def beside(target: Path) -> Path:
    """A new hidden name beside a target, for writing it before it is renamed into place."""
    return target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")


@contextmanager
def reading(what: object) -> Iterator[None]:
    """Turns OSError into InvalidInput. Args: what (is read)."""
    try:
        yield
    except OSError as error:
        raise InvalidInput(f"cannot read {what}: {cause(error)}") from error


@contextmanager
def writing(what: object, otherwise: str = "") -> Iterator[None]:
    """Turns OSError into InvalidInput. Args: what (is written), otherwise (appended: what was not done)."""
    try:
        yield
    except OSError as error:
        raise InvalidInput(f"cannot write {what}: {cause(error)}{otherwise}") from error


@contextmanager
def made(folder: Path, mode: int = 0o777) -> Iterator[None]:
    """Make a folder, and those above it, unless they are there; a block that fails and puts nothing into them leaves
    none of them. Raises: OSError: it cannot be made."""
    new = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(mode, parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        with suppress(OSError):  # of a folder that is not empty
            for path in new:
                path.rmdir()
        raise


@contextmanager
def appearing(
    target: Path, named: Callable[[Path, Path], None] | None = None, owners: bool = False
) -> Iterator[BinaryIO]:
    """A file that has its name once it is whole and on the disk, or never. Args: named (how it gets the name:
    ``os.link`` fails if there is such a file; default: it replaces one), owners (only its owner can read it). Raises:
    OSError: it cannot be written."""
    temporary = beside(target)
    try:
        with private(temporary) if owners else temporary.open("xb") as file:
            yield file
            flush(file)
        (named or os.replace)(temporary, target)
        sync(target.parent)
    finally:
        temporary.unlink(missing_ok=True)


def private(path: Path) -> BinaryIO:
    """Create a file for writing that only its owner can read."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER), "wb")


def flush(file: BinaryIO) -> None:
    """Flush a file to the disk."""
    file.flush()
    os.fsync(file.fileno())


def sync(folder: Path) -> None:
    """Flush a folder's entries to the disk, where the system allows it."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def whole(value: Any) -> int:
    """The value, if JSON had a whole number here. Raises TypeError."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError("not a whole number")
    return value


def text(value: Any) -> str:
    """The value, if JSON had text here. Raises TypeError."""
    if not isinstance(value, str):
        raise TypeError("not text")
    return value
