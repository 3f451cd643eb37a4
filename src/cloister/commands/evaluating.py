"""Evaluation of released centres on rows that are read a chunk at a time, which is NOT private.

Two passes: the first adds up costs, finds each cluster's mean and draws samples; the second adds up what needs those
means, and the cost of the reference. Rows are clipped to the run's bounds, as the run clipped them. The sums of a chunk
are a pure function of it, so that threads and workers can share the chunks.
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
"""Maximum number of rows for a silhouette: the work grows with its square."""

REFERENCE, CELLS = 100_000, 2**24
"""Maximum numbers of rows and cells to find the reference's centres from; its cost is that of all rows."""


@final
@attrs.frozen
class Measured:
    """Figures of rows in one unit of distance. Computed from raw rows: NOT private.

    Args:
        figures: of the rows clipped to the bounds.
        unclipped: nicv and k_median of the rows as they are.
        reference: k-means cost over n of scikit-learn's centres, on the same clipped rows; None: fewer rows than
            centres.
        ratio: nicv over the reference; None if there is no reference, or it is 0.
    """

    figures: metrics.Evaluation
    unclipped: dict[str, float]
    reference: float | None
    ratio: float | None

    def as_dict(self, clipped: int) -> dict[str, Any]:
        """Return plain data. Args: clipped (number of rows outside the bounds: with none, both costs are equal)."""
        beside = {f"unclipped_{name}": value if clipped else None for name, value in self.unclipped.items()}
        return {**self.figures.as_dict(), **beside, "reference_nicv": self.reference, "ratio": self.ratio}


