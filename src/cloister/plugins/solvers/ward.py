"""Ward's clustering of points that noise moved: what noise adds to every distance is taken off again.

Input: points x_i (sum over a cell, divided by its count C_i), known up to a noise of energy e_i = d s_i^2 / C_i^2, with
s_i the standard error of one coordinate of the cell's sum. A group of points has the mean mu = sum a_i x_i / sum a_i of
noise energy V = sum a_i^2 e_i / (sum a_i)^2, where a_i = C_i rho^2 / (rho^2 + e_i) is as much of a point's weight as
noise leaves of it (rho^2: mean squared length of the points without their noise). Three steps:

1. Merge the two groups whose union raises the k-means cost least, N_a N_b / (N_a + N_b) (|mu_a - mu_b|^2 - V_a - V_b),
   until k are left. The distance is unbiased: without the correction far noise would look like a cluster.
2. Exchange: each point goes to the group that explains it best, judged without the point itself: x_i - mu has the
   energy e_i + V, so that the least (|x_i - mu|^2 / (e_i + V) + d ln(e_i + V)) wins. A point whose weight is below
   ``sure`` standard errors, and that noise around the origin explains better than any group, is left out. So is a point
   on the way between two groups that is too far from either: two clusters that share a cell of one partition are apart
   in another.
3. The centre of a group. Its target is sum pi_i (x_i without noise), pi_i = C_i / N. If true points scatter by H around
   their mean, the best weights that add up to one are w_i = (pi_i H + nu) / (H + e_i): the counts for clean points, the
   inverse variances for points that differ by noise alone. Then the centre is shortened by 1 - sum w_i^2 e_i / |c|^2
   (James and Stein).

Without errors (all e_i = 0) this is Ward's method followed by Hartigan and Wong's exchange. Shrinking is towards the
origin of the coreset's coordinates: give points relative to the domain's middle.

Source: Ward 1963; Hartigan and Wong 1979; James and Stein 1961; the corrections are cloister's own.
"""

from __future__ import annotations

from typing import final

import attrs
import numpy as np

from cloister.core.clustering import Coreset, Released
from cloister.core.randomness import PublicRng
from cloister.core.registry.components import component, option
from cloister.core.types import Bools, Floats, Ints
from cloister.plugins.solvers.points import heavy_or_all

TINY = 1e-300

SURE = 16.0
"""Twice the log-likelihood by which a mixture must explain a point better than its group, before it is left out."""


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
        default=512, low=2, help="points that are merged pair by pair: the heaviest; others join a group later"
    )
    sweeps: int = option(default=20, low=0, help="largest number of exchange rounds")

    def solve(self, coreset: Released[Coreset], k: int, rng: PublicRng) -> Floats:
        points = Points.of(coreset.value, self.sure)
        groups = merged(points, k, max(self.most, 2 * k))
        return points.centers(exchanged(points, groups, k, self.sweeps), k)


@final
@attrs.frozen(eq=False)
class Points:
    """Points with their noise, the heaviest first. Args: at (m, d), weight (m,), noise (m,), sure (m,)."""

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
        """a (m,): as much of each weight as noise leaves of it."""
        squares = np.einsum("ij,ij->i", self.at, self.at)
        scale = float((self.weight * (squares - self.noise)).sum() / self.weight.sum())
        scale = max(scale, 1e-6 * float(self.noise.min()), TINY)
        a: Floats = self.weight * (scale / (scale + self.noise))
        return a

    def centers(self, groups: Ints, k: int) -> Floats:
        """Step 3 (k, d), from each point's group (m,), -1 for none. Groups without a point repeat the first centre."""
        found = [self._center(np.flatnonzero(groups == g)) for g in range(k) if (groups == g).any()]
        return np.array(found + [found[0]] * (k - len(found)))

    def _center(self, mine: Ints) -> Floats:
        at, noise, share = self.at[mine], self.noise[mine], self.weight[mine] / self.weight[mine].sum()
        scatter = self._scatter(at, noise, share)
        total = np.maximum(scatter + noise, TINY)
        w = (share * scatter + (1 - (share * scatter / total).sum()) / (1 / total).sum()) / total
        center: Floats = w @ at
        length = float(center @ center)
        return center * max(0.0, 1 - float((w**2 * noise).sum()) / max(length, TINY))

    def _scatter(self, at: Floats, noise: Floats, share: Floats) -> float:
        """H, without its bias: sum pi_i (|x_i - mean|^2 - e_i (1 - pi_i)^2 - the others' part), at least 0."""
        away = at - share @ at
        common = float((share**2 * noise).sum())
        bias = float((share * (noise * (1 - 2 * share) + common)).sum())
        return max(0.0, float((share * np.einsum("ij,ij->i", away, away)).sum()) - bias)


