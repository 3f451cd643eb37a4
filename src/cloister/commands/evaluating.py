"""How well released centres fit rows that are read a piece at a time: memory does not grow with them. **NOT private.**

Two passes: the first adds up costs, finds each cluster's mean and draws samples; the second adds up what needs those
means, and the cost of the reference. Rows are clipped to the run's bounds, as the run clipped them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, final

import attrs
import numpy as np

from cloister import metrics
from cloister.core.errors import InvalidInput
from cloister.core.types import Floats, Ints
from cloister.rows.reading import refuse_missing
from cloister.run.result import Result

SILHOUETTE = 10_000
"""Most rows that a silhouette is of: the work grows with their square."""

REFERENCE, CELLS = 100_000, 2**24
"""Most rows, and most cells, that the reference's centres are found from; its cost is that of all rows."""


@final
@attrs.frozen
class Measured:
    """Figures of rows in one unit of distance. Computed from raw rows: NOT private.

    Args:
        figures: nicv and the others by name, of rows clipped to the bounds.
        unclipped: nicv and k_median of the rows as they are.
        reference: k-means cost over n of scikit-learn's centres, on the same clipped rows; None: fewer rows than
            centres.
        ratio: nicv over it; None where there is none, or it is 0.
    """

    figures: metrics.Evaluation
    unclipped: dict[str, float]
    reference: float | None
    ratio: float | None

    def as_dict(self, clipped: int) -> dict[str, Any]:
        """Plain data. Args: clipped (rows that lie outside the bounds: without any, both costs are one)."""
        beside = {f"unclipped_{name}": value if clipped else None for name, value in self.unclipped.items()}
        return {**self.figures.as_dict(), **beside, "reference_nicv": self.reference, "ratio": self.ratio}


@final
@attrs.frozen
class Judged:
    """Findings of a result's centres. NOT private.

    Args: rows (that were used), left_out (with a missing or infinite cell), clipped (used rows outside the bounds),
    sampled (rows that the reference was found from), raw, scaled (in the run's units; None where those are the
    caller's).
    """

    rows: int
    left_out: int
    clipped: int
    sampled: int
    raw: Measured
    scaled: Measured | None


@final
@attrs.frozen(eq=False)
class GroupsOfRows:
    """The rows that are nearest to each of k centres. NOT private.

    Args: rows (that were used), left_out (with a missing or infinite cell), clipped (used rows outside the bounds),
    sizes (k,), means and spreads (k, d) of the clipped rows in the caller's units (standard deviations; of an empty
    group nan), unclipped (k, d) means of the same rows as they are.
    """

    rows: int
    left_out: int
    clipped: int
    sizes: Ints
    means: Floats
    spreads: Floats
    unclipped: Floats

    def as_dict(self) -> dict[str, Any]:
        """Plain data. Means as they are stand beside the others only where some row was clipped."""
        tables = {"means": self.means, "spreads": self.spreads}
        tables |= {"unclipped_means": self.unclipped} if self.clipped else {}
        groups = [
            {"rows": int(n), **{name: row[i].tolist() if n else None for name, row in tables.items()}}
            for i, n in enumerate(self.sizes)
        ]
        counts = {"rows": self.rows, "left_out": self.left_out, "clipped": self.clipped}
        return {"private": False, **counts, "groups": groups}


@final
@attrs.define(eq=False)
class DrawnRows:
    """At most so many rows, drawn alike whatever pieces they come in: those with the least of numbers from a seed."""

    most: int
    dimension: int
    _g: np.random.Generator = attrs.field(factory=lambda: np.random.default_rng(0))
    _lots: Floats = attrs.field(factory=lambda: np.empty(0))
    _rows: Floats = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._rows = np.empty((0, self.dimension))

    def take(self, rows: Floats) -> None:
        """Let some more rows (m, d) take part."""
        lots = self._g.random(len(rows))
        near = np.flatnonzero(lots < self._lots.max()) if len(self._lots) == self.most else np.arange(len(rows))
        if not len(near):
            return
        lots, held = np.concatenate([self._lots, lots[near]]), np.concatenate([self._rows, rows[near]])
        if len(lots) > self.most:
            kept = np.sort(np.argpartition(lots, self.most - 1)[: self.most])
            lots, held = lots[kept], held[kept]
        self._lots, self._rows = lots, held

    @property
    def rows(self) -> Floats:
        """Those drawn (m, d), in the order in which they came."""
        return self._rows


