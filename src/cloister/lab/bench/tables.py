"""Tables of rows that a benchmark names: public sets, generated ones, and files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

import attrs
import numpy as np

from cloister.core.errors import CloisterError, InvalidInput, UnknownName
from cloister.core.types import Floats
from cloister.lab.catalogue import catalogue
from cloister.lab.download import rows_of
from cloister.lab.generated import blobs, scaled
from cloister.run.fit import source

DATA = "CLOISTER_DATA"
"""Environment variable that names the folder of public sets."""

BLOBS = {"rows": 1000, "columns": 2, "separation": 0.21, "seed": 0}
"""Options of generated groups, with their defaults."""

QUICK_ROWS = 1000
"""Maximum number of rows in a quick benchmark."""


class MissingTable(CloisterError):
    """Table that is not on this machine; the message says how to get it."""


@final
@attrs.frozen
class TableSource:
    """Where a table comes from.

    Args:
        name: unique in a benchmark.
        kind: ``data`` (a public set), ``blobs`` (generated) or ``file``.
        value: its name, options or path.
        ks: numbers of centres.
        bounds: public bounds (low, high) of all columns or of each; None: rows are scaled to [-1, 1].
        columns: of a file, as ``--columns`` takes them.
    """

    name: str
    kind: str
    value: Any
    ks: tuple[int, ...]
    bounds: tuple[tuple[float, float], ...] | None = None
    columns: tuple[str, ...] = ("*",)

    def load(self, base: Path, quick: bool = False) -> BenchTable:
        """Return the table. Args: base (of relative paths), quick (only its first rows).

        Raises:
            MissingTable: a public set or a file is not there.
            InvalidInput: it does not fit the bounds, or has fewer rows than centres.
        """
        rows = {"data": _public, "blobs": _generated, "file": _file}[self.kind](self, base)
        if quick and len(rows) > QUICK_ROWS:
            rows = rows[np.random.default_rng(0).permutation(len(rows))[:QUICK_ROWS]]
        if len(rows) < max(self.ks):
            raise InvalidInput(f"the set {self.name} has {len(rows)} rows, fewer than k = {max(self.ks)}")
        if self.bounds is None:
            return BenchTable(self.name, scaled(rows), np.tile([-1.0, 1.0], (rows.shape[1], 1)), True)
        given = self.bounds * rows.shape[1] if len(self.bounds) == 1 else self.bounds
        if len(given) != rows.shape[1]:
            raise InvalidInput(f"the set {self.name} has {rows.shape[1]} columns, and {len(given)} pairs of bounds")
        return BenchTable(self.name, rows, np.array(given, np.float64), False)


@final
@attrs.frozen(eq=False)
class BenchTable:
    """Rows of a benchmark. NOT private.

    Args:
        name: of the set.
        rows: (n, d), as entrants get them.
        bounds: (d, 2), public.
        read: whether the bounds were read off the rows, which no private run may do.
    """

    name: str
    rows: Floats
    bounds: Floats
    read: bool

    @property
    def digest(self) -> str:
        """SHA-256 of rows and bounds."""
        content = repr(self.rows.shape).encode() + np.ascontiguousarray(self.rows, "<f8").tobytes()
        return hashlib.sha256(content + np.ascontiguousarray(self.bounds, "<f8").tobytes()).hexdigest()

    def units(self, points: Floats) -> Floats:
        """Return points (n, d) in units in which every column's bounds are -1 and 1."""
        low, high = self.bounds.T
        return np.asarray((points - (low + high) / 2) / ((high - low) / 2))

    @property
    def clipped(self) -> Floats:
        """Rows (n, d) clipped to the bounds, in these units: what costs are of."""
        return np.clip(self.units(self.rows), -1.0, 1.0)


def _public(table: TableSource, base: Path) -> Floats:
    name, folder = str(table.value), os.environ.get(DATA)
    path = Path(folder or "", f"{name}.npz")
    if folder and path.is_file():
        with np.load(path) as stored:
            return np.asarray(stored["X"], np.float64)
    entry = catalogue().get(name)
    if entry is not None and entry.carried is not None:
        return rows_of(entry)
    place = f"{DATA} is {folder}, which has no {path.name}" if folder else f"{DATA} names no folder of public sets"
    if entry is None and not folder:
        raise UnknownName("data set", name, catalogue())
    how = f"'cloister data get {name} --out FOLDER' gets it" if entry is not None else "put it there"
    raise MissingTable(f"{place}: {how}")


def _generated(table: TableSource, base: Path) -> Floats:
    options: Mapping[str, Any] = {**BLOBS, **table.value}
    made = blobs(
        options["rows"], options["columns"], table.ks[0], separation=options["separation"], seed=options["seed"]
    )
    return np.asarray(made.numbers, np.float64)


def _file(table: TableSource, base: Path) -> Floats:
    path = base / str(table.value)
    if not path.exists():
        raise MissingTable(f"there is no file {path}")
    with source([str(path)], columns=list(table.columns)) as population:
        return np.asarray(population.table(), np.float64)
