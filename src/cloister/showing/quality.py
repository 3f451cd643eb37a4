"""Silhouette and cost of a result, estimated from released values alone.

Points are drawn from a model of the rows, and measured as ``metrics`` measures rows:

* from boxes with noisy counts (``cells``): uniform in each box, in proportion to its count;
* from a histogram of the distances to the nearest centre (``distances``): around each centre, in proportion to its
  size, at these distances in random directions.

The standard error combines the standard deviation over parametric bootstrap replicates (released figures with noise
added once more), their bias, and the model's own error, calibrated on generated mixtures, s1 and house. Distances are
those of the run: columns with units of their own are divided by them. Nothing is estimated if boxes are too wide to
tell distances, or if neither was released.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, final

import attrs
import numpy as np

from cloister.core.types import Floats, Ints
from cloister.run.estimates import numbers
from cloister.run.result import Result

POINTS = 1500
"""Number of points in a silhouette, whose cost grows with its square."""

REPLICATES = 8
"""Number of bootstrap replicates."""

MAX_BOX_VARIANCE = 2.0
"""Largest variance of a box, as a multiple of the cost: above it, clusters are far smaller than boxes."""

MIN_REMAINDER = 0.15
"""Smallest share of the boxes' raw cost that Sheppard's correction may leave."""

CLEAR_BOX = 2.5
"""Boxes with a count of more standard errors than this receive points."""

CELLS_ERROR, CELLS_COST = (0.025, 0.06), (0.08, 0.25)
"""Model error of a silhouette from boxes, and relative model error of a cost.

