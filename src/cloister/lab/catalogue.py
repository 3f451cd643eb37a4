"""Catalogue of public data sets."""

from __future__ import annotations

import hashlib
import tomllib
from functools import cache
from pathlib import Path
from typing import Any, Final, final

import attrs
import numpy as np

from cloister.core.errors import UnknownName
from cloister.core.types import Floats

CATALOGUE: Final = Path(__file__).with_name("catalogue.toml")

SKLEARN: Final = "sklearn:"
"""Prefix of the source of a set included in scikit-learn."""


@final
@attrs.frozen(kw_only=True)
class Entry:
    """Public data set.

    Args:
        name: its key in the catalogue.
        title: a short description.
        rows: number of rows.
        columns: number of columns.
        k: number of groups that papers look for.
        licence: as stated by its page.
        source: addresses of files, whose lines are concatenated; or a function of scikit-learn.
        sha256: of its rows (``rows_digest``).
        separator: between the fields of a line; None: white space.
        take: positions of the fields to read; None: all.
        drop: lines that contain this text are left out.
        first: maximum number of rows; None: all.
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
        """Function of scikit-learn that returns it, or None."""
        return self.source[0].removeprefix(SKLEARN) if self.source[0].startswith(SKLEARN) else None

    @property
    def where(self) -> str:
        """Source, as text."""
        return " and ".join(self.source) if self.carried is None else "scikit-learn, without a download"

    def as_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return attrs.asdict(self)


@cache
def catalogue(path: Path | None = None) -> dict[str, Entry]:
    """Return all sets by name. Args: path (of a catalogue; None: the package's own)."""
    content = tomllib.loads((CATALOGUE if path is None else path).read_text("utf-8"))
    return {name: Entry(name=name, **facts) for name, facts in content.items()}


def entry_of(name: str) -> Entry:
    """Return the set of a name. Raises: UnknownName: there is none."""
    entries = catalogue()
    if name not in entries:
        raise UnknownName("data set", name, entries)
    return entries[name]


def rows_digest(rows: Floats) -> str:
    """Return the SHA-256 of rows (n, d) as float64, sorted: the same for any order and text format."""
    table = np.asarray(rows, np.float64) + 0.0  # -0.0 becomes 0.0
    ordered = table[np.lexsort(table.T[::-1])]
    return hashlib.sha256(repr(ordered.shape).encode() + np.ascontiguousarray(ordered, "<f8").tobytes()).hexdigest()
