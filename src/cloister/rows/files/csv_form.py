"""Files as they are named and written: paths and patterns, and the form of CSV.

How CSV files are written, and what their first bytes say of it.

Which files are meant by paths and patterns.
"""

from __future__ import annotations

import codecs
import glob
import gzip
import os
from collections.abc import Sequence
from typing import IO, TypeAlias, final

import attrs

from cloister.core.errors import InvalidInput

Path: TypeAlias = str | os.PathLike[str]


def listed(paths: Path | Sequence[Path]) -> list[str]:
    """Files in order; a pattern's in sorted order.

    Raises:
        InvalidInput: there is none, it is a folder, or one is given twice, so that its rows would count twice.
    """
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    found = [path for one in given for path in _matched(os.fspath(one))]
    if not found:
        raise InvalidInput("no file was given")
    seen = set[str]()
    for path in found:
        if os.path.isdir(path):
            raise InvalidInput(f"'{path}' is a folder: give its files, as in '{os.path.join(path, '*.parquet')}'")
        if os.path.realpath(path) in seen:
            raise InvalidInput(f"'{path}' was given twice: its rows would count twice")
        seen.add(os.path.realpath(path))
    return found


def _matched(path: str) -> list[str]:
    if os.path.exists(path) or not glob.has_magic(path):
        return [path]
    found = sorted(glob.glob(path, recursive=True))
    if not found:
        raise InvalidInput(f"no file matches '{path}'")
    return found


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
