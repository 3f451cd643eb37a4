"""Standard errors that a method states of released sizes and centres, from released values alone.

A size is compared with the rows nearest to the released centre, and a centre with the mean of those rows. So an error
covers the noise, and what lies between a figure and what it stands for:

* Centres were moved after their rows were counted, by released steps. Of two groups of n and m rows whose centres are
  D apart, about sqrt(n m) / D rows lie in a layer of width 1 between them; where their border moves, by half the steps'
  lengths together, so many change sides. A group in which no rows were seen may have as many as noise hides, since a
  centre that jumps from an empty place meets some. Rows that change sides move the means of both groups
  (``border_shifts``). The next step of a centre would be shorter: a part ``UNFINISHED`` of this one, in the columns it
  went along and, as far as anyone knows, in all of them.
* Steps are shrunk, which trades noise for bias: what they are shorter than the mean that was measured, beyond its
  noise, is stated (``shortened``).
* A k-median's pulls are smoothed near their centre: ``SMOOTHED`` of that length, in any direction.
* Clipping takes off a mean what rows beyond the radius are farther out: at most the mean length cut off, where it was
  measured (``CUT``); else ``CLIPPED`` of the radius, in any direction.
* Of a group that noise may hide, no more is known than how far rows are from their centres (``spread``), or that its
  rows lie across the border to the next one.
* Where users are divided over questions, or answer for themselves, a group's own rows add to the error of its count
  (``own_row_errors``).
* Sizes that were moved to add up to the public number of rows are off by as much as they were moved.
* A centre without any released point is stated to have as many rows as noise hides in a point.
* A cell at the border of two groups is divided by volume, as if its rows fell on one side or the other by chance, half
  of them together (``BORDER``); all cells at once, as far as they are as wide as centres are apart.

The parts are calibrated on generated mixtures, s1 and house, and measured by ``benchmarks/honesty.py`` (page
explanation/errors.md). An error is too large rather than too small where centres still move far (``shrunk-lloyd``).
Nothing here is a bound: rows too few to show above the noise, or clipped to the bounds, are not covered.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cloister.plugin import Budget, Coreset, Domain, Errors, Floats, FrequencyOracle, Ints, Local, Problem, Space
from cloister.plugins.methods.post_processing import group_sizes, nearest

MOST = 32
"""Points in one box."""


def even_points(boxes: Floats, total: int) -> Floats:
    """Return points (n, m, d): n spread evenly over each box, about ``total`` in all, the same in every run.

    Args:
        boxes: (m, 2, d) lower and upper corners.
        total: number of points.

    Source: the additive recurrence R_d (Roberts 2018), with the root of x^(d+1) = x + 1 for the golden ratio.
    """
    n, d = int(np.clip(total // max(len(boxes), 1), 1, MOST)), boxes.shape[2]
    root = 2.0
    for _ in range(64):
        root = (1 + root) ** (1 / (d + 1))
    steps = np.arange(n)[:, None] - (n - 1) / 2
    places = (0.5 + steps * root ** -np.arange(1.0, d + 1)) % 1.0  # one point is the middle
    points: Floats = boxes[:, 0] + places[:, None] * (boxes[:, 1] - boxes[:, 0])
    return points


LEFT_OUT = 1.25
"""Factor of the error of a size, for rows that cross borders in ways that no formula here knows."""

OF_POINTS = 1.5
"""Factor of sizes that are sums over points, each of which stands for all rows around it."""

UNFINISHED = 0.5
"""Share of a centre's last step: standard error of what is still to go."""

CLIPPED = 0.02
"""Share of the radius: standard error of a coordinate, since rows beyond it were clipped, or left out, where nobody
measured how many there are."""

CUT, ALONG = 0.5, 0.75
"""Share of the mean length that clipping cut off, which is the most that it can have moved a mean by: standard error,
and how much of its square lies along the step."""

BORDERS, MOST_UNEQUAL = 1.0, 4.0
"""Density of rows at the border of two groups, over that of rows between them (``border_shifts``), and the largest
square root of a ratio of sizes that is believed."""

HIDDEN = 2.0
"""Standard errors that a size must have beyond its own one to be a group (``hidden_by_noise``)."""

SMOOTHED = 0.2
"""The same of a k-median's smoothing length."""

BORDER = 0.6
"""Error of a cell that two groups share, in binomial standard deviations of one row that weighs as much as the cell."""

