"""Lloyd for k-median on private answers: a start, then noisy rounds of Weiszfeld's steps.

Guarantee: the trust model, neighbouring relation, epsilon and delta of the oracles in its slots, composed by the
accountant. The number of rounds is public; every round spends the same. A start that asks has its share of the budget.

From a public start (``private-lloyd-median``) this is 'Private Lloyd' of the paper, without an approximation guarantee;
from a tree's centres (``hst-median``) it is the Lloyd iterations that follow the paper's tree. Changed: instead of a
1-median by perturbed optimisation, which is proved for exact minimisers only, each round goes one step of Weiszfeld's
(``Pulls``, ``weiszfeld``) by a noisy sum of unit vectors. Public centres start packed, which is kinder than the paper's
'randomly in the space'.

Behind the defaults (seven rounds are the paper's): four rounds at epsilon = 0.35, k = 40, cost over that of the
k-median++ seeds.
Smoothing 0.02 to 0.1, weights of 1/2 to 2, stretch 1 to 1.5 and shrink 1 are within a few hundredths of each other;
above 0.1 small clusters blur.

                                        skin   shuttle  covertype_first20k  higgs_10k
    Weiszfeld's steps, smoothing 0.05   0.83    0.80          0.82             0.87
    the same, smoothing 0.3             0.82    1.23          0.98             0.89
    gradient steps, sum(u) over count   0.83    0.91          0.80             0.84
    means within 0.8 equal cells        0.84    1.36          1.19             0.92

Source: Cohen-Addad, Epasto, Lattanzi, Mirrokni, Munoz, Saulpic, Schwiegelshohn, Vassilvitskii 2022, section 6.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, Generic, final

import attrs
import numpy as np

from cloister.plugin import (
    MOST_ROUNDS,
    Bound,
    BundleArrays,
    Clustering,
    Floats,
    FrequencyOracle,
    Ints,
    Method,
    NearestCenter,
    PredictsError,
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
from cloister.plugins.methods.error_law import ErrorLaw
from cloister.plugins.methods.errors import SMOOTHED, clip_radii, count_error, rows_beyond, step_errors
from cloister.plugins.methods.post_processing import james_stein, pad_centers
from cloister.plugins.methods.rounds import equal_cells, nearest_within, run_start, share_option, shorten, steps

STEPS: Final = 2**15
"""Lattice steps of a unit vector: truncation shortens a pull by at most a 2^-15 per column, far below any noise."""

TOP: Final = STEPS // 2
"""The largest weight w, in the same steps: half a unit vector, the best of 1/2, 1 and 2 in trials."""

FLOOR: Final = 2.0
"""Least sum of weights that is divided by, in standard errors."""

UNDER: Final = 1 - 2.0**-30
"""Two roundings in u and w raise neither above its true value, so that truncation never crosses an integer."""


@final
@attrs.frozen(eq=False)
class Pulls:
    """A row's smoothed unit vector, towards it from its centre, and its weight, in ``STEPS``: of dimension d + 1.

    The sum of distances of a cluster's rows to its centre c falls fastest along the sum of the unit vectors u = (x - c)
    / |x - c|, and Weiszfeld's step c + sum(u) / sum(1 / |x - c|) goes as far as a quadratic above the cost allows. One
    row changes sum(u) by a vector of norm 1 wherever it is: a mean's sensitivity grows with the domain, a median's does
    not. One question asks for both sums: a row x pulls its centre by (u, w), with s a public length and
    r = max(|x - c|, s),

        u = (x - c) / r,    w = s / 2r,    |u|^2 + w^2 <= 1 + 1/4,

    (r >= s: 1 + s^2 / 4r^2; r = s: |x - c|^2 / s^2 + 1/4). So w, what Weiszfeld divides by, costs a ninth of the
    accuracy of u.

    Exactness (law 5): offsets are integers and their squares add up below 2^53, so that |x - c|^2 is exact in any
    order; square root, quotient and product are single correctly rounded operations on one row; truncation is towards
    zero. The L2 bound is the joint norm of u and w, sqrt(5/4) * STEPS rounded up. The L1 norm is at most sqrt(d) + 1/2.

    Args:
        cells: nearest centres, within a radius or not.
        smoothing: s, in whole lattice steps, at least 1: closer rows pull in proportion to their distance.
    """

    cells: NearestCenter
    smoothing: int

    @property
    def bound(self) -> Bound:
        dimension = self.cells.centers.shape[1]
        joint = Bound(math.isqrt(STEPS**2 + TOP**2 - 1) + 1, dimension + 1)
        return attrs.evolve(joint, l1=min(joint.implied, math.isqrt(dimension * STEPS**2) + TOP))

    def values(self, rows: Ints, buckets: Ints) -> Ints:
        offsets = (rows - np.take(self.cells.centers, buckets[:, 0], axis=0, mode="wrap")).astype(np.float64)
        lengths = np.sqrt(np.einsum("ij,ij->i", offsets, offsets))
        scale = STEPS * UNDER / np.maximum(lengths, float(self.smoothing))
        pulls = np.empty((len(rows), offsets.shape[1] + 1))
        np.multiply(offsets, scale[:, None], out=pulls[:, :-1])
        pulls[:, -1] = scale * (self.smoothing * (TOP / STEPS))
        return np.trunc(pulls, out=pulls).astype(np.int64)

    def bundled(self, arrays: BundleArrays) -> Mapping[str, Any]:
        return {
            "kind": "clipped",
            "centers": arrays.add(self.cells.centers),
            "scale": STEPS,
            "radii": arrays.add(np.array([self.smoothing])),
            "weighted": True,
            **self.bound.bundled,
        }


def weiszfeld(sums: Floats, errors: Floats, *, smoothing: float, stretch: float, shrink: float) -> Floats:
    """Return the steps (k, d) that noisy sums ask for.

    A step is stretch * (s / 2) * sum(u) / sum(w), shortened by the squared length that noise alone gives it (James
    and Stein). The majorising quadratic makes every stretch between 0 and 2 a descent without noise (Weiszfeld's
    step is stretch 1); 1.25 is faster.

    Source: Weiszfeld 1937; Cohen-Addad et al. 2022, section 6, whose perturbed optimisation of a smoothed cost this
    replaces (its proof needs an exact minimiser); Newton's method on the same smoothed cost.

    Args:
        sums: (k, d + 1) of u and w, in unit vectors.
        errors: (k,) standard error of each coordinate.
        smoothing: s, in the caller's units.
        stretch: of Weiszfeld's step, between 0 and 2.
        shrink: how many times its expected squared noise a step's squared length is reduced by.
    """
    pulls, weights = sums[:, :-1], np.maximum(sums[:, -1], np.maximum(FLOOR * errors, 1e-9))
    worth = james_stein((pulls**2).sum(axis=1), shrink * pulls.shape[1] * errors**2)
    moves: Floats = pulls * (worth * stretch * smoothing * (TOP / STEPS) / weights)[:, None]
    return moves


def step_noise(sums: Floats, errors: Floats, *, smoothing: float, stretch: float) -> Floats:
    """Return the standard error (k,) of a coordinate of ``weiszfeld``'s steps before they are shortened."""
    weights = np.maximum(sums[:, -1], np.maximum(FLOOR * errors, 1e-9))
    return np.asarray(errors * stretch * smoothing * (TOP / STEPS) / weights, np.float64)


