"""Zoom: find where the rows are within wide bounds, then cluster there, in units that suit the columns.

1. One question (unless ``share`` is 0): in each column, how many rows are in each 16th of the declared range, in each
   16th of those, and of those. A column whose range nobody knows has bins of sign and magnitude instead.
2. Per column: the interval from the first to the last bin that holds more than noise does, and a margin.
   A method that tolerates wide bounds (``slack``) gets a much wider interval, found with a smaller share of the budget:
   it needs the order of magnitude only, and bounds that it tolerates are kept. If the ranges are known, and no share of
   the budget can promise that groups of a fifth of the rows keep their median inside, nothing is asked or cut.
3. The method in the slot works in the cube [-1, 1]^d, which stands for these intervals, with the rest of the budget.
   Its centres come back in the caller's units. Rows beyond the cube are clipped to it.

Guarantee: the trust model, neighbouring relation and measure of the oracles in the slots, composed by the accountant.
The question of step 1 has d columns of ``levels`` levels each; a row is in one bin of each, so that the L2 sensitivity
under add-or-remove one row is sqrt(d levels), which is what an oracle pays for. Which cube the method works in is the
same whatever is found: its lattice, noise, rounds and shares come from public figures alone, and only where it lies
among the rows comes from answers that were paid for. Intervals and units are released, and stand in the result.

Promise: except in one run of 1,000, no group of at least ``unseen_of`` of the rows has its median outside an interval
in any column, whatever the distribution (``zoom_tails`` has the proof). That share is 4%, or more if noise hides more,
and is stated before the run. It holds for independent unbiased noise: under a curator or parties who pool. Elsewhere
nothing is promised.

Source: the range of a column by a noisy histogram of it (Karwa, Vadhan: Finite sample differentially private confidence
intervals, 2018; Smith 2011 for quantiles); the levels, so that bounds may be 1,000 times too wide, are cloister's own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Generic

import attrs
import numpy as np

from cloister.core.frames import GRADES, GROUP, Reframed, SignLogScale, cube, grade_starts, unknown_columns
from cloister.core.wrappers import ColumnNames
from cloister.plugin import (
    Aggregated,
    Box,
    Central,
    Clustering,
    Counts,
    Floats,
    FrequencyOracle,
    InvalidInput,
    Lattice,
    Method,
    Problem,
    PublicRng,
    Session,
    T,
    chooses_k,
    component,
    count,
    option,
    slack,
    slot,
)
from cloister.plugins.methods import zoom_texts
from cloister.plugins.methods.zoom_categories import distance
from cloister.plugins.methods.zoom_ranges import CERTAIN, CERTAIN_PURE, CODES, Columns, interval
from cloister.plugins.methods.zoom_tails import Promise, tolerated

SHARES = 0.01, 0.02, 0.03, 0.05, 0.07, 0.1
"""Shares that are tried; the next ones only where a range is unknown. Constants were chosen on s1, house, birch2_25k
and shuttle, with hst-means; ``SURE`` and ``ROOM`` on unbalance and shuttle, with auto."""

SHARES_UNKNOWN = 0.2, 0.3

WIDER = 0.2
"""Smallest group, in parts of the rows, that must keep its median inside, for a method that tolerates wide bounds; for
others it is ``GROUP``, or this if no share of the budget can promise that."""

FINE = 0.0025
"""Standard error of a bin, in parts of the rows, that suffices for an unknown range: a share of the budget that reaches
it is enough."""

SURE = 0.0075
"""Standard error of a bin up to which intervals are taken as they are found. Above, noise may hide a far group of 4% of
the rows: on unbalance such intervals cost a factor of 20."""

COARSE = 0.025
"""Standard error of a bin up to which a rough interval, with room around it, can be found. With a larger one rows could
not be told from noise."""

ROOM = 7.0
"""Width of a rough interval, as a multiple of the width that was found. The distance of hidden rows is not known, so
that no promise rests on it; smaller values cost more on unbalance and on house."""

STANDS = 2.0
"""Bounds are kept if they are wider than what is found by at most this factor times the method's slack. Measured:
bounds 16 times too wide cost radius-means nothing on house and shuttle (docs/howto/bounds.md)."""

MARGIN = 0.05
"""Share of an interval's width, added on each side to what noise hides of rows that are spread evenly."""

FEW, MANY = 3, 10_000
"""Maximum number of columns, and minimum number of rows, for a fourth level."""

