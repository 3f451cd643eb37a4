"""One noisy step of k-median: what a row adds to its centre's sum, and where the sums move the centres.

The sum of distances of a cluster's rows to its centre c falls fastest along the sum of the unit vectors u = (x - c) /
|x - c|, and Weiszfeld's step c + sum(u) / sum(1 / |x - c|) goes as far as a quadratic above the cost allows. One row
changes sum(u) by a vector of norm 1 wherever it is: a mean's sensitivity grows with the domain, a median's does not.

One question asks for both sums: a row x pulls its centre by (u, w), with s a public length and r = max(|x - c|, s),

    u = (x - c) / r,    w = s / 2r,    |u|^2 + w^2 <= 1 + 1/4,

(r >= s: 1 + s^2 / 4r^2; r = s: |x - c|^2 / s^2 + 1/4). So w, what Weiszfeld divides by, costs a ninth of the accuracy
of u. The step is

    c + stretch * (s / 2) * sum(u) / sum(w),

shortened by the squared length that noise alone gives it (James and Stein), no longer than a public length, and kept in
the domain. The majorising quadratic makes every stretch between 0 and 2 a descent without noise (Weiszfeld's step is
stretch 1); 1.25 is faster.

Guarantee: that of the oracles, for a count per centre and one vector sum per centre; all else is post-processing.

Source: Weiszfeld 1937; Cohen-Addad et al. 2022, section 6, whose perturbed optimisation of a smoothed cost this
replaces (its proof needs an exact minimiser); Newton's method on the same smoothed cost.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, final

import attrs
import numpy as np

from cloister.core.buckets import BundleArrays
from cloister.core.lattice import Bound
from cloister.core.nearest import NearestCenter
from cloister.core.types import Floats, Ints
from cloister.plugins.methods.post_processing import james_stein

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
    """The steps (k, d) that noisy sums ask for.

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
    """The standard error (k,) of a coordinate of these steps, before noise shortens them. Args: as ``weiszfeld``."""
    weights = np.maximum(sums[:, -1], np.maximum(FLOOR * errors, 1e-9))
    return np.asarray(errors * stretch * smoothing * (TOP / STEPS) / weights, np.float64)
