"""Plain values as text: the bytes behind public keys and digests, so that any language can compute them.

Keys of named purposes (``PublicRng.child``) and digests of plain values hash this text as UTF-8. It is what Python's
``repr`` gives, written down as rules:

* *nothing, truth*: ``None``, ``True``, ``False``.
* *an integer*: its decimal digits without leading zeros, ``-`` before them if it is negative.
* *a float*: ``inf``, ``-inf``, ``nan``. Else the fewest significant decimal digits that read back as the same double,
  of such the nearest to it. Let 10^x be the value of the first digit. For -4 <= x < 16 they are written with a point
  and no exponent, and at least one digit on either side of the point: ``0.0001``, ``1.5``, ``100.0``; zero is ``0.0``
  or ``-0.0``. Otherwise as one digit, the others, if any, after a point, and ``e``, the sign of x and at least two
  digits: ``1e-05``, ``1.25e+16``.
* *text*: between single quotes, or double ones if it has a single quote and no double one. A backslash, and the quote
  that it stands between, follow a backslash. Line feed, carriage return and tab are ``\\n``, ``\\r``, ``\\t``. Other
  characters that are not printable (of ASCII: below the space, and 127) are ``\\x``, ``\\u`` or ``\\U`` and 2, 4 or 8
  lower-case hex digits, whichever is shortest. What is printable beyond ASCII is a matter of Unicode's version:
  names of keys have none.
* *bytes*: ``b`` and the same, byte by byte; bytes from 127 are never printable.
* *a list of names*: ``(``, the names with ``, `` between them, ``)``; one alone is followed by a comma: ``('a',)``.

Names of keys are integers, and text of the characters from space to ``~`` but ``'`` and the backslash: ``'name'``
stands for itself.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import TypeAlias

Plain: TypeAlias = bool | int | float | str | bytes | None

SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
"""Escapes of the three control characters that have short ones."""


def plain(value: Plain) -> str:
    """A plain value, by the rules above."""
    if isinstance(value, str):
        return _quoted(value, str.isprintable)
    if isinstance(value, bytes):
        return "b" + _quoted(value.decode("latin-1"), _in_ascii)
    if isinstance(value, float):
        return float.__repr__(value)
    return str(value) if value is None or isinstance(value, bool) else int.__repr__(value)


def path(names: Iterable[str | int]) -> str:
    """A list of names, by the rules above. Raises: TypeError, ValueError: one of them is no name."""
    found = [_name(name) for name in names]
    return f"({', '.join(found)}{',' if len(found) == 1 else ''})"


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
