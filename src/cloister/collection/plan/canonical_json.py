"""Canonical JSON of plans and published answers, which holds its own hash."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from cloister.collection.plan.durable_files import reading
from cloister.core.errors import CloisterError, Damaged, InvalidInput, Refused

T = TypeVar("T")


def hash_of(facts: Mapping[str, Any]) -> str:
    """Return the SHA-256 of facts, in hex, independent of layout and key order."""
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def with_hash(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the facts with their hash, under "hash"."""
    return {**facts, "hash": hash_of(facts)}


def check_format(version: Any, format: int) -> None:
    """Raise Refused for another format."""
    if version != format:
        raise Refused(f"it has format {version!r}, this cloister reads {format}: use the version that made it")


def check_hash(sealed: Mapping[str, Any], format: int) -> None:
    """Raise Refused for another format, or a hash that does not match the facts."""
    facts = {name: value for name, value in sealed.items() if name != "hash"}
    check_format(sealed["format"], format)
    if sealed["hash"] != hash_of(facts):
        raise Refused(
            "its hash does not match, so it was changed after publication: get it again from whoever published it"
        )


def pretty_json(facts: Mapping[str, Any]) -> str:
    """Return readable JSON: a name per line, lists of plain values on one line."""
    text = json.dumps(facts, indent=1, allow_nan=False)
    return re.sub(
        r"\[\n[^\[\]{}]*?\n *\]", lambda m: re.sub(r"\n *", " ", m.group()).replace("[ ", "[").replace(" ]", "]"), text
    )


def read(path: Path, kind: str, max_bytes: int, build: Callable[[bytes], T], again: str) -> T:
    """Read a file, and build its object.

    Args:
        path: the file.
        kind: kind of file, for messages.
        max_bytes: maximum size.
        build: function that builds the object from the content.
        again: end of the message if ``build`` fails.

    Raises:
        InvalidInput: unreadable file.
        Damaged: it is not as it was published.
    """
    with reading(f"the {kind} {path}"):
        if path.exists() and not path.is_file():  # opening a pipe would block for ever
            raise InvalidInput(f"cannot read the {kind} {path}: it is not a regular file")
        with path.open("rb") as file:
            content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise Damaged(f"{path} is no {kind} of cloister: it is larger than {max_bytes} bytes")
    try:
        return build(content)
    except CloisterError as error:
        raise Damaged(f"{path} cannot be used: {error}") from error
    except (ValueError, TypeError, KeyError, AttributeError, ArithmeticError, RecursionError) as error:
        raise Damaged(f"{path} {again}") from error


def whole_number(value: Any) -> int:
    """Return a value that must be a whole number. Raises: TypeError."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError("not a whole number")
    return value


def as_text(value: Any) -> str:
    """Return a value that must be text. Raises: TypeError."""
    if not isinstance(value, str):
        raise TypeError("not text")
    return value
