"""The catalogue of public data sets: what they are, where they come from, and by what they are known again."""

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
    known = catalogue()
    if name not in known:
        raise UnknownName("data set", name, known)
    return known[name]


def rows_digest(rows: Floats) -> str:
    """SHA-256 of rows (n, d) as float64, sorted: the same for any order, line ends and way to write a number."""
    table = np.asarray(rows, np.float64) + 0.0  # -0.0 becomes 0.0
    ordered = table[np.lexsort(table.T[::-1])]
    return hashlib.sha256(repr(ordered.shape).encode() + np.ascontiguousarray(ordered, "<f8").tobytes()).hexdigest()
