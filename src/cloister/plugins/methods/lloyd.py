"""Lloyd's algorithm on private answers: FastLloyd, and its forerunners as presets.

Guarantee: the trust model, neighbouring relation, epsilon and delta of the oracles in its slots, composed by the
accountant. A start that asks (``hst-means`` starts from a tree) has its public share of the budget. The schedule is
fixed before any answer; packed starts, rounds and radii come from public figures; every iterate is covered, so that
nothing is lost by publishing them all. What fills the slot ``start`` has options of its own, given as ``start.option``.

Source: Diaa, Humphries, Kerschbaum 2024, Algorithm 1 without the aggregation, equations 5-14, 19-25, 31-33; Su, Cao,
Li, Bertino, Jin 2016. Corrections: integers instead of rounded noise; a row counts iff its integer distance is within
the integer radius, so that the radius is the sensitivity; the public number of rows in the number of rounds; a centre
whose noisy count is below one row keeps its place, so that a negative count flips no step; folding with period twice
the width (with the paper's modulus, its section 5.3.5, an inner point would be reflected at the middle); equation 33
without the T on its right side. ``fastlloyd``, ``gauss-lloyd`` and ``su-lloyd`` are that and no more.

Added in ``damped-lloyd``, as post-processing of released figures: a floor under counts, and ``shrink``, by which no
centre moves for noise alone, and none ends farther from the middle than noise lets believe. NICV over scikit-learn's at
epsilon = 0.02, 0.1, 0.25, 1 with a floor (geometric means of iris, wine, lsun, house, digits and s1):

    shrink        0                        1                        one centre in the middle
    damped-lloyd  4.5  3.0  2.0  1.4       3.6  2.4  2.0  1.4       6.5
    hst-means     5.5  2.9  1.9  1.4       4.2  2.6  1.8  1.3
"""

from __future__ import annotations

import math
from typing import Generic, Literal

import numpy as np

from cloister.core.reproducible_math import row_sums
from cloister.plugin import (
    MOST_ROUNDS,
    Clustering,
    Domain,
    Floats,
    FrequencyOracle,
    InvalidInput,
    Method,
    Problem,
    PublicRng,
    Session,
    T,
    VectorSumOracle,
    chooses_k,
    component,
    count,
    option,
    slot,
    vector_sum,
)
from cloister.plugins.methods.error_law import MISSED, ErrorLaw
from cloister.plugins.methods.errors import clip_radii, own_row_errors, rows_beyond, step_errors
from cloister.plugins.methods.post_processing import james_stein, pad_centers, towards_middle
from cloister.plugins.methods.rounds import (
    ErrorAnalysis,
    Radius,
    Schedule,
    Updates,
    nearest_within,
    offsets_from,
    run_start,
    share_option,
    shorten,
)

FROM_TREE, FROM_PACKED = ErrorLaw(1.88, 1.34, 0.6, -0.08, MISSED), ErrorLaw(0.41, 0.76, 0.31, 0.22, MISSED)
"""Fitted to hst-means and to damped-lloyd, whose public start stays wrong however much budget there is."""


