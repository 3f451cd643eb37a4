"""Download of public data sets, which must have the SHA-256 of their catalogue entry."""

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
from cloister.lab.catalogue import Entry, rows_digest

TIMEOUT: Final = 30.0
"""Seconds without a byte after which a download fails."""

LARGEST: Final = 2**28
"""Maximum bytes of a file, both compressed and unpacked."""

PIECE: Final = 2**16

Progress = Callable[[int, int], None]


def rows_of(entry: Entry, progress: Progress | None = None) -> Floats:
    """Read the rows (n, d) of a public set from its source.

    Args:
        entry: of the catalogue.
        progress: called with the number of bytes received and expected.

    Raises:
        CloisterError: the source cannot be reached.
        Damaged: the source has other rows than the catalogue's.
    """
    rows = _carried(entry) if entry.carried is not None else _downloaded(entry, progress)
    if rows.shape != (entry.rows, entry.columns) or rows_digest(rows) != entry.sha256:
        raise Damaged(
            f"{entry.where} does not have {entry.name} as the catalogue has it (another SHA-256): nothing was saved; "
            f"get the set by hand, or wait for a new catalogue"
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
            f"{entry.where} does not have {entry.name}: a line is not {entry.columns} numbers, and nothing was saved"
        ) from None


def fetched(address: str, progress: Progress | None = None) -> bytes:
    """Download an address.

    Raises:
        InvalidInput: the address is not https.
        CloisterError: the download fails.
    """
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
                    raise CloisterError(f"{address} sends more than {LARGEST >> 20} MiB, which no set has")
                if progress is not None:
                    progress(content.tell(), max(size, content.tell()))
    except urllib.error.HTTPError as error:
        raise CloisterError(f"{address} cannot be downloaded: the server says {error.code} {error.reason}") from error
    except (OSError, HTTPException) as error:  # URLError is an OSError, and so are timeouts and cut connections
        why = error.reason if isinstance(error, urllib.error.URLError) else error
        raise CloisterError(f"{urlsplit(address).hostname} cannot be reached ({why}): check the network") from error
    return content.getvalue()


def _pieces(read: Callable[[int], bytes]) -> Iterator[bytes]:
    while piece := read(PIECE):
        yield piece


def _check_secure(address: str) -> None:
    """Raise InvalidInput unless an address is https or on this machine."""
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
        raise Damaged(f"{address} sent a truncated gzip file: try again") from error
