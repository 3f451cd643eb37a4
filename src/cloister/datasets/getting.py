"""Getting a public set from its source. Only when somebody asks, and only what the catalogue's SHA-256 knows again."""

from __future__ import annotations

import gzip
import importlib
import io
import ipaddress
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Iterator
from http.client import HTTPException
from typing import Final
from urllib.parse import urlsplit

import numpy as np

from cloister._version import __version__
from cloister.core.errors import CloisterError, Damaged, InvalidInput
from cloister.core.types import Floats
from cloister.datasets.catalogue import Entry, rows_digest

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
    found = list[list[float]]()
    for address in entry.source:
        for line in _unpacked(fetched(address, progress), address).decode("latin-1").splitlines():
            if len(found) == entry.first:
                break
            if line.strip() and (entry.drop is None or entry.drop not in line):
                found.append(_numbers(line, entry))
    return np.array(found, np.float64).reshape(-1, entry.columns)


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
    """What is at an address. Raises: InvalidInput: not https. CloisterError: it cannot be had now."""
    _check_secure(address)
    asked = urllib.request.Request(address, headers={"User-Agent": f"cloister/{__version__}"})
    try:
        with urllib.request.urlopen(asked, timeout=TIMEOUT) as answer:
            _check_secure(answer.geturl())
            said = answer.headers.get("Content-Length") or ""
            size = int(said) if said.isascii() and said.isdigit() else 0
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