FROM_TREE, FROM_PACKED = ErrorLaw(0.75, 2.05, 1.25, -0.23), ErrorLaw(0.11, 1.14, 0.47, 0.14)
FROM_GRID = ErrorLaw(0.48, 2.13, 0.46, -0.28)
"""Fitted to hst-median, to private-lloyd-median, whose public start stays wrong however much budget there is, and to
grid-median (a start that predicts its error), on the generated mixtures of ``ErrorLaw``."""


@component
class LloydMedian(Generic[T]):
    """k-median by rounds of noisy sums of unit vectors per nearest centre."""

    start: Method[T] = slot("sphere-packing", help="finds the centres that the first round starts from")
    counts: FrequencyOracle[T] = slot("discrete-gaussian", help="how many rows are nearest to each centre")
    sums: VectorSumOracle[T] = slot("discrete-gaussian", help="what their unit vectors towards the centre add up to")
    start_share: float = share_option()
    rounds: int = option(default=7, low=1, high=MOST_ROUNDS, help="number of rounds")
    count_share: float = option(
        default=0.05,
        low=0.0,
        high=0.5,
        above=True,
        help="share of a round's budget for counts, which become sizes; no step uses them",
    )
    smoothing: float = option(
        default=0.05,
        low=0.0,
        above=True,
        unit="half diameters",
        help="distance below which rows pull in proportion to it",
    )
    stretch: float = option(default=1.25, low=0.0, high=2.0, above=True, help="factor of Weiszfeld's step")
    shrink: float = option(
        default=1.0, low=0.0, help="shorten a step by this times its expected squared noise over its squared length"
    )
    radius_scale: float | None = option(
        default=None,
        low=0.0,
        above=True,
        help="radius, over that of k equal cells, beyond which rows are dropped and no step goes; none: no limit",
    )

    def cluster(self, problem: Problem, session: Session[T], rng: PublicRng) -> Clustering:
        start, problem = run_start(self.start, self.start_share, problem, session, rng)
        domain, ids = problem.domain, np.arange(len(start.centers))
        per_count, per_pull = problem.budget.over(self.rounds).split(self.count_share, 1 - self.count_share)
        radius = math.inf if self.radius_scale is None else equal_cells(problem, self.radius_scale)
        smoothing = steps(self.smoothing * domain.diameter / 2, domain) or 1
        # the oracle takes lattice steps for lengths in the caller's units; these are steps of unit vectors
        scale = 1 / (domain.unit * STEPS)
        centers, weights = start.centers, np.zeros(len(ids))
        count_errors, stated = count_error(self.counts, problem.k, per_count, problem), dict[str, Any]()
        for _ in range(self.rounds):
            assignment = nearest_within(radius, pad_centers(centers, problem.k), domain, session)
            counts, pulls = session.ask(
                count(assignment, oracle=self.counts, budget=per_count),
                vector_sum(Pulls(assignment, smoothing), oracle=self.sums, budget=per_pull),
            )
            totals, errors = pulls.at(ids) * scale, pulls.standard_error(ids) * scale
            length, previous = smoothing * domain.unit, domain.real(assignment.centers)[ids]
            moves = weiszfeld(totals, errors, smoothing=length, stretch=self.stretch, shrink=self.shrink)
            centers = domain.truncate(previous + shorten(moves, min(radius, domain.diameter / 2)))
            counted = counts.at(ids)
            weights = np.maximum(counted, 0.0)
            noise = step_noise(totals, errors, smoothing=length, stretch=self.stretch)
            noise = np.hypot(noise, SMOOTHED * length)
            stated = step_errors(
                weights,
                counted,
                np.hypot(count_errors, rows_beyond(weights, problem.rows, radius)),
                centers,
                centers - previous,
                noise,
                clip_radii(radius, len(ids)),
            )
        return Clustering(centers, weights, start.details | {"rounds": self.rounds} | stated)

    @property
    def chooses_k(self) -> bool:
        """True if the start can choose k."""
        return chooses_k(self.start)

    def expected_error(self, problem: Problem) -> float:
        """``ErrorLaw``, with constants of the kind of start. Raises: InvalidInput: the start cannot solve it."""
        if isinstance(self.start, PredictsError):
            self.start.expected_error(problem)
            return FROM_GRID.error(problem, self.counts, self.sums)
        return (FROM_TREE if self.start_share else FROM_PACKED).error(problem, self.counts, self.sums)