@final
@attrs.define(eq=False)
class Tally:
    """Totals in one unit of distance. Args: centers (k, d) in the caller's units, units (d,), threads."""

    centers: Floats
    units: Floats
    threads: int | None = None
    _costs: dict[str, list[float]] = attrs.field(factory=lambda: {"nicv": [], "k_median": []})
    _others: dict[str, list[float]] = attrs.field(factory=lambda: {"nicv": [], "k_median": []})
    _sums: Floats = attrs.field(init=False)
    _sizes: Floats = attrs.field(init=False)
    _away: Floats = attrs.field(init=False)
    _reference: list[float] = attrs.field(factory=list)

    def __attrs_post_init__(self) -> None:
        k, d = self.centers.shape
        self._sums, self._sizes, self._away = np.zeros((k, d)), np.zeros(k), np.zeros(k)

    def first(self, rows: Floats, moved: Floats, outside: Any) -> None:
        """Add some rows (m, d). Args: moved (the same, clipped), outside (which of them are others then)."""
        label, squares = self._nearest(moved)
        for k, members in _by_label(label):
            self._sums[k] += moved[members].sum(axis=0)
            self._sizes[k] += len(members)
        own = squares.copy()
        own[outside] = self._nearest(rows[outside])[1] if outside.any() else own[outside]
        for costs, found in ((self._costs, squares), (self._others, own)):
            costs["nicv"].append(float(found.sum()))
            costs["k_median"].append(float(np.sqrt(found).sum()))

    def second(self, moved: Floats, reference: Floats | None) -> None:
        """Add some clipped rows (m, d) again. Args: reference (k, d), in the caller's units."""
        label, means = self._nearest(moved)[0], self._means
        for k, members in _by_label(label):
            self._away[k] += float(np.linalg.norm((moved[members] - means[k]) / self.units, axis=1).sum())
        if reference is not None:
            self._reference.append(metrics.cost(moved / self.units, reference / self.units, threads=self.threads))

    def found(self, n: int, sample: Floats, reference: Floats | None) -> Measured:
        """The figures of n rows. Args: sample (of the clipped ones, for the silhouette)."""
        costs = {name: math.fsum(parts) for name, parts in self._costs.items()}
        others = {name: math.fsum(parts) for name, parts in self._others.items()}
        centers = self.centers / self.units
        figures = metrics.Evaluation(
            costs["nicv"] / n,
            costs["k_median"],
            metrics.silhouette(sample / self.units, centers),
            self._davies_bouldin(n),
            None if reference is None else metrics.center_mse(centers, reference / self.units),
        )
        cost = None if reference is None else math.fsum(self._reference) / n
        ratio = figures.nicv / cost if cost else None
        return Measured(figures, {"nicv": others["nicv"] / n, "k_median": others["k_median"]}, cost, ratio)

    @property
    def _means(self) -> Floats:
        """Means of the clusters, in the caller's units; of an empty one 0."""
        found: Floats = self._sums / np.maximum(self._sizes, 1)[:, None]
        return found

    def _nearest(self, rows: Floats) -> tuple[Any, Floats]:
        """Labels (m,), and squared distances (m,) in the run's units."""
        label = metrics.labels(rows, self.centers, self.threads, self.units)
        with np.errstate(over="ignore"):
            return label, np.square((rows - self.centers[label]) / self.units).sum(axis=1)

    def _davies_bouldin(self, n: int) -> float:
        """Index of the clusters about their own means, as ``metrics.davies_bouldin`` says. Source: Davies and Bouldin
        1979."""
        used = self._sizes > 0
        if used.sum() == 1:
            return math.inf
        if used.sum() == n:
            return 0.0
        spread, means = self._away[used] / self._sizes[used], self._means[used] / self.units
        apart = np.linalg.norm(means[:, None] - means[None], axis=2)
        if np.allclose(spread, 0) or np.allclose(apart, 0):
            return 0.0
        apart[apart == 0] = np.inf
        return float(np.max((spread[:, None] + spread) / apart, axis=1).mean())