NEARLY = 0.8
"""An interval that takes up this part of the declared range, or more, is not worth clipping rows for."""

CATEGORY = re.compile(r"category:([1-9][0-9]*)")
"""Marks, in place of a weight, a one-hot column of a category of this many values."""

FINEST = 2.0**-40
"""Smallest width of an interval, as a part of its ends' absolute values, in which doubles can tell rows apart; narrower
intervals are not taken. Where bounds are close together and far from 0, an interval may have no width at all."""

NOWHERE = -1.0, 1.0
"""Range of a column of unknown range whose counts are no more than noise."""


@component
class Zoom(Generic[T]):
    """A method that works in a frame of its own, around the rows and in units that suit the columns."""

    method: Method[T] = slot("hst-means", help="clusters the rows in the frame that was found")
    counts: FrequencyOracle[T] = slot("discrete-gaussian", help="how many rows are in each bin of each column")
    share: float | None = option(
        default=None,
        low=0.0,
        high=0.9,
        help="share of the budget spent on locating the rows; 0 skips the question and uses the declared range; none "
        "picks the smallest share that separates rows from noise (by public figures), or 0",
    )
    scale: str = option(
        default="none",
        help="units of distances: none (the caller's), bounds (each column's width), or a weight per column, as in "
        "1,0.5,2; 'category:M' for each one-hot column of a category of M values, beside weights or "
        "'bounds' for each of the others",
    )

    def __attrs_post_init__(self) -> None:
        self._weights(None)

    def cluster(self, problem: Problem, session: Session[T], rng: PublicRng) -> Clustering:
        domain, share = problem.domain, self.share_of(problem)
        if not isinstance(domain, Box):
            return self.method.cluster(problem, session, rng.child("method"))
        look, inner = problem.split(share)[0], self.inner(problem)
        declared, unseen = _declared(domain), self.unseen_of(problem)
        intervals = self._found(look, unseen, domain, session) if share else declared.copy()
        units = self.units_of(intervals[:, 1] / 2 - intervals[:, 0] / 2, problem.k)
        frame = Reframed.of(intervals, units)
        clustering = self.method.cluster(inner, session.framed(frame, inner.domain), rng.child("method"))
        details = _returned(clustering.details, frame) | {"intervals": intervals, "units": units}
        if share:
            details["unseen"] = unseen
        return Clustering(domain.truncate(frame.real(clustering.centers)), clustering.weights, details)

    def units_of(self, half: Floats, k: int) -> Floats:
        """Return the units of distances (d,) for columns of these half widths (d,)."""
        weights = self._weights(len(half))
        if weights is not None:
            return np.asarray((weights * half).max() / weights)
        units, numbers = half.copy(), len(half) - len(self._one_hot)
        for j, values in self._one_hot.items():
            units[j] = math.sqrt(2) / distance(values, numbers, k)
        return units

    has_frame = True

    def inner(self, problem: Problem) -> Problem:
        """Return the method's problem: the rest of the budget, in the cube; a ball stays as it is."""
        rest = problem.split(self.share_of(problem))[1]
        return attrs.evolve(rest, domain=cube(rest.domain.dimension)) if isinstance(rest.domain, Box) else rest

    def price(self, problem: Problem, columns: ColumnNames, part: float) -> str:
        """Describe the budget share that locates the rows, and what that may miss; empty if nothing is asked."""
        share, unknown = self.share_of(problem), [columns.features[j] for j in unknown_columns(problem.domain)]
        return zoom_texts.price(share, self.unseen_of(problem), unknown) if share else ""

    def warning(self, problem: Problem) -> str:
        return ""

    def notes(self, problem: Problem, columns: ColumnNames, part: float, details: Mapping[str, Any]) -> tuple[str, ...]:
        return zoom_texts.notes(self.price(problem, columns, part), columns.features, details)

    def facts(self, columns: ColumnNames) -> dict[str, Any]:
        return {}

    @property
    def chooses_k(self) -> bool:
        """True if the method can choose k."""
        return chooses_k(self.method)

    def share_of(self, problem: Problem) -> float:
        """Return the share of the budget that locates the rows; 0 if nothing is asked.

        Raises:
            InvalidInput: the range of a column is unknown, and rows are too few to find it.
        """
        if not isinstance(problem.domain, Box):
            if self.scale != "none":
                raise InvalidInput(
                    "a ball has one unit for all columns: leave out the scale, or give bounds per column"
                )
            return 0.0
        unknown = unknown_columns(problem.domain)
        if len(self._one_hot) == problem.domain.dimension:
            return 0.0
        if self.share is not None and not (unknown and not self.share):
            return self.share
        if self.share == 0:
            raise InvalidInput(
                "zoom cannot be off while the range of a column is unknown: give its bounds, or leave zoom on"
            )
        less = 1.0 if self._pure else problem.budget.beside_pure
        usual, larger = ([less * share for share in each] for each in (SHARES, SHARES_UNKNOWN))
        shares = usual + (larger if unknown else [])
        enough = WIDER if self._slack(problem) > 1 else GROUP
        promising = [share for share in usual if self._tolerated(problem, share) <= enough / 2 * problem.rows]
        if unknown:  # a range has to be found, whatever it costs
            promising += [share for share in shares[len(usual) - 1 :] if self._error(problem, share) <= FINE]
        else:
            # the largest share that can promise something, if none can promise enough
            promising += [share for share in usual if self._tolerated(problem, share) <= WIDER / 2 * problem.rows][-1:]
        if promising:
            return promising[0]
        if unknown:
            rough = [share for share in shares if self._error(problem, share) <= COARSE]
            if rough:
                return rough[-1]
            raise InvalidInput(
                f"{problem.rows} rows are too few to find the range of unknown columns with this budget: give bounds, "
                f"more budget, or fewer columns"
            )
        return 0.0

    def unseen_of(self, problem: Problem) -> float:
        """Return the smallest share of the rows whose median is within the interval of each column.

        This holds except in one run of 1,000, and follows from public figures. It is at least 4%; 1 promises nothing.
        """
        share = self.share_of(problem)
        if not share:
            return 0.0
        return min(1.0, 2 * max(self._tolerated(problem, share), GROUP / 2 * problem.rows) / problem.rows)

    def _tolerated(self, problem: Problem, share: float) -> float:
        """Return the rows that may lie beyond an end if this share is paid; infinite if noise is not known."""
        noise_known = self.counts.trust in (Central, Aggregated)
        if not noise_known or getattr(self.counts, "biased", False) or getattr(self.counts, "uses_delta", False):
            return math.inf  # a threshold drops the small counts that add up to a thin tail
        columns = self.columns_of(problem)
        return tolerated(len(columns.counted), columns.depth, self._error(problem, share) * problem.rows, self._pure)

    @property
    def _pure(self) -> bool:
        return self.counts.measure == "pure"

    def _slack(self, problem: Problem) -> float:
        """Return how many times wider than the rows the frame may be without loss; 1 if a range is unknown."""
        return 1.0 if unknown_columns(problem.domain) else slack(self.method)

    def _error(self, problem: Problem, share: float) -> float:
        """Return the standard error of a bin, in parts of all rows."""
        look = problem.split(share)[0].budget
        columns = self.columns_of(problem)
        return math.sqrt(self.counts.variance(columns.space, look, problem.context(look))) / problem.rows

    def _found(self, look: Problem, unseen: float, domain: Box, session: Session[T]) -> Floats:
        """Intervals (d, 2), in the caller's units. Args: unseen, what ``unseen_of`` promises."""
        (counts,) = session.framed(lattice_of(domain), cube(domain.dimension)).ask(
            count(self.columns_of(look), oracle=self.counts, budget=look.budget)
        )
        return self.read(counts, look, unseen, domain)

    def read(self, counts: Counts, look: Problem, unseen: float, domain: Box) -> Floats:
        """Return the intervals that these counts lead to, from released values and public figures only."""
        columns, intervals, unknown = self.columns_of(look), _declared(domain), unknown_columns(domain)
        d, depth = len(columns.counted), columns.depth
        errors = [float(counts.standard_error(np.zeros(1, np.int64), level)[0]) for level in range(depth)]
        promise = Promise(unseen / 2 * look.rows, 2 * d * depth, self._pure) if unseen < 1 else None
        certain = CERTAIN_PURE if self._pure else CERTAIN
        other_columns = [tuple(i for i in range(d) if i != j) for j in range(d)]
        edges = [interval(counts, j, errors, promise, other_columns[j], certain) for j in range(d)]
        error, wider = errors[0] / look.rows, self._slack(look)
        room = max(wider, ROOM if error > SURE else 1.0)
        margin = max(MARGIN + certain * error, (room - 1) / 2)  # on each side
        keep_above = 1 / (STANDS * wider) if wider > 1 else NEARLY
        for j, ends in zip(columns.counted, edges, strict=True):
            intervals[j] = _widened(ends, intervals[j], j in unknown, margin, keep_above)
        return intervals

    def columns_of(self, problem: Problem) -> Columns:
        """Return the bins of a domain's columns, except for categories, whose range is known.

        There is a fourth level where grades of all numbers are to be told apart, or where many rows in few columns make
        a bin of 4,096 coarse.
        """
        d, one_hot, unknown = problem.domain.dimension, self._one_hot, unknown_columns(problem.domain)
        fine = unknown or (d - len(one_hot) <= FEW and problem.rows >= MANY)
        side = int(cube(d).sides[0])
        return Columns(
            tuple(0 if j in one_hot else GRADES if j in unknown else side for j in range(d)), 4 if fine else 3
        )

    def _weights(self, dimension: int | None) -> Floats | None:
        """Return factors of columns before distances are taken; None if their widths decide.

        Args:
            dimension: number of columns; None checks the option alone.
        """
        if self.scale in ("bounds", "none"):
            return None if self.scale == "bounds" else np.ones(dimension or 1)
        parts: list[str] = self.scale.split(",")
        if dimension not in (None, len(parts)):
            raise InvalidInput(f"scale has {len(parts)} weights for {dimension} columns: give one per column")
        if self._one_hot and all(part == "bounds" or j in self._one_hot for j, part in enumerate(parts)):
            return None
        try:
            weights = np.array([math.sqrt(0.5) if j in self._one_hot else float(x) for j, x in enumerate(parts)])
        except ValueError:
            weights = np.zeros(1)
        if not (np.isfinite(weights).all() and (weights > 0).all()):
            raise InvalidInput(f"scale is '{self.scale}': give bounds, none, or a positive number per column")
        return weights

    @property
    def _one_hot(self) -> dict[int, int]:
        """Number of the category's values, by the position of each one-hot column.

        Their range is known whatever the rows are. Rows of two different values differ in two of these columns, each by
        1, which is a distance of sqrt(2): in a unit of sqrt(2) it is 1.
        """
        parts = enumerate(self.scale.split(","))
        return {j: int(matched[1]) for j, part in parts if (matched := CATEGORY.fullmatch(part))}