@final
@attrs.frozen
class EvaluationReport:
    """Evaluation of a result's centres. NOT private.

    Args:
        rows: number of rows used.
        left_out: number of rows with a missing or infinite cell.
        clipped: number of used rows outside the bounds.
        sampled: number of rows that the reference was found from.
        sizes: number of rows nearest to each centre, in the run's units.
        raw: figures in the caller's units.
        scaled: figures in the run's units; None if those are the caller's.
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
class Clipped:
    """Rows of a chunk that can be used.

    Args:
        left_out: number of rows that cannot.
        numbers: of the rows in their part, (m,).
        rows: the rows, (m, d).
        moved: the rows clipped to the run's bounds, (m, d).
        outside: True for rows that clipping changed, (m,).
    """

    left_out: int
    numbers: Ids
    rows: Floats
    moved: Floats
    outside: Any

    @classmethod
    def of(cls, chunk: Chunk, result: Result, missing: Missing) -> Self:
        """Clip the rows of a chunk. Raises: InvalidInput: a row cannot be used, and ``missing`` is not "drop"."""
        usable = finite(chunk.rows)
        left_out = len(usable) - int(usable.sum())
        if left_out and missing == "refuse":
            refuse_missing()
        rows = chunk.rows[usable] if left_out else chunk.rows
        return cls(left_out, user_numbers(chunk.start, len(usable))[usable], rows, *result.clipped(rows))


@final
@attrs.frozen(eq=False)
class CentersInUnits:
    """Centres in one unit of distance. Args: centers (in the caller's units, (k, d)), units ((d,))."""

    centers: Floats
    units: Floats

    def labels(self, rows: Floats) -> Ints:
        """Return the number of each row's nearest centre, (m,); m may be 0."""
        return metrics.labels(rows, self.centers, 1, self.units) if len(rows) else np.empty(0, np.int64)

    def nearest(self, rows: Floats) -> tuple[Ints, Floats]:
        """Return labels (m,), and squared distances (m,) in this unit."""
        label = self.labels(rows)
        with np.errstate(over="ignore"):
            return label, np.square((rows - self.centers[label]) / self.units).sum(axis=1)


def added_fields(one: Any, other: Any) -> Any:
    """Return the sums of two objects' numbers, field by field."""
    names = [field.name for field in attrs.fields(type(one))]
    added = {name: getattr(one, name) + getattr(other, name) for name in names}
    return attrs.evolve(one, **added)


def _costs(squares: Floats) -> Floats:
    """Return the sum of squared distances, and that of distances."""
    return np.array([squares.sum(), np.sqrt(squares).sum()])


@final
@attrs.frozen(eq=False)
class Tally:
    """Totals of some rows in one unit of distance.

    Args:
        costs: sums of squared distances and of distances of the clipped rows, (2,).
        unclipped: the same of the rows as they are, (2,).
        sums: of the clipped rows' offsets from their centres, (k, d).
        sizes: of the clusters, (k,).
    """

    costs: Floats
    unclipped: Floats
    sums: Floats
    sizes: Floats

    @classmethod
    def of(cls, scale: CentersInUnits, clipped: Clipped) -> Self:
        """Add up a chunk's rows."""
        label, squares = scale.nearest(clipped.moved)
        unclipped = squares.copy()
        if clipped.outside.any():
            unclipped[clipped.outside] = scale.nearest(clipped.rows[clipped.outside])[1]
        sums, sizes = np.zeros_like(scale.centers), np.zeros(len(scale.centers))
        for k, members in by_label(label):
            sums[k], sizes[k] = (clipped.moved[members] - scale.centers[k]).sum(axis=0), len(members)
        return cls(_costs(squares), _costs(unclipped), sums, sizes)

    def merge(self, other: Self) -> Self:
        """Return the totals of both."""
        added: Self = added_fields(self, other)
        return added

    def means(self, centers: Floats) -> Floats:
        """Return the clusters' means, (k, d) in the caller's units; for an empty one its centre."""
        means: Floats = centers + self.sums / np.maximum(self.sizes, 1)[:, None]
        return means


@final
@attrs.frozen(eq=False)
class FirstPass:
    """Findings of the first pass over some rows.

    Args:
        rows, left_out, clipped: numbers of rows.
        tallies: totals, one per unit of distance.
        sample: rows for silhouettes.
        reference_sample: rows to find the reference in; None: there is no reference.
    """

    rows: int
    left_out: int
    clipped: int
    tallies: tuple[Tally, ...]
    sample: DrawnRows
    reference_sample: DrawnRows | None

    def merge(self, other: Self) -> Self:
        """Return the findings on the rows of both."""
        reference_sample = self.reference_sample
        return type(self)(
            self.rows + other.rows,
            self.left_out + other.left_out,
            self.clipped + other.clipped,
            tuple(one.merge(two) for one, two in zip(self.tallies, other.tallies, strict=True)),
            self.sample.merge(other.sample),
            reference_sample
            if reference_sample is None or other.reference_sample is None
            else reference_sample.merge(other.reference_sample),
        )


def _first(
    chunk: Chunk, result: Result, missing: Missing, scales: Sequence[CentersInUnits], reference_rows: int
) -> FirstPass:
    """Make the first pass over a chunk. Args: reference_rows (number of rows for the reference; 0: there is none)."""
    clipped = Clipped.of(chunk, result, missing)
    drawn = partial(DrawnRows.of, chunk=chunk, numbers=clipped.numbers, rows=clipped.moved)
    return FirstPass(
        len(clipped.rows),
        clipped.left_out,
        int(clipped.outside.sum()),
        tuple(Tally.of(scale, clipped) for scale in scales),
        drawn(SILHOUETTE),
        drawn(reference_rows) if reference_rows else None,
    )


Spread = tuple[Floats, float]
"""Sums of the distances of clusters' rows from their means, (k,), and the cost of the reference."""


def _second(
    chunk: Chunk,
    result: Result,
    scales: Sequence[CentersInUnits],
    means: Sequence[Floats],
    references: Sequence[Floats | None],
) -> tuple[Spread, ...]:
    """Make the second pass over a chunk. Args: means, references (centres), each (k, d) for each scale."""
    moved = Clipped.of(chunk, result, "drop").moved
    return tuple(_spread(moved, *scaled) for scaled in zip(scales, means, references, strict=True))


def _spread(moved: Floats, scale: CentersInUnits, means: Floats, reference: Floats | None) -> Spread:
    away = np.zeros(len(means))
    for k, members in by_label(scale.nearest(moved)[0]):
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
    """Return the figures in one unit. Args: sample (of the clipped rows, for the silhouette)."""
    n, centers = int(tally.sizes.sum()), scale.centers / scale.units
    figures = metrics.Evaluation(
        float(tally.costs[0]) / n,
        float(tally.costs[1]),
        metrics.silhouette(sample / scale.units, centers),
        _davies_bouldin(scale, tally, spread[0]),
        None if reference is None else metrics.center_mse(centers, reference / scale.units),
    )
    cost = None if reference is None else spread[1] / n
    unclipped = {"nicv": float(tally.unclipped[0]) / n, "k_median": float(tally.unclipped[1])}
    return Measured(figures, unclipped, cost, figures.nicv / cost if cost else None)


def _davies_bouldin(scale: CentersInUnits, tally: Tally, away: Floats) -> float:
    """Return the index of the clusters around their own means, as in ``metrics.davies_bouldin``.

    Source: Davies and Bouldin 1979.
    """
    used = tally.sizes > 0
    if used.sum() == 1:
        return math.inf
    if used.sum() == tally.sizes.sum():
        return 0.0
    means = tally.means(scale.centers)[used] / scale.units
    return metrics.davies_bouldin_of(means, away[used] / tally.sizes[used])


def by_label(label: Any) -> Iterator[tuple[int, Any]]:
    """Yield the clusters that have rows, with the places of their rows."""
    order = np.argsort(label, kind="stable")
    clusters, starts = np.unique(label[order], return_index=True)
    yield from zip(
        clusters.tolist(), np.split(order, starts[1:])[: len(clusters)], strict=True
    )  # no rows: one empty piece


def evaluated(result: Result, population: TableRows, missing: Missing, reference: bool = True) -> EvaluationReport:
    """Evaluate a result's centres on rows, which are read twice.

    Args:
        result: the result.
        population: the rows, from ``predicting.rows_of``.
        missing: "refuse" or "drop".
        reference: also find scikit-learn's centres.

    Raises:
        InvalidInput: rows cannot be read or used.
        MissingExtra: scikit-learn is not installed.
    """
    dimension, k = len(result.columns), len(result.centers)
    scales = [CentersInUnits(result.centers, np.ones(dimension))]
    scales += [] if result.units is None else [CentersInUnits(result.centers, result.units)]
    reference_rows = max(1, min(REFERENCE, CELLS // dimension)) if reference else 0
    first = population.aggregate(
        partial(_first, result=result, missing=missing, scales=scales, reference_rows=reference_rows), FirstPass.merge
    )
    if not first.rows:
        refuse_none()
    drawn = np.empty((0, dimension)) if first.reference_sample is None else first.reference_sample.rows
    references = [_reference(drawn, scale, k) for scale in scales]
    means = [tally.means(scale.centers) for scale, tally in zip(scales, first.tallies, strict=True)]
    second = partial(_second, result=result, scales=scales, means=means, references=references)
    spreads = population.aggregate(second, _both)
    measured = [
        _measured(scale, tally, spread, first.sample.rows, centers)
        for scale, tally, spread, centers in zip(scales, first.tallies, spreads, references, strict=True)
    ]
    sizes = tuple(map(int, first.tallies[-1].sizes.tolist()))
    scaled = measured[1] if len(measured) > 1 else None
    return EvaluationReport(first.rows, first.left_out, first.clipped, len(drawn), sizes, measured[0], scaled)


def _reference(drawn: Floats, scale: CentersInUnits, k: int) -> Floats | None:
    """Return the centres (k, d) of scikit-learn's k-means; None if there are fewer rows than centres."""
    return metrics.reference_centers(drawn / scale.units, k, seed=0) * scale.units if len(drawn) >= k else None
