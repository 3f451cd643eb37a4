"""Ward's clustering of noisy points: the noise's contribution to every distance is subtracted.

Input: points x_i (the sum over a cell divided by its count C_i), with noise of energy e_i = d s_i^2 / C_i^2, s_i the
standard error of one coordinate of the cell's sum. A group of points has the mean mu = sum a_i x_i / sum a_i of noise
energy V = sum a_i^2 e_i / (sum a_i)^2, where a_i = C_i rho^2 / (rho^2 + e_i) is a point's weight, shrunk by its noise
(rho^2: mean squared length of the points without their noise). Three steps:

1. Merge the two groups whose union raises the k-means cost least, N_a N_b / (N_a + N_b) (|mu_a - mu_b|^2 - V_a - V_b),
   until k are left. The distance is unbiased: without the correction distant noise would look like a cluster.
2. Exchange: move each point to the group that explains it best, judged without the point itself: x_i - mu has the
   energy e_i + V, so that the smallest |x_i - mu|^2 / (e_i + V) + d ln(e_i + V) wins. A point whose weight is below
   ``sure`` standard errors, and that noise around the origin explains better than any group, is left out. So is a point
   between two groups that is too far from either: two clusters that share a cell of one partition are separate in
   another.
3. The centre of a group. Its target is sum pi_i (x_i without noise), pi_i = C_i / N. If true points scatter by H around
   their mean, the best weights that add up to one are w_i = (pi_i H + nu) / (H + e_i): the counts for clean points, the
   inverse variances for points that differ by noise only. Then the centre is multiplied by 1 - sum w_i^2 e_i / |c|^2
   (James and Stein).

Without errors (all e_i = 0) this is Ward's method followed by Hartigan and Wong's exchange. Shrinking is towards the
origin of the coreset's coordinates: give points relative to the domain's middle.

Source: Ward 1963; Hartigan and Wong 1979; James and Stein 1961; the corrections are cloister's own.
"""

from __future__ import annotations

from typing import final

import attrs
import numpy as np

from cloister.plugin import Bools, Coreset, Floats, Ints, PublicRng, Released, component, option
from cloister.plugins.solvers.points import heavy_or_all

TINY = 1e-300

SURE = 16.0
"""Twice the log-likelihood ratio, of a mixture to a point's group, above which the point is left out."""


@component
class Ward:
    """Noise-corrected Ward clustering with exchange and shrinking, for points whose standard errors are known.

    Points of weight at most 0 are left out, unless all are.
    """

    sure: float = option(
        default=4.0,
        low=0.0,
        unit="standard errors of a weight",
        help="points of at least this weight are never left out",
    )
    most: int = option(
        default=512, low=2, help="number of points, the heaviest, that are merged pairwise; others join a group later"
    )
    sweeps: int = option(default=20, low=0, help="largest number of exchange rounds")

    def solve(self, coreset: Released[Coreset], k: int, rng: PublicRng) -> Floats:
        points = Points.of(coreset.value, self.sure)
        groups = merged(points, k, max(self.most, 2 * k))
        return points.centers(exchanged(points, groups, k, self.sweeps), k)


@final
@attrs.frozen(eq=False)
class Points:
    """Points with their noise, the heaviest first.

    Args:
        at: (m, d).
        weight: (m,).
        noise: energy e (m,).
        sure: True (m,) for points that are never left out.
    """

    at: Floats
    weight: Floats
    noise: Floats
    sure: Bools

    @classmethod
    def of(cls, coreset: Coreset, sure: float) -> Points:
        heavy = heavy_or_all(coreset)
        order = np.argsort(-heavy.weights, kind="stable")
        at, weight, errors = heavy.points[order], heavy.weights[order], heavy.errors
        if errors is None:
            return cls(at, weight, np.zeros(len(order)), np.ones(len(order), bool))
        noise = at.shape[1] * (errors.sums[order] / weight) ** 2
        return cls(at, weight, noise, weight > sure * errors.weights[order])

    @property
    def leverage(self) -> Floats:
        """Weights a (m,), shrunk by the noise."""
        squares = np.einsum("ij,ij->i", self.at, self.at)
        scale = float((self.weight * (squares - self.noise)).sum() / self.weight.sum())
        scale = max(scale, 1e-6 * float(self.noise.min()), TINY)
        a: Floats = self.weight * (scale / (scale + self.noise))
        return a

    def centers(self, groups: Ints, k: int) -> Floats:
        """Return the centres (k, d) of groups (m,), -1 for none: step 3. Empty groups repeat the first centre."""
        centers = [self._center(np.flatnonzero(groups == g)) for g in range(k) if (groups == g).any()]
        return np.array(centers + [centers[0]] * (k - len(centers)))

    def _center(self, members: Ints) -> Floats:
        at, noise, share = self.at[members], self.noise[members], self.weight[members] / self.weight[members].sum()
        scatter = self._scatter(at, noise, share)
        total = np.maximum(scatter + noise, TINY)
        w = (share * scatter + (1 - (share * scatter / total).sum()) / (1 / total).sum()) / total
        center: Floats = w @ at
        length = float(center @ center)
        return center * max(0.0, 1 - float((w**2 * noise).sum()) / max(length, TINY))

    def _scatter(self, at: Floats, noise: Floats, share: Floats) -> float:
        """Return H, at least 0: sum pi_i (|x_i - mean|^2 - e_i (1 - pi_i)^2 - the noise of the others)."""
        away = at - share @ at
        common = float((share**2 * noise).sum())
        bias = float((share * (noise * (1 - 2 * share) + common)).sum())
        return max(0.0, float((share * np.einsum("ij,ij->i", away, away)).sum()) - bias)


