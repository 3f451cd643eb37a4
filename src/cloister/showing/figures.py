"""Silhouette and cost of a result, estimated from what it released: no row is read.

Points are made that look as the released figures say the rows do, and measured as ``metrics`` measures rows:

* of a method that released boxes with noisy counts (``cells``): evenly spread in each box, as many as its count;
* of one that released how far rows are from their centres (``distances``): around each centre, as many as its size, at
  these distances in any direction.

The standard error is the spread of the same estimate over released figures with noise added once more, how far their
mean is from the estimate (what noise alone adds), and the model's own part, calibrated on generated mixtures, s1 and
house. Distances are those of the run: columns with units of their own are divided by them. Where boxes are so wide that
they say nothing of distances, or where neither was released, nothing is estimated.
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
"""Made for a silhouette, whose work grows with their square."""

AGAIN = 8
"""Times that noise is added once more."""

WIDE = 2.0
"""Largest variance of a box, over the cost: groups are then far smaller than boxes."""

LEAST = 0.15
"""Least share of the cost that middles of boxes would have that is left when the boxes' variance is taken off."""

CLEAR = 2.5
"""Standard errors above which boxes are filled with points."""

CELLS_ERROR, CELLS_COST = (0.025, 0.06), (0.08, 0.25)
"""Standard errors of a silhouette from boxes, and of a cost in parts of itself: alone, and times the boxes' variance
over the cost."""

SPHERES_ERROR, SPHERES_COST = 0.03, 0.05
"""The same of a silhouette from distances; of a cost, in parts of itself."""

SEEN = 3.0
"""Standard errors that the farthest rows must show by: noise in far bins would weigh most."""


class Model(Protocol):
    """Rows as released figures describe them. Args: centers (k, d)."""

    @property
    def centers(self) -> Floats: ...

    def again(self, g: np.random.Generator) -> Model:
        """The same with noise once more."""
        ...

    def points(self, m: int) -> Floats:
        """About m points (m, d), the same for equal figures."""
        ...

    def cost(self, power: float) -> float:
        """Mean of distance^power to the nearest centre."""
        ...

    def doubts(self, power: float) -> tuple[float, float]:
        """The model's own standard errors, of a silhouette and of a cost."""
        ...


@final
@attrs.frozen(eq=False)
class FilledBoxes:
    """Boxes (m, 2, d) with noisy rows (m,) of these standard errors (m,), and centres (k, d).

    Rows of a group that is wider than a box lie on average where box and group overlap: the squared distances of the
    boxes' middles are larger than those of the rows by a box's variance (Sheppard's correction). Negative counts are
    added up as they are: without them noise in far boxes would only add.
    """

    boxes: Floats
    weights: Floats
    errors: Floats
    centers: Floats

    def again(self, g: np.random.Generator) -> FilledBoxes:
        return attrs.evolve(self, weights=self.weights + self.errors * g.standard_normal(len(self.errors)))

    def points(self, m: int) -> Floats:
        """Spread evenly in boxes that clearly hold rows, then moved to their centres until they cost as much."""
        g = np.random.default_rng(0)
        seen = np.where(self.weights > CLEAR * self.errors, self.weights, 0.0)
        chosen = self.boxes[spread(seen, m)]
        places = chosen[:, 0] + g.random((m, chosen.shape[2])) * (chosen[:, 1] - chosen[:, 0])
        squares = squares_to(places, self.centers)
        own = self.centers[squares.argmin(axis=1)]
        shorter = np.sqrt(self.square / max(float(squares.min(axis=1).mean()), 1e-300))
        found: Floats = own + shorter * (places - own)
        return found

    @property
    def square(self) -> float:
        """Mean squared distance of the rows to their nearest centres."""
        squares = squares_to(self.boxes.mean(axis=1), self.centers).min(axis=1)
        raw = max(float(self.weights @ squares), 0.0) / max(float(self.weights.sum()), 1e-300)
        return max(raw - self.width, LEAST * raw)

    @property
    def width(self) -> float:
        """A box's mean variance, over all columns."""
        weights = np.maximum(self.weights, 0.0)
        return float(weights @ ((self.boxes[:, 1] - self.boxes[:, 0]) ** 2).sum(axis=1) / 12 / weights.sum())

    def cost(self, power: float) -> float:
        if power == 2:
            return self.square
        squares = squares_to(self.points(POINTS), self.centers).min(axis=1)
        return float((squares ** (power / 2)).mean())

    def doubts(self, power: float) -> tuple[float, float]:
        coarse = self.width / max(self.square, 1e-300)
        part, wide = CELLS_COST
        cost = self.cost(power) * float(np.hypot(part, wide * coarse))
        return float(np.hypot(CELLS_ERROR[0], CELLS_ERROR[1] * min(coarse, 1.5))), cost


