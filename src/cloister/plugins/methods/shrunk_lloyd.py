"""Lloyd's rounds for few rows: from near the middle, by clipped and shrunk sums, over sizes that nobody can lose by.

With q = n mu / k (rows per centre, in standard errors of a count that has the whole budget) below about 40, noise is as
large as the groups, and what it costs decides. So nothing of a small budget goes to a search:

1. Start: k public points, packed in a fifth of the domain around its middle. Where a round learns nothing, centres stay
   together there, and no worse than one centre.
2. Four equal rounds of counts and of sums of offsets from the nearest centre. Offsets beyond half the domain's radius,
   then three tenths of it, are clipped and not dropped: a row far from everything still says in which direction.
3. Counts are moved to the nearest ones that add up to n; a step divides by no less than min(1, 25 / q) n / k rows.
4. The matrix of sums is denoised as a whole (``denoised``), no step is believed farther than its noise lets
   (``believed``), and steps are stretched, since clipping shortens them.

Guarantee: the trust model, neighbouring relation, epsilon and delta of the oracles in its slots: per round one count
and one vector, whose norm is at most a fixed integer (``ClippedOffsets``), for every row. The rest is post-processing.

Constants were fitted on iris, wine, digits and eight generated mixtures of 200 to 2,000 rows, and are flat: 3 to 6
rounds, an extent of 0.05 to 0.3, a stretch of 1 to 1.7 are within 4% of each other in the geometric mean. The floor
matters (n / 4k instead of n / k: 20% worse at epsilon = 0.1), and shrinking (without any, twice the cost).

Source: Diaa et al. 2024 (relative updates); James and Stein 1961; Efron and Morris 1976. The combination is cloister's.
"""

from __future__ import annotations

import math
from typing import Any, Generic

import numpy as np

from cloister.core.buckets import Space
from cloister.core.budget import Budget
from cloister.core.clustering import Clustering, Problem
from cloister.core.questions import count, vector_sum
from cloister.core.randomness import PublicRng
from cloister.core.registry.components import component, option, slot
from cloister.core.roles import FrequencyOracle, VectorSumOracle
from cloister.core.session import Method, Session
from cloister.core.trust import Aggregated, Central, T
from cloister.plugins.methods.clipping import ClippedOffsets
from cloister.plugins.methods.errors import ErrorLaw, count_error, of_steps
from cloister.plugins.methods.post_processing import believed, denoised, projected
from cloister.plugins.methods.rounds import begun, nearest_within, share_option

WELL_KNOWN = 25.0
"""q from which smaller groups than the average one are believed."""

LAW = ErrorLaw(0.144, 0.77, 0.16, 0.66)

PICKED, FEW = 0.64, 6
"""Times the law where noise is added to sums, in more columns than so many. It picks better: on 61 generated mixtures
in 8 to 64 columns, at an epsilon of 0.1 to 1, what ``auto`` takes costs 2.5% less; in 2 to 6 it would cost more."""


@component
class ShrunkLloyd(Generic[T]):
    """k-means by rounds of clipped sums, shrunk by their known noise: for few rows, or a small budget."""

    start: Method[T] = slot("sphere-packing", help="finds the centres that the first round starts from")
    counts: FrequencyOracle[T] = slot("discrete-gaussian", help="how many rows are nearest to each centre")
    sums: VectorSumOracle[T] = slot("discrete-gaussian", help="what those rows, relative to their centre, add up to")
    start_share: float = share_option()
    rounds: int = option(default=4, low=1, high=64, help="number of rounds")
    extent: float = option(
        default=0.2,
        low=0.0,
        high=1.0,
        above=True,
        help="so much of the way from the domain's middle to the start's centres is gone; 1 for a start that asks",
    )
    first_radius: float = option(
        default=0.5, low=0.0, high=2.0, above=True, unit="half diameters", help="offsets are clipped to it at first"
    )
    radius: float = option(
        default=0.3, low=0.0, high=2.0, above=True, unit="half diameters", help="offsets are clipped to it later"
    )
    stretch: float = option(default=1.3, low=0.0, high=2.0, above=True, help="of a round's steps")

    def cluster(self, problem: Problem, session: Session[T], rng: PublicRng) -> Clustering:
        domain, every = problem.domain, np.arange(problem.k)
        start, problem = begun(self.start, self.start_share, problem, session, rng)
        per_count, per_sum = self.per_round(problem)
        centers, weights = domain.middle + self.extent * (start.centers - domain.middle), np.zeros(problem.k)
        stated, count_errors = dict[str, Any](), count_error(self.counts, problem.k, per_count, problem)
        for number in range(self.rounds):
            radius = (self.radius if number else self.first_radius) * domain.diameter / 2
            near = nearest_within(math.inf, centers, domain, session)
            offsets = ClippedOffsets.around(near, np.full(problem.k, radius), domain)
            counts, sums = session.ask(
                count(near, oracle=self.counts, budget=per_count), vector_sum(offsets, oracle=self.sums, budget=per_sum)
            )
            counted = counts.at(every)
            weights = projected(counted, problem.rows)
            (totals, errors), sizes = offsets.read(sums), np.maximum(weights, self.least_rows(problem))
            steps = believed(errors / sizes, domain) * denoised(totals, errors) / sizes[:, None]
            centers = domain.truncate(domain.real(near.centers) + self.stretch * steps)
            stated = of_steps(
                weights,
                counted,
                count_errors,
                centers,
                self.stretch * steps,
                self.stretch * errors / sizes,
                np.full(problem.k, radius),
            )
        return Clustering(centers, weights, {**start.details, "rounds": self.rounds, **stated})

    def per_round(self, problem: Problem) -> tuple[Budget, Budget]:
        """Budgets of a round's counts, of use for the largest groups only, and of its sums."""
        per_count, per_sum = problem.budget.over(self.rounds).split_for(1.0, 16.0 * problem.domain.dimension)
        return per_count, per_sum

    def expected_error(self, problem: Problem) -> float:
        """``ErrorLaw``."""
        lower = problem.domain.dimension > FEW and self.counts.trust in (Central, Aggregated)
        return (PICKED if lower else 1.0) * LAW.error(problem, self.counts)

    def least_rows(self, problem: Problem) -> float:
        """That a step divides by: n / k, and less where counts are well known; at least one."""
        average, budget = problem.rows / problem.k, problem.budget
        error = math.sqrt(self.counts.variance(Space((problem.k,)), budget, problem.context(budget)))
        return max(1.0, min(average, WELL_KNOWN * error))
