"""The outline of a plan: a short digest of each of its entries, by which entries that differ are named.

The plan is public to all who hold an outline, and nothing is decided by one: what is agreed on is the agreement's hash.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

Outline: TypeAlias = tuple[tuple[str, bytes], ...]
"""Names of entries with their digests."""

SIZE = 8
"""Bytes of a digest."""
MOST = 255
"""Largest number of entries, and of bytes of a name."""


def outlined(entries: Mapping[str, Any]) -> Outline:
    """Return the outline of a plan's entries, as TOML has them. Numbers that are equal have one digest."""
    return tuple((name, _digest(value)) for name, value in entries.items())


def to_bytes(outline: Outline) -> bytes:
    return b"".join(bytes([len(name.encode())]) + name.encode() + short for name, short in outline)


def from_bytes(data: bytes) -> dict[str, bytes]:
    """Return the outline that a message holds, as far as it can be read."""
    digests, start = dict[str, bytes](), 0
    while start < len(data) and len(digests) < MOST:
        end = start + 1 + data[start]
        digests[data[start + 1 : end].decode(errors="replace")] = data[end : end + SIZE]
        start = end + SIZE
    return digests


def differing(ours: Outline, theirs: Mapping[str, bytes]) -> tuple[str, ...]:
    """Return the entries that differ, by their names in our own outline: no text of a stranger's is passed on."""
    return tuple(name for name, short in ours if theirs.get(name) != short)


def _digest(value: Any) -> bytes:
    return hashlib.sha256(json.dumps(_plain(value), sort_keys=True, default=str).encode()).digest()[:SIZE]


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(part) for part in value]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53:
        return float(value)
    return value
