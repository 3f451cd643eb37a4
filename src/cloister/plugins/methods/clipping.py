"""Sums of offsets that are clipped to released radii, and the histograms of distances that radii are read from.

A radius that the data decides must not decide what a round costs: events, integer sigma and bound are forecast (law 2).
So an offset u from a centre with radius r is scaled to one public integer B, whatever r is, v = trunc(u B / max(r,
|u|)): a row within r counts as it is, one beyond with length r, none is dropped. Released sums times r / B are in the
caller's units again, and so is their noise: it shrinks with the radius.

Guarantee: every |v| is at most B, exactly, so that one row changes one bucket's sum by at most B in L2 norm, and one
bin's count by one. Radii and centres are released figures, as public as the centres of Lloyd's rounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Self, final

import attrs
import numpy as np

from cloister.core.domains import REACH
from cloister.plugin import (
    Bound,
    Bucketing,
    BundleArrays,
    Domain,
    Floats,
    Ints,
    InvalidInput,
    NearestCenter,
    Session,
    Space,
    Sums,
    json_integers,
)
from cloister.plugins.methods.post_processing import project_to_simplex

BINS = 24
"""Bins of a histogram of distances."""

BLOCK = 2**15
"""Numbers per block of work: larger chunks and their temporaries would not stay in a core's cache."""

SCALE = REACH
"""B. Sums of 2^31 vectors stay below 2^51, and a radius is resolved to a millionth."""


@final
@attrs.frozen(eq=False)
class ClippedOffsets:
    """Rows relative to an origin of their bucket, clipped to its radius and scaled: vectors of norm at most ``SCALE``.

    Exactness: rows and origins have norms of at most 2^20, so that offsets have 2^21 and the sums of their squares are
    integers below 2^53: exact in float64. Four operations round (root, quotient, factor, product), by a relative 2^-53
    each, and the factor is too small by 2^-30: each |v_i| <= |u_i| B / |u| before it is truncated towards zero, hence
    |v| <= B. A factor is at most B, offsets of length below r give less than B per coordinate: nothing wraps. It is a
    function of the row alone: no product runs over several rows.

    Args:
        cells: which bucket a row falls in; one level.
        origins: lattice points (m, d), one per bucket, or one (1, d) for all.
        radii: lattice steps (m,), at least 1.
    """

    cells: Bucketing
    origins: Ints
    radii: Ints

    def __attrs_post_init__(self) -> None:
        if (self.origins**2).sum(axis=1).max() > REACH**2 or self.radii.min() < 1:
            raise InvalidInput(f"origins must be lattice points of norm at most {REACH}, and radii at least one step")

    @classmethod
    def around(
        cls, assignment: NearestCenter, radii: Floats, domain: Domain, session: Session[Any] | None = None
    ) -> Self:
        """Return rows relative to their nearest centre, clipped to radii (k,) in the caller's units.

        Radii that come from a session's answers need that session (``Session.agreed``).
        """
        lattice_radii = lattice_steps(radii, domain)
        return cls(assignment, assignment.centers, lattice_radii if session is None else session.agreed(lattice_radii))

    @property
    def bound(self) -> Bound:
        return Bound(SCALE, self.origins.shape[1])

    def values(self, rows: Ints, buckets: Ints) -> Ints:
        values, step = np.empty(rows.shape, np.int64), max(1, BLOCK // rows.shape[1])
        for start in range(0, len(rows), step):
            block = slice(start, start + step)
            values[block] = self._clipped(rows[block], buckets[block, 0])  # truncates towards zero
        return values

    def bundled(self, arrays: BundleArrays) -> Mapping[str, Any]:
        return {
            "kind": "clipped",
            "centers": arrays.add(self.origins),
            "radii": arrays.add(self.radii),
            "scale": SCALE,
            "weighted": False,
            **self.bound.bundled,
        }

    def _clipped(self, rows: Ints, buckets: Ints) -> Floats:
        one = len(self._origins) == 1  # "wrap", for rows in no bucket, would count down to the one origin
        offsets = rows.astype(np.float64)
        offsets -= self._origins if one else np.take(self._origins, buckets, axis=0, mode="wrap")
        lengths = np.sqrt(np.einsum("ij,ij->i", offsets, offsets))
        factors = SCALE * (1 - 2.0**-30) / np.maximum(lengths, np.take(self.radii, buckets, mode="wrap"))
        offsets *= factors[:, None]
        return offsets

    @cached_property
    def _origins(self) -> Floats:
        return self.origins.astype(np.float64)

    def read(self, sums: Sums) -> tuple[Floats, Floats]:
        """Noisy sums of offsets (m, d), and their standard errors (m,), of all buckets in the caller's units."""
        ids, scale = np.arange(self.cells.space.sizes[0]), self.radii / SCALE
        return sums.at(ids) * scale[:, None], sums.standard_error(ids) * scale


def lattice_steps(radii: Floats, domain: Domain) -> Ints:
    """Radii (m,) in lattice steps, from one to the widest that a domain can be."""
    return np.clip(np.rint(radii / domain.unit), 1, 2 * REACH).astype(np.int64)


@final
@attrs.frozen(eq=False)
class DistanceBins:
    """Bins of rows by their distance from the nearest centre, each 2^(step/2) times as wide as the one before.

    Bin i holds squared distances up to ``edges[i]``, an integer, and beyond the edge before; the last one also all that
    is farther. Distances are integers, so that a row's bin is a function of that row alone.

    Args:
        near: rows by their nearest centre, without a limit.
        largest: edge of the last bin, in lattice steps.
        number: of bins.
        grouped: whether the rows of each centre have bins of their own: bin i of centre j is ``number`` j + i.
        step: binary logarithm of the ratio of squared edges.
    """

    near: NearestCenter
    largest: int
    number: int = BINS
    grouped: bool = False
    step: int = 1

    @cached_property
    def edges(self) -> Ints:
        """Squared distances (number,), ascending."""
        return np.array([self.largest**2 >> self.step * i for i in reversed(range(self.number))], np.int64)

    @property
    def space(self) -> Space:
        return Space((self.number * (len(self.near.centers) if self.grouped else 1),))

    def locate(self, rows: Ints) -> Ints:
        groups, squares = self.near.distances(rows)
        bins: Ints = np.searchsorted(self.edges[:-1], squares).astype(np.int64)
        return (bins + self.number * groups if self.grouped else bins)[:, None]

    def bundled(self, arrays: BundleArrays) -> Mapping[str, Any]:
        return {
            "kind": "grouped" if self.grouped else "distances",
            "sizes": json_integers(self.space.sizes),
            "centers": arrays.add(self.near.centers),
            "edges": self.edges[:-1].tolist(),
        }

    def quantile(self, counts: Floats, share: float, rows: float, domain: Domain) -> float:
        """Estimate the radius, in the caller's units, within which this share of the rows lies.

        Counts (number,), of all groups, are moved to the nearest ones that are not negative and add up to ``rows``, so
        that noise in empty bins hardly counts; of nothing at all, every bin holds as much. Rows of one bin are taken to
        be spread evenly over the logarithm. At least one lattice step.
        """
        cumulative = np.append(0.0, project_to_simplex(counts, rows).cumsum())
        index = min(int(np.searchsorted(cumulative[1:], share * rows)), self.number - 1)
        inside = (share * rows - cumulative[index]) / max(cumulative[index + 1] - cumulative[index], 1e-300)
        return max(1.0, float(np.sqrt(self.edges[index] * 2.0 ** (self.step * (min(inside, 1.0) - 1))))) * domain.unit
