r"""Plain data: canonical text, digests, and strict JSON and TOML.

Keys of named purposes (``PublicRng.child``) and digests hash the canonical text as UTF-8, so that any language can
compute them. It is what Python's ``repr`` gives, by these rules:

* *nothing, truth*: ``None``, ``True``, ``False``.
* *an integer*: its decimal digits without leading zeros, ``-`` before them if it is negative.
* *a float*: ``inf``, ``-inf``, ``nan``. Else the fewest significant decimal digits that read back as the same double,
  and of such the nearest to it. Let 10^x be the value of the first digit. For -4 <= x < 16 they are written with a
  point and no exponent, and at least one digit on either side of the point: ``0.0001``, ``1.5``, ``100.0``; zero is
  ``0.0`` or ``-0.0``. Otherwise as one digit, the others, if any, after a point, and ``e``, the sign of x and at least
  two digits: ``1e-05``, ``1.25e+16``.
* *text*: between single quotes, or double ones if it has a single quote and no double one. A backslash, and the quote
  that it stands between, follow a backslash. Line feed, carriage return and tab are ``\n``, ``\r``, ``\t``. Other
  characters that are not printable (in ASCII: below the space, and 127) are ``\x``, ``\u`` or ``\U`` and 2, 4 or 8
  lower-case hex digits, whichever is shortest. Which characters beyond ASCII are printable depends on Unicode's
  version: names of keys have none.
* *bytes*: ``b`` and the same, byte by byte; bytes from 127 are never printable.
* *a list of names*: ``(``, the names with ``, `` between them, ``)``; one alone is followed by a comma: ``('a',)``.

Names of keys are integers, and text of the characters from space to ``~`` but ``'`` and the backslash: they need no
escapes.

A digest is one hash over public data: attrs values, arrays, numbers, text, tuples and dictionaries. A class enters it
by its *tag*: its package and qualified name, or its ``digest_tag``, which tells two classes of one name in one package
apart. So a class may move to another file of its package. A field enters by its name.

Files of other people are read strictly: JSON without duplicate names, NaN or Infinity, and JSON and TOML without
numbers that no double holds (2^1024 and more), whole or not: arithmetic would fail on them later, or yield infinity.
"""

from __future__ import annotations

import hashlib
import json
import math
import operator
import tomllib
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, NoReturn, TypeAlias, cast

import attrs
import numpy as np

from cloister.core.doubles import beyond_doubles

Plain: TypeAlias = bool | int | float | str | bytes | None

SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
"""Short escapes of control characters."""


def plain(value: Plain) -> str:
    """Return the canonical text of a plain value."""
    if isinstance(value, str):
        return _quoted(value, str.isprintable)
    if isinstance(value, bytes):
        return "b" + _quoted(value.decode("latin-1"), _in_ascii)
    if isinstance(value, float):
        return float.__repr__(value)
    return str(value) if value is None or isinstance(value, bool) else int.__repr__(value)


def path(names: Iterable[str | int]) -> str:
    """Return the canonical text of a list of names.

    Raises:
        TypeError, ValueError: one of them is no name.
    """
    parts = [_name(name) for name in names]
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def _name(name: str | int) -> str:
    if not isinstance(name, str):
        return int.__repr__(operator.index(name))
    if not all(_in_ascii(c) and c not in "'\\" for c in name):
        raise ValueError(f"{name!r} cannot name a key: take printable ASCII without a single quote or a backslash")
    return f"'{name}'"


def _quoted(text: str, printable: Callable[[str], bool]) -> str:
    quote = '"' if "'" in text and '"' not in text else "'"
    return quote + "".join(_escaped(c, quote, printable) for c in text) + quote


def _escaped(c: str, quote: str, printable: Callable[[str], bool]) -> str:
    if c == "\\" or c == quote:
        return "\\" + c
    if printable(c):
        return c
    number = ord(c)
    wide = f"\\x{number:02x}" if number < 2**8 else f"\\u{number:04x}" if number < 2**16 else f"\\U{number:08x}"
    return SHORT.get(c, wide)


def _in_ascii(c: str) -> bool:
    return " " <= c <= "~"


def parsed(content: bytes, nan: bool = False) -> Any:
    """Parse a JSON text.

    Args:
        content: UTF-8.
        nan: whether to accept NaN and Infinity.

    Raises:
        ValueError: it has duplicate names, NaN, Infinity or numbers that no double holds, is malformed, or is nested
            deeper than Python reads.
    """
    try:
        return json.loads(
            content.decode("utf-8"),
            object_pairs_hook=_distinct,
            parse_constant=float if nan else _no_constant,
            parse_int=_whole,
            parse_float=_fraction,
        )
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def parsed_toml(content: bytes) -> dict[str, Any]:
    """Parse a TOML text, whose own inf and nan are accepted.

    Raises:
        ValueError: it has numbers that no double holds, is malformed, or is nested deeper than Python reads.
    """
    text = content.decode("utf-8")
    try:
        table = tomllib.loads(text, parse_float=_fraction)
        too_large = beyond_doubles(table)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except tomllib.TOMLDecodeError:
        raise
    except ValueError as error:  # more than the 4,300 digits that Python reads
        raise ValueError(TOO_LARGE) from error
    if too_large:
        raise ValueError(TOO_LARGE)
    return table


def _whole(text: str) -> int:
    _fraction(text)  # before Python refuses more than 4,300 digits in words of its own
    return int(text)


def _fraction(text: str) -> float:
    value = float(text)
    if math.isinf(value) and "inf" not in text:
        raise ValueError(TOO_LARGE)
    return value


TOO_LARGE = "a number in it is too large: numbers must be finite, below 1.8e308"


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object with distinct names: readers disagree about which of two equal names counts."""
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a name occurs twice in one object")
    return dict(pairs)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def digest(value: object) -> str:
    """Return SHA-256 of a public value, in hex: equal for equal values on every platform and in every process."""
    h = hashlib.sha256()
    _feed(h, value)
    return h.hexdigest()


def stamp(value: object) -> int:
    """Return the first 64 bits of a public value's digest, which binds a report to its question."""
    return int(digest(value)[:16], 16)


_TAGGED = dict[str, tuple[str, str]]()
"""Class of each tag in this process: module and qualified name."""


@cache
def tag(cls: type) -> str:
    """Return the name of a class in digests, independent of its module.

    Raises:
        TypeError: another class has the same tag, so that their values could not be told apart.
    """
    name = str(cls.__dict__.get("digest_tag", f"{cls.__module__.partition('.')[0]}.{cls.__qualname__}"))
    here = cls.__module__, cls.__qualname__
    if (owner := _TAGGED.setdefault(name, here)) != here:
        raise TypeError(f"{'.'.join(here)} and {'.'.join(owner)} are both digested as '{name}': give one a digest_tag")
    return name


@cache
def _outline(cls: Any) -> tuple[bytes, tuple[tuple[str, bytes], ...]] | None:
    """Return an attrs class's tag, and its fields' names with their bytes in the hash; None for any other class."""
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
