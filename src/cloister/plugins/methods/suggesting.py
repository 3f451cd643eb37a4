"""How many groups released points show: the curve of cost against k, and a suggested k.

One pass gives all solutions, from many centres down to few: the points themselves, or the solver's centres of them, are
merged two by two, those first whose union costs least (Ward), and settled by rounds of Lloyd. Below the number of
groups costs may be a fifth above the least ones, since what is merged stays together.

The suggested k has the largest mean silhouette of the rows, as far as points tell it. Points of weight w stand for w
rows around them, of mean squared distance s. Those are about a^2 = |x - c|^2 + s from the nearest centre c, b^2 = |x -
c'|^2 + s from the next one c', and

    silhouette = sum of w (1 - a / b) / sum of w.

Both squares are less the noise of the point's place, which is known. Without s, points that are few would each be a
group. A number of groups of which one has fewer rows than ``CLEAR``
standard errors of their count is not suggested: noise makes such groups. If that is so of all, the least k is.

Guarantee: post-processing of released points and of public standard errors.

What to expect at epsilon = 1, of generated mixtures of 2 to 30 normal groups in 2 to 10 columns
(``benchmarks/suggested.py``): with 500 rows per group and more, the number of groups in 77 of 78 runs where centres are
at least six standard deviations apart, and in 35 of 41 where they are at least four; with fewer rows in 8 of 11 at six.
Groups that overlap are taken for one, and noise above their size hides them. It says nothing of groups that are not
around centres.

Source: Rousseeuw 1987 (silhouettes; by centres: Hruschka, de Castro, Campello 2006); Ward 1963.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, final

import attrs
import numpy as np

from cloister.core.clustering import Coreset, Problem, Released
from cloister.core.randomness import PublicRng
from cloister.core.roles import NonPrivateSolver
from cloister.core.types import Floats, Ints
from cloister.plugins.methods.post_processing import filled, held, means, nearest

FEW: Final = 256
"""Up to so many points are merged themselves; of more, the solver's centres, ``START`` times as many as wanted."""

START: Final = 3

SWEEPS: Final = 10
"""Rounds of Lloyd after each merging."""

SPREAD: Final = 0.5
"""s, of the extent of a point: rows are denser towards the middle of their group."""

CLEAR: Final = 4.0
"""Standard errors of its rows that every group has."""


@final
@attrs.frozen(eq=False)
class Suggestion:
    """A curve and what it suggests. Args: numbers (m,), costs (m,) per row, silhouettes (m,), k, clear (whether there
    is a k whose groups all stand out of the noise)."""

    numbers: Ints
    costs: Floats
    silhouettes: Floats
    k: int
    clear: bool

    @property
    def why(self) -> str:
        """In a sentence."""
        if not self.clear:
            return "with any number some group would have hardly more rows than noise does, so it is the least one"
        others = self.numbers != self.k
        own = f"silhouette {self.silhouettes[~others][0]:.2f}"
        if not others.any():
            return own
        next_best = int(np.argmax(np.where(others, self.silhouettes, -np.inf)))
        return f"{own}, next {self.numbers[next_best]} with {self.silhouettes[next_best]:.2f}"

    @property
    def details(self) -> dict[str, Any]:
        """For results, as plain data."""
        return {"curve": {
            "k": self.numbers.tolist(), "costs": self.costs.tolist(), "silhouettes": self.silhouettes.tolist(),
            "suggested": self.k, "why": self.why,
        }}  # fmt: skip


def suggested(
    points: Released[Coreset], extents: Floats, problem: Problem, solver: NonPrivateSolver, rng: PublicRng
) -> Suggestion:
    """The suggested number of centres, from ``problem.fewest`` to ``problem.k``.

    Args: points, with standard errors of their weights. extents (m,), at most the mean squared distance of a point's
    rows from it.
    """
    assert problem.fewest is not None
    assert points.value.errors is not None
    at, weights = points.value.points, np.maximum(points.value.weights, 0.0)
    if not weights.any():
        weights = np.ones(len(at))
    start = at if len(at) <= FEW else solver.solve(points, min(len(at), START * problem.k), rng.child("start"))
    cells, spreads = Coreset(at, weights, errors=points.value.errors), SPREAD * extents
    noise = at.shape[1] * (points.value.errors.sums / np.maximum(weights, 1e-9)) ** 2
    found = [
        (len(centers), *_judged(cells, spreads, noise, centers))
        for centers in fewer(cells, filled(start, problem.fewest), problem.k, problem.fewest)
    ]
    numbers, costs, silhouettes, clear = (np.array(column) for column in zip(*found[::-1], strict=True))
    best = int(np.argmax(np.where(clear, silhouettes, -np.inf)))
    return Suggestion(numbers, costs, silhouettes, int(numbers[best]), bool(clear.any()))


def fewer(cells: Coreset, start: Floats, most: int, least: int) -> Iterator[Floats]:
    """Centres (k, d) of the cells for k = most ... least: of each k merged from those of the next."""
    centers = start
    for k in range(len(start), least - 1, -1):
        if k < len(centers):
            centers = merged(centers, held(nearest(cells.points, centers), cells.weights, len(centers)))
        if k <= most:
            for _ in range(SWEEPS):
                centers = means(cells, centers)
            yield centers


def _judged(cells: Coreset, spreads: Floats, noise: Floats, centers: Floats) -> tuple[float, float, bool]:
    """Cost per row, silhouette, and whether every group stands out of the noise."""
    assert cells.errors is not None
    squares, every, k = _squares(cells.points, centers), np.arange(len(cells.points)), len(centers)
    groups = squares.argmin(axis=1)
    own = np.maximum(squares[every, groups] - noise, 0.0) + spreads
    squares[every, groups] = np.inf
    next_best = np.maximum(np.maximum(squares.min(axis=1) - noise, 0.0) + spreads, 1e-300)
    total = cells.weights.sum()
    least = CLEAR * np.sqrt(np.bincount(groups, cells.errors.weights**2, minlength=k))
    clear = held(groups, cells.weights, k) > least
    silhouette = float((cells.weights * (1 - np.sqrt(own / next_best))).sum() / total)
    return float((cells.weights * own).sum() / total), silhouette, bool(clear.all())


def merged(centers: Floats, sizes: Floats) -> Floats:
    """One centre less: the two whose union costs least are their mean."""
    raised = _squares(centers, centers) * np.outer(sizes, sizes) / np.maximum(np.add.outer(sizes, sizes), 1e-300)
    np.fill_diagonal(raised, np.inf)
    i, j = sorted(divmod(int(raised.argmin()), len(centers)))
    both = max(float(sizes[i] + sizes[j]), 1e-300)
    found = np.delete(centers, j, axis=0)
    if sizes[j] > 0:
        found[i] = (sizes[i] * centers[i] + sizes[j] * centers[j]) / both
    return found


def _squares(points: Floats, centers: Floats) -> Floats:
    """Squared distances (m, k), by differences: no cancellation where they are small."""
    from scipy.spatial.distance import cdist

    return np.asarray(cdist(points, centers, "sqeuclidean"), np.float64)
