"""Number of groups that released points show: the curve of cost against k, and a suggested k.

One pass gives all solutions, from many centres down to few: the points themselves, or the solver's centres of them, are
merged two by two, those first whose union costs least (Ward), and settled by rounds of Lloyd. Below the number of
groups costs may be a fifth above the least ones, since what is merged stays together.

Noise makes groups of its own. One is ``clear`` if it has more rows than ``CLEAR`` standard errors of their count. From
the largest k of the range on, a centre that is not clear is left out before any two are merged; only numbers whose
groups are all clear are suggested, or, if there are none, the least one. It is the larger of two:

1. The number with the largest mean silhouette of the rows, as far as points tell it. Points of weight w stand for w
   rows around them, of mean squared distance s. Those are about a^2 = |x - c|^2 + s from the nearest centre c, b^2 =
   |x - c'|^2 + s from the next one c', and

       silhouette = sum of w (1 - a / b) / sum of w.

   Both squares are less the noise of the point's place, which is known. Without s, points that are few would each be a
   group.
2. The largest number whose groups are all apart: of any two, the squared distance D^2 of their centres is more than
   ``APART`` times the mean v of their rows' squared distances from their own centre, along the line between both. D^2 /
   v is 7 for the halves of one normal group, 12 for those of an even spread, 14 for neighbours in a honeycomb, and 17
   and more for normal groups that are four standard deviations apart. It does not depend on how large groups are, nor
   on what else there is: silhouettes take a few groups that are far from the others for one.

Guarantee: post-processing of released points and of public standard errors.

What to expect at epsilon = 1, of 200 mixtures of 2 to 30 normal groups in 2 to 10 columns (``benchmarks/suggested.py``,
which others than these were fitted on): with at least 500 rows per group, right in 60 of 61 runs where centres are at
least ten standard deviations apart, 48 of 51 where it is six, 58 of 62 where it is four; with fewer rows in 19 of 26.
Of six runs each, all were right on s2, g10k_d32_k16 and g100k_d10_k10; five on a2 (else 34 of 35) and d31 (30 of 31);
two on unbalance (else 5 to 7 of 8); on a1 four of eight (else 18 or 19 of 20). None was right on r15, whose groups of
40 rows sink in the noise (6 to 11 of 15), on dim032, with 64 rows per group in 32 columns (2 of 16), and on lsun, whose
groups are oblong (4 of 3). Groups that are not around centres are not looked for, and rows without groups get some
number too. Constants were fitted on 250 other mixtures, s1 and a1.

Source: Rousseeuw 1987 (silhouettes; by centres: Hruschka, de Castro, Campello 2006); Ward 1963.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, final

import attrs
import numpy as np

from cloister.plugin import Bools, Coreset, Floats, Ints, NonPrivateSolver, Problem, PublicRng, Released
from cloister.plugins.methods.post_processing import group_sizes, means, nearest, pad_centers

FEW: Final = 256
"""Up to so many points are merged themselves; of more, the solver's centres, ``START`` times as many as wanted."""

START: Final = 3

SWEEPS: Final = 10
"""Rounds of Lloyd after each merging."""

SPREAD: Final = 0.5
"""s, of the extent of a point: rows are denser towards the middle of their group."""

CLEAR: Final = 5.0
"""Standard errors of its rows that every group has. Cells are kept because they seem to hold rows, so that a few that
hold none together seem to have three or four."""

APART: Final = 15.0
"""D^2 / v of groups that are apart; 13 to 15 make no difference."""


@final
@attrs.frozen(eq=False)
class Suggestion:
    """Curve of solutions and what it suggests.

    Args:
        numbers: (m,) of groups.
        costs: (m,) per row.
        silhouettes: (m,).
        clear: (m,) whether all groups are.
        apart: (m,) whether all groups are.
    """

    numbers: Ints
    costs: Floats
    silhouettes: Floats
    clear: Bools
    apart: Bools

    @property
    def k(self) -> int:
        """The suggested number."""
        return int(self.numbers[self._at])

    @property
    def why(self) -> str:
        """In a sentence, of which the number that is suggested is the subject."""
        if not self.clear.any():
            return "whatever the number, some group holds hardly more rows than the noise alone would give it"
        value, best = f"{self.silhouettes[self._at]:.2f}", self._best(self.clear)
        if self._at > best:
            return (
                f"all of so many groups are far from one another for how wide they are, though {self.numbers[best]} "
                f"groups fit their rows a little tighter (simplified silhouette {self.silhouettes[best]:.2f}, against "
                f"{value}; 1 is the best)"
            )
        if len(self.numbers) == 1:
            return f"rows are nearest to their own group with a simplified silhouette of {value} (1 is the best)"
        best = self._best(self.numbers != self.k)
        return (
            f"rows are then nearest to their own group, against the next one (simplified silhouette {value}; 1 is the "
            f"best), next come {self.numbers[best]} groups with {self.silhouettes[best]:.2f}"
        )

    @property
    def _at(self) -> int:
        """The index of k."""
        if not self.clear.any():
            return 0
        return max([self._best(self.clear), *np.flatnonzero(self.clear & self.apart).tolist()])

    def _best(self, among: Bools) -> int:
        """Return the index of the largest silhouette."""
        return int(np.argmax(np.where(among, self.silhouettes, -np.inf)))

    @property
    def details(self) -> dict[str, Any]:
        """For results, as plain data."""
        return {
            "curve": {
                "k": self.numbers.tolist(),
                "costs": self.costs.tolist(),
                "silhouettes": self.silhouettes.tolist(),
                "suggested": self.k,
                "why": self.why,
            }
        }


