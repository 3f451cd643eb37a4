"""Conditions that all runs of a study share. **NOT private**: some are read off the rows."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Any, cast, final

import attrs
import numpy as np

from cloister._version import __version__
from cloister.core.domains import Ball, Box
from cloister.core.errors import InvalidInput
from cloister.core.frames import unknown_columns
from cloister.core.plain_data import digest
from cloister.core.registry.draft import Kit
from cloister.core.registry.registry import registry
from cloister.core.types import Floats, Ids
from cloister.lab.comparing.contenders import Contender
from cloister.lab.comparing.terms import Terms, is_read
from cloister.rows.selection import Selection
from cloister.run.bounds import domain_for
from cloister.run.fit import source
from cloister.run.layers.preprocessing import Preprocessing, apart, scale_of
from cloister.run.method_selection import number_of_centers
from cloister.run.request import Request

SHOWN = 12
"""Maximum number of columns named in a text."""


@final
@attrs.frozen
class Conditions:
    """Conditions of a study.

    Args:
        k: number of centres; of a range the largest.
        delta: of every run.
        domain: bounds, with ``core.frames.UNKNOWN`` ones.
        read: whether the bounds were read off the rows.
        scale: units of distance, from ``run.layers.preprocessing.scale_of``.
        rows: number of rows stated to the runs.
        count: true number of rows.
        selection: the columns.
        digest: SHA-256 of the rows and their users.
        outside: number of rows outside the bounds.
        fewest: smallest k of a range; None if k is one number.
        widths: bounds behind units and midpoint; unknown ones are read off the rows.
        users: (n,) user of each row by number, or None.
        rows_per_user: as in a fit.
        zoom: as in a fit.
        trust: as in a fit, for contenders without a trust model of their own.
        start: public centres, coordinates by column, or None.
    """

    k: int
    delta: float
    domain: Box | Ball
    read: bool
    scale: str | None
    rows: int
    count: int
    selection: Selection
    digest: str
    outside: int
    fewest: int | None
    widths: Box | Ball
    users: Ids | None = None
    rows_per_user: int | None = None
    zoom: str | float = "auto"
    trust: str | None = None
    start: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, rows: Floats, selection: Selection, users: Ids | None, terms: Terms) -> Conditions:
        """Return the conditions of a study.

        Args:
            rows: (n, d) features.
            selection: the columns that the features encode.
            users: (n,) user of each row, or None.
            terms: what the runs are asked.

        Raises: InvalidInput: the rows do not allow these terms.
        """
        bounds, k = terms.bounds_of(selection.features), number_of_centers(terms.k)
        read = is_read(bounds)
        numbers = [j for j, values in enumerate(kinds(selection)) if not values]
        domain = domain_for(ranges(rows[:, numbers]) if read else bounds, selection)
        n_rows = len(rows) if terms.public_rows is None else terms.public_rows
        fewest, largest = k if isinstance(k, tuple) else (None, k)
        if isinstance(largest, bool) or not isinstance(largest, (int, np.integer)) or not 1 <= largest <= len(rows):
            raise InvalidInput(f"k is {terms.k!r}: give a whole number, or a range, between 1 and the {len(rows)} rows")
        if (users is None) != (terms.rows_per_user is None):
            raise InvalidInput(
                "only one of users and rows per user is given: give both --user-column (users=) and "
                "--rows-per-user (rows_per_user=), or neither"
            )
        hashed = [repr(rows.shape).encode(), np.ascontiguousarray(rows, "<f8").tobytes()]
        hashed += [] if users is None else [np.ascontiguousarray(users, "<i8").tobytes()]
        return cls(
            int(largest),
            usual_delta(n_rows) if terms.delta == "auto" else float(terms.delta),
            domain,
            read,
            scale_of(terms.scale, selection.numbers, selection.recorded()),
            n_rows,
            len(rows),
            selection,
            hashlib.sha256(b"".join(hashed)).hexdigest(),
            _outside(domain, rows),
            fewest,
            _without_unknown(domain, rows),
            users,
            terms.rows_per_user,
            terms.zoom,
            terms.trust,
            None if terms.start is None else terms.start.centers,
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the features."""
        return self.selection.features

    def clipped(self, rows: Floats) -> Floats:
        """Return rows (n, d) clipped to the bounds, as runs clip them."""
        return self.domain.truncate(rows) if self.outside else rows

    @property
    def units(self) -> Floats:
        """Units (d,) of distance for the costs of all contenders."""
        d, encoded = self.domain.dimension, any(kinds(self.selection))
        scale = self.scale or ("bounds" if encoded or apart(self.domain) else "none")
        if isinstance(self.widths, Ball) or (scale == "none" and not encoded):
            return np.ones(d)
        if scale == "bounds":
            return Preprocessing("auto", scale, self.selection.one_hot).units(self.widths, self.k, Kit(registry()))
        weights = iter([1.0] * d if scale == "none" else [float(weight) for weight in scale.split(",")])
        return np.array([math.sqrt(2) if values else 1 / next(weights) for values in kinds(self.selection)])

    @property
    def middle(self) -> Floats:
        """Midpoint (1, d) of the bounds, the single centre of no data."""
        return np.asarray(self.widths.middle, np.float64)[None, :]

    @property
    def centers(self) -> str:
        """Number or range of centres, as text."""
        return str(self.k) if self.fewest is None else f"{self.fewest}..{self.k}"

    @property
    def read_off(self) -> bool:
        """Whether any bounds were read off the rows, so that their midpoint is not public."""
        return self.read or bool(unknown_columns(self.domain))

    def request(self, contender: Contender, epsilon: float, columns: Sequence[str] | None = None) -> Request:
        """Return the request of a contender's run. Args: columns (other names of the features, or None)."""
        delta, bounds = self.delta if contender.delta is None else contender.delta, cast(Any, self.domain)
        if self.selection.categories:  # bounds of one-hot columns are not stated
            pairs = zip(self.domain.lower, self.domain.upper, kinds(self.selection), strict=True)  # type: ignore[union-attr]
            bounds = [(low, high) for low, high, values in pairs if not values] or None
        names = dict(zip(self.columns, columns or self.columns, strict=True))
        start = None if self.start is None else {names.get(name, name): at for name, at in self.start.items()}
        return Request(
            k=self.k if self.fewest is None else (self.fewest, self.k),
            method=contender.draft,
            epsilon=epsilon,
            delta=delta,
            bounds=bounds,
            rows=self.rows,
            scale=self.scale,
            trust=contender.trust or self.trust,
            not_private=True,
            rows_per_user=self.rows_per_user,
            zoom=self.zoom,
            start=start,
        )

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, which identify the study when it is continued."""
        box = isinstance(self.domain, Box)
        optional_facts = {
            "fewest": self.fewest,
            "rows per user": self.rows_per_user,
            "zoom": None if self.zoom == "auto" else self.zoom,
            "trust": self.trust,
            "start": None if self.start is None else digest(sorted(self.start.items())),
        }
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
            **{name: value for name, value in optional_facts.items() if value is not None},
        }

    def text(self) -> str:
        """Describe the conditions in a line."""
        of = "read off these rows (a private run never does this)" if self.read else "as given"
        out = f", with {self.outside:,} rows outside: costs are of clipped rows" if self.outside else ""
        if unknown := unknown_columns(self.domain):
            of += f" ({len(unknown)} unknown, found by the runs; units and midpoint are read off these rows)"
        units = "each column's own" if np.ptp(self.units) > 0 else "the same in all columns"
        named = ", ".join(self.columns[:SHOWN]) + (", ..." if len(self.columns) > SHOWN else "")
        return (
            f"{self.count:,} rows of {len(self.columns)} columns ({named}), k = {self.centers}, delta = "
            f"{self.delta:.3g}, public number of rows {self.rows:,}; bounds {of}{out}; unit of distance {units}."
        )


def kinds(selection: Selection) -> tuple[int, ...]:
    """Return for each feature the number of values of its category, 0 for a number."""
    return selection.one_hot or (0,) * len(selection.features)


def population_of(rows: Floats, selection: Selection, users: Ids | None = None) -> Any:
    """Return features (n, d), of users (n,), as a population; one-hot columns become categories again."""
    columns, categories, at = list[Floats](), dict[str, list[int]](), 0
    for name in selection.used:
        category = selection.category(name)
        values = 0 if category is None else len(category.values)
        cells, at = rows[:, at : at + max(values, 1)], at + max(values, 1)
        if values:
            categories[str(len(columns))] = list(range(values))
        columns.append(np.where(cells.any(axis=1), cells.argmax(axis=1), values) if values else cells[:, 0])
    return source(np.column_stack(columns), threads=1, users=users, categories=categories or None)


def _without_unknown(domain: Box | Ball, rows: Floats) -> Box | Ball:
    """Return the bounds, with unknown ones read off the rows. NOT private."""
    unknown = unknown_columns(domain)
    if not unknown or isinstance(domain, Ball):
        return domain
    lower, upper, read = list(domain.lower), list(domain.upper), ranges(rows)
    for j in unknown:
        lower[j], upper[j] = read[j]
    return Box(tuple(lower), tuple(upper))


def _outside(domain: Box | Ball, rows: Floats) -> int:
    """Return the number of rows outside the bounds. NOT private."""
    if isinstance(domain, Box):
        return int((domain.truncate(rows) != rows).any(axis=1).sum())
    return int((np.linalg.norm(rows - domain.middle, axis=1) > domain.radius).sum())


def usual_delta(rows: int) -> float:
    """Return the usual delta of papers for n rows, 1 / (n ln n). Raises: InvalidInput: fewer than 2 rows."""
    if rows < 2:
        raise InvalidInput(f"delta = 1 / (n ln n) needs at least 2 rows, not {rows}: give delta")
    return 1 / (rows * math.log(rows))


def ranges(rows: Floats) -> list[tuple[float, float]]:
    """Return each column's minimum and maximum, widened by 1 if they are equal. NOT private."""
    ends = zip(rows.min(axis=0).tolist(), rows.max(axis=0).tolist(), strict=True)
    return [(low, high) if low < high else (low - 1, high + 1) for low, high in ends]
