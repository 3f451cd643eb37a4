"""Public data sets: their catalogue, and getting them.

The catalogue of public data sets: what they are, where they come from, and by what they are known again.

Getting a public set from its source. Only when somebody asks, and only what the catalogue's SHA-256 knows again.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib
import io
import ipaddress
import tomllib
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final, final
from urllib.parse import urlsplit

import attrs
import numpy as np

from cloister._version import __version__
from cloister.core.errors import CloisterError, Damaged, InvalidInput, UnknownName
from cloister.core.types import Floats

CATALOGUE: Final = Path(__file__).with_name("catalogue.toml")

SKLEARN: Final = "sklearn:"
"""Begins the source of a set that scikit-learn carries."""


@final
@attrs.frozen(kw_only=True)
class Entry:
    """A public data set.

    Args:
        name: by which it is asked for.
        title: what it is.
        rows, columns: its size.
        k: how many groups papers look for in it.
        licence: as far as its page says.
        source: addresses, whose lines follow one another; or a function of scikit-learn.
        sha256: of its rows (``rows_digest``).
        separator: of the fields of a line; None: white space.
        take: positions of the fields to keep; None: all.
        drop: lines with this text in them are left out.
        first: only so many rows; None: all.
    """

    name: str
    title: str
    rows: int
    columns: int
    k: int
    licence: str
    source: tuple[str, ...] = attrs.field(converter=tuple)
    sha256: str
    separator: str | None = None
    take: tuple[int, ...] | None = attrs.field(default=None, converter=attrs.converters.optional(tuple))
    drop: str | None = None
    first: int | None = None

    @property
    def carried(self) -> str | None:
        """The function of scikit-learn that returns it, if one does."""
        return self.source[0].removeprefix(SKLEARN) if self.source[0].startswith(SKLEARN) else None

    @property
    def where(self) -> str:
        """Where it comes from, in words."""
        return " and ".join(self.source) if self.carried is None else "scikit-learn, without a download"

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return attrs.asdict(self)


@cache
def catalogue(path: Path | None = None) -> dict[str, Entry]:
    """All sets by name. Args: path (of a catalogue; None: the package's own)."""
    content = tomllib.loads((CATALOGUE if path is None else path).read_text("utf-8"))
    return {name: Entry(name=name, **facts) for name, facts in content.items()}


def entry_of(name: str) -> Entry:
    """The set of this name. Raises: UnknownName."""
    entries = catalogue()
    if name not in entries:
        raise UnknownName("data set", name, entries)
    return entries[name]


def rows_digest(rows: Floats) -> str:
    """SHA-256 of rows (n, d) as float64, sorted: the same for any order, line ends and way to write a number."""
    table = np.asarray(rows, np.float64) + 0.0  # -0.0 becomes 0.0
    ordered = table[np.lexsort(table.T[::-1])]
    return hashlib.sha256(repr(ordered.shape).encode() + np.ascontiguousarray(ordered, "<f8").tobytes()).hexdigest()


TIMEOUT: Final = 30.0
"""Seconds without a byte."""

LARGEST: Final = 2**28
"""Most bytes of a file, as it comes and unpacked."""

PIECE: Final = 2**16

Progress = Callable[[int, int], None]


def rows_of(entry: Entry, progress: Progress | None = None) -> Floats:
    """The rows (n, d) of a public set, read from its source.

    Args: progress, called with the bytes that came and that will.

    Raises:
        CloisterError: the source cannot be reached.
        Damaged: what came is not this set.
    """
    rows = _carried(entry) if entry.carried is not None else _downloaded(entry, progress)
    if rows.shape != (entry.rows, entry.columns) or rows_digest(rows) != entry.sha256:
        raise Damaged(
            f"what {entry.where} gave is not {entry.name} as the catalogue knows it (its SHA-256 differs): nothing was "
            f"saved; get the set by hand, or wait for a catalogue that knows its new form"
        )
    return rows


def _carried(entry: Entry) -> Floats:
    module = importlib.import_module("sklearn.datasets")
    return np.asarray(getattr(module, entry.carried or "")().data, np.float64)


def _downloaded(entry: Entry, progress: Progress | None) -> Floats:
    rows = list[list[float]]()
    for address in entry.source:
        for line in _unpacked(fetched(address, progress), address).decode("latin-1").splitlines():
            if len(rows) == entry.first:
                break
            if line.strip() and (entry.drop is None or entry.drop not in line):
                rows.append(_numbers(line, entry))
    return np.array(rows, np.float64).reshape(-1, entry.columns)


def _numbers(line: str, entry: Entry) -> list[float]:
    fields = line.split(entry.separator)
    try:
        values = [float(fields[j]) for j in (range(len(fields)) if entry.take is None else entry.take)]
        if len(values) != entry.columns:
            raise ValueError
        return values
    except (ValueError, IndexError):
        raise Damaged(
            f"what {entry.where} gave is not {entry.name}: it has a line that is not {entry.columns} numbers. Nothing "
            f"was saved"
        ) from None


def fetched(address: str, progress: Progress | None = None) -> bytes:
    """Bytes at an address. Raises: InvalidInput: not https. CloisterError: it cannot be had now."""
    _check_secure(address)
    request = urllib.request.Request(address, headers={"User-Agent": f"cloister/{__version__}"})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
            _check_secure(answer.geturl())
            length = answer.headers.get("Content-Length") or ""
            size = int(length) if length.isascii() and length.isdigit() else 0
            content = io.BytesIO()
            for piece in _pieces(answer.read):
                content.write(piece)
                if content.tell() > LARGEST:
                    raise CloisterError(f"{address} sends more than {LARGEST >> 20} MiB: that is not the set")
                if progress is not None:
                    progress(content.tell(), max(size, content.tell()))
    except urllib.error.HTTPError as error:
        raise CloisterError(f"{address} cannot be had: the server says {error.code} {error.reason}") from error
    except (OSError, HTTPException) as error:  # URLError is an OSError, and so are timeouts and cut connections
        why = error.reason if isinstance(error, urllib.error.URLError) else error
        raise CloisterError(f"{urlsplit(address).hostname} cannot be reached ({why}): is there a network?") from error
    return content.getvalue()


def _pieces(read: Callable[[int], bytes]) -> Iterator[bytes]:
    while piece := read(PIECE):
        yield piece


def _check_secure(address: str) -> None:
    """Https, or this machine itself."""
    parts = urlsplit(address)
    if parts.scheme != "https" and not (parts.scheme == "http" and _is_loopback(parts.hostname or "")):
        raise InvalidInput(f"{address} is not an https address: nothing was read from it")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _unpacked(content: bytes, address: str) -> bytes:
    if not address.endswith(".gz"):
        return content
    try:
        with gzip.open(io.BytesIO(content)) as file:
            return file.read(LARGEST)
    except (OSError, EOFError, zlib.error) as error:
        raise Damaged(f"what {address} sent is not a whole gzip file: try again") from error
