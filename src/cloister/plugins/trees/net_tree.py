"""The net tree: nets of halving radii over a random projection, expanded where the rows are.

Rows are projected to few dimensions and scaled (``projection``). Level i = 1 .. T is a shifted lattice A*_m
(``nets``) of covering radius rho_i = 2^-i times the ball's. A row's buckets are Psi_T(x), Psi_(T-1)(Psi_T(x)), ...,
Psi_1(...), with Psi_i the nearest point of net i: a node's parent is the nearest point of the coarser net. The root {0}
holds every row and is not asked: users share the levels.

A net's points may lie outside the ball. Psi_i(z) of such a z is taken at the nearest point of the ball, which is no
further from any row: so all nodes are within 1 + rho_i of 0, and Lemma 14 holds, |x - Psi_i(... Psi_T(x))| <= 2^(1-i).
Lemma 15 (children <= (1 + 2 / gamma)^m, gamma_i = gamma rho_i the packing radius) is proved if all children are in the
ball; otherwise, and at the root, 3 replaces 2, since children can be rho_i + rho_(i+1) away. The paper's proof omits
points outside.

Growing (Algorithms 1 and 2): the root is expanded, and then the tau nodes of each level with the largest counts. Let
R_j be the total of a level's counts without the j k a largest; tau = (j - 1) k a for the first j <= Gamma with
R_(j-1) <= 2 R_j. Leaves are the coreset. Corrections: Algorithm 2 reads noisy counts, clamped at 0; n is the declared
public number of rows.

The paper's a = ceil((1 + (2 + theta) / gamma)^m) (Corollary 18) serves the proof: at m = 4 it is above 10^6, so that
everything is expanded. Its Lambda = sqrt(0.01 / log(n / beta) * d / d') leaves no row outside the ball, but puts all
rows so close to 0 that many levels separate nothing and cost noise all the same. Rows at the border, projected, have
the norm sqrt(d' / d) times the root of a chi-squared over d': with Lambda = 0.6 sqrt(d / d') and d' = 5 one in sixty
leaves the ball.

Addition to the paper: nodes whose count is within ``significance`` standard errors of 0 are neither expanded nor kept,
and Algorithm 2 counts them as 0. Noise fills hundreds of empty nodes: their sums would add only noise, and their total
count would stop every branch.

Defaults are for n = 10^5 .. 10^6 and eps = 1 .. 4, by experiment (Gaussian mixtures, d = 100, k = 4 .. 32, simulated
noise): without ``significance`` a cost of 0.2 becomes 1.3; a third level costs more noise than it gains, since levels
share the users of the vector sums too; a sixth dimension gains little for four times the nodes; a and Gamma hardly
matter while k a Gamma is above the number of nodes that clusters are in. With the proof's T (9 at n = 10^5) no level
has enough users or budget for a node to show, and the cost is that of one centre.

Ids are the packed coordinates of a net's point or, if that takes more than 62 bits, public 62-bit hashes of them. A
node's id collides with a given row's with probability 2^-62, any of 10^5 nodes' with any of 10^9 rows' with less than
10^-4, and then a count is off by a row.

Source: Chang, Ghazi, Kumar, Manurangsi 2021, sections 3 and 4; nets after Har-Peled and Mendel 2006.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, final

import attrs
import numpy as np

from cloister.plugin import (
    Bools,
    BundleArrays,
    Coreset,
    Counts,
    Errors,
    Floats,
    Ids,
    Ints,
    InvalidInput,
    Leaves,
    Problem,
    PublicRng,
    Space,
    component,
    hex_key,
    json_integers,
    option,
)
from cloister.plugins.trees.nets import Net, covering_radius, energy, packing_radius, short_vectors
from cloister.plugins.trees.projection import RADIUS, Projection

SLACK = 16
"""Integers by which rounding may move a point that is put back on the ball: 2.4e-7 of its radius."""

BLOCK = 2**18
"""Candidates for children per batch."""

WORD = 2**62
"""Limit of a level's number of ids."""


