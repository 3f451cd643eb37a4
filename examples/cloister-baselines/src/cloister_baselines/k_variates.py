"""k-variates++ with private nodes: public nodes release the noisy means of their rows; k of them are drawn as centres.

Nock et al.'s scheme is k-means++ seeding in which a drawn point is replaced by a draw from a local density around it (a
'variate'). Distributed (their section 4.1), nodes hold the points: a node is drawn with probability proportional to
what its points cost, and answers with a point of its own; private, the answer is noised. Here as Cohen-Addad et al.
compare with it: about 500 nodes, to which SimHash assigns the rows, and no Lloyd rounds.

1. Ask how many rows each node has, and what they add up to: one round.
2. A node's variate is its noisy mean: a draw from the density that privacy noise puts around its mean.
3. k times, draw a node with probability proportional to count * (distance of its variate to the nearest centre)^power.

Changed for a proof: Nock et al. noise each drawn point on a scale that the data set, whose spread they assume, decides,
and their nodes answer with costs that nobody pays for. Here every node releases its count and sum once through oracles
whose noise follows from the public domain alone; the draws are post-processing. So a node's cost is that of its mean,
not of its points, and a node is drawn once. Nodes whose count is within ``significance`` standard errors of 0 are left
out, unless fewer than k remain.

Guarantee: the trust model, neighbouring relation, epsilon and delta of the oracles in its slots.

Source: Nock, Canyasse, Boreli, Nielsen 2016, Algorithm 1, sections 4.1 and 4.3; Cohen-Addad et al. 2022 ('kvars').
"""

from __future__ import annotations

from typing import Generic

import numpy as np

from cloister.core.reproducible_math import lengths, powers
from cloister.plugin import (
    Clustering,
    FinestLevel,
    Floats,
    FrequencyOracle,
    Ints,
    InvalidInput,
    Problem,
    PublicRng,
    Rows,
    Session,
    T,
    TreeBuilder,
    VectorSumOracle,
    component,
    count,
    option,
    slot,
    vector_sum,
)
from cloister.plugins.methods.post_processing import group_sizes, nearest

MAX_NODES = 2**16
"""Nodes: each is looked at."""


@component
class KVariates(Generic[T]):
    """k-means++ seeding, or k-median++, on the noisy means of public nodes."""

    nodes: TreeBuilder = slot("simhash-nodes", help="public partition of the domain; its finest level is used")
    counts: FrequencyOracle[T] = slot("discrete-gaussian", help="how many rows each node has")
    sums: VectorSumOracle[T] = slot("discrete-gaussian", help="what those rows add up to")
    power: float = option(default=1.0, low=1.0, high=2.0, help="of distances: 1 for k-median, 2 for k-means")
    significance: float = option(
        default=3.0, low=0.0, unit="standard errors", help="least count of a node that can be drawn"
    )

    def cluster(self, problem: Problem, session: Session[T], rng: PublicRng) -> Clustering:
        domain = problem.domain
        nodes = FinestLevel(self.nodes.open(problem, rng.child("nodes")))
        if nodes.space.sizes[0] > MAX_NODES:
            raise InvalidInput(
                f"{nodes.space.sizes[0]} nodes are too many to draw from, at most {MAX_NODES}: use fewer levels"
            )
        per_count, per_sum = problem.budget.split_for(1.0, 4.0 * domain.dimension)
        counts, sums = session.ask(
            count(nodes, oracle=self.counts, budget=per_count),
            vector_sum(Rows.of(nodes, domain), oracle=self.sums, budget=per_sum),
        )
        ids = np.arange(nodes.space.sizes[0])
        sizes, errors = counts.at(ids), counts.standard_error(ids)
        heavy = np.flatnonzero(sizes > self.significance * errors)
        if len(heavy) < problem.k:
            heavy = np.sort(np.argsort(-sizes, kind="stable")[: problem.k])
        weights = np.maximum(sizes[heavy], 1.0)
        variates = domain.truncate(sums.at(heavy) / weights[:, None] + domain.middle)
        drawn = seeded(variates, weights, problem.k, self.power, rng.child("draw").generator())
        centers = variates[drawn]
        return Clustering(
            centers, group_sizes(nearest(variates, centers), sizes[heavy], problem.k), {"nodes": len(heavy)}
        )


def seeded(points: Floats, weights: Floats, k: int, power: float, g: np.random.Generator) -> Ints:
    """Draw k indices by k-means++ seeding with distances to any power.

    Each is drawn with probability proportional to weight * (distance to the nearest drawn one)^power; the first by
    weight alone, and so are all once every point is drawn.
    """
    masses, drawn = weights, list[int]()
    gaps = np.full(len(points), np.inf)
    for _ in range(k):
        ends = np.cumsum(masses if masses.sum() > 0 else weights)
        drawn.append(min(int(np.searchsorted(ends, g.random() * ends[-1], side="right")), len(points) - 1))
        gaps = np.minimum(gaps, lengths(points - points[drawn[-1]]))
        masses = weights * (gaps if power == 1 else gaps * gaps if power == 2 else powers(gaps, power))
    return np.array(drawn)
