"""FastLloyd's error analysis: how many rounds to go, within which radii, and what counts and sums may spend.

All of it is worked out from public figures, whatever the noise law of the oracles, before any row is asked about.

Source: Diaa et al. 2024, equations 16-25, 28-33; Su et al. 2016. Correction: the public number of rows in the rounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Generic, Literal, TypeAlias

import attrs
import numpy as np

from cloister.core.buckets import Space
from cloister.core.budget import Budget
from cloister.core.clustering import Problem
from cloister.core.roles import FrequencyOracle, VectorSumOracle
from cloister.core.trust import T
from cloister.plugins.methods.radius import equal_cells, nearest_within, offsets_from

Updates: TypeAlias = Literal["relative", "absolute"]
Radius: TypeAlias = Literal["step", "constant", "none"]


@attrs.frozen
class Schedule:
    """Schedule of one run.

    Args:
        radii: of each round, in the caller's units: rows farther from their centre count nowhere.
        per_count, per_sum: what each round's counts and sums may spend.
    """

    radii: list[float]
    per_count: Budget
    per_sum: Budget

    @property
    def rounds(self) -> int:
        return len(self.radii)


@attrs.frozen
class ErrorAnalysis(Generic[T]):
    """The error of a round that noise makes, and the schedule that keeps it small. Args: options of ``Lloyd``."""

    counts: FrequencyOracle[T]
    sums: VectorSumOracle[T]
    updates: Updates
    radius: Radius
    radius_scale: float
    offset: float

    def schedule(self, problem: Problem, tried: Iterable[int], error_target: float) -> Schedule:
        """With the first number of rounds whose error is at most the target, or the last: equations 16-21, 28-33."""
        target = error_target * (problem.domain.diameter / 2) ** 2 / problem.domain.dimension
        chosen = Schedule([], problem.budget, problem.budget)
        for rounds in tried:
            budget = problem.budget.over(rounds)
            # the law of shares is that of wide noise: at a large epsilon it is read off a small one
            small = attrs.evolve(budget, amount=min(budget.amount, 0.01))
            chosen = Schedule(self.radii(problem, rounds), *budget.split_for(*self.errors(problem, small, small)))
            if sum(self.errors(problem, chosen.per_count, chosen.per_sum)) <= target:
                break
        return chosen

    def radii(self, problem: Problem, rounds: int) -> list[float]:
        """The radius of each round: equations 22-25."""
        if self.radius == "none":
            return [math.inf] * rounds
        eta = equal_cells(problem, self.radius_scale)
        return [problem.domain.diameter / 2 if self.radius == "step" else eta] * min(1, rounds) + [eta] * (rounds - 1)

    def errors(self, problem: Problem, per_count: Budget, per_sum: Budget) -> tuple[float, float]:
        """Expected squared error of one centre in one round from counts' and from sums' noise (caller's units squared).

        Relative updates, equation 16: k^3 / 4n^2 (Var(count) eta^2 + 4 d Var(sum)). Absolute updates, equation 28
        summed over columns: k^3 / n^2 (4 rho^2 H^2 Var(count) + d Var(sum)) with H half the domain's diagonal.
        """
        domain, relative = problem.domain, self.updates == "relative"
        eta = self.radii(problem, 2)[-1]
        near = nearest_within(eta, np.tile(domain.middle, (problem.k, 1)), domain)
        bound = offsets_from(near, domain, relative=relative)[0].bound
        of_count = self.counts.variance(Space((problem.k,)), per_count, problem.context(per_count))
        of_sum = self.sums.variance(Space((problem.k,)), bound, per_sum, problem.context(per_sum))
        half = eta if math.isfinite(eta) else domain.diameter / 2
        arm = half / 2 if relative else self.offset * domain.diameter
        scale = problem.k**3 / problem.rows**2
        return scale * of_count * arm**2, scale * (domain.dimension * of_sum)
