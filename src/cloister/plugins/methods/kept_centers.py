"""Kept centres: how many rows are nearest to each, and how far rows are from them. Nothing is moved.

One question: a histogram of the rows by their nearest centre and by the distance from it, which is a reference. Whoever
asks the same about other rows can tell what changed (``cloister drift``).

Guarantee: the trust model, neighbouring relation, epsilon and delta of the oracle in its slot: a row is in one bucket,
so that one row changes one count by one. Centres are public, or released by a start that has a share of the budget. The
rest is post-processing.
"""

from __future__ import annotations

from typing import Generic

import numpy as np

from cloister.plugin import Clustering, FrequencyOracle, Method, Problem, PublicRng, Session, T, component, count, slot
from cloister.plugins.methods.clipping import BINS, DistanceBins
from cloister.plugins.methods.distances import Distances
from cloister.plugins.methods.errors import count_error
from cloister.plugins.methods.post_processing import pad_centers
from cloister.plugins.methods.rounds import nearest_within, run_start, share_option


@component
class KeptCenters(Generic[T]):
    """A start's centres as they are, with the rows that are nearest to each, and their distances."""

    start: Method[T] = slot("sphere-packing", help="the centres: public ones, or found with its share of the budget")
    counts: FrequencyOracle[T] = slot("discrete-laplace", help="how many rows each centre, and each distance, has")
    start_share: float = share_option()

    def cluster(self, problem: Problem, session: Session[T], rng: PublicRng) -> Clustering:
        start, remaining = run_start(self.start, self.start_share, problem, session, rng)
        domain, k = problem.domain, problem.k
        assignment = nearest_within(np.inf, pad_centers(start.centers, k), domain, session if session.rounds else None)
        bins = DistanceBins(assignment, 2 * domain.max_norm, BINS // 2, grouped=True, step=2)
        (table,) = session.ask(count(bins, oracle=self.counts, budget=remaining.budget))
        counted = table.at(np.arange(bins.space.sizes[0])).reshape(k, -1)
        error = count_error(self.counts, counted.size, remaining.budget, remaining)
        distances = Distances(bins, counted.sum(axis=0), np.full(bins.number, error * np.sqrt(k)))
        stated = {"weights_error": np.full(k, error * np.sqrt(bins.number)), "counted": counted, "counted_error": error}
        sizes = np.maximum(counted.sum(axis=1), 0.0)
        return Clustering(
            domain.real(assignment.centers), sizes, {**start.details, **stated, **distances.details(domain)}
        )
