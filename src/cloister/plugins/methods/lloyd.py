"""Lloyd's algorithm on private answers: FastLloyd, and its forerunners as presets.

Guarantee: the trust model, neighbouring relation, epsilon and delta of the oracles in its slots, composed by the
accountant. A start that asks (``hst-means`` starts from a tree) has its public share of the budget. The schedule is fixed before
any answer; packed starts, rounds and radii come from public figures; every iterate is covered, so that nothing is lost by
publishing them all. What fills the slot ``start`` has options of its own, given as ``start.option``.

Source: Diaa, Humphries, Kerschbaum 2024, Algorithm 1 without the aggregation, equations 5-14, 19-25, 31-33; Su, Cao, Li,
Bertino, Jin 2016. Corrections: integers instead of rounded noise; a row counts iff its
integer distance is within the integer radius, so that the radius is the sensitivity; the public number of rows in the
number of rounds; a public floor under noisy counts, so that a negative one flips no step; folding with period twice the
width (with the paper's modulus, its section 5.3.5, an inner point would be reflected at the middle).
"""

from __future__ import annotations

import math
from typing import Generic, Literal

import attrs
import numpy as np

from cloister.core.buckets import Space, Vectors
from cloister.core.budget import Budget
from cloister.core.clustering import Clustering, Problem
from cloister.core.domains import Domain
from cloister.core.errors import InvalidInput
from cloister.core.nearest import NearestCenter
from cloister.core.questions import Rows, add_up, count
from cloister.core.randomness import PublicRng
from cloister.core.registry.components import component, option, slot
from cloister.core.roles import FrequencyOracle, VectorSumOracle
from cloister.core.session import Method, Session
from cloister.core.trust import T
from cloister.core.types import Floats
from cloister.plugins.methods.post_processing import kept
from cloister.plugins.methods.radius import equal_cells, shortened, steps
from cloister.plugins.methods.start import begun


@attrs.frozen
class Schedule:
    """What one run will do, from public figures. Args: rounds, and what each round's counts and sums may spend."""

    rounds: int
    per_count: Budget
    per_sum: Budget