BETWEEN = 2
"""Power of a point's distance to its centre over that to the next one, which is the part of its rows in doubt."""

POINTS = 2**15
"""About how many points stand for all cells, at most 32 for each."""


def step_errors(
    sizes: Floats,
    counted: Floats,
    count_errors: Floats | float,
    centers: Floats,
    steps: Floats,
    noise: Floats,
    radii: Floats | float,
    *,
    cut: Floats | float = 0.0,
    shortened: Floats | float = 0.0,
    spread: float = 0.0,
) -> dict[str, Any]:
    """Return the errors after a round of counts and of sums of offsets.

    Args:
        sizes: (k,) as they are released.
        counted: (k,) as they were counted.
        count_errors: (k,) standard errors of the counts.
        centers: (k, d) as they are released.
        steps: (k, d) that the centres went last.
        noise: (k,) standard errors of a coordinate of the steps.
        radii: (k,) that offsets were clipped to, where nobody measured what that cut off.
        cut: (k,) length that clipping cut off a row on average, as far as it is known.
        shortened: (k, d) by which steps are shorter than the means of the offsets, noise included.
        spread: distance that most rows have from their centre: as far may the mean of rows be that noise hides.
    """
    lengths = np.linalg.norm(steps, axis=1)
    moved = np.abs(sizes - np.maximum(counted, 0.0))
    along = np.hypot(
        UNFINISHED * np.sqrt((steps**2 + (lengths**2 / steps.shape[1])[:, None]) / 2),
        border_shifts(np.maximum(sizes, count_errors), centers, steps),
    )
    raw_lengths = np.linalg.norm(steps + shortened, axis=1)
    along_step = (ALONG * np.minimum(lengths / np.maximum(raw_lengths, 1e-300), 1.0))[:, None]
    directions = along_step * (steps / np.maximum(lengths, 1e-300)[:, None]) ** 2 + (1 - along_step) / steps.shape[1]
    fixed = np.hypot(np.hypot(noise, CLIPPED * radii)[:, None], CUT * np.reshape(cut, (-1, 1)) * np.sqrt(directions))
    sides = border_crossings(np.maximum(sizes, count_errors), centers, lengths)  # noise may hide as many rows
    bias = np.sqrt(np.maximum(shortened**2 - noise[:, None] ** 2, 0.0))
    hiding = hidden_by_noise(sizes, count_errors)
    nowhere = np.maximum(spread, to_next(centers) / 2) if len(centers) > 1 else spread
    unknown = (nowhere / math.sqrt(steps.shape[1]) * hiding)[:, None] if spread else 0.0
    return {
        "weights_error": LEFT_OUT * np.sqrt(count_errors**2 + moved**2 + sides**2),
        "centers_error": np.sqrt(along**2 + fixed**2 + bias**2 + unknown**2),
        "last_moves": lengths / to_next(centers),
    }


def count_error(oracle: FrequencyOracle[Any], buckets: int, budget: Budget, problem: Problem) -> float:
    """Return the standard error of a count, as its table states it.

    It needs no look at the table, so that runs of versions that did not look can be replayed.
    """
    variance = oracle.variance(Space((buckets,)), budget, problem.context(budget))
    return math.sqrt(variance) / budget.fraction


def own_row_errors(sizes: Floats, oracle: FrequencyOracle[Any], budget: Budget) -> Floats:
    """Return the standard errors (k,) that the rows of a bucket add to its own count.

       An oracle states the error of an empty bucket.
    Where a share f of the users is asked, n rows have a binomial spread, n (1 / f - 1). A report of a user supports her
       own bucket by chance alone: that of an oracle which tells it half of the time (optimised local hashing and unary
       encoding) adds n / f, others less.
    """
    part = budget.fraction
    return np.asarray(np.sqrt(np.maximum(sizes, 0.0) * (1 / part - 1 + (oracle.trust is Local) / part)), np.float64)


def hidden_by_noise(sizes: Floats, errors: Floats | float) -> Floats:
    """Return how far (k,) noise hides groups: 1 up to three standard errors, a sixteenth at four.

    The largest of many noisy counts, which a centre without rows moved towards, is often beyond two.
    """
    visible = sizes - HIDDEN * errors
    return np.asarray(np.minimum(errors / np.maximum(visible, np.maximum(errors, 1e-300)), 1.0) ** 4, np.float64)


