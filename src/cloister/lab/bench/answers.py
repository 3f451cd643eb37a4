"""Reading what an entrant wrote: centres as CSV or JSON, never trusted."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import numpy as np

from cloister.core.plain_data import parsed
from cloister.core.types import Floats

LARGEST = 2**28
"""Maximum bytes of an entrant's file."""

SHOWN = 60
"""Characters of a cell that a message quotes."""


class BadOutput(Exception):
    """Output that does not hold the centres that were asked for; the reason is the message."""


def content_of(path: Path) -> bytes | None:
    """Return the content of a file that an entrant wrote, or None if it wrote none.

    Raises:
        BadOutput: it is no regular file, or too large.
    """
    try:  # no link is followed, and no pipe is waited for
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadOutput(f"{path.name} cannot be read: {error.strerror}") from error
    facts = os.fstat(number)
    if not stat.S_ISREG(facts.st_mode) or facts.st_size > LARGEST:
        os.close(number)
        raise BadOutput(f"{path.name} is no regular file of at most {LARGEST:,} bytes")
    with os.fdopen(number, "rb") as file:
        return file.read()


def read_centers(content: bytes, repeats: int, k: int, columns: int) -> tuple[Floats, Any]:
    """Return the centres (repeats, k, columns), and the statement if the content is JSON that has one.

    Args:
        content: CSV, a centre per line and an empty line between releases; or JSON, a list of centres (of releases, if
            there are several), or an object with ``centers`` and ``statement``.
        repeats: number of releases.
        k: number of centres.
        columns: numbers of a centre.

    Raises:
        BadOutput: it holds anything else, or numbers that are not finite.
    """
    statement = None
    if content.lstrip()[:1] in (b"[", b"{"):
        try:
            releases = parsed(content, nan=True)
        except ValueError as error:
            raise BadOutput(f"the centres are no valid JSON: {error}") from None
        if isinstance(releases, dict):
            statement = releases.get("statement")
            releases = releases.get("centers")
        if repeats == 1:
            releases = [releases]
    else:
        releases = _csv(content)
    if not isinstance(releases, list) or len(releases) != repeats:
        count = len(releases) if isinstance(releases, list) else "no"
        raise BadOutput(f"it wrote {count} releases, not {repeats}")
    return np.stack([_release(release, k, columns) for release in releases]), statement


def _release(release: Any, k: int, columns: int) -> Floats:
    if not isinstance(release, list) or not all(isinstance(center, list) for center in release):
        raise BadOutput("the centres are no list of lists of numbers")
    if len(release) != k:
        raise BadOutput(f"it wrote {len(release)} centres, not {k}")
    for center in release:
        if len(center) != columns:
            raise BadOutput(f"a centre has {len(center)} numbers, not {columns}")
        if any(isinstance(number, bool) or not isinstance(number, (int, float)) for number in center):
            raise BadOutput("a centre has something that is not a number")
    centers = np.array(release, np.float64)
    if not np.isfinite(centers).all():
        raise BadOutput("a centre is not finite (NaN or infinity)")
    return centers


def _csv(content: bytes) -> list[list[list[float]]]:
    """Return the releases of CSV."""
    try:
        lines = [line.strip() for line in content.decode("utf-8-sig").splitlines()]
    except UnicodeDecodeError:
        raise BadOutput("the centres are no text in UTF-8") from None
    releases: list[list[list[float]]] = [[]]
    for line in lines:
        if line:
            releases[-1].append([_number(cell) for cell in line.split(",")])
        elif releases[-1]:
            releases.append([])
    return releases if releases[-1] or len(releases) == 1 else releases[:-1]


def _number(cell: str) -> float:
    try:
        if "_" in cell or not cell.isascii():  # which Python would read as digits
            raise ValueError
        return float(cell)
    except ValueError:
        raise BadOutput(f"the centres hold {cell.strip()[:SHOWN]!r}, which is not a number") from None
