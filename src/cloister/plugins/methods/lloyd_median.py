"""Lloyd for k-median on private answers: a start, then noisy rounds of Weiszfeld's steps.

Guarantee: the trust model, neighbouring relation, epsilon and delta of the oracles in its slots, composed by the accountant. The
number of rounds is public, and every round spends the same. A start that asks has its share of the budget.

From a public start (``private-lloyd-median``) this is 'Private Lloyd' of the paper, without an approximation guarantee; from a tree's
centres (``hst-median``) it is the Lloyd iterations that follow the paper's tree. Changed: instead of a 1-median by perturbed
optimisation, which is proved for exact minimisers only, each round is one ``median_round``: a noisy sum of unit vectors. Public
centres start packed, which is kinder than the paper's 'randomly in the space'.

Source: Cohen-Addad, Epasto, Lattanzi, Mirrokni, Munoz, Saulpic, Schwiegelshohn, Vassilvitskii 2022, section 6 (seven rounds).
"""

from __future__ import annotations

import math
from typing import Generic

import numpy as np

from cloister.core.clustering import Clustering, Problem
from cloister.core.randomness import PublicRng
from cloister.core.registry.components import component, option, slot
from cloister.core.roles import FrequencyOracle, VectorSumOracle
from cloister.core.session import Method, Session
from cloister.core.trust import T
from cloister.plugins.methods.median_step import MedianStep, median_round, median_shares
from cloister.plugins.methods.radius import equal_cells
from cloister.plugins.methods.start import begun


@component
class LloydMedian(Generic[T]):
    """k-median by rounds of noisy sums of unit vectors per nearest centre."""

    start: Method[T] = slot("sphere-packing", help="finds the centres that the first round starts from")
    counts: FrequencyOracle[T] = slot("discrete-gaussian", help="how many rows are nearest to each centre")
    pulls: VectorSumOracle[T] = slot("discrete-gaussian", help="what their unit vectors towards the centre add up to")
    start_share: float = option(
        default=0.0, low=0.0, high=0.99, help="the start's share of the budget; 0 for one that asks nothing"
    )
    rounds: int = option(default=7, low=1, help="number of rounds")
    count_share: float = option(
        default=0.05, low=0.0, high=0.5, above=True, help="of a round: counts become weights, no step uses them"
    )
    smoothing: float = option(
        default=0.05,
        low=0.0,
        above=True,
        unit="half diameters",
        help="closer rows pull in proportion to their distance",
    )
    stretch: float = option(default=1.25, low=0.0, high=2.0, above=True, help="of Weiszfeld's step")
    shrink: float = option(
        default=1.0, low=0.0, help="shorten a step by this times its expected squared noise over its squared length"
    )
    radius_scale: float | None = option(
        default=None, low=0.0, above=True,
        help="rows farther than this many radii of k equal cells pull nobody, and no step is longer; none: no limit",
    )  # fmt: skip

    def cluster(self, problem: Problem, session: Session[T], rng: PublicRng) -> Clustering:
        found, rest = begun(self.start, self.start_share, problem, session, rng)
        centers, weights = found.centers, np.zeros(problem.k)
        per_count, per_pull = median_shares(rest.budget, self.rounds, self.count_share)
        step = self.step(problem)
        for _ in range(self.rounds):
            centers, weights = median_round(
                session,
                centers,
                counts=self.counts,
                pulls=self.pulls,
                per_count=per_count,
                per_pull=per_pull,
                step=step,
            )
        return Clustering(centers, weights, found.details | {"rounds": self.rounds})

    def step(self, problem: Problem) -> MedianStep:
        """How far a round goes on this problem."""
        within = math.inf if self.radius_scale is None else equal_cells(problem, self.radius_scale)
        return MedianStep(self.smoothing, self.stretch, self.shrink, within=within)
