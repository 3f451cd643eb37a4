"""k-means that measures where rows lie, and how far apart, before it asks for anything else: centre first, then radii.

    1. m: the noisy mean of all rows about the domain's middle, shrunk.
    2. r: a noisy histogram of the distances from m; what 95% of the rows are within.
    3. Counts and sums of cells around m, by direction and by distance, offsets clipped to their cell's outer radius.
    4. Candidates: the means of the heaviest cells, shrunk towards m.
    5. Lift: the distance within which 80% of the rows have a candidate, counts and clipped sums about the candidates;
       weighted k-means of what they moved to gives k centres.
    6. Lloyd rounds: in the first and the last, the distances of each group's rows from its centre; counts and sums
       about the centres, clipped to a radius of each group's own (``Measuring.stepped``).

Bounds may be loose: from step 3 on noise is in proportion to radii that were measured, not to the domain. Rows should
be many for their noise, n mu / k above 40 or so: below, candidates drown. Of 16 clear groups one run in twenty misses
one; more starts of the solver (``solver.starts=60``) help a little.

Where a group is less than ``CLEAR`` standard errors, there are eight rounds, elsewhere two. A group's radius is the one
by which noise and what clipping cuts off, both squared, add up to the least: a small group that lies far away keeps all
of its rows, and what is still cut off is part of the stated errors. Where noise hides the distances of single groups,
all have one radius, six tenths of what half of the rows are within, and steps are stretched.

Guarantee: that of the oracles in the slots (trust, neighbouring relation, measure), composed by the accountant over all
rounds: five of steps 1 to 5, ``rounds`` and two of step 6. Each asks one count (a row is in one bucket: sensitivity 1),
or a count and a sum of vectors of L2 norm at most B, a public integer (``clipping``; round 1: the domain's half
diagonal). Centres and radii that later rounds use are released figures; how many candidates and rounds there are, and
everything that events depend on, is public. All else is post-processing.

Steps are shrunk by their known noise (James and Stein; a step is also no longer expected than the radius it was clipped
to): with a budget that is worth nothing all centres are the domain's middle.

Sources: design and shares of the budget are cloister's own study (shares within a third make no difference); clipping
within measured radii: Biswas, Dong, Kamath, Ullman 2020 (CoinPress); lifting: Cohen-Addad et al. 2022.
"""

from __future__ import annotations

import math
from typing import Any, Generic

import numpy as np

from cloister.plugin import (
    Budget,
    Clustering,
    Domain,
    Floats,
    FrequencyOracle,
    Local,
    NonPrivateSolver,
    Problem,
    PublicRng,
    Session,
    T,
    VectorSumOracle,
    component,
    option,
    slot,
)
from cloister.plugins.methods.clipping import ClippedOffsets, lattice_steps
from cloister.plugins.methods.distances import Reach
from cloister.plugins.methods.error_law import MISSED, ErrorLaw, strength, sums_are_pure
from cloister.plugins.methods.measuring import CLIP, GROWTH, Measuring, Moved, Shells
from cloister.plugins.methods.post_processing import pad_centers
from cloister.plugins.methods.rounds import equal_cells
from cloister.plugins.methods.suggesting import suggested

MEAN, RADIUS, CELLS, LIFT = 0.03, 0.02, 0.25, 0.2
"""Shares of mu^2: the mean, each radius, counts and sums of cells and of candidates; the rest is for the Lloyd rounds.
Fitted on shuttle, digits, cal_housing, g10k_d32_k16 and generated mixtures; so are the constants below."""

WITHIN_MIDDLE, WITHIN_LIFT = 0.95, 0.8
"""Shares of the rows that are within the radii of steps 2 and 5."""

WIDEST = 0.8
"""A candidate's radius is at most this times that of k equal cells."""

SIGNIFICANT, KEPT = 3.0, 1.5
"""Standard errors of a count: cells above are candidates, lifted candidates above are clustered."""

SLACK = 8.0
"""``capabilities.slack``."""

LAW, PURE = ErrorLaw(13.0, 1.92, 0.17, 0.05, MISSED), 2.35
"""The second: times the first in pure noise, for which thirteen questions are many (a dozen generated mixtures, house
and g10k_d32_k16)."""

CLEAR = 200.0
"""q from which noise moves a mean by less than clipping does, where groups are skewed."""


