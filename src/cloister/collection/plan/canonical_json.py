"""Public facts as JSON under a hash of themselves: what a plan and the answers of its rounds are written in."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from cloister.core.errors import Damaged, InvalidInput, Refused

OWNER, OWNERS_FOLDER = 0o600, 0o700
"""Permissions of what people remember and send: their owner reads it, nobody else."""


def hash_of(facts: Mapping[str, Any]) -> str:
    """SHA-256 of facts, in hex, however they are laid out."""
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def sealed(facts: dict[str, Any]) -> dict[str, Any]:
    """The facts with their hash."""
    return {**facts, "hash": hash_of(facts)}


def unsealed(given: Mapping[str, Any], format: int) -> dict[str, Any]:
    """The facts without their hash, which fits.

    Raises:
        Refused: another format, or changed.
    """
    facts = {name: value for name, value in given.items() if name != "hash"}
    if given["format"] != format:
        raise Refused(
            f"it has format {given['format']!r}, this cloister reads format {format}: use the version that made it"
        )
    if given["hash"] != hash_of(facts):
        raise Refused(
            "it was changed after it was published: its hash does not fit. Get it again from whoever published it"
        )
    return facts


def laid_out(facts: Mapping[str, Any]) -> str:
    """JSON for people: a name per line, lists of plain values in one. A raw line break is never inside a value."""
    text = json.dumps(facts, indent=1, allow_nan=False)
    return re.sub(
        r"\[\n[^\[\]{}]*?\n *\]", lambda m: re.sub(r"\n *", " ", m.group()).replace("[ ", "[").replace(" ]", "]"), text
    )


def load(path: Path, what: str, most: int) -> bytes:
    """A file's bytes.

    Raises:
        InvalidInput: it cannot be read. Damaged: it is too long to be one.
    """
    try:
        with path.open("rb") as file:
            content = file.read(most + 1)
    except OSError as error:
        raise InvalidInput(f"cannot read the {what} {path}: {error.strerror or error}") from error
    if len(content) > most:
        raise Damaged(f"{path} is no {what} of cloister: it has more than {most} bytes")
    return content


def write(file: BinaryIO, text: str) -> None:
    """A text and a line break, durably."""
    file.write(text.encode() + b"\n")
    flush(file)


def private(path: Path) -> BinaryIO:
    """A new file that its owner alone can read, to be written."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER), "wb")


def flush(file: BinaryIO) -> None:
    """Have what was written on the disk."""
    file.flush()
    os.fsync(file.fileno())


def sync(folder: Path) -> None:
    """Have new names on the disk too, where a folder can be synced."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def whole(value: Any) -> int:
    """A number that JSON had as a whole one. Raises TypeError."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError("not a whole number")
    return value


def text(value: Any) -> str:
    """What JSON had as text. Raises TypeError."""
    if not isinstance(value, str):
        raise TypeError("not text")
    return value
