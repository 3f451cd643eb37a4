"""k-means by evolution: points are counted, clustered by their counts, and mutated. Nothing but counts is asked.

1. P: (L + 1) k public points.
2. 4 sqrt(d) rounds. Ask how many rows are nearest to each point of P. Keep the largest counts, until they hold n rows.
   C: weighted k-means of the kept points, each centre as far from the middle as its noise and all counts' lets
   believe (``place_clusters``, ``middle_shrinkage``).
   P: C, and L mutants of each c in C.
3. The last C.

A count has sensitivity 1 however wide the domain and however many its columns. A curator who adds Gaussian noise to
sums loses nothing by their columns: there ``radius-means`` is better on nearly every set. A person's own device adds
sqrt(d) times as much noise to a sum of vectors as to a count: under Local trust the two are about even (shuttle four
times at epsilon = 1, g100k_d10_k10 at 4: this one; cal_housing, adult: the other). So ``auto`` does not consider it.

Guarantee: trust model, neighbouring relation and measure are those of the oracle in the slot ``counts``, composed by
the accountant over all rounds. Every round asks one count: a row has one nearest point, so that the sensitivity is 1.
How many points and rounds there are follows from public figures. Under Local trust a keyed hash of her number says
which of the rounds a user answers, with all of her epsilon; elsewhere every round asks everybody for an equal part.

Source: PE-means (arXiv 2606.00342, 2026). Here L is public: about 3 n rows over the standard error of a count are
spread over P (the paper halves L by what was counted); a mutant is tenths of the radius of k equal cells away from its
centre (the paper: hundredths of the domain's, in every column, which is too far in many columns and too near in few).
Constants were fitted on iris, s1, g10k_d32_k16 and, under Local trust, shuttle.
"""

from __future__ import annotations

import math
from typing import Final, Generic

import numpy as np

from cloister.core.reproducible_math import few_bits, lengths, powers, standard_normals
from cloister.plugin import (
    Budget,
    Clustering,
    Coreset,
    Counts,
    Domain,
    Errors,
    Floats,
    FrequencyOracle,
    Local,
    NearestCenter,
    NonPrivateSolver,
    Problem,
    PublicRng,
    Session,
    Space,
    T,
    component,
    count,
    option,
    slot,
)
from cloister.plugins.methods.post_processing import middle_shrinkage, place_clusters
from cloister.plugins.methods.rounds import equal_cells

EXTENT: Final = 0.7
"""Share of the domain around its middle, which the first points are in."""

POINTS: Final = 3.0
"""Number of points, over n divided by the standard error of a count."""

FEWEST, MOST = 4, 1024
"""Mutants of a centre; points, where k is less than a fifth of them."""

MUTATION: Final = 0.1
"""Size of a mutation, over the radius of k equal cells."""

STABILITY: Final = 1.75
"""Index of the stable law of mutations: most are small, a few are far."""


@component
class Evolution(Generic[T]):
    """k-means by noisy counts alone: of points that are clustered and mutated."""

    counts: FrequencyOracle[T] = slot("discrete-gaussian", help="how many rows are nearest to each point")
    solver: NonPrivateSolver = slot("kmeans++", help="clusters the points that hold rows")
    rounds: int | None = option(default=None, low=1, high=256, help="number of rounds; by default 4 sqrt(d)")

    def cluster(self, problem: Problem, session: Session[T], rng: PublicRng) -> Clustering:
        domain, k = problem.domain, problem.k
        budgets = self.budgets(problem, rng.child("users"))
        mutants = self.mutants(problem, budgets[0])
        step = equal_cells(problem, MUTATION) / math.sqrt(domain.dimension)
        points = spread(k * (1 + mutants), domain, rng.child("start"))  # 1.
        centers, weights = points[:k], np.zeros(k)
        for number, budget in enumerate(budgets):  # 2.
            ids, seed = np.arange(len(points)), rng.child("round", number)
            assignment = NearestCenter(session.agreed(domain.snap(points)), domain.max_norm)
            (counts,) = session.ask(count(assignment, oracle=self.counts, budget=budget))
            survivors = session.release(fittest(domain.real(assignment.centers) - domain.middle, counts, problem.rows))
            centers, weights = place_clusters(
                self.solver.solve(survivors, k, seed.child("solve")), survivors.value, domain
            )
            centers = domain.middle + middle_shrinkage(counts.standard_error(ids), problem.rows) * (
                centers - domain.middle
            )
            points = domain.truncate(offspring(centers, mutants, step, seed.child("mutants")))
        return Clustering(centers, weights, {"rounds": len(budgets), "points": len(points)})  # 3.

    def budgets(self, problem: Problem, rng: PublicRng) -> tuple[Budget, ...]:
        """Return the budget of each round: under Local trust, disjoint shares of the users."""
        even = (1.0,) * (self.rounds or int(4 * math.sqrt(problem.domain.dimension)))
        return problem.budget.split_users(rng, *even) if self.counts.trust is Local else problem.budget.split(*even)

    def mutants(self, problem: Problem, budget: Budget) -> int:
        """L of the module's docstring: public."""
        variance = self.counts.variance(Space((MOST,)), budget, problem.context(budget))
        points = POINTS * problem.rows * budget.fraction / math.sqrt(variance) if variance else MOST
        return max(FEWEST, int(min(points, MOST) / problem.k) - 1)


def spread(n: int, domain: Domain, rng: PublicRng) -> Floats:
    """Points (n, d) around the middle, uniform in the domain when seen from there."""
    return domain.middle + EXTENT * (domain.sample(rng.generator(), n, 0.0) - domain.middle)


def fittest(points: Floats, counts: Counts, rows: int) -> Coreset:
    """Return the points (m, d) of the largest counts, until they hold all rows."""
    ids = np.arange(len(points))
    sizes, errors = np.maximum(counts.at(ids), 0.0), counts.standard_error(ids)
    order = np.argsort(-sizes, kind="stable")
    room = np.maximum(rows - (sizes[order].cumsum() - sizes[order]), 0.0)
    weights = np.minimum(sizes[order], room)
    fit_ids = order[weights > 0] if (weights > 0).any() else order
    norms = lengths(points[fit_ids])
    noise = Errors(errors[fit_ids], errors[fit_ids] * norms / math.sqrt(points.shape[1]))
    return Coreset(points[fit_ids], weights[: len(fit_ids)], errors=noise)


def offspring(centers: Floats, mutants: int, step: float, rng: PublicRng) -> Floats:
    """Return the centres (k, d) and this many mutants of each."""
    moved: Floats = centers + step * levy((mutants, *centers.shape), rng)
    return np.concatenate([centers, *moved])


def levy(shape: tuple[int, ...], rng: PublicRng) -> Floats:
    """Numbers of about a stable law. Source: Mantegna 1994, equations 5-7 without the last transformation."""
    a, (above, below) = STABILITY, standard_normals(rng.generator(), 2, *shape)
    scale = math.gamma(1 + a) * math.sin(math.pi * a / 2) / (math.gamma((1 + a) / 2) * a * 2 ** ((a - 1) / 2))
    steps: Floats = few_bits(scale ** (1 / a)) * above / powers(np.abs(below), 1 / a)
    return steps