@component
class NetTree:
    """Net tree over a random projection to few dimensions."""

    dimension: int = option(
        default=5, low=1, high=8, help="d', dimensions that rows are projected to, if they have more"
    )
    scale: float = option(
        default=0.6,
        low=0.0,
        high=4.0,
        above=True,
        help="Lambda over sqrt(d / d'): the root mean square norm of a row at the border after projection, in radii "
        "of the ball",
    )
    levels: int = option(default=2, low=1, high=16, help="T; the proof's is ceil(log2(rows) / 2)")
    expand: int | None = option(
        default=2,
        low=1,
        help="a: nodes are expanded k a at a time; none: the proof's, for a coreset within half of the cost",
    )
    rounds: int | None = option(
        default=2,
        low=1,
        help="Gamma: at most Gamma k a nodes of a level are expanded; none: the proof's ceil(log2(rows))",
    )
    significance: float = option(
        default=4.0,
        low=0.0,
        unit="standard errors",
        help="smallest count of a node that is expanded or kept; 0: any, as in the paper",
    )
    cap: int = option(default=4096, low=1, high=2**20, unit="nodes", help="limit of nodes looked up, in all levels")

    def open(self, problem: Problem, seed: PublicRng) -> NetTreeOpened:
        d = problem.domain.dimension
        m = min(self.dimension, d)
        scale = 1.0 if m == d else max(1.0, self.scale * math.sqrt(d / m))
        projection = Projection.random(problem.domain, m, scale, seed.child("subspace"))
        nets = tuple(_net(m, level, seed.child("shift", level)) for level in range(1, self.levels + 1))
        batch = problem.k * (proof_expand(m) if self.expand is None else self.expand)
        rounds = max(1, math.ceil(math.log2(problem.rows))) if self.rounds is None else self.rounds
        tree = NetTreeOpened(projection, nets, seed.child("ids"), batch, rounds, self.significance, self.cap)
        if len(tree.children(0, np.zeros((1, m), np.int64))[0]) > self.cap:
            raise InvalidInput(
                f"the first of the net's levels has more than {self.cap} nodes in {m} dimensions: raise 'cap' or "
                f"lower 'dimension'"
            )
        return tree


def proof_expand(m: int, xi: float = 0.5) -> int:
    """Return Corollary 18's a, with Theorem 20's theta, for a (xi, t)-coreset in m dimensions."""
    theta = 8 * math.sqrt((1 + 2 / xi) / xi)
    return math.ceil((1 + (2 + theta) * covering_radius(m) / packing_radius(m)) ** m)


def _net(m: int, level: int, seed: PublicRng) -> Net:
    """Return net i, of covering radius at most 2^-i RADIUS, shifted at random."""
    step = math.floor(RADIUS / 2**level / covering_radius(m))
    return Net(step, seed.generator().integers(0, step, m + 1))