def suggested(
    points: Released[Coreset], extents: Floats, problem: Problem, solver: NonPrivateSolver, rng: PublicRng
) -> Suggestion:
    """Suggest a number of centres, from ``problem.fewest`` to ``problem.k``.

    Args:
        points: with standard errors of their weights.
        extents: (m,) at most the mean squared distance of a point's rows from it.
        problem: names the range of k.
        solver: clusters many points first.
        rng: public randomness.
    """
    assert problem.fewest is not None
    assert points.value.errors is not None
    at, weights = points.value.points, np.maximum(points.value.weights, 0.0)
    if not weights.any():
        weights = np.ones(len(at))
    start = at if len(at) <= FEW else solver.solve(points, min(len(at), START * problem.k), rng.child("start"))
    cells, spreads = Coreset(at, weights, errors=points.value.errors), SPREAD * extents
    noise = at.shape[1] * (points.value.errors.sums / np.maximum(weights, 1e-9)) ** 2
    evaluated = [
        (
            len(centers),
            *_judged(cells, spreads, noise, centers),
            clearness(cells, centers).min() > CLEAR,
            separation(cells, extents, centers) > APART,
        )
        for centers in fewer(cells, pad_centers(start, problem.fewest), problem.k, problem.fewest)
    ]
    numbers, costs, silhouettes, clear, apart = (np.array(column) for column in zip(*evaluated[::-1], strict=True))
    return Suggestion(numbers, costs, silhouettes, clear, apart)


def fewer(cells: Coreset, start: Floats, max_k: int, min_k: int) -> Iterator[Floats]:
    """Yield centres (k, d) of the cells for k = ``max_k`` ... ``min_k``.

    Each solution is the one before, less a centre that is not clear, or with two of them merged.
    """
    centers = start
    for k in range(len(start), min_k - 1, -1):
        if k < len(centers):
            if k < max_k and (clear := clearness(cells, centers)).min() <= CLEAR:
                centers = np.delete(centers, clear.argmin(), axis=0)
            else:
                centers = merged(centers, group_sizes(nearest(cells.points, centers), cells.weights, len(centers)))
        if k <= max_k:
            for _ in range(SWEEPS):
                centers = means(cells, centers)
            yield centers


def clearness(cells: Coreset, centers: Floats) -> Floats:
    """Return the rows (k,) of each group, in standard errors of their count."""
    assert cells.errors is not None
    k, groups = len(centers), nearest(cells.points, centers)
    sizes, errors = (
        group_sizes(groups, cells.weights, k),
        np.sqrt(np.bincount(groups, cells.errors.weights**2, minlength=k)),
    )
    return np.divide(sizes, errors, out=np.where(sizes > 0, np.inf, 0.0), where=errors > 0)


def separation(cells: Coreset, extents: Floats, centers: Floats) -> float:
    """Return the least D^2 / v of two groups.

    Noise must not part a group: D is less two standard errors, and v holds the noise of the points' places.
    """
    assert cells.errors is not None
    groups, k, d = nearest(cells.points, centers), *centers.shape
    offsets, squares = cells.points - centers[groups], _squares(centers, centers)
    along = offsets @ centers.T - (offsets * centers[groups]).sum(axis=1)[:, None]
    sums = np.zeros((k, k))
    np.add.at(sums, groups, cells.weights[:, None] * along**2 / np.maximum(squares[groups], 1e-300))
    sizes, extent_sums = (np.bincount(groups, cells.weights * v, minlength=k) for v in (1.0, extents / d))
    sums += extent_sums[:, None]
    spread = (sums + sums.T) / np.maximum(np.add.outer(sizes, sizes), 1e-300)
    noise = np.bincount(groups, cells.errors.sums**2, minlength=k) / np.maximum(sizes, 1e-9) ** 2
    distances = np.maximum(np.sqrt(squares) - 2 * np.sqrt(np.add.outer(noise, noise)), 0.0)
    np.fill_diagonal(distances, np.inf)
    return float((distances**2 / np.maximum(spread, 1e-300)).min())


def _judged(cells: Coreset, spreads: Floats, noise: Floats, centers: Floats) -> tuple[float, float]:
    """Return the cost per row, and the silhouette."""
    squares, ids = _squares(cells.points, centers), np.arange(len(cells.points))
    groups = squares.argmin(axis=1)
    own_squares = np.maximum(squares[ids, groups] - noise, 0.0) + spreads
    squares[ids, groups] = np.inf
    next_best = np.maximum(np.maximum(squares.min(axis=1) - noise, 0.0) + spreads, 1e-300)
    total = cells.weights.sum()
    silhouette = float((cells.weights * (1 - np.sqrt(own_squares / next_best))).sum() / total)
    return float((cells.weights * own_squares).sum() / total), silhouette


def merged(centers: Floats, sizes: Floats) -> Floats:
    """Merge the two centres whose union costs least into their mean."""
    raised = _squares(centers, centers) * np.outer(sizes, sizes) / np.maximum(np.add.outer(sizes, sizes), 1e-300)
    np.fill_diagonal(raised, np.inf)
    i, j = sorted(divmod(int(raised.argmin()), len(centers)))
    both = max(float(sizes[i] + sizes[j]), 1e-300)
    remaining = np.delete(centers, j, axis=0)
    if sizes[j] > 0:
        remaining[i] = (sizes[i] * centers[i] + sizes[j] * centers[j]) / both
    return remaining


def _squares(points: Floats, centers: Floats) -> Floats:
    """Squared distances (m, k), by differences: no cancellation where they are small."""
    from scipy.spatial.distance import cdist

    return np.asarray(cdist(points, centers, "sqeuclidean"), np.float64)