@component
class Lloyd(Generic[T]):
    """k-means by rounds of noisy counts and noisy sums per nearest centre."""

    start: Method[T] = slot("sphere-packing", help="finds the centres that the first round starts from")
    counts: FrequencyOracle[T] = slot("discrete-gaussian", help="how many rows are nearest to each centre")
    sums: VectorSumOracle[T] = slot("discrete-gaussian", help="what those rows add up to")
    start_share: float = share_option()
    updates: Updates = option(
        default="relative",
        choices=("relative", "absolute"),
        help="sum rows relative to their centre (sensitivity: the radius) or to the domain's middle (its half "
        "diagonal)",
    )
    radius: Radius = option(
        default="step",
        choices=("step", "constant", "none"),
        help="rows beyond a radius are dropped: after a wide first round (step), in all rounds, or in none",
    )
    radius_scale: float = option(
        default=0.8, low=0.0, above=True, help="alpha of equation 25: the radius over that of k equal cells"
    )
    clip_steps: bool = option(default=True, help="move no centre farther than the radius in one round")
    border: Literal["none", "truncate", "fold"] = option(
        default="fold",
        choices=("none", "truncate", "fold"),
        help="what happens to centres outside the domain: none keeps them, truncate projects, fold reflects",
    )
    rounds: int | None = option(
        default=None,
        low=1,
        high=MOST_ROUNDS,
        help="number of rounds; none: by the papers' error formula, from fewest_rounds to most_rounds",
    )
    fewest_rounds: int = option(
        default=2, low=1, high=MOST_ROUNDS, help="least number of rounds that the formula may choose"
    )
    most_rounds: int = option(
        default=7, low=1, high=MOST_ROUNDS, help="largest number of rounds that the formula may choose"
    )
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
        help="least count that a step divides by, so that a small or negative count flips no step",
    )
    keep_below: float | None = option(
        default=None, unit="rows", help="centres with a smaller noisy count keep their place; none: all centres move"
    )
    shrink: float = option(
        default=1.0,
        low=0.0,
        help="shorten a step by this times its expected squared noise over its squared length (James and Stein), and "
        "shrink the last centres towards the domain's middle by their noise; 0: neither",
    )
    average: int = option(default=1, low=1, unit="rounds", help="return the mean of this many last iterates")

    def __attrs_post_init__(self) -> None:
        if self.fewest_rounds > self.most_rounds:
            raise InvalidInput(f"fewest_rounds is {self.fewest_rounds}, more than most_rounds, {self.most_rounds}")

    def cluster(self, problem: Problem, session: Session[T], rng: PublicRng) -> Clustering:
        start, problem = run_start(self.start, self.start_share, problem, session, rng)
        domain, ids = problem.domain, np.arange(len(start.centers))
        schedule = self.schedule(problem)
        centers, weights, iterates = start.centers, np.zeros(len(ids)), list[Floats]()
        errors, count_errors, previous, within = np.zeros((len(ids), 1)), np.zeros(len(ids)), centers, math.inf
        for radius in schedule.radii:
            # a start's centres must be rounded alike everywhere; later ones are + - * / of answers
            rounding = session if self.start_share and not iterates else None
            # line 7: the assignment step
            assignment = nearest_within(radius, pad_centers(centers, problem.k), domain, rounding)
            vectors, origin = offsets_from(assignment, domain, relative=self.updates == "relative")
            counts, sums = session.ask(  # lines 12 to 16: the update, local and global
                count(assignment, oracle=self.counts, budget=schedule.per_count),
                vector_sum(vectors, oracle=self.sums, budget=schedule.per_sum),
            )
            previous, within = domain.real(assignment.centers)[ids], radius
            centers, weights = previous, counts.at(ids)
            count_errors = counts.standard_error(ids)
            kept_below = -math.inf if self.keep_below is None else self.keep_below
            size = np.maximum(weights, np.maximum(self.floor * count_errors, max(kept_below, 1e-9)))[:, None]
            means = sums.at(ids) / size + origin[ids]  # line 19, or S / C for absolute updates
            errors = sums.standard_error(ids)[:, None] / size
            means = self._shrunk(centers, means, errors)
            stay = weights < kept_below
            centers = np.where(stay[:, None], centers, self._inside(centers, means, radius, domain))  # line 20: fold
            iterates.append(centers)
        released = np.mean(iterates[-self.average :], axis=0)
        # with border=none noise may carry a centre outside the domain: the nearest point inside is released
        released = domain.truncate(towards_middle(released, math.sqrt(self.shrink) * errors[:, 0], domain))
        sizes = np.maximum(weights, 0.0)
        size_errors = np.hypot(count_errors, own_row_errors(sizes, self.counts, schedule.per_count))
        radii, away = clip_radii(within, len(ids)), rows_beyond(sizes, problem.rows, within)
        stated = step_errors(
            sizes,
            weights,
            np.hypot(size_errors, away),
            released,
            released - previous,
            errors[:, 0],
            radii,
            cut=radii
            * away
            / np.maximum(sizes, np.maximum(size_errors, 1.0)),  # rows beyond the radius are as far at least
            spread=radii[0],
        )
        return Clustering(
            released, sizes, {**start.details, "rounds": schedule.rounds, "iterates": np.array(iterates), **stated}
        )

    @property
    def chooses_k(self) -> bool:
        """True if the start can choose k."""
        return chooses_k(self.start)

    def expected_error(self, problem: Problem) -> float:
        """``ErrorLaw``, with constants of a start that asks (``start_share``), or of one that reads no row."""
        return (FROM_TREE if self.start_share else FROM_PACKED).error(problem, self.counts, self.sums)

    def schedule(self, problem: Problem) -> Schedule:
        """Return rounds, radii and shares, from public figures."""
        tried = [self.rounds] if self.rounds else range(self.most_rounds, self.fewest_rounds - 1, -1)
        analysis = ErrorAnalysis(self.counts, self.sums, self.updates, self.radius, self.radius_scale, self.offset)
        return analysis.schedule(problem, tried, self.error_target)

    def _shrunk(self, previous: Floats, means: Floats, errors: Floats) -> Floats:
        """Shrink means (k, d) towards their previous centres by what noise of these errors (k, 1) adds."""
        if not self.shrink:
            return means
        step = means - previous
        noise = step.shape[1] * errors**2
        shrunk: Floats = previous + step * james_stein(row_sums(step**2)[:, None], self.shrink * noise)
        return shrunk

    def _inside(self, previous: Floats, target: Floats, radius: float, domain: Domain) -> Floats:
        """Clip the step to the radius, then treat the border."""
        if self.clip_steps and math.isfinite(radius):
            target = previous + shorten(target - previous, radius)
        if self.border == "fold":
            return domain.fold(target)
        return domain.truncate(target) if self.border == "truncate" else target