@component
class Lloyd(Generic[T]):
    """k-means by rounds of noisy counts and noisy sums per nearest centre."""

    start: Method[T] = slot("sphere-packing", help="finds the centres that the first round starts from")
    counts: FrequencyOracle[T] = slot("discrete-gaussian", help="how many rows are nearest to each centre")
    sums: VectorSumOracle[T] = slot("discrete-gaussian", help="what those rows add up to")
    start_share: float = option(
        default=0.0, low=0.0, high=0.99, help="the start's share of the budget; 0 for one that asks nothing"
    )
    updates: Literal["relative", "absolute"] = option(
        default="relative", choices=("relative", "absolute"),
        help="sum rows relative to their centre (sensitivity: the radius) or to the domain's middle (its half diagonal)",
    )  # fmt: skip
    radius: Literal["step", "constant", "none"] = option(
        default="step", choices=("step", "constant", "none"),
        help="rows farther than a radius count nowhere: after a wide first round, in all rounds, or in none",
    )  # fmt: skip
    radius_scale: float = option(
        default=0.8, low=0.0, above=True, help="alpha of equation 25: the radius over that of k equal cells"
    )
    clip_steps: bool = option(default=True, help="move no centre farther than the radius in one round")
    border: Literal["none", "truncate", "fold"] = option(
        default="fold",
        choices=("none", "truncate", "fold"),
        help="centres that leave the domain: leave them there, move to its border, reflect",
    )
    rounds: int | None = option(
        default=None, low=1, help="number of rounds; by default the papers' error formula, within the next two"
    )
    fewest_rounds: int = option(default=2, low=1, help="least number of rounds that the formula may choose")
    most_rounds: int = option(default=7, low=1, help="largest number of rounds that the formula may choose")
    error_target: float = option(
        default=0.004,
        low=0.0,
        above=True,
        unit="mean squared half width",
        help="largest predicted squared error of a centre per round",
    )
    offset: float = option(
        default=0.225,
        low=0.0,
        above=True,
        unit="half width",
        help="rho of Su et al.: expected coordinate of a centre, absolute updates",
    )
    floor: float = option(
        default=1.0,
        low=0.0,
        unit="standard errors of a count",
        help="divide by at least this much, so that a small or negative count flips no step",
    )
    keep_below: float | None = option(
        default=None, unit="rows", help="a centre with a smaller noisy count keeps its place; none: it wanders"
    )
    shrink: float = option(
        default=0.0,
        low=0.0,
        help="shorten a step by this times its expected squared noise over its squared length (James and Stein)",
    )
    average: int = option(default=1, low=1, unit="rounds", help="return the mean of this many last iterates")

    def __attrs_post_init__(self) -> None:
        if self.fewest_rounds > self.most_rounds:
            raise InvalidInput(f"fewest_rounds is {self.fewest_rounds}, more than most_rounds, {self.most_rounds}")

    def cluster(self, problem: Problem, session: Session[T], rng: PublicRng) -> Clustering:
        domain, every = problem.domain, np.arange(problem.k)
        start, problem = begun(self.start, self.start_share, problem, session, rng)
        schedule = self.schedule(problem)
        centers = start.centers
        iterates: list[Floats] = []
        weights = np.zeros(problem.k)
        for reach in self.radii(problem, schedule.rounds):
            near = NearestCenter(domain.snap(centers), domain.reach, steps(reach, domain))
            vectors = self._vectors(near, domain)
            counts, sums = session.ask(
                count(near, via=self.counts, spend=schedule.per_count),
                add_up(vectors, via=self.sums, spend=schedule.per_sum),
            )
            weights, total = counts.at(every), sums.at(every)
            least = self.floor * counts.standard_error(every)
            centers = domain.real(near.centers)
            moved = self._moved(centers, weights, total, least, sums.standard_error(every), domain)
            stay = np.zeros(problem.k, bool) if self.keep_below is None else weights < self.keep_below
            centers = np.where(stay[:, None], centers, self._settled(centers, moved, reach, domain))
            iterates.append(centers)
        return Clustering(
            np.mean(iterates[-self.average :], axis=0),
            np.maximum(weights, 0.0),
            {**start.details, "rounds": schedule.rounds, "iterates": np.array(iterates)},
        )

    def schedule(self, problem: Problem) -> Schedule:
        """Rounds and shares that the error analysis of equations 16-21 and 28-33 asks for, whatever the noise law."""
        fixed = (
            range(self.rounds, self.rounds + 1) if self.rounds else range(self.most_rounds, self.fewest_rounds - 1, -1)
        )
        target = self.error_target * (problem.domain.diameter / 2) ** 2 / problem.domain.dimension
        chosen = Schedule(1, problem.budget, problem.budget)
        for rounds in fixed:
            budget = problem.budget.over(rounds)
            # the law of shares is that of wide noise: at a large epsilon it is read off a small one
            small = attrs.evolve(budget, amount=min(budget.amount, 0.01))
            chosen = Schedule(rounds, *budget.split_for(*self.errors(problem, small, small)))
            if sum(self.errors(problem, chosen.per_count, chosen.per_sum)) <= target:
                break
        return chosen

    def errors(self, problem: Problem, per_count: Budget, per_sum: Budget) -> tuple[float, float]:
        """Expected squared error of one centre in one round from count noise and from sum noise (caller's units squared).

        Relative updates, equation 16: k^3 / 4n^2 (Var(count) eta^2 + 4 d Var(sum)). Absolute updates, equation 28 summed over
        columns: k^3 / n^2 (4 rho^2 H^2 Var(count) + d Var(sum)) with H half the domain's diagonal.
        """
        domain, space = problem.domain, Space((problem.k,))
        eta = self.radii(problem, 2)[-1]
        near = NearestCenter(np.zeros((problem.k, domain.dimension), np.int64), domain.reach, steps(eta, domain))
        of_count = self.counts.variance(space, per_count, problem.setting(per_count))
        bound = self._vectors(near, domain).bound
        of_sum = domain.dimension * self.sums.variance(space, bound, per_sum, problem.setting(per_sum))
        scale = problem.k**3 / problem.rows**2
        if self.updates == "relative":
            return scale * of_count * (eta if math.isfinite(eta) else domain.diameter / 2) ** 2 / 4, scale * of_sum
        return scale * of_count * (self.offset * domain.diameter) ** 2, scale * of_sum

    def radii(self, problem: Problem, rounds: int) -> list[float]:
        """The radius of each round, in the caller's units: equations 22-25."""
        if self.radius == "none":
            return [math.inf] * rounds
        eta = equal_cells(problem, self.radius_scale)
        return [problem.domain.diameter / 2 if self.radius == "step" else eta] * min(1, rounds) + [eta] * (rounds - 1)

    def _moved(
        self, centers: Floats, weights: Floats, total: Floats, least: Floats, error: Floats, domain: Domain
    ) -> Floats:
        """Equation 10, or S / C for absolute updates, with a floor under the count; then the optional shrinking."""
        size = np.maximum(weights, np.maximum(least, 1e-9))[:, None]
        mean = total / size + (centers if self.updates == "relative" else domain.middle)
        if not self.shrink:
            return mean
        step = mean - centers
        noise = domain.dimension * (error[:, None] / size) ** 2
        shorter: Floats = centers + step * kept((step**2).sum(axis=1, keepdims=True), self.shrink * noise)
        return shorter

    def _vectors(self, near: NearestCenter, domain: Domain) -> Vectors:
        if self.updates == "relative":
            return near.offsets()
        return Rows.of(near, domain)

    def _settled(self, before: Floats, target: Floats, reach: float, domain: Domain) -> Floats:
        """Radius clipping, then the border."""
        if self.clip_steps and math.isfinite(reach):
            target = before + shortened(target - before, reach)
        if self.border == "fold":
            return domain.fold(target)
        return domain.truncate(target) if self.border == "truncate" else target
