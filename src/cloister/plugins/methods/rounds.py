"""Schedules of Lloyd's rounds: the start's share of the budget, the number of rounds and their radii.

Radii, rounds and shares are worked out from public figures, whatever the noise law of the oracles, before any row is
asked about.

Source: Diaa et al. 2024, equations 16-25, 28-33; Su et al. 2016. Correction: the public number of rows in the rounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Generic, Literal, TypeAlias

import attrs
import numpy as np

from cloister.core.reproducible_math import lengths, root
from cloister.plugin import (
    Budget,
    Clustering,
    Domain,
    Floats,
    FrequencyOracle,
    InvalidInput,
    Method,
    NearestCenter,
    Problem,
    PublicRng,
    Rows,
    Session,
    Space,
    T,
    Vectors,
    VectorSumOracle,
    option,
)


def equal_cells(problem: Problem, scale: float) -> float:
    """Equation 25: ``scale`` times the radius of k equal cells of the domain, in the caller's units."""
    domain = problem.domain
    radius = scale * domain.diameter / (2 * root(problem.k, domain.dimension))
    return min(domain.diameter, max(domain.unit, radius))


def nearest_within(
    radius: float, centers: Floats, domain: Domain, session: Session[Any] | None = None
) -> NearestCenter:
    """Rows by their nearest centre (k, d); a row farther than the radius (inf: no limit) is in no bucket.

    Args: session, of centres that were found from its answers (``Session.agreed``).
    """
    points = domain.snap(centers)
    return NearestCenter(points if session is None else session.agreed(points), domain.max_norm, steps(radius, domain))


def offsets_from(assignment: NearestCenter, domain: Domain, *, relative: bool) -> tuple[Vectors, Floats]:
    """Vectors to add up per centre, and their origins (k, d): the centres or, if not ``relative``, the domain's middle.

    Relative vectors are at most as long as the radius (without one, as the domain is wide), others as half the domain.
    """
    if relative:
        return assignment.offsets(), domain.real(assignment.centers)
    return Rows.of(assignment, domain), np.broadcast_to(domain.middle, assignment.centers.shape)


def steps(radius: float, domain: Domain) -> int | None:
    """Convert a radius to whole lattice steps, rounded down and at least one; None for no limit."""
    return max(1, int(radius / domain.unit)) if math.isfinite(radius) else None


def shorten(moves: Floats, max_length: float | Floats) -> Floats:
    """Shorten moves (k, d) to at most ``max_length``: one length, or one each (k, 1)."""
    long = np.maximum(lengths(moves)[:, None], 1e-300)
    capped: Floats = moves * (np.minimum(long, max_length) / long)
    return capped


def share_option() -> Any:
    """Return the option of the share of the budget that the method in the slot ``start`` has."""
    return option(default=0.0, low=0.0, high=0.99, help="share of the budget for the start; 0 if it asks nothing")


def run_start(
    start: Method[Any], share: float, problem: Problem, session: Session[Any], rng: PublicRng
) -> tuple[Clustering, Problem]:
    """Run the start with its share of the budget; return its centres and the problem with the rest.

    Raises:
        InvalidInput: the start asks questions and has no share, so that the budget would be spent twice; or it asks
            none, and its share would be lost. A forecast says so, before any row is read.
    """
    for_start, remaining = problem.split(share)
    n_before = len(session.rounds)
    clustering = start.cluster(for_start, session, rng.child("start"))
    asks = len(session.rounds) > n_before
    if asks and not share:
        raise InvalidInput("the start asks questions, and has no share of the budget: set one (--set start_share=0.5)")
    if share and not asks:
        raise InvalidInput(
            f"the start asks nothing, and its share of the budget, {share:g}, would be lost: set it to 0 "
            "(--set start_share=0)"
        )
    return clustering, remaining


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
        """Return the schedule of the first number of rounds within the target, or the last (equations 16-21, 28-33)."""
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
        """Return the radius of each round (equations 22-25)."""
        if self.radius == "none":
            return [math.inf] * rounds
        eta = equal_cells(problem, self.radius_scale)
        return [problem.domain.diameter / 2 if self.radius == "step" else eta] * min(1, rounds) + [eta] * (rounds - 1)

    def errors(self, problem: Problem, per_count: Budget, per_sum: Budget) -> tuple[float, float]:
        """Return the expected squared errors of one centre in one round from counts' and from sums' noise.

        Both are in the caller's units squared.

        Relative updates, equation 16: k^3 / 4n^2 (Var(count) eta^2 + 4 d Var(sum)). Absolute updates, equation 28
        summed over columns: k^3 / n^2 (4 rho^2 H^2 Var(count) + d Var(sum)) with H half the domain's diagonal.
        """
        domain, relative = problem.domain, self.updates == "relative"
        eta = self.radii(problem, 2)[-1]
        assignment = nearest_within(eta, np.tile(domain.middle, (problem.k, 1)), domain)
        bound = offsets_from(assignment, domain, relative=relative)[0].bound
        of_count = self.counts.variance(Space((problem.k,)), per_count, problem.context(per_count))
        of_sum = self.sums.variance(Space((problem.k,)), per_sum, problem.context(per_sum), bound)
        half = eta if math.isfinite(eta) else domain.diameter / 2
        arm = half / 2 if relative else self.offset * domain.diameter
        scale = problem.k**3 / problem.rows**2
        return scale * of_count * arm**2, scale * (domain.dimension * of_sum)
