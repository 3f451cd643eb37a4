"""The conditions that all contenders of a study share."""

from __future__ import annotations

import hashlib
import math
from typing import Any, Literal, cast, final

import attrs
import numpy as np

from cloister._version import __version__
from cloister.core.domains import Ball, Box
from cloister.core.errors import InvalidInput
from cloister.core.frames import unknown_columns
from cloister.core.types import Floats
from cloister.lab.comparing.contenders import Contender
from cloister.rows.columns import Selection
from cloister.run.bounds import domain_for
from cloister.run.fit import source
from cloister.run.framing import Framing, apart, scale_of
from cloister.run.request import Request

SHOWN = 12
"""Most columns that a text names."""

READ = "rows"
"""In place of bounds: each column's least and largest value in the rows. Fit for comparisons alone: law 1."""


@final
@attrs.frozen
class Conditions:
    """The conditions of a study.

    Args:
        k: number of centres.
        delta: probability, for every run.
        domain: the bounds.
        read: whether the bounds were read off the rows.
        scale: units of distances, as ``run.framing.scale_of`` returns them.
        rows: the number of rows that runs are told.
        count: how many rows there are.
        chosen: the columns.
        digest: SHA-256 of the rows.
        outside: how many of them lie outside the bounds.
    """

    k: int
    delta: float
    domain: Box | Ball
    read: bool
    scale: str | None
    rows: int
    count: int
    chosen: Selection
    digest: str
    outside: int = 0

    @classmethod
    def of(
        cls,
        rows: Floats,
        chosen: Selection,
        k: Any,
        bounds: Any,
        scale: Any,
        delta: float | Literal["auto"],
        public_rows: int | None,
    ) -> Conditions:
        """The conditions for rows (n, d).

        Args: chosen (the columns that these features are made of), bounds as in a fit, or ``READ``; scale as in a fit;
        delta ('auto': ``usual_delta``), public_rows (None: their number).

        Raises: InvalidInput.
        """
        read = is_read(bounds)
        numbers = [j for j, values in enumerate(kinds(chosen)) if not values]
        domain = domain_for(ranges(rows[:, numbers]) if read else bounds, chosen)
        if unknown_columns(domain):
            raise InvalidInput("compare takes no unknown bounds: state them, or give the word rows to read them off")
        told = len(rows) if public_rows is None else public_rows
        if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or not 1 <= k <= len(rows):
            raise InvalidInput(f"k is {k!r}: give a whole number between 1 and the {len(rows)} rows")
        spent = usual_delta(told) if delta == "auto" else float(delta)
        seal = hashlib.sha256(repr(rows.shape).encode() + np.ascontiguousarray(rows, "<f8").tobytes()).hexdigest()
        scaled = scale_of(scale, chosen.numbers, chosen.recorded())
        outside = _beyond(domain, rows)
        return cls(int(k), spent, domain, read, scaled, told, len(rows), chosen, seal, outside)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the features."""
        return self.chosen.features

    def clipped(self, rows: Floats) -> Floats:
        """Rows (n, d) as all runs clip them: costs are of these."""
        return self.domain.truncate(rows) if self.outside else rows

    @property
    def units(self) -> Floats:
        """The units (d,) of distances in which all contenders' costs are taken, whatever their own are."""
        d, encoded = self.domain.dimension, any(kinds(self.chosen))
        scale = self.scale or ("bounds" if encoded or apart(self.domain) else "none")
        if isinstance(self.domain, Ball) or (scale == "none" and not encoded):
            return np.ones(d)
        if scale == "bounds":
            return Framing("auto", scale, self.chosen.one_hot).units(self.domain, self.k)
        weights = iter([1.0] * d if scale == "none" else [float(weight) for weight in scale.split(",")])
        return np.array([math.sqrt(2) if values else 1 / next(weights) for values in kinds(self.chosen)])

    @property
    def middle(self) -> Floats:
        """The midpoint (1, d) of the bounds: what a single centre is without any data."""
        return np.asarray(self.domain.middle, np.float64)[None, :]

    def request(self, contender: Contender, epsilon: float) -> Request:
        """A run of this contender."""
        delta, bounds = self.delta if contender.delta is None else contender.delta, cast(Any, self.domain)
        if self.chosen.categories:  # whose bounds follow from them
            pairs = zip(self.domain.lower, self.domain.upper, kinds(self.chosen), strict=True)  # type: ignore[union-attr]
            bounds = [(low, high) for low, high, values in pairs if not values] or None
        return Request(
            k=self.k,
            method=contender.method,
            epsilon=epsilon,
            delta=delta,
            bounds=bounds,
            rows=self.rows,
            scale=self.scale,
            components=contender.components,
            options=contender.options,
            trust=contender.trust,
            not_private=True,
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain data, by which a study that goes on knows its own."""
        box = isinstance(self.domain, Box)
        ends = [self.domain.lower, self.domain.upper] if box else [self.domain.center, self.domain.radius]  # type: ignore[union-attr]
        return {
            "k": self.k,
            "delta": self.delta,
            "bounds": [list(e) if isinstance(e, tuple) else e for e in ends],
            "bounds read off the rows": self.read,
            "scale": self.scale,
            "public rows": self.rows,
            "columns": list(self.columns),
            "rows": self.count,
            "sha256 of the rows": self.digest,
            "version": __version__,
        }

    def text(self) -> str:
        """The conditions in a line."""
        of = "read off these rows, which a private run never does" if self.read else "as given"
        out = f", which {self.outside:,} rows lie outside: costs are of rows clipped to them" if self.outside else ""
        units = "each column's own" if np.ptp(self.units) > 0 else "the same in all columns"
        named = ", ".join(self.columns[:SHOWN]) + (", ..." if len(self.columns) > SHOWN else "")
        return (
            f"{self.count:,} rows of {len(self.columns)} columns ({named}), k = {self.k}, delta = {self.delta:.3g}, "
            f"public number of rows {self.rows:,}; bounds {of}{out}; unit of distances {units}."
        )


def kinds(chosen: Selection) -> tuple[int, ...]:
    """For each feature, how many values its category has; 0 for one of numbers."""
    return chosen.one_hot or (0,) * len(chosen.features)


def population_of(rows: Floats, chosen: Selection) -> Any:
    """Features (n, d) as the population of a table, in which a category's cells are the places of their values."""
    columns, categories, at = list[Floats](), dict[str, list[int]](), 0
    for name in chosen.used:
        category = chosen.category(name)
        values = 0 if category is None else len(category.values)
        some, at = rows[:, at : at + max(values, 1)], at + max(values, 1)
        if values:
            categories[str(len(columns))] = list(range(values))
        columns.append(np.where(some.any(axis=1), some.argmax(axis=1), values) if values else some[:, 0])
    return source(np.column_stack(columns), None, "refuse", threads=1, categories=categories or None)


def _beyond(domain: Box | Ball, rows: Floats) -> int:
    """How many rows lie outside the bounds. NOT private."""
    if isinstance(domain, Box):
        return int((domain.truncate(rows) != rows).any(axis=1).sum())
    return int((np.linalg.norm(rows - domain.middle, axis=1) > domain.radius).sum())


def is_read(bounds: Any) -> bool:
    """Whether bounds are to be read off the rows."""
    return isinstance(bounds, str) and bounds.strip() == READ


def usual_delta(rows: int) -> float:
    """The papers' choice for n rows, 1 / (n ln n). Raises: InvalidInput: fewer than 2 rows."""
    if rows < 2:
        raise InvalidInput(f"delta = 1 / (n ln n) needs at least 2 rows, not {rows}: give delta")
    return 1 / (rows * math.log(rows))


def ranges(rows: Floats) -> list[tuple[float, float]]:
    """Each column's least and largest value; of a constant column, one more and one less. NOT private."""
    ends = zip(rows.min(axis=0).tolist(), rows.max(axis=0).tolist(), strict=True)
    return [(low, high) if low < high else (low - 1, high + 1) for low, high in ends]