@final
class Groups:
    """Groups of points as sums: size sum a, spread sum a^2 e, weight sum C, noise sum a e, squares sum a |x|^2, firm
    (how many sure points) and total sum a x of each.

    Args:
        points: that can be in them.
        k: how many there are, all empty at first.
    """

    def __init__(self, points: Points, k: int) -> None:
        self._points, a, noise = points, points.leverage, points.noise
        length = np.einsum("ij,ij->i", points.at, points.at)
        own = (a, a * a * noise, points.weight, a * noise, a * length, points.sure, a[:, None] * points.at)
        self._own = np.column_stack(own)
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
        """Cost of merging group i with each other one, the noise's part taken off."""
        away = self.total / self.size[:, None] - self.total[i] / self.size[i]
        noise = self.spread / self.size**2
        far = np.einsum("ij,ij->i", away, away) - noise - noise[i]
        costs: Floats = far * (self.weight * self.weight[i] / (self.weight + self.weight[i]))
        return costs

    def best(self, point: int) -> int:
        """The group that explains a point best, or -1: it is light and noise around the origin explains it better, or
        it mixes the rows of two groups, both with sure points of their own."""
        held, at, noise = np.flatnonzero(self.size > 0), self._points.at[point], float(self._points.noise[point])
        means = self.total[held] / self.size[held][:, None]
        own = np.maximum(self.spread[held], 0.0) / self.size[held] ** 2
        away = means - at
        squares = np.einsum("ij,ij->i", away, away)
        if not noise > 0:
            return int(held[squares.argmin()])
        worth = squares / (noise + own) + np.log1p(own / noise)
        least = int(worth.argmin())
        if not self._points.sure[point] and worth[least] > float(at @ at) / noise:
            return -1
        energy = noise + own + self._scatter(int(held[least]), means[least])
        energy[self.firm[held] < 0.5] = np.inf
        return -1 if _mixed(at, means, least, energy) else int(held[least])

    def _scatter(self, group: int, mean: Floats) -> float:
        """How far a group's points lie from its mean, squared, beyond what noise explains."""
        size = self.size[group]
        noise = self.noise[group] / size - self.spread[group] / size**2
        return max(0.0, float(self.squares[group] / size - mean @ mean - noise))


def _mixed(at: Floats, means: Floats, group: int, energy: Floats) -> bool:
    """Whether a point mixes the rows of two groups: their plane explains it to within its noise, and much better than
    its own group does. Both explanations leave the point's length free, since its count is noisy.

    Args:
        at: the point (d,).
        means: of the groups (k, d).
        group: its own.
        energy: of the noise between the point and each mean (k,); infinite for groups that are not to be mixed.
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


def merged(points: Points, k: int, most: int) -> Ints:
    """Step 1: the group (m,) of each of the heaviest points; -1 for those that were not merged."""
    m = min(len(points.at), most)
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
    every = np.full(len(points.at), -1)
    every[:m] = np.unique(groups, return_inverse=True)[1]
    return every


def exchanged(points: Points, groups: Ints, k: int, sweeps: int) -> Ints:
    """Step 2: better groups (m,), -1 for points that noise explains."""
    found, sums = groups.tolist(), Groups(points, k)
    for i, group in enumerate(found):
        sums.move(i, group, 1)
    for _ in range(sweeps):
        before = list(found)
        for i, group in enumerate(before):
            if group >= 0 and found.count(group) == 1:
                continue
            sums.move(i, group, -1)
            found[i] = sums.best(i)
            sums.move(i, found[i], 1)
        if found == before:
            break
    return np.array(found, np.int64)