@final
@attrs.frozen(eq=False)
class NetTreeOpened:
    """Opened tree.

    Args:
        projection: of rows to few dimensions.
        nets: one per level, coarse ones first.
        seed: of ids that are hashed.
        batch: k a, nodes that are expanded at a time.
        rounds: Gamma.
        significance: smallest count of a node that is expanded or kept, in standard errors.
        cap: limit of nodes that are looked up.
    """

    projection: Projection
    nets: tuple[Net, ...]
    seed: PublicRng
    batch: int
    rounds: int
    significance: float
    cap: int

    nested = False

    @property
    def space(self) -> Space:
        return Space(tuple(min(WORD, self._base(level) ** net.dimension) for level, net in enumerate(self.nets)))

    def locate(self, rows: Ints) -> Ints:
        """Return the nodes (n, T) of lattice rows (n, d): Algorithm 3, lines 2-9."""
        ids, points = np.empty((len(rows), len(self.nets)), np.int64), self.projection.of(rows)
        for level in reversed(range(len(self.nets))):
            names = self.parent(level, points)
            ids[:, level] = self.ids(level, names)
            points = self.nets[level].points(names)
        return ids

    def bundled(self, arrays: BundleArrays) -> Mapping[str, Any]:
        return {
            "kind": "nets",
            "sizes": json_integers(self.space.sizes),
            "matrix": arrays.add(self.projection.matrix),
            "bits": self.projection.shift,
            "radius": RADIUS,
            "nets": [self._bundled(level, net) for level, net in enumerate(self.nets)],
        }

    def _bundled(self, level: int, net: Net) -> Mapping[str, Any]:
        """Return a level's net, and the base for packing names or the keys for hashing them."""
        base = self._base(level)
        packed = base**net.dimension <= WORD
        keys = None if packed else [hex_key(self.seed.child(level, j)) for j in range(net.dimension)]
        return {"step": net.step, "shift": net.shift.tolist(), "base": base, "keys": keys}

    def parent(self, level: int, points: Ints) -> Ints:
        """Return the names (n, m) of the net's points nearest to points (n, m + 1), put back on the ball: Psi."""
        return self.nets[level].nearest(_inside(points))

    def children(self, level: int, names: Ints) -> tuple[Ints, Ints]:
        """Return the children (c, m) on ``level`` of nodes (n, m) of the level above, and their parents' indices (c,).

        At level 0 the parent is the root.
        """
        net = self.nets[level]
        points = np.zeros((1, net.dimension + 1), np.int64) if level == 0 else self.nets[level - 1].points(names)
        radius = _radius(level) + _radius(level + 1) + SLACK
        vectors = short_vectors(net.dimension, 4 * covering_radius(net.dimension) * (1 + 2.0**-8))
        start, child_names, owners = net.nearest(points), list[Ints](), list[Ints]()
        block = max(1, BLOCK // len(vectors))
        for first in range(0, len(points), block):
            candidates = (start[first : first + block, None] + vectors).reshape(-1, net.dimension)
            parents = np.repeat(np.arange(first, min(first + block, len(points))), len(vectors))
            candidates, parents = _within(net, candidates, parents, points, radius)
            if level > 0:
                own_children = (self.parent(level - 1, net.points(candidates)) == names[parents]).all(axis=1)
                candidates, parents = candidates[own_children], parents[own_children]
            child_names.append(candidates)
            owners.append(parents)
        return np.concatenate(child_names), np.concatenate(owners)

    def _base(self, level: int) -> int:
        """Return the number of values that a coordinate of a node's name may have.

        It is the difference of two coordinates of a point within 1 + rho_i of 0, less the shift's, over the step.
        """
        net = self.nets[level]
        far = math.sqrt(2) * (RADIUS + _radius(level + 1) + SLACK) + net.step
        return 2 * (math.ceil(far / net.step) + 1) + 1

    def ids(self, level: int, names: Ints) -> Ints:
        """Return the ids (n,) of nodes (n, m): packed, or hashed if that is too long."""
        base, m = self._base(level), names.shape[1]
        if base**m <= WORD:
            return (names + base // 2) @ base ** np.arange(m)
        words: Ids = np.zeros(len(names), np.uint64)
        for j in range(m):
            words = self.seed.child(level, j).of_users(words ^ names[:, j].astype(np.uint64))
        return (words >> np.uint64(2)).astype(np.int64)

    def grow(self, counts: Counts) -> Coreset:
        """Expand the tree and return its leaves: Algorithm 1."""
        room, leaves = self.cap, list[_Nodes]()
        names, _ = self.children(0, np.zeros((1, self.nets[0].dimension), np.int64))
        for level in range(len(self.nets)):
            nodes = self._look(counts, level, names)
            room -= len(names)
            inner, names = self._expanded(nodes, level, room)
            leaves.append(nodes.after(inner))
            if not len(names):
                break
        return self._coreset(leaves)

    def _look(self, counts: Counts, level: int, names: Ints) -> _Nodes:
        """Look up a level's nodes, and return them in descending order of their counts."""
        ids = self.ids(level, names)
        values, errors = np.maximum(counts.at(ids, level), 0.0), counts.standard_error(ids, level)
        order = np.argsort(-values, kind="stable")
        return _Nodes(level, names[order], ids[order], values[order], errors[order])

    def _expanded(self, nodes: _Nodes, level: int, room: int) -> tuple[int, Ints]:
        """Return how many of the largest nodes are expanded, and their children's names, at most ``room``."""
        significant = nodes.significant(self.significance)
        tau = threshold(np.where(significant, nodes.values, 0.0)[::-1], self.batch, self.rounds)
        tau = min(tau, int(significant.sum()), room)  # by room, to bound the work of finding children
        if level + 1 == len(self.nets) or tau == 0:
            return 0, nodes.names[:0]
        names, parents = self.children(level + 1, nodes.names[:tau])
        ends = np.cumsum(np.bincount(parents, minlength=tau))
        tau = int((ends <= room).sum())
        return tau, names[parents < tau]

    def _coreset(self, leaves: list[_Nodes]) -> Coreset:
        levels = np.repeat([nodes.level for nodes in leaves], [len(nodes.ids) for nodes in leaves])
        points = np.concatenate([self.nets[nodes.level].points(nodes.names) for nodes in leaves])
        ids, values, errors = (
            np.concatenate([getattr(nodes, name) for nodes in leaves]) for name in ("ids", "values", "errors")
        )
        chosen = np.flatnonzero(np.concatenate([nodes.significant(self.significance) for nodes in leaves]))
        if not len(chosen):
            chosen = np.argsort(-values, kind="stable")[:1]
        return Coreset(
            self.projection.back(points[chosen]),
            values[chosen],
            leaves=Leaves(levels[chosen], ids[chosen]),
            errors=Errors(errors[chosen], np.zeros(len(chosen))),
        )


@final
@attrs.frozen(eq=False)
class _Nodes:
    """Nodes of a level: names (n, m), ids, counts and standard errors (n,)."""

    level: int
    names: Ints
    ids: Ints
    values: Floats
    errors: Floats

    def significant(self, significance: float) -> Bools:
        """Return True (n,) for counts above so many standard errors; for all if ``significance`` is 0."""
        return self.values > significance * self.errors if significance > 0 else np.ones(len(self.ids), bool)

    def after(self, count: int) -> _Nodes:
        """Return all but the first ``count`` nodes."""
        return _Nodes(self.level, self.names[count:], self.ids[count:], self.values[count:], self.errors[count:])


def threshold(values: Floats, batch: int, rounds: int) -> int:
    """Return how many of a level's nodes to expand: Algorithm 2.

    Args:
        values: counts (m,), at least 0, ascending.
        batch: k a.
        rounds: Gamma.
    """
    m = len(values)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    for j in range(1, min(rounds, m // batch) + 1):
        if sums[m - (j - 1) * batch] <= 2 * sums[m - j * batch]:
            return (j - 1) * batch
    return min(m, rounds * batch)


def _radius(level: int) -> int:
    """Return the covering radius of net i = ``level`` (0: the root's), in integers."""
    return RADIUS >> level


def _inside(points: Ints) -> Ints:
    """Return points (n, m + 1) of the hyperplane, with those outside the ball put back on it.

    Operations are elementwise and correctly rounded: a function of each point alone.
    """
    size = points.shape[1]
    squares = energy(points)
    out = squares > size * RADIUS**2
    if not out.any():
        return points
    inside = points.copy()
    centred = size * points[out] - points[out].sum(axis=1, keepdims=True)
    factor = RADIUS / np.sqrt(squares[out].astype(np.float64) * size)
    inside[out] = np.floor(centred * factor[:, None]).astype(np.int64)
    return inside


def _within(net: Net, candidates: Ints, parents: Ints, points: Ints, radius: int) -> tuple[Ints, Ints]:
    """Return the candidates, and their parents, within ``radius`` of their parents and near enough to the ball."""
    at, size = net.points(candidates), points.shape[1]
    covering = math.ceil(net.step * covering_radius(net.dimension))
    inside = energy(at) <= size * (RADIUS + covering + SLACK) ** 2
    inside &= energy(at - points[parents]) <= size * radius**2
    return candidates[inside], parents[inside]
