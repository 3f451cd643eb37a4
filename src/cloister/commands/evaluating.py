"""How well released centres fit rows that are read a chunk at a time: memory does not grow with them. **NOT private.**

Two passes: the first adds up costs, finds each cluster's mean and draws samples; the second adds up what needs those
means, and the cost of the reference. Rows are clipped to the run's bounds, as the run clipped them. What is made of a
chunk is a pure function of it, so that threads and workers can have some each.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Self, final

import attrs
import numpy as np

from cloister import metrics
from cloister.core.encoding import finite
from cloister.core.types import Floats, Ids, Ints
from cloister.rows.options import Missing
from cloister.rows.reading import Chunk, DrawnRows, TableRows, refuse_missing, refuse_none, user_numbers
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
class EvaluationReport:
    """Findings of a result's centres. NOT private.

    Args: rows (that were used), left_out (with a missing or infinite cell), clipped (used rows outside the bounds),
    sampled (rows that the reference was found from), sizes (rows nearest to each centre, in the run's units), raw,
    scaled (in the run's units; None where those are the caller's).
    """

    rows: int
    left_out: int
    clipped: int
    sampled: int
    sizes: tuple[int, ...]
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
@attrs.frozen(eq=False)
class Clipped:
    """Rows of a chunk that can be used. Args: left_out (how many cannot), numbers (m,) of those in their part, rows
    (m, d), moved (the same, clipped to the run's bounds), outside (m,) which of them are others then."""

    left_out: int
    numbers: Ids
    rows: Floats
    moved: Floats
    outside: Any

    @classmethod
    def of(cls, chunk: Chunk, result: Result, missing: Missing) -> Self:
        """Raises: InvalidInput: some row cannot be used, and that was not allowed."""
        whole = finite(chunk.rows)
        left_out = len(whole) - int(whole.sum())
        if left_out and missing == "refuse":
            refuse_missing()
        rows = chunk.rows[whole] if left_out else chunk.rows
        return cls(left_out, user_numbers(chunk.start, len(whole))[whole], rows, *result.clipped(rows))


@final
@attrs.frozen(eq=False)
class CentersInUnits:
    """Centres in one unit of distance. Args: centers (k, d) in the caller's units, units (d,)."""

    centers: Floats
    units: Floats

    def labels(self, rows: Floats) -> Ints:
        """The nearest centre of each row (m,), which may be none."""
        return metrics.labels(rows, self.centers, 1, self.units) if len(rows) else np.empty(0, np.int64)

    def nearest(self, rows: Floats) -> tuple[Ints, Floats]:
        """Labels (m,), and squared distances (m,) in this unit."""
        label = self.labels(rows)
        with np.errstate(over="ignore"):
            return label, np.square((rows - self.centers[label]) / self.units).sum(axis=1)


def _added(one: Any, other: Any) -> Any:
    """The sums of two objects' numbers, field by field."""
    names = [field.name for field in attrs.fields(type(one))]
    added = {name: getattr(one, name) + getattr(other, name) for name in names}
    return attrs.evolve(one, **added)


def _costs(squares: Floats) -> Floats:
    """Sums of squared distances, and of distances."""
    return np.array([squares.sum(), np.sqrt(squares).sum()])


@final
@attrs.frozen(eq=False)
class Tally:
    """Totals of some rows in one unit of distance. Args: costs and others (2,) of the clipped rows and of those as they
    are, sums (k, d) of clipped rows' offsets from their centres, and sizes (k,) of their clusters."""

    costs: Floats
    others: Floats
    sums: Floats
    sizes: Floats

    @classmethod
    def of(cls, scale: CentersInUnits, some: Clipped) -> Self:
        label, squares = scale.nearest(some.moved)
        own = squares.copy()
        if some.outside.any():
            own[some.outside] = scale.nearest(some.rows[some.outside])[1]
        sums, sizes = np.zeros_like(scale.centers), np.zeros(len(scale.centers))
        for k, members in _by_label(label):
            sums[k], sizes[k] = (some.moved[members] - scale.centers[k]).sum(axis=0), len(members)
        return cls(_costs(squares), _costs(own), sums, sizes)

    def merge(self, other: Self) -> Self:
        added: Self = _added(self, other)
        return added

    def means(self, centers: Floats) -> Floats:
        """Means of the clusters around these centres, in the caller's units; of an empty one its centre."""
        found: Floats = centers + self.sums / np.maximum(self.sizes, 1)[:, None]
        return found


@final
@attrs.frozen(eq=False)
class FirstPass:
    """Findings of the first pass over some rows. Args: rows, left_out, clipped (how many), tallies (one per unit), few
    (for silhouettes), many (for the reference; None: there is none)."""

    rows: int
    left_out: int
    clipped: int
    tallies: tuple[Tally, ...]
    few: DrawnRows
    many: DrawnRows | None

    def merge(self, other: Self) -> Self:
        many = self.many
        return type(self)(
            self.rows + other.rows,
            self.left_out + other.left_out,
            self.clipped + other.clipped,
            tuple(one.merge(two) for one, two in zip(self.tallies, other.tallies, strict=True)),
            self.few.merge(other.few),
            many if many is None or other.many is None else many.merge(other.many),
        )


def _first(chunk: Chunk, result: Result, missing: Missing, scales: Sequence[CentersInUnits], most: int) -> FirstPass:
    """Args: most (rows for the reference; 0: there is none)."""
    some = Clipped.of(chunk, result, missing)
    drawn = partial(DrawnRows.of, chunk=chunk, numbers=some.numbers, rows=some.moved)
    return FirstPass(
        len(some.rows),
        some.left_out,
        int(some.outside.sum()),
        tuple(Tally.of(scale, some) for scale in scales),
        drawn(SILHOUETTE),
        drawn(most) if most else None,
    )


Spread = tuple[Floats, float]
"""Distances (k,) of clusters' rows from their means, added up; and the cost of the reference."""


def _second(
    chunk: Chunk,
    result: Result,
    scales: Sequence[CentersInUnits],
    means: Sequence[Floats],
    others: Sequence[Floats | None],
) -> tuple[Spread, ...]:
    """Args: means (k, d) of the clusters and others (k, d), the reference's centres, for each scale."""
    moved = Clipped.of(chunk, result, "drop").moved
    return tuple(_spread(moved, *each) for each in zip(scales, means, others, strict=True))


def _spread(moved: Floats, scale: CentersInUnits, means: Floats, reference: Floats | None) -> Spread:
    away = np.zeros(len(means))
    for k, members in _by_label(scale.nearest(moved)[0]):
        away[k] = np.linalg.norm((moved[members] - means[k]) / scale.units, axis=1).sum()
    cost = 0.0
    if reference is not None and len(moved):
        cost = metrics.cost(moved / scale.units, reference / scale.units, threads=1)
    return away, cost


def _both(one: tuple[Spread, ...], other: tuple[Spread, ...]) -> tuple[Spread, ...]:
    return tuple((a + b, c + d) for (a, c), (b, d) in zip(one, other, strict=True))


def _measured(
    scale: CentersInUnits, tally: Tally, spread: Spread, sample: Floats, reference: Floats | None
) -> Measured:
    """The figures in one unit. Args: sample (of the clipped rows, for the silhouette)."""
    n, centers = int(tally.sizes.sum()), scale.centers / scale.units
    figures = metrics.Evaluation(
        float(tally.costs[0]) / n,
        float(tally.costs[1]),
        metrics.silhouette(sample / scale.units, centers),
        _davies_bouldin(scale, tally, spread[0]),
        None if reference is None else metrics.center_mse(centers, reference / scale.units),
    )
    cost = None if reference is None else spread[1] / n
    unclipped = {"nicv": float(tally.others[0]) / n, "k_median": float(tally.others[1])}
    return Measured(figures, unclipped, cost, figures.nicv / cost if cost else None)


def _davies_bouldin(scale: CentersInUnits, tally: Tally, away: Floats) -> float:
    """Index of the clusters about their own means, as ``metrics.davies_bouldin`` says. Source: Davies and Bouldin
    1979."""
    used = tally.sizes > 0
    if used.sum() == 1:
        return math.inf
    if used.sum() == tally.sizes.sum():
        return 0.0
    means = tally.means(scale.centers)[used] / scale.units
    return metrics.davies_bouldin_of(means, away[used] / tally.sizes[used])


def _by_label(label: Any) -> Iterator[tuple[int, Any]]:
    """The rows of each cluster that has some, by their places."""
    order = np.argsort(label, kind="stable")
    found, starts = np.unique(label[order], return_index=True)
    yield from zip(found.tolist(), np.split(order, starts[1:])[: len(found)], strict=True)  # no rows: one empty piece


def judged(result: Result, population: TableRows, missing: Missing, reference: bool = True) -> EvaluationReport:
    """Measure a result's centres on rows.

    Args: population (from ``predicting.rows_of``; it is read twice), missing ('refuse' or 'drop'), reference (whether
    to find scikit-learn's centres too).

    Raises: InvalidInput: rows cannot be read or used. MissingExtra.
    """
    dimension, k = len(result.columns), len(result.centers)
    scales = [CentersInUnits(result.centers, np.ones(dimension))]
    scales += [] if result.units is None else [CentersInUnits(result.centers, result.units)]
    most = max(1, min(REFERENCE, CELLS // dimension)) if reference else 0
    begun = partial(_first, result=result, missing=missing, scales=scales, most=most)
    seen = population.aggregate(begun, FirstPass.merge)
    if not seen.rows:
        refuse_none()
    drawn = np.empty((0, dimension)) if seen.many is None else seen.many.rows
    others = [_reference(drawn, scale, k) for scale in scales]
    means = [tally.means(scale.centers) for scale, tally in zip(scales, seen.tallies, strict=True)]
    ended = partial(_second, result=result, scales=scales, means=means, others=others)
    spreads = population.aggregate(ended, _both)
    found = [
        _measured(scale, tally, spread, seen.few.rows, other)
        for scale, tally, spread, other in zip(scales, seen.tallies, spreads, others, strict=True)
    ]
    sizes = tuple(map(int, seen.tallies[-1].sizes.tolist()))
    scaled = found[1] if len(found) > 1 else None
    return EvaluationReport(seen.rows, seen.left_out, seen.clipped, len(drawn), sizes, found[0], scaled)


def _reference(drawn: Floats, scale: CentersInUnits, k: int) -> Floats | None:
    """Centres (k, d) of scikit-learn's k-means; None: fewer rows than centres."""
    return metrics.reference_centers(drawn / scale.units, k, seed=0) * scale.units if len(drawn) >= k else None


@final
@attrs.frozen(eq=False)
class SpreadSums:
    """Sums over some rows of their offsets from the nearest of k centres. Args: left_out, clipped (how many), sizes
    (k,), away, squares and own (k, d): of clipped rows, of their squares, and of rows as they are."""

    left_out: int
    clipped: int
    sizes: Ints
    away: Floats
    squares: Floats
    own: Floats

    def merge(self, other: Self) -> Self:
        added: Self = _added(self, other)
        return added


def _sums(chunk: Chunk, result: Result, missing: Missing, scale: CentersInUnits) -> SpreadSums:
    some, centers = Clipped.of(chunk, result, missing), scale.centers
    sizes = np.zeros(len(centers), np.int64)
    away, squares, own = (np.zeros_like(centers) for _ in range(3))
    for k, members in _by_label(scale.labels(some.moved)):
        offsets = some.moved[members] - centers[k]  # sums about the centres lose no digits
        sizes[k] = len(members)
        away[k], squares[k] = offsets.sum(axis=0), np.square(offsets).sum(axis=0)
        own[k] = (some.rows[members] - centers[k]).sum(axis=0)
    return SpreadSums(some.left_out, int(some.outside.sum()), sizes, away, squares, own)


def _about(centers: Floats, offsets: Floats) -> Floats:
    """Means from their offsets about centres. What rounding alone makes of a mean of 0 is 0."""
    means = centers + offsets
    return np.where(np.abs(means) <= 2.0**-40 * np.abs(centers), 0.0, means)


def grouped(result: Result, population: TableRows, missing: Missing) -> GroupsOfRows:
    """Put rows to their nearest centres, in the units that the run took distances in, and add them up in one pass.

    Args and Raises: as for ``judged``.
    """
    scale = CentersInUnits(result.centers, np.ones(len(result.columns)) if result.units is None else result.units)
    found = population.aggregate(partial(_sums, result=result, missing=missing, scale=scale), SpreadSums.merge)
    if not found.sizes.sum():
        refuse_none()
    with np.errstate(invalid="ignore", over="ignore"):
        many = np.where(found.sizes > 0, found.sizes, np.nan)[:, None]
        mean = found.away / many
        spreads = np.sqrt(np.maximum(found.squares / many - mean**2, 0.0))
        means, own = (_about(result.centers, offset) for offset in (mean, found.own / many))
    return GroupsOfRows(int(found.sizes.sum()), found.left_out, found.clipped, found.sizes, means, spreads, own)