@component
class RadiusMeans(Generic[T]):
    """k-means around a noisy mean, within measured radii."""

    counts: FrequencyOracle[T] = slot("discrete-gaussian", help="how many rows fall in each bin, cell, or group")
    sums: VectorSumOracle[T] = slot("discrete-gaussian", help="what the clipped offsets of those rows add up to")
    solver: NonPrivateSolver = slot("kmeans++", help="clusters the lifted candidates into k")
    rounds: int | None = option(
        default=None, low=0, high=64, help="Lloyd rounds at the end; none: 8 if there is much noise, else 2"
    )

    def cluster(self, problem: Problem, session: Session[T], rng: PublicRng) -> Clustering:
        domain, k = problem.domain, problem.k
        spend = iter(self.budgets(problem, rng.child("users")))
        ask = Measuring(problem, session, self.counts, self.sums, spend)
        mean = ask.mean()  # 1.
        radius = ask.radius(ask.near(mean[None]), WITHIN_MIDDLE)  # 2.
        cells = ask.moved(around(mean, radius, k, domain, session, rng.child("cells")).offsets())  # 3.
        n_candidates, offsets = candidates(cells, k)  # 4.
        assignment = ask.near(mean + offsets)
        lift = min(radius, equal_cells(problem, WIDEST), ask.radius(assignment, WITHIN_LIFT))  # 5.
        lifted = ask.moved(
            ClippedOffsets.around(assignment, np.full(len(assignment.centers), lift), domain, session)
        ).first(n_candidates)
        kept_ids = lifted.above(KEPT, k)
        points = domain.truncate(domain.real(assignment.centers[:n_candidates]) + lifted.steps)[kept_ids] - mean
        chosen = dict[str, Any]()
        if problem.fewest is not None:
            sure = lifted.above(SIGNIFICANT, 1)  # the first ones of those that were kept
            heavy = session.release(lifted.counted(sure, points[: len(sure)]))
            suggestion = suggested(heavy, np.full(len(sure), lift**2), problem, self.solver, rng.child("suggest"))
            k, chosen = suggestion.k, suggestion.details
        centers = self.solver.solve(session.release(lifted.coreset(kept_ids, points)), k, rng.child("solve")) + mean
        weights, stated, rounds = np.full(k, problem.rows / k), dict[str, Any](), self.last(problem)
        reach = Reach(radius)
        for number in range(rounds):  # 6.
            assignment = ask.near(pad_centers(centers, problem.k))
            if number in (0, rounds - 1):
                reach = ask.reach(assignment)
                chosen = chosen | reach.details(domain)
            moved = ask.stepped(assignment, reach, k, clip=CLIP if number else 1.0)
            centers, weights, stated = moved.centers, moved.sizes, moved.stated
        details = {"mean": mean, "radius": radius, "rounds": len(session.rounds)} | chosen
        return Clustering(domain.truncate(centers), weights, details | stated)

    @property
    def chooses_k(self) -> bool:
        return True

    @property
    def slack(self) -> float:
        """Measured on shuttle, house and g10k_d32_k16."""
        return SLACK

    def expected_error(self, problem: Problem) -> float:
        """``ErrorLaw``."""
        return LAW.error(problem, self.counts, self.sums) * (PURE if sums_are_pure(problem, self.counts) else 1.0)

    def last(self, problem: Problem) -> int:
        """Return the rounds of step 6: at most two in pure noise or where users answer one question each."""
        restricted = problem.budget.measure == "pure" or self.counts.trust is Local
        noisy = not restricted and strength(problem, self.counts, self.sums) < CLEAR
        return (8 if noisy else 2) if self.rounds is None else self.rounds

    def budgets(self, problem: Problem, rng: PublicRng) -> tuple[Budget, ...]:
        """Return the budget of each question, in the order they are asked.

        Under Local trust users are divided, each asked once with all of epsilon; else everybody's budget is.
        """
        weights = shares(problem.domain.dimension, self.last(problem))
        if self.counts.trust is Local:
            return problem.budget.split_users(rng, *weights)
        return problem.budget.split_for(*(weight**2 for weight in weights))


def shares(d: int, rounds: int) -> list[float]:
    """Return shares of mu^2 by question; counts have the small part of each pair, since a sum has d coordinates."""
    of_cells, of_lift, of_rounds = (1 / (1 + times * math.sqrt(d)) for times in (1, 2, 8))
    parts = [MEAN, RADIUS, CELLS * of_cells, CELLS * (1 - of_cells), RADIUS, LIFT * of_lift, LIFT * (1 - of_lift)]
    growth, measured = GROWTH ** np.arange(rounds), {0, rounds - 1}
    for number, per_round in enumerate((1 - sum(parts) - RADIUS * len(measured)) * growth / growth.sum()):
        parts += [RADIUS] * (number in measured) + [per_round * of_rounds, per_round * (1 - of_rounds)]
    return parts


def around(mean: Floats, radius: float, k: int, domain: Domain, session: Session[Any], seed: PublicRng) -> Shells:
    """Return cells around the mean: 256, or more for more than 32 centres."""
    steps = int(session.agreed(lattice_steps(np.array([radius]), domain))[0])
    return Shells.around(session.agreed(domain.snap(mean[None])), steps, min(max(256, 8 * k), 4096), seed)


def candidates(cells: Moved, k: int) -> tuple[int, Floats]:
    """Return the number of significant candidates (5 k to 12 k) and offsets (m, d) from the mean.

    m is public: the rest repeats the first candidate, which no row is nearer to.
    """
    max_candidates = min(len(cells.sizes), max(64, 12 * k))
    heavy = cells.above(SIGNIFICANT, 5 * k)[:max_candidates]
    return len(heavy), cells.heaviest(np.append(heavy, np.repeat(heavy[:1], max_candidates - len(heavy))))