def _declared(domain: Box) -> Floats:
    """Return the bounds (d, 2) of each column."""
    return np.column_stack([domain.lower, domain.upper])


def lattice_of(domain: Box) -> Lattice:
    """Return the lattice of the question: columns of unknown range by sign and magnitude."""
    lattice, unknown = Reframed.of(_declared(domain), domain.half_widths), unknown_columns(domain)
    return SignLogScale(lattice, unknown) if unknown else lattice


def _widened(
    ends: tuple[int, int] | None, declared: Floats, unknown: bool, margin: float, kept: float
) -> tuple[float, float]:
    """Return the interval between these ends with its margins, in the caller's units.

    It lies within the declared range. It is the declared range if it would take up ``kept`` of that, or if doubles
    cannot tell its ends apart.
    """
    low, high = declared.tolist()
    if ends is None:
        return NOWHERE if unknown else (low, high)
    if unknown:
        first, last = (float(v) for v in grade_starts(np.array(ends) * (2 * GRADES // CODES) - GRADES))
    else:
        first, last = (low + (high - low) * (end / CODES) for end in ends)
    if last - first >= kept * (high - low):
        return low, high
    extra = margin * (last - first)
    first, last = max(low, first - extra), min(high, last + extra)
    return (first, last) if last - first > FINEST * max(abs(first), abs(last)) else (low, high)


def _returned(details: dict[str, Any], frame: Reframed) -> dict[str, Any]:
    """Convert details to the caller's units.

    Cells in a projection of the cube stay, and costs where columns have units of their own.
    """
    converted = dict(details)
    for name in ("iterates", "cells"):
        if name in converted and not (name == "cells" and "projection" in converted):
            converted[name] = frame.real(np.asarray(converted[name]))
    if "centers_error" in converted:
        converted["centers_error"] = np.asarray(converted["centers_error"]) * np.array(frame.scale)
    if len(set(frame.scale)) > 1:
        return converted
    if "costs" in converted:
        converted["costs"] = np.asarray(converted["costs"]) * frame.scale[0] ** converted["power"]
    if "curve" in converted:
        converted["curve"] = {
            **converted["curve"],
            "costs": [cost * frame.scale[0] ** 2 for cost in converted["curve"]["costs"]],
        }
    return converted
