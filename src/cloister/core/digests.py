"""One hash over public data: attrs values, arrays, numbers, text, tuples and dictionaries.

A class enters the hash by its *tag*: its package and qualified name, or its ``digest_tag``, which tells two classes of
one name in one package apart. So a class may move to another file of its package. A field enters by its name.
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any, cast

import attrs
import numpy as np

from cloister.core.plain_text import path, plain


def digest(value: object) -> str:
    """SHA-256 of a public value, in hex: equal values give equal digests on every platform and in every process."""
    h = hashlib.sha256()
    _feed(h, value)
    return h.hexdigest()


def stamp(value: object) -> int:
    """The first 64 bits of a public value's digest. Reports carry it, so that they answer one question and no other."""
    return int(digest(value)[:16], 16)


_TAGGED = dict[str, tuple[str, str]]()
"""The class of each tag in this process: module and qualified name."""


@cache
def tag(cls: type) -> str:
    """The name of a class in digests, independent of its module. Raises: TypeError if another class has the same tag,
    since their values could not be told apart."""
    found = str(cls.__dict__.get("digest_tag", f"{cls.__module__.partition('.')[0]}.{cls.__qualname__}"))
    here = cls.__module__, cls.__qualname__
    if (known := _TAGGED.setdefault(found, here)) != here:
        raise TypeError(f"{'.'.join(here)} and {'.'.join(known)} are both digested as '{found}': give one a digest_tag")
    return found


@cache
def _outline(cls: Any) -> tuple[bytes, tuple[tuple[str, bytes], ...]] | None:
    """An attrs class's tag, and its fields' names with their bytes in the hash; None for any other class."""
    if not attrs.has(cls):
        return None
    return f"attrs {tag(cls)}".encode(), tuple((field.name, field.name.encode()) for field in attrs.fields(cls))


def _feed(h: Any, value: object) -> None:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            raise TypeError("an array of objects has no digest: its bytes are addresses")
        little = value.astype(value.dtype.newbyteorder("<"))
        h.update(f"array {little.dtype.str} {path(little.shape)}".encode())
        h.update(np.ascontiguousarray(little).tobytes())
    elif isinstance(value, type):
        h.update(f"type {tag(value)}".encode())
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
        for key in sorted(value, key=plain):
            _feed(h, (key, value[key]))
    elif isinstance(value, (bool, int, float, str, bytes, type(None))):
        h.update(f"{type(value).__name__} {plain(value)}\n".encode())
    else:
        raise TypeError(
            f"{type(value).__qualname__} has no digest: public values are attrs classes, arrays and plain data"
        )