@final
@attrs.frozen(eq=False)
class Spheres:
    """Noisy rows (k,) around centres (k, d), and noisy rows (b,) of bins of distances up to ``edges`` (b,)."""

    edges: Floats
    counts: Floats
    errors: Floats
    weights: Floats
    weights_error: Floats
    centers: Floats

    def again(self, g: np.random.Generator) -> Spheres:
        near = np.arange(len(self.counts)) <= self.last + 1
        return attrs.evolve(
            self,
            counts=np.where(near, self.counts + self.errors * g.standard_normal(len(self.errors)), 0.0),
            weights=self.weights + self.weights_error * g.standard_normal(len(self.weights)),
        )

    @property
    def last(self) -> int:
        """The farthest bin that clearly holds rows."""
        seen = np.flatnonzero(self.counts > SEEN * self.errors)
        return int(seen[-1]) if len(seen) else len(self.counts) - 1

    @property
    def shown(self) -> Floats:
        """Rows (b,) of the bins up to ``last``."""
        return np.where(np.arange(len(self.counts)) <= self.last, np.maximum(self.counts, 0.0), 0.0)

    def points(self, m: int) -> Floats:
        g = np.random.default_rng(0)
        own = spread(self.weights, m)
        lengths = g.permutation(self.edges[spread(self.shown, m)]) * 2 ** ((g.random(m) - 1) / 2)
        ways = g.standard_normal((m, self.centers.shape[1]))
        ways *= (lengths / np.maximum(np.linalg.norm(ways, axis=1), 1e-300))[:, None]
        found: Floats = self.centers[own] + ways
        return found

    def cost(self, power: float) -> float:
        shares = self.shown / max(float(self.shown.sum()), 1e-300)
        # rows of a bin, from edge / sqrt 2 to edge, are evenly spread over the logarithm
        mean = (1 - 2 ** (-power / 2)) / (power / 2 * np.log(2))
        return float(shares @ (self.edges**power * mean))

    def doubts(self, power: float) -> tuple[float, float]:
        return SPHERES_ERROR, SPHERES_COST * self.cost(power)


def spread(weights: Floats, m: int) -> Ints:
    """m indices, each as often as its weight asks for."""
    shares = np.maximum(weights, 0.0).cumsum()
    if shares[-1] <= 0:
        shares = np.arange(1.0, len(weights) + 1)
    found: Ints = np.minimum(np.searchsorted(shares, (np.arange(m) + 0.5) / m * shares[-1]), len(weights) - 1)
    return found


def squares_to(points: Floats, centers: Floats) -> Floats:
    """Squared distances (m, k)."""
    found = (points**2).sum(axis=1)[:, None] - 2 * points @ centers.T + (centers**2).sum(axis=1)
    return np.asarray(np.maximum(found, 0.0), np.float64)


def silhouette(points: Floats, centers: Floats) -> float:
    """Mean silhouette of points (m, d) by their nearest centre, as ``metrics.silhouette`` has it."""
    m, k = len(points), len(centers)
    labels = squares_to(points, centers).argmin(axis=1)
    member = np.zeros((m, k))
    member[np.arange(m), labels] = 1
    apart = np.sqrt(squares_to(points, points))
    np.fill_diagonal(apart, 0.0)
    sums, sizes = apart @ member, member.sum(axis=0)
    if (sizes > 0).sum() < 2:
        return -1.0
    own = sizes[labels]
    inside = sums[np.arange(m), labels] / np.maximum(own - 1, 1)
    others = np.where(sizes > 0, sums / np.maximum(sizes, 1), np.inf)
    others[np.arange(m), labels] = np.inf
    outside = others.min(axis=1)
    found = (outside - inside) / np.maximum(np.maximum(inside, outside), 1e-300)
    return float(np.where(own > 1, found, 0.0).mean())


def estimated(model: Model, figure: Callable[[Model], float], doubt: float) -> tuple[float, float]:
    """A figure of the model, and its standard error: of noise, of what noise adds, and of the model."""
    g, value = np.random.default_rng(1), figure(model)
    others = np.array([figure(model.again(g)) for _ in range(AGAIN)])
    return value, float(np.sqrt(others.var(ddof=1) + (others.mean() - value) ** 2 + doubt**2))


def model_of(result: Result) -> Model | None:
    """Rows as a result describes them, in the units that it took distances in; None if it says too little."""
    details, (k, d) = result.details, result.centers.shape
    units = np.broadcast_to(np.asarray(details.get("units", 1.0), np.float64), d)
    middle = result.centers.mean(axis=0)
    centers, boxes = (result.centers - middle) / units, numbers(details.get("cells"))
    if boxes.ndim == 3 and boxes.shape[1:] == (2, d) and "projection" not in details:
        weights, errors = numbers(details.get("cell_weights")), numbers(details.get("cell_errors"))
        if len(boxes) == len(weights) == len(errors) and (weights > 0).any():
            cells = FilledBoxes((boxes - middle) / units, weights, errors, centers)
            return cells if cells.width <= WIDE * cells.square else None
        return None
    found, weights_error = details.get("distances"), numbers(details.get("weights_error"))
    if not isinstance(found, Mapping) or result.weights is None or len(weights_error) != k:
        return None
    edges, counts, errors = (numbers(found.get(name)) for name in ("edges", "counts", "errors"))
    if not len(edges) == len(counts) == len(errors) > 0:
        return None
    return Spheres(edges, counts, errors, result.weights, weights_error, centers)
