"""One noisy round of k-median: what every method that improves k-median centres is made of.

The sum of distances of a cluster's rows to its centre c falls fastest along the sum of the unit vectors u = (x - c) / |x - c|, and
Weiszfeld's step c + sum(u) / sum(1 / |x - c|) goes as far as a quadratic above the cost allows. One row changes sum(u) by a vector of
norm 1 wherever it is: the sensitivity of a median does not grow with the domain, that of a mean does.

The question asks for both sums at once: a row x pulls its centre by (u, w), with s a public smoothing length and r = max(|x - c|, s),

    u = (x - c) / r,    w = s / 2r,    |u|^2 + w^2 <= 1 + 1/4,

(r >= s: 1 + s^2 / 4r^2; r = s: |x - c|^2 / s^2 + 1/4). So w, what Weiszfeld divides by, costs a ninth of the accuracy of u. The step is

    c + stretch * (s / 2) * sum(u) / sum(w),

shortened by the squared length that noise alone gives it (James and Stein), no longer than a public length, and kept in the domain.
The majorising quadratic makes every stretch between 0 and 2 a descent without noise (Weiszfeld's step is stretch 1); 1.25 is faster.

Guarantee: that of the oracles, for a count per centre and one vector sum per centre; all else is post-processing.

Source: Weiszfeld 1937; Cohen-Addad et al. 2022, section 6, whose perturbed optimisation of a smoothed cost this replaces (its proof
needs an exact minimiser); Newton's method on the same smoothed cost. Figures behind the defaults: see ``MedianStep``.
"""

from __future__ import annotations

import math
from typing import Final, final

import attrs
import numpy as np

from cloister.core.budget import Budget
from cloister.core.lattice import Bound
from cloister.core.nearest import NearestCenter
from cloister.core.questions import add_up, count
from cloister.core.roles import FrequencyOracle, VectorSumOracle
from cloister.core.session import Session
from cloister.core.trust import T
from cloister.core.types import Floats, Ints
from cloister.plugins.methods.post_processing import kept
from cloister.plugins.methods.radius import shortened, steps

STEPS: Final = 2**15
"""Lattice steps of a unit vector: truncation shortens a pull by at most a 2^-15 per column, far below any noise."""

TOP: Final = STEPS // 2
"""The largest weight w, in the same steps: half a unit vector, the best of 1/2, 1 and 2 in trials."""

UNDER: Final = 1 - 2.0**-30
"""Two roundings in u and w raise neither above its true value, so that truncation never crosses an integer."""


@final
@attrs.frozen(eq=False)
class Pulls:
    """A row's smoothed unit vector towards it from its centre, and its weight, in ``STEPS``: vectors of dimension d + 1.

    Exactness (law 5): offsets are integers and their squares add up below 2^53, so that |x - c|^2 is exact in any order; square
    root, quotient and product are single correctly rounded operations on one row; truncation is towards zero. The L2 bound is
    the joint norm of u and w, sqrt(5/4) * STEPS rounded up. With w: sqrt(d) + 1/2 bounds the L1 norm.

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


@final
@attrs.frozen
class MedianStep:
    """How far a round goes, from public figures.

    Behind the defaults: four rounds at epsilon = 0.35, k = 40, from k-median++ seeds, cost over that of the seeds. Smoothing 0.02 to
    0.1, weights of 1/2 to 2, stretch 1 to 1.5 and shrink 1 are within a few hundredths of each other; above 0.1 small clusters blur.

                                            skin   shuttle  covertype_first20k  higgs_10k
        Weiszfeld's steps, smoothing 0.05   0.83    0.80          0.82             0.87
        the same, smoothing 0.3             0.82    1.23          0.98             0.89
        gradient steps, sum(u) over count   0.83    0.91          0.80             0.84
        means within 0.8 equal cells        0.84    1.36          1.19             0.92

    Args:
        smoothing: s, over half the domain's diameter.
        stretch: of Weiszfeld's step, between 0 and 2.
        shrink: how many times its expected squared noise a step's squared length is reduced by.
        floor: least sum of weights that is divided by, in standard errors.
        within: rows farther from their centre pull nobody, and no step is longer; caller's units.
    """

    smoothing: float = 0.05
    stretch: float = 1.25
    shrink: float = 1.0
    floor: float = 2.0
    within: float = math.inf


PLAIN: Final = MedianStep()


def median_shares(budget: Budget, rounds: int, count_share: float = 0.05) -> tuple[Budget, Budget]:
    """What each of ``rounds`` equal rounds may spend on its count and on its pulls. Counts only become weights: no step uses them."""
    per_count, per_pull = budget.over(rounds).split(count_share, 1 - count_share)
    return per_count, per_pull


def median_round(
    session: Session[T], centers: Floats, *, counts: FrequencyOracle[T], pulls: VectorSumOracle[T],
    per_count: Budget, per_pull: Budget, step: MedianStep = PLAIN,
) -> tuple[Floats, Floats]:  # fmt: skip
    """Improve k centres by one ``ask``, which spends ``per_count`` and ``per_pull``.

    Args:
        centers: (k, d), in the caller's units; they are put on the lattice.

    Returns:
        Centres (k, d) inside the domain, and the noisy rows (k,) nearest to each of the centres that were given, at least 0.
    """
    domain, every = session.problem.domain, np.arange(len(centers))
    smoothing = steps(step.smoothing * domain.diameter / 2, domain) or 1
    near = NearestCenter(domain.snap(centers), domain.reach, steps(step.within, domain))
    sizes, sums = session.ask(
        count(near, via=counts, spend=per_count), add_up(Pulls(near, smoothing), via=pulls, spend=per_pull)
    )
    # the oracle takes lattice steps for lengths in the caller's units; these are steps of unit vectors
    scale = 1 / (domain.unit * STEPS)
    moved = weiszfeld(sums.at(every) * scale, sums.standard_error(every) * scale, smoothing * domain.unit, step)
    moved = shortened(moved, min(step.within, domain.diameter / 2))
    return domain.truncate(domain.real(near.centers) + moved), np.maximum(sizes.at(every), 0.0)


def weiszfeld(sums: Floats, errors: Floats, smoothing: float, step: MedianStep) -> Floats:
    """The steps (k, d) that noisy sums ask for.

    Args:
        sums: (k, d + 1) of u and w, in unit vectors.
        errors: (k,) standard error of each coordinate.
        smoothing: s, in the caller's units.
    """
    pulls, weights = sums[:, :-1], np.maximum(sums[:, -1], np.maximum(step.floor * errors, 1e-9))
    worth = kept((pulls**2).sum(axis=1), step.shrink * pulls.shape[1] * errors**2)
    moves: Floats = pulls * (worth * step.stretch * smoothing * (TOP / STEPS) / weights)[:, None]
    return moves
