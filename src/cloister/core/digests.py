"""One hash over public data: attrs values, arrays, numbers, text, tuples and dictionaries."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any, cast

import attrs
import numpy as np


def digest(value: object) -> str:
    """SHA-256 of a public value, in hex: equal values give equal digests on every platform and in every process."""
    h = hashlib.sha256()
    _feed(h, value)
    return h.hexdigest()


def stamp(value: object) -> int:
    """The first 64 bits of a public value's digest: what reports bear, so that they answer this question and no other."""
    return int(digest(value)[:16], 16)


@cache
def _outline(cls: Any) -> tuple[bytes, tuple[tuple[str, bytes], ...]] | None:
    """An attrs class's name and fields, as they enter the hash; None for any other class."""
    if not attrs.has(cls):
        return None
    names = tuple((field.name, field.name.encode()) for field in attrs.fields(cls))
    return f"attrs {cls.__module__}.{cls.__qualname__}".encode(), names


def _feed(h: Any, value: object) -> None:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            raise TypeError("an array of objects has no digest: its bytes are addresses")
        little = value.astype(value.dtype.newbyteorder("<"))
        h.update(f"array {little.dtype.str} {little.shape}".encode())
        h.update(np.ascontiguousarray(little).tobytes())
    elif isinstance(value, type):
        h.update(f"type {value.__module__}.{value.__qualname__}".encode())
    elif (outline := _outline(cast(Any, type(value)))) is not None:
        head, names = outline
        h.update(head)
        for name, encoded in names:
            h.update(encoded)
            _feed(h, getattr(value, name))
    elif isinstance(value, (tuple, list)):
        h.update(f"items {len(value)}".encode())
        for item in value:
            _feed(h, item)
    elif isinstance(value, dict):
        h.update(f"dict {len(value)}".encode())
        for key in sorted(value, key=repr):
            _feed(h, (key, value[key]))
    elif isinstance(value, (bool, int, float, str, bytes, type(None))):
        h.update(f"{type(value).__name__} {value!r}\n".encode())
    else:
        raise TypeError(
            f"{type(value).__qualname__} has no digest: public values are attrs classes, arrays and plain data"
        )