Each pair holds the constant part, and the factor of the boxes' variance over the cost.
"""

SPHERES_ERROR, SPHERES_COST = 0.03, 0.05
"""Model error of a silhouette from distances, and relative model error of a cost."""

CLEAR_BIN = 3.0
"""Bins beyond the last one with a count of this many standard errors are dropped: noise in far bins weighs most."""


class Model(Protocol):
    """Model of the rows, from released figures, around centres (k, d)."""

    @property
    def centers(self) -> Floats: ...

    def resampled(self, g: np.random.Generator) -> Model:
        """Return a bootstrap replicate: the model with noise added once more."""
        ...

    def points(self, m: int) -> Floats:
        """Return m points (m, d), the same ones for equal figures."""
        ...

    def cost(self, power: float) -> float:
        """Return the mean of distance^power to the nearest centre."""
        ...

    def model_errors(self, power: float) -> tuple[float, float]:
        """Return the model errors of a silhouette and of a cost."""
        ...


@final
@attrs.frozen(eq=False)
class FilledBoxes:
    """Boxes (m, 2, d) with noisy counts (m,), their standard errors (m,), and centres (k, d).

    Rows of a cluster that is wider than a box lie on average where box and cluster overlap: the squared distances of
    the boxes' middles exceed those of the rows by a box's variance (Sheppard's correction).
    """

    boxes: Floats
    weights: Floats
    errors: Floats
    centers: Floats

    def resampled(self, g: np.random.Generator) -> FilledBoxes:
        return attrs.evolve(self, weights=self.weights + self.errors * g.standard_normal(len(self.errors)))

    def points(self, m: int) -> Floats:
        """Draw uniformly in boxes with clear counts, then shrink towards the centres until the cost is ``square``."""
        g = np.random.default_rng(0)
        clear_weights = np.where(self.weights > CLEAR_BOX * self.errors, self.weights, 0.0)
        chosen = self.boxes[apportion(clear_weights, m)]
        places = chosen[:, 0] + g.random((m, chosen.shape[2])) * (chosen[:, 1] - chosen[:, 0])
        squares = squares_to(places, self.centers)
        nearest = self.centers[squares.argmin(axis=1)]
        shorter = np.sqrt(self.square / max(float(squares.min(axis=1).mean()), 1e-300))
        return np.asarray(nearest + shorter * (places - nearest), np.float64)

    @property
    def square(self) -> float:
        """Mean squared distance of the rows to their nearest centres."""
        squares = squares_to(self.boxes.mean(axis=1), self.centers).min(axis=1)
        # negative counts are kept: without them the noise in far boxes would only add
        raw = max(float(self.weights @ squares), 0.0) / max(float(self.weights.sum()), 1e-300)
        return max(raw - self.width, MIN_REMAINDER * raw)

    @property
    def width(self) -> float:
        """Mean variance of a box, summed over the columns."""
        weights = np.maximum(self.weights, 0.0)
        return float(weights @ ((self.boxes[:, 1] - self.boxes[:, 0]) ** 2).sum(axis=1) / 12 / weights.sum())

    def cost(self, power: float) -> float:
        if power == 2:
            return self.square
        squares = squares_to(self.points(POINTS), self.centers).min(axis=1)
        return float((squares ** (power / 2)).mean())

    def model_errors(self, power: float) -> tuple[float, float]:
        coarse = self.width / max(self.square, 1e-300)
        part, wide = CELLS_COST
        cost = self.cost(power) * float(np.hypot(part, wide * coarse))
        return float(np.hypot(CELLS_ERROR[0], CELLS_ERROR[1] * min(coarse, 1.5))), cost


@final
@attrs.frozen(eq=False)
class Spheres:
    """Noisy sizes (k,) of centres (k, d), and noisy counts (b,) of distances in bins that end at ``edges`` (b,)."""

    edges: Floats
    counts: Floats
    errors: Floats
    weights: Floats
    weights_error: Floats
    centers: Floats

    def resampled(self, g: np.random.Generator) -> Spheres:
        noised_bins = np.arange(len(self.counts)) <= self.last + 1
        return attrs.evolve(
            self,
            counts=np.where(noised_bins, self.counts + self.errors * g.standard_normal(len(self.errors)), 0.0),
            weights=self.weights + self.weights_error * g.standard_normal(len(self.weights)),
        )

    @property
    def last(self) -> int:
        """Index of the farthest bin with a clear count."""
        clear_bins = np.flatnonzero(self.counts > CLEAR_BIN * self.errors)
        return int(clear_bins[-1]) if len(clear_bins) else len(self.counts) - 1

    @property
    def shown(self) -> Floats:
        """Counts (b,), 0 beyond ``last``."""
        return np.where(np.arange(len(self.counts)) <= self.last, np.maximum(self.counts, 0.0), 0.0)

    def points(self, m: int) -> Floats:
        g = np.random.default_rng(0)
        groups = apportion(self.weights, m)
        lengths = g.permutation(self.edges[apportion(self.shown, m)]) * 2 ** ((g.random(m) - 1) / 2)
        directions = g.standard_normal((m, self.centers.shape[1]))
        directions *= (lengths / np.maximum(np.linalg.norm(directions, axis=1), 1e-300))[:, None]
        return np.asarray(self.centers[groups] + directions, np.float64)

    def cost(self, power: float) -> float:
        shares = self.shown / max(float(self.shown.sum()), 1e-300)
        # rows of a bin, from edge / sqrt 2 to edge, are evenly spread over the logarithm
        mean = (1 - 2 ** (-power / 2)) / (power / 2 * np.log(2))
        return float(shares @ (self.edges**power * mean))

    def model_errors(self, power: float) -> tuple[float, float]:
        return SPHERES_ERROR, SPHERES_COST * self.cost(power)


def apportion(weights: Floats, m: int) -> Ints:
    """Return m indices, each in proportion to its weight."""
    shares = np.maximum(weights, 0.0).cumsum()
    if shares[-1] <= 0:
        shares = np.arange(1.0, len(weights) + 1)
    indices: Ints = np.minimum(np.searchsorted(shares, (np.arange(m) + 0.5) / m * shares[-1]), len(weights) - 1)
    return indices


def squares_to(points: Floats, centers: Floats) -> Floats:
    """Return the squared distances (m, k)."""
    squares = (points**2).sum(axis=1)[:, None] - 2 * points @ centers.T + (centers**2).sum(axis=1)
    return np.asarray(np.maximum(squares, 0.0), np.float64)


def silhouette(points: Floats, centers: Floats) -> float:
    """Return the mean silhouette of points (m, d) labelled by their nearest centre, as ``metrics.silhouette`` does."""
    m, k = len(points), len(centers)
    labels = squares_to(points, centers).argmin(axis=1)
    member = np.zeros((m, k))
    member[np.arange(m), labels] = 1
    apart = np.sqrt(squares_to(points, points))
    np.fill_diagonal(apart, 0.0)
    sums, sizes = apart @ member, member.sum(axis=0)
    if (sizes > 0).sum() < 2:
        return -1.0
    own_sizes = sizes[labels]
    inside = sums[np.arange(m), labels] / np.maximum(own_sizes - 1, 1)
    mean_distances = np.where(sizes > 0, sums / np.maximum(sizes, 1), np.inf)
    mean_distances[np.arange(m), labels] = np.inf
    outside = mean_distances.min(axis=1)
    scores = (outside - inside) / np.maximum(np.maximum(inside, outside), 1e-300)
    return float(np.where(own_sizes > 1, scores, 0.0).mean())


def estimate(model: Model, figure: Callable[[Model], float], doubt: float) -> tuple[float, float]:
    """Return a figure of the model and its standard error, from noise, bias and the model error ``doubt``."""
    g, value = np.random.default_rng(1), figure(model)
    replicates = np.array([figure(model.resampled(g)) for _ in range(REPLICATES)])
    return value, float(np.sqrt(replicates.var(ddof=1) + (replicates.mean() - value) ** 2 + doubt**2))


def model_of(result: Result) -> Model | None:
    """Return the model of a result's rows, in its units of distance; None if too little was released."""
    details, (k, d) = result.details, result.centers.shape
    units = np.broadcast_to(np.asarray(details.get("units", 1.0), np.float64), d)
    middle = result.centers.mean(axis=0)
    centers, boxes = (result.centers - middle) / units, numbers(details.get("cells"))
    if boxes.ndim == 3 and boxes.shape[1:] == (2, d) and "projection" not in details:
        weights, errors = numbers(details.get("cell_weights")), numbers(details.get("cell_errors"))
        if len(boxes) == len(weights) == len(errors) and (weights > 0).any():
            cells = FilledBoxes((boxes - middle) / units, weights, errors, centers)
            return cells if cells.width <= MAX_BOX_VARIANCE * cells.square else None
        return None
    distances, weights_error = details.get("distances"), numbers(details.get("weights_error"))
    if not isinstance(distances, Mapping) or result.weights is None or len(weights_error) != k:
        return None
    edges, counts, errors = (numbers(distances.get(name)) for name in ("edges", "counts", "errors"))
    if not len(edges) == len(counts) == len(errors) > 0:
        return None
    return Spheres(edges, counts, errors, result.weights, weights_error, centers)
