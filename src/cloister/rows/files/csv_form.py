"""The form of CSV files: how they are written, and what their first bytes say of it."""

from __future__ import annotations

import codecs
import gzip
from typing import IO, final

import attrs

from cloister.core.errors import InvalidInput

HEAD = 2**16
"""Bytes that are looked at."""


def _delimiter(text: str) -> str:
    return "\t" if text in ("tab", "\\t") else text


@final
@attrs.frozen
class Form:
    """How CSV files are written. Args: delimiter (one character), encoding (as Python calls it).

    Raises: InvalidInput: there is no such delimiter or encoding.
    """

    delimiter: str = attrs.field(default=",", converter=_delimiter)
    encoding: str = "utf-8"

    def __attrs_post_init__(self) -> None:
        if len(self.delimiter) != 1 or not self.delimiter.isascii() or self.delimiter in '"\r\n\0':
            raise InvalidInput(f"the delimiter is {self.delimiter!r}: give one character, such as ';' or tab")
        try:
            codecs.lookup(self.encoding)
        except (LookupError, ValueError):
            raise InvalidInput(
                f"the encoding is {self.encoding!r}: give utf-8, latin-1, utf-16, or another that Python knows"
            ) from None


MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def check_encoding(path: str, form: Form) -> None:
    """Check that a file which is to be read as UTF-8 can be it, by its first line: no cell is looked at.

    Raises: InvalidInput: it is another encoding, which the message names.
    """
    if codecs.lookup(form.encoding).name != "utf-8":
        return
    with _opened(path) as file:
        head = file.read(HEAD)
    for mark, name in MARKS:
        if head.startswith(mark):
            raise InvalidInput(
                f"'{path}' is {name.upper()}, by its byte order mark: say so with --encoding {name} (encoding=)"
            )
    line = head.partition(b"\n")[0]
    if b"\0" in line:
        name = "utf-16-be" if line.startswith(b"\0") else "utf-16-le"
        raise InvalidInput(
            f"'{path}' seems to be UTF-16 without a byte order mark: say so with --encoding {name} (encoding=)"
        )
    try:
        codecs.getincrementaldecoder("utf-8")().decode(line, final=b"\n" in head)
    except UnicodeDecodeError:
        raise InvalidInput(f"'{path}' {not_unicode('has names of columns')}") from None


def not_unicode(what: str) -> str:
    return f"{what} that are not UTF-8: it seems to be Latin-1, so say so with --encoding latin-1 (encoding=)"


def _opened(path: str) -> IO[bytes]:
    return gzip.open(path) if path.lower().endswith(".gz") else open(path, "rb")  # type: ignore[return-value]  # readable