def rows_beyond(sizes: Floats, rows: int, radius: float) -> Floats:
    """Return the rows (k,) of each group that may be too far from its centre to count."""
    return missing_rows(sizes, rows) if math.isfinite(radius) else np.zeros(len(sizes))


def missing_rows(sizes: Floats, rows: int) -> Floats:
    """Return the rows (k,) that each group lacks if there are as many as the public number."""
    shares = sizes / max(float(sizes.sum()), 1e-300) + 1 / len(sizes)
    return np.asarray(shares * max(0.0, rows - float(sizes.sum())), np.float64)


def clip_radii(radius: float, k: int) -> Floats:
    """Return the radii of ``step_errors`` if rows beyond this radius count nowhere (inf: all count)."""
    return np.full(k, radius if math.isfinite(radius) else 0.0)


def border_crossings(sizes: Floats, centers: Floats, lengths: Floats) -> Floats:
    """Return how many rows (k,) of each group changed sides when centres (k, d) moved so far."""
    about = centers - centers.mean(axis=0)
    norms = (about**2).sum(axis=1)
    squares = np.maximum(norms[:, None] + norms - 2 * about @ about.T, 0.0)
    shifts = (lengths[:, None] + lengths) / 2
    layers = shifts / np.maximum(np.sqrt(squares), np.maximum(shifts, 1e-300))
    np.fill_diagonal(layers, 0.0)
    return np.asarray(np.sqrt(sizes * (layers**2 @ sizes)), np.float64)


def to_next(centers: Floats) -> Floats:
    """Return the distance (k,) of each centre to the nearest other one; infinite for a single centre."""
    about = centers - centers.mean(axis=0)
    squares = (about**2).sum(axis=1)[:, None] + (about**2).sum(axis=1) - 2 * about @ about.T
    np.fill_diagonal(squares, math.inf)
    return np.asarray(np.sqrt(np.maximum(squares.min(axis=1), 1e-300)), np.float64)


def border_shifts(sizes: Floats, centers: Floats, steps: Floats) -> Floats:
    """Return how far the means (k, d) of groups move, since borders moved after rows were counted.

    The border of two groups of n and m rows at a distance D moves by half of both steps, along the line between their
    centres. About sqrt(n m) / D rows lie in a layer of width 1 there, D / 2 from either centre: they move the mean of
    the first group by ``BORDERS`` sqrt(m / n) / 2 of the border's way; of groups that are farther apart than the
    nearest one less, by the square of the distance.
    """
    about = centers - centers.mean(axis=0)
    squares = np.maximum((about**2).sum(axis=1)[:, None] + (about**2).sum(axis=1) - 2 * about @ about.T, 0.0)
    np.fill_diagonal(squares, math.inf)
    squares = np.maximum(squares, 1e-300)
    along = steps @ about.T - (steps * about).sum(axis=1)[:, None]  # of each step, towards each other centre, times D
    border = np.minimum(np.abs(along - along.T) / 2 / squares, 1.0)  # over D
    unequal = np.minimum(np.sqrt(sizes[None] / np.maximum(sizes[:, None], 1e-300)), MOST_UNEQUAL)
    nearness = np.minimum(squares.min(axis=1, keepdims=True) / squares, 1.0) if len(centers) > 1 else np.zeros((1, 1))
    weights = (BORDERS * unequal * nearness * border / 2) ** 2
    np.fill_diagonal(weights, 0.0)
    moved = weights @ about**2 - 2 * about * (weights @ about) + about**2 * weights.sum(axis=1, keepdims=True)
    return np.asarray(np.sqrt(np.maximum(moved, 0.0)), np.float64)