def _by_label(label: Any) -> Iterator[tuple[int, Any]]:
    """The rows of each cluster that has some, by their places."""
    order = np.argsort(label, kind="stable")
    found, starts = np.unique(label[order], return_index=True)
    yield from zip(found.tolist(), np.split(order, starts[1:]), strict=True)


def judged(
    result: Result,
    population: Any,
    missing: str,
    reference: bool = True,
    threads: int | None = None,
    advance: Callable[[int], None] = lambda n: None,
) -> Judged:
    """Measure a result's centres on rows.

    Args: population (from ``predicting.rows_of``; it is read twice), missing ('refuse' or 'drop'), reference (whether
    to find scikit-learn's centres too), advance (told the number of rows just read).

    Raises: InvalidInput: rows cannot be read or used. MissingExtra.
    """
    dimension = len(result.columns)
    scales = [Tally(result.centers, np.ones(dimension), threads)]
    scales += [] if result.units is None else [Tally(result.centers, result.units, threads)]
    few = DrawnRows(SILHOUETTE, dimension)
    many = DrawnRows(max(1, min(REFERENCE, CELLS // dimension)), dimension)
    n = clipped = left_out = 0
    for rows, unused in _usable(population, missing, advance):
        left_out += unused
        if not len(rows):
            continue
        moved, outside = result.clipped(rows)
        n, clipped = n + len(rows), clipped + int(outside.sum())
        few.take(moved)
        if reference:
            many.take(moved)
        for scale in scales:
            scale.first(rows, moved, outside)
    if not n:
        raise InvalidInput("there are no rows to use")
    k = len(result.centers)
    wanted = reference and len(many.rows) >= k
    found = [metrics.reference_centers(many.rows / s.units, k, seed=0) * s.units if wanted else None for s in scales]
    for rows, _ in _usable(population, missing, advance):
        if len(rows):
            moved, _ = result.clipped(rows)
            for scale, centers in zip(scales, found, strict=True):
                scale.second(moved, centers)
    measured = [scale.found(n, few.rows, centers) for scale, centers in zip(scales, found, strict=True)]
    return Judged(n, left_out, clipped, len(many.rows), measured[0], measured[1] if len(measured) > 1 else None)


def grouped(
    result: Result,
    population: Any,
    missing: str,
    threads: int | None = None,
    advance: Callable[[int], None] = lambda n: None,
) -> GroupsOfRows:
    """Put rows to their nearest centres, in the units that the run took distances in, and add them up in one pass.

    Args and Raises: as for ``judged``.
    """
    centers = result.centers
    sizes, left_out, clipped = np.zeros(len(centers), np.int64), 0, 0
    away, squares, own = (np.zeros_like(centers) for _ in range(3))
    for rows, unused in _usable(population, missing, advance):
        left_out += unused
        if not len(rows):
            continue
        moved, outside = result.clipped(rows)
        clipped += int(outside.sum())
        for k, members in _by_label(metrics.labels(moved, centers, threads, result.units)):
            offsets = moved[members] - centers[k]  # sums about the centres lose no digits
            sizes[k] += len(members)
            away[k] += offsets.sum(axis=0)
            squares[k] += np.square(offsets).sum(axis=0)
            own[k] += (rows[members] - centers[k]).sum(axis=0)
    if not sizes.sum():
        raise InvalidInput("there are no rows to use")
    with np.errstate(invalid="ignore", over="ignore"):
        many = np.where(sizes > 0, sizes, np.nan)[:, None]
        mean = away / many
        spreads = np.sqrt(np.maximum(squares / many - mean**2, 0.0))
        return GroupsOfRows(int(sizes.sum()), left_out, clipped, sizes, centers + mean, spreads, centers + own / many)


def _usable(population: Any, missing: str, advance: Callable[[int], None]) -> Iterator[tuple[Floats, int]]:
    """The rows that can be used, a piece at a time, and how many beside them cannot. Raises: InvalidInput."""
    for _, rows in population.chunks():
        whole = np.isfinite(rows).all(axis=1)
        unused = int((~whole).sum())
        if unused and missing == "refuse":
            refuse_missing()
        yield rows[whole] if unused else rows, unused
        advance(len(rows))
