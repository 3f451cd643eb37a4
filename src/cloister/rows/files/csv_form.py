"""Delimiter and encoding of CSV files, and checks of their first bytes."""

from __future__ import annotations

import codecs
import gzip
import re
from typing import IO, final

import attrs

from cloister.core.errors import InvalidInput

HEAD = 2**16
"""Bytes that are checked."""


def _delimiter(text: str) -> str:
    return "\t" if text in ("tab", "\\t") else text


@final
@attrs.frozen
class Form:
    """Format of CSV files.

    Args:
        delimiter: one character.
        encoding: name of a Python codec.

    Raises:
        InvalidInput: the delimiter or encoding is invalid.
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


BINARY = {
    b"\x1f\x8b": "it is gzip: call it .csv.gz",
    b"PAR1": "it is Parquet: call it .parquet",
    b"ARROW1": "it is Arrow: call it .arrow",
    b"PK\3\4": "it is a ZIP archive or an Excel workbook: unpack it, or save it as Parquet with pandas.read_excel",
    b"\x28\xb5\x2f\xfd": "it is Zstandard: unpack it",
    b"\xfd7zXZ\0": "it is xz: unpack it",
}
"""Advice for files that are not CSV despite their name, by magic bytes."""

SEPARATOR = re.compile(r'\ufeff?"?sep=(.)"?\r?(\n|$)', re.IGNORECASE)
"""Excel's line that declares the delimiter."""


def check_head(path: str, form: Form) -> None:
    """Check by its first bytes that a file is CSV with a header line; cells are not inspected.

    Raises:
        InvalidInput: it has another format or encoding (named in the message), or starts with Excel's ``sep=`` line.
    """
    with _opened(path) as file:
        head = file.read(HEAD)
    for start, advice in BINARY.items():
        if head.startswith(start):
            raise InvalidInput(f"'{path}' is not CSV: {advice}")
    if match := SEPARATOR.match(codecs.getincrementaldecoder(form.encoding)("ignore").decode(head[:64])):
        raise InvalidInput(
            f"the first line of '{path}' is Excel's sep={match[1]}: remove that line, and give --delimiter "
            f"{'tab' if match[1] == chr(9) else repr(match[1])} (delimiter=)"
        )
    if codecs.lookup(form.encoding).name == "utf-8":
        _check_unicode(path, head)


def _check_unicode(path: str, head: bytes) -> None:
    """Raise InvalidInput if the first line of a file is not UTF-8."""
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


def not_unicode(subject: str) -> str:
    return f"{subject} that are not UTF-8: it seems to be Latin-1, so say so with --encoding latin-1 (encoding=)"


def _opened(path: str) -> IO[bytes]:
    return gzip.open(path) if path.lower().endswith(".gz") else open(path, "rb")  # type: ignore[return-value]  # readable