@final
class Groups:
    """Groups of points, as sums over their members.

    Attributes:
        size: sum of a.
        spread: sum of a^2 e.
        weight: sum of C.
        noise: sum of a e.
        squares: sum of a |x|^2.
        firm: number of sure points.
        total: sum of a x.

    Args:
        points: possible members.
        k: number of groups, all empty at first.
    """

    def __init__(self, points: Points, k: int) -> None:
        self._points, a, noise = points, points.leverage, points.noise
        length = np.einsum("ij,ij->i", points.at, points.at)
        contributions = (a, a * a * noise, points.weight, a * noise, a * length, points.sure, a[:, None] * points.at)
        self._own = np.column_stack(contributions)
        self._sums = np.zeros((k, self._own.shape[1]))
        self.size, self.spread, self.weight, self.noise, self.squares, self.firm = self._sums[:, :6].T
        self.total = self._sums[:, 6:]

    def move(self, point: int, group: int, sign: int) -> None:
        """Put a point into a group, or take it out; group -1 is none."""
        if group >= 0:
            self._sums[group] += sign * self._own[point]

    def join(self, i: int, j: int) -> None:
        """Move all of group j to group i."""
        self._sums[i] += self._sums[j]

    def losses(self, i: int) -> Floats:
        """Return the cost of merging group i with each other one, without the noise's part."""
        away = self.total / self.size[:, None] - self.total[i] / self.size[i]
        noise = self.spread / self.size**2
        far = np.einsum("ij,ij->i", away, away) - noise - noise[i]
        costs: Floats = far * (self.weight * self.weight[i] / (self.weight + self.weight[i]))
        return costs

    def best(self, point: int) -> int:
        """Return the group that explains a point best, or -1 to leave it out.

        It is left out if it is not sure and noise around the origin explains it better, or if it mixes the rows of two
        groups, both with sure points of their own.
        """
        occupied, at, noise = np.flatnonzero(self.size > 0), self._points.at[point], float(self._points.noise[point])
        means = self.total[occupied] / self.size[occupied][:, None]
        variance = np.maximum(self.spread[occupied], 0.0) / self.size[occupied] ** 2
        away = means - at
        squares = np.einsum("ij,ij->i", away, away)
        if not noise > 0:
            return int(occupied[squares.argmin()])
        worth = squares / (noise + variance) + np.log1p(variance / noise)
        nearest = int(worth.argmin())
        if not self._points.sure[point] and worth[nearest] > float(at @ at) / noise:
            return -1
        energy = noise + variance + self._scatter(int(occupied[nearest]), means[nearest])
        energy[self.firm[occupied] < 0.5] = np.inf
        return -1 if _mixed(at, means, nearest, energy) else int(occupied[nearest])

    def _scatter(self, group: int, mean: Floats) -> float:
        """Return the mean squared distance of a group's points from its mean, beyond what noise explains."""
        size = self.size[group]
        noise = self.noise[group] / size - self.spread[group] / size**2
        return max(0.0, float(self.squares[group] / size - mean @ mean - noise))


def _mixed(at: Floats, means: Floats, group: int, energy: Floats) -> bool:
    """Return True if a point mixes the rows of two groups.

    Their plane explains it to within its noise, and much better than its own group does. Both explanations leave the
    point's length free, since its count is noisy.

    Args:
        at: the point (d,).
        means: of the groups (k, d).
        group: index of its own.
        energy: of the noise between the point and each mean (k,); infinite for groups that cannot be mixed.
    """
    d, along, gram = len(at), means @ at, means @ means.T
    length = np.diag(gram)
    area = np.maximum(length[:, None] * length - gram**2, 1e-9 * length[:, None] * length + TINY)
    first = (along[:, None] * length - along * gram) / area
    both = (first > 0) & (first.T > 0)
    explained = np.where(both, first * along[:, None] + first.T * along, -np.inf)
    noise = np.maximum(energy[:, None], energy)
    alone = max(along[group], 0.0) ** 2 / max(length[group], TINY)
    fits = at @ at - explained < noise * (1 + 4 * np.sqrt(2 / d))
    return bool((fits & (d * (explained - alone) > SURE * noise)).any())


def merged(points: Points, k: int, heaviest: int) -> Ints:
    """Return the group (m,) of each of the heaviest points, -1 for others: step 1."""
    m = min(len(points.at), heaviest)
    sums, groups, live = Groups(points, m), np.arange(m), np.ones(m, bool)
    for i in range(m):
        sums.move(i, i, 1)
    loss = np.full((m, m), np.inf)  # of pairs i > j
    for i in range(m):
        loss[i, :i] = sums.losses(i)[:i]
    for _ in range(m - min(k, m)):
        j, i = sorted(divmod(int(loss.argmin()), m))
        groups[groups == i] = j
        sums.join(j, i)
        live[i], loss[i], loss[:, i] = False, np.inf, np.inf
        again = np.where(live, sums.losses(j), np.inf)
        loss[j, :j], loss[j + 1 :, j] = again[:j], again[j + 1 :]
    labels = np.full(len(points.at), -1)
    labels[:m] = np.unique(groups, return_inverse=True)[1]
    return labels


def exchanged(points: Points, groups: Ints, k: int, sweeps: int) -> Ints:
    """Return better groups (m,), -1 for points that are left out: step 2."""
    labels, sums = groups.tolist(), Groups(points, k)
    for i, group in enumerate(labels):
        sums.move(i, group, 1)
    for _ in range(sweeps):
        previous = list(labels)
        for i, group in enumerate(previous):
            if group >= 0 and labels.count(group) == 1:
                continue
            sums.move(i, group, -1)
            labels[i] = sums.best(i)
            sums.move(i, labels[i], 1)
        if labels == previous:
            break
    return np.array(labels, np.int64)