def cluster_errors(
    points: Coreset, clusters: Floats, centers: Floats, domain: Domain, missing: Floats | float = 0.0
) -> dict[str, Any]:
    """Return the errors of clusters of released points (``place_clusters``).

    A point stands for rows around it, as far as half way to the next point or as its own noise: as much of it as is
    nearly between two centres may be nearest to either.

    Args:
        points: (m, d) released points, with the noise of their counts and sums.
        clusters: (k, d) the points' clusters, relative to the domain's middle.
        centers: (k, d) as they are released.
        domain: of the rows.
        missing: (k,) rows that no point may stand for (``missing_rows``).
    """
    k, groups, weights = len(clusters), nearest(points.points, clusters), np.maximum(points.weights, 0.0)
    noise = Errors(*np.zeros((2, len(weights)))) if points.errors is None else points.errors
    (first, second), next_groups = _two_nearest(centers - domain.middle, points.points)
    reach = _two_nearest(points.points[weights > 0], points.points)[0][1] / 2
    reach = np.maximum(reach, math.sqrt(domain.dimension) * noise.sums / np.maximum(weights, 1.0))
    reach = np.minimum(reach, domain.diameter)
    between = (weights * np.minimum(1.0, (first + reach) / np.maximum(second, 1e-300)) ** BETWEEN) ** 2
    second = np.minimum(second, domain.diameter)
    doubt, far = np.bincount(groups, noise.weights**2 + between, minlength=k), between * second**2 / domain.dimension
    sizes = np.maximum(group_sizes(groups, weights, k), 1.0)
    sums = np.bincount(groups, noise.sums**2 + far, minlength=k)
    if k > 1:  # what one group may lose another may gain
        doubt, sums = (
            doubt + np.bincount(next_groups, between, minlength=k),
            sums + np.bincount(next_groups, far, minlength=k),
        )
    spread = np.minimum(np.sqrt(sums) / sizes, domain.diameter / 2)
    empty = np.bincount(groups, minlength=k) == 0
    doubt[empty], spread[empty] = (noise.weights**2).max(initial=0.0), domain.diameter / 2
    away = np.linalg.norm(centers - domain.middle - clusters, axis=1) / math.sqrt(domain.dimension)
    errors = np.hypot(spread, UNFINISHED * away)[:, None]
    return {
        "weights_error": OF_POINTS * np.sqrt(doubt + missing**2),
        "centers_error": np.broadcast_to(errors, centers.shape),
    }


def _two_nearest(places: Floats, points: Floats) -> tuple[tuple[Floats, Floats], Ints]:
    """Return the distances (m,) from points (m, d) to the two nearest of ``places`` (p, d), and the second's index.

    A distance is infinite where there is no such place.
    """
    from scipy.spatial import KDTree  # slow to import, and only a part of the methods need it

    if not len(places):
        return (np.full(len(points), math.inf), np.full(len(points), math.inf)), np.zeros(len(points), np.int64)
    distances, ids = KDTree(places).query(points, 2)
    first, second = np.asarray(distances, np.float64).T
    return (first, second), np.asarray(ids, np.int64)[:, 1]


def sizes_from_cells(
    cells: Coreset, centers: Floats, middles: Floats, counts: Floats, errors: Floats
) -> tuple[Floats, Floats]:
    """Return the rows (k,) nearest to each centre by released counts of cells, and their standard errors (k,).

    A cell that two groups share is divided by volume. Cells that seem to hold no rows count by their middles: those
    that were kept are the ones whose noise is positive, so that they alone would hold too many.

    Args: middles (p, d), counts (p,) and errors (p,) of the cells that seem to hold no rows.
    """
    assert cells.cells is not None  # boxes
    parts, k = volume_shares(cells.cells, centers), len(centers)
    noise = np.zeros(len(cells.weights)) if cells.errors is None else cells.errors.weights
    groups = nearest(middles, centers)
    sizes = cells.weights @ parts + np.bincount(groups, counts, minlength=k)
    border = BORDER * cells.weights[:, None] * np.sqrt(parts * (1 - parts))
    width = float(np.mean(cells.cells[:, 1] - cells.cells[:, 0]))
    together = np.minimum(width / to_next(centers), 1.0) ** 2  # a cell so wide holds all rows of a group at its border
    doubt = (1 - together) * (border**2).sum(axis=0) + together * border.sum(axis=0) ** 2
    variances = noise**2 @ parts**2 + np.bincount(groups, errors**2, minlength=k)
    min_variance = float(noise.min(initial=math.inf if len(noise) else 0.0)) ** 2  # of a group that no cell is in
    return np.maximum(sizes, 0.0), LEFT_OUT * np.sqrt(np.maximum(variances + doubt, min_variance))


def volume_shares(cells: Floats, centers: Floats) -> Floats:
    """Return the part (m, k) of each cell's volume, by its corners (m, 2, d), that is nearest to each centre."""
    points = even_points(cells, POINTS)
    n, m, d = points.shape
    groups = nearest(points.reshape(-1, d), centers).reshape(n, m)
    parts = np.zeros((m, len(centers)))
    for labels in groups:
        parts[np.arange(m), labels] += 1
    # exactly 1 where all are: sums of 1 / n may exceed it, and 1 minus them is then negative
    return np.asarray(parts / n, np.float64)
