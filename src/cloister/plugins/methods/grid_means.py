"""k-means in a few columns: counts on a grid that k and the noise decide, then one round of clipped sums.

1. Ask how many rows fall in each cell of a grid, with ``grid_share`` of the budget. With s the standard error of a
   cell's count, a group of n / k rows is q = n / (k s) standard errors. The grid has

       1.35^d k q^(d / (d + 1))

   nearly square cells (at least 2^d, at most 65,536): with more, groups sink in the noise of their cells; with fewer,
   they share them.
2. Keep the cells that seem to hold rows (``occupied``), and cluster them into k + 2 centres by the solver. Leave
   out two that are least missed, and move the others to the means of their cells.
3. Ask for the sums S of the rows' offsets from their nearest centre, clipped to a radius of that centre's own, and for
   nothing else: how many rows N each centre has is known from the grid. Where q is ``CLEAR`` or more, a quarter of the
   budget of this step first counts the rows of each group by their distance from its centre, which tells the radii
   (``Measuring.stepped``). Elsewhere the radius r is the root mean square distance of its kept cells, their own extent
   included, pooled with 0.3 of a mean group. Clipping takes something off S, so that a step is 1.3 S / N. It is shrunk
   by the lesser of two factors: James and Stein's, one for all centres, and 1 / (1 + v / r^2) with v the noise of S /
   N, which is the best one for the longest step that there can be, r.

Where the noise of all cells together is above n, nothing is known of the rows: step 2 moves its centres towards the
domain's middle, by n^2 over the squares of all standard errors. So noise makes no clustering worse than one centre.

A cell's count changes by one, and a Gaussian pays for delta: in Laplace noise beside Gaussian sums, both priced
together (``accounting.mixed``), counts have less than half of the variance; sums by the l2 mechanism, where nothing
else is asked, need no delta at all. ``auto`` takes what is predicted to lose least.

Guarantee: trust model and measure are those of the oracles in the slots; two rounds of one question each, or three. A
row falls in one cell, has one nearest centre, and is in one bin of its distance from it. Its offset is clipped to one
public integer bound, whatever radius was released (``clipping``), so that the events of all rounds follow from public
figures. Under Local trust a keyed hash of her number says which of the two a user answers, with all of her epsilon;
elsewhere they share everybody's budget.

Sizes are sums over all cells, also those that seem to hold no rows, and do not depend on the public number of rows:
if the cells' total clearly differs, step 2 uses that. Cells are as wide in every column, so that they do not resolve
columns much narrower than others, such as a category's: there it is no candidate of ``auto``.

The expected error (``ErrorLaw``) is that of groups of one size. Where sizes differ much, small groups cost more: two
to six times of it on unbalance and mopsi_finland.

Constants: shares, grid, pooling and step are fitted on s1, house, a1 and birch2_25k; what else there is was decided on
those and lsun, d31, unbalance, mopsi_finland, r15, s4 and a2. None of them matters by more than a tenth.

Source: cloister's own. Grids of noisy counts go back to Su, Cao, Li, Bertino, Jin 2016 (EUGkM).
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any, Final, Generic

import attrs
import numpy as np

from cloister.core.reproducible_math import few_bits, power
from cloister.plugin import (
    ANY_KEY,
    Bound,
    Budget,
    Clustering,
    Coreset,
    Errors,
    Floats,
    FrequencyOracle,
    InvalidInput,
    Leaves,
    Local,
    NearestCenter,
    NonPrivateSolver,
    Problem,
    PublicRng,
    Released,
    Session,
    Space,
    T,
    VectorSumOracle,
    component,
    count,
    option,
    slot,
    vector_sum,
)
from cloister.plugins.methods.clipping import SCALE, ClippedOffsets
from cloister.plugins.methods.distances import plausible_rows, resolves_groups
from cloister.plugins.methods.error_law import ErrorLaw
from cloister.plugins.methods.errors import own_row_errors, sizes_from_cells, step_errors
from cloister.plugins.methods.measuring import Measuring, Stepped
from cloister.plugins.methods.post_processing import (
    group_sizes,
    means,
    middle_shrinkage,
    nearest,
    pad_centers,
    pooled_james_stein,
)
from cloister.plugins.methods.suggesting import suggested
from cloister.plugins.trees.grid_cells import GridCells

MAX_COLUMNS: Final = 6
"""With more, groups sink in the noise of two cells a column."""

FINENESS: Final = 1.35
"""Cells along a column, over k^(1/d) q^(1/(d+1))."""

TYPICAL: Final = Space((1024,))
"""Space by which a cell's noise is predicted before the number of cells is known: it hardly depends on it."""

POOLED: Final = 0.3
"""Share of a mean group: what each radius is pooled with, and the fewest rows that a sum is divided by."""

STEP: Final = 1.3
"""Factor of S / N, since offsets are clipped."""

LAW: Final = ErrorLaw(0.034, 1.1, 1.96, 0.0)  # the factor a fifth below the fitted one: it picks better

OF_SUMS: Final = 0.34
"""Power of the noise of the sums in what is lost, beside that of the counts."""

CLEAR: Final = 200.0
"""q from which distances are measured group by group."""

MEASURED: Final = 0.25
"""Share of the budget of step 3 by which they are."""

SPARE: Final = 2
"""More centres than are wanted are found at first: one that stands on noise, or shares a group, is the least missed."""

SWEEPS: Final = 3
"""Rounds of Lloyd on the cells, after centres were left out."""

DRAWN: Final = 4096
"""Cells that a result keeps for pictures, the heaviest."""


@component
class GridMeans(Generic[T]):
    """k-means in up to six columns by noisy counts on a grid, and one round of clipped sums."""

    counts: FrequencyOracle[T] = slot("discrete-gaussian", help="how many rows fall in each cell of the grid")
    solver: NonPrivateSolver = slot("kmeans++", help="clusters the cells that hold rows")
    sums: VectorSumOracle[T] = slot("discrete-gaussian", help="what offsets from the nearest centre add up to")
    drop: NonPrivateSolver = slot("reverse-greedy", help="leaves out the solver's centres that are least missed")
    grid_share: float = option(
        default=0.8, low=0.01, high=0.99, help="the grid's share of the budget; under Local trust, of the users"
    )

    def cluster(self, problem: Problem, session: Session[T], rng: PublicRng) -> Clustering:
        domain, k = problem.domain, problem.k
        per_count, per_sum = self.shares(problem.budget, rng.child("share"))
        grid = self.grid(problem, per_count)
        (counts,) = session.ask(count(grid, oracle=self.counts, budget=per_count))
        cell_counts, errors = counts.at(grid.possible), counts.standard_error(grid.possible)
        rows = plausible_rows(float(cell_counts.sum()), math.sqrt(float((errors**2).sum())), problem.rows)
        cells = session.release(occupied(grid, cell_counts, errors, k, rows))
        details = picture_details(cells.value)
        if problem.fewest is not None:
            extents = np.full(len(cells.value.points), (grid.widths**2).sum() / 12)
            chosen = suggested(cells, extents, problem, self.solver, rng.child("suggest"))
            k, details = chosen.k, details | chosen.details
        centers = self._found(cells, k, session, rng)
        centers = domain.middle + middle_shrinkage(errors, rows) * (centers - domain.middle)
        assignment = NearestCenter(session.agreed(domain.snap(pad_centers(centers, problem.k))), domain.max_norm)
        sizes, radii = measured(cells.value, domain.real(assignment.centers)[:k], rows, grid.widths)
        if self.measures(problem, per_count):
            moved = self._clipped_by_group(problem, session, assignment, sizes, per_sum)
        else:
            moved = self._clipped(problem, session, assignment, sizes, radii, per_sum, cells.value)
        weights, weight_errors = sizes_from_cells(
            cells.value, moved.centers, *left_out(grid, cell_counts, errors, cells.value)
        )
        weight_errors = np.hypot(weight_errors, own_row_errors(weights, self.counts, per_count))
        return Clustering(moved.centers, weights, details | moved.stated | {"weights_error": weight_errors})

    def _clipped(
        self,
        problem: Problem,
        session: Session[T],
        assignment: NearestCenter,
        sizes: Floats,
        radii: Floats,
        per_sum: Budget,
        cells: Coreset,
    ) -> Stepped:
        """Move the centres by sums that are clipped to radii read from the cells (step 3)."""
        domain, k = problem.domain, len(sizes)
        offsets = ClippedOffsets.around(assignment, pad_centers(radii, problem.k), domain, session)
        (sums,) = session.ask(vector_sum(offsets, oracle=self.sums, budget=per_sum))
        totals, errors = offsets.read(sums)
        steps = stepped(totals[:k], errors[:k], sizes, radii)
        start = domain.real(assignment.centers)[:k]
        centers = domain.truncate(start + steps)
        short = totals[:k] / sizes[:, None] + cut_off(cells, start, radii, sizes) - steps
        stated = step_errors(
            sizes, sizes, np.zeros(k), centers, steps, STEP * errors[:k] / sizes, 2 * radii, shortened=short
        )
        return Stepped(centers, sizes, stated)

    def _clipped_by_group(
        self, problem: Problem, session: Session[T], assignment: NearestCenter, sizes: Floats, per_sum: Budget
    ) -> Stepped:
        """Move the centres by sums that are clipped to radii of distances measured per group (step 3)."""
        budgets = per_sum.split(MEASURED, 1 - MEASURED)
        ask = Measuring(problem, session, self.counts, self.sums, iter(budgets))
        return ask.stepped(assignment, ask.reach(assignment), len(sizes), known_sizes=(sizes, np.zeros(len(sizes))))

    def measures(self, problem: Problem, per_count: Budget) -> bool:
        """Return True if the budget suffices to measure distances per group, by public figures."""
        per_sum = self.shares(problem.budget, ANY_KEY)[1]
        clear = self.counts.trust is not Local and self._strength(problem, per_count) >= CLEAR
        return clear and resolves_groups(problem, self.counts, per_sum.split(MEASURED, 1 - MEASURED)[0])

    @property
    def chooses_k(self) -> bool:
        return True

    @property
    def tells_narrow_columns(self) -> bool:
        return False

    def _found(self, cells: Released[Coreset], k: int, session: Session[T], rng: PublicRng) -> Floats:
        """Return centres (k, d) of the cells (step 2)."""
        candidates = self.solver.solve(cells, k + SPARE, rng.child("solve"))
        sizes = group_sizes(nearest(cells.value.points, candidates), cells.value.weights, len(candidates))
        centers = self.drop.solve(session.release(Coreset(candidates, sizes)), k, rng.child("drop"))
        for _ in range(SWEEPS):
            centers = means(cells.value, centers)
        return centers

    def shares(self, budget: Budget, seed: PublicRng) -> tuple[Budget, Budget]:
        """Return the budgets of counts and sums: under Local trust, disjoint shares of the users."""
        beside = 1 - self.grid_share
        if self.counts.measure == "pure":
            beside *= budget.beside_pure
        weights = 1 - beside, beside
        by_users = self.counts.trust is Local
        per_count, per_sum = budget.split_users(seed, *weights) if by_users else budget.split(*weights)
        return per_count, per_sum

    def grid(self, problem: Problem, per_count: Budget) -> GridCells:
        """Return the grid that k and the noise decide.

        Raises:
            InvalidInput: the domain has more than ``MAX_COLUMNS`` columns.
        """
        d = problem.domain.dimension
        if d > MAX_COLUMNS:
            raise InvalidInput(f"a grid is for at most {MAX_COLUMNS} columns, not {d}: use 'hst-means'")
        strength = self._strength(problem, per_count)
        cells = FINENESS**d * problem.k * power(few_bits(strength), d / (d + 1)) if strength < math.inf else math.inf
        return GridCells.nearly_square(problem.domain, max(2.0**d, cells))

    def _strength(self, problem: Problem, per_count: Budget) -> float:
        """Return q of the module's docstring: a group of n / k rows, in standard errors of a cell."""
        error = math.sqrt(self.counts.variance(TYPICAL, per_count, problem.context(per_count))) / per_count.fraction
        return problem.rows / (problem.k * error) if error else math.inf

    def expected_error(self, problem: Problem) -> float:
        """``ErrorLaw``, times what the noise of the sums adds where it is another than that of the counts.

        A step's noise counts ``OF_SUMS`` beside the cells' (a regression on generated mixtures). Raises: InvalidInput
        for more than ``MAX_COLUMNS`` columns.
        """
        per_count, per_sum = self.shares(problem.budget, ANY_KEY)
        self.grid(problem, per_count)
        if self.counts.trust is Local:
            return LAW.error(problem, self.counts, self.sums)
        space, bound = Space((problem.k,)), Bound(SCALE, problem.domain.dimension)
        of_counts = self.counts.variance(space, per_count, problem.context(per_count))
        of_sums = self.sums.variance(space, per_sum, attrs.evolve(problem.context(per_sum), unit=1 / SCALE), bound)
        if not of_counts:
            return LAW.of(problem, math.inf)
        deviation = math.sqrt(
            self.grid_share * of_counts ** (1 - OF_SUMS) * (of_sums * (1 / self.grid_share - 1)) ** OF_SUMS
        )
        return LAW.of(problem, problem.rows / (problem.k * deviation))


def measured(cells: Coreset, centers: Floats, rows: float, widths: Floats) -> tuple[Floats, Floats]:
    """Return rows (k,) and radii (k,) of each centre's group, both pooled with part of a mean group."""
    k, groups, weights = len(centers), nearest(cells.points, centers), np.maximum(cells.weights, 0.0)
    sizes, pooled = group_sizes(groups, weights, k), POOLED * rows / k
    squares = ((cells.points - centers[groups]) ** 2).sum(axis=1) + (widths**2).sum() / 12
    sums = group_sizes(groups, weights * squares, k)
    mean = sums.sum() / max(sizes.sum(), 1e-300) if sizes.any() else squares.mean()
    return np.maximum(sizes, pooled), np.sqrt((sums + pooled * mean) / (sizes + pooled))


def stepped(sums: Floats, errors: Floats, sizes: Floats, radii: Floats) -> Floats:
    """Return the steps (k, d) that noisy sums of clipped offsets ask for."""
    steps, noise = sums / sizes[:, None], errors / sizes
    pooled = pooled_james_stein(steps, noise, sizes)
    longest = 1 / (1 + sums.shape[1] * (noise / radii) ** 2)
    return np.asarray(STEP * np.minimum(pooled, longest)[:, None] * steps, np.float64)


def cut_off(cells: Coreset, centers: Floats, radii: Floats, sizes: Floats) -> Floats:
    """Return the mean vectors (k, d) that clipping takes off the rows of each group, by their cells."""
    groups = nearest(cells.points, centers)
    offsets = cells.points - centers[groups]
    lengths = np.maximum(np.linalg.norm(offsets, axis=1), 1e-300)
    weights = np.maximum(cells.weights, 0.0) * np.maximum(1 - radii[groups] / lengths, 0.0)
    sums = [np.bincount(groups, weights * column, minlength=len(centers)) for column in offsets.T]
    return np.asarray(np.column_stack(sums) / sizes[:, None], np.float64)


def left_out(grid: GridCells, counts: Floats, errors: Floats, cells: Coreset) -> tuple[Floats, Floats, Floats]:
    """Return middles (m, d), noisy counts (m,) and standard errors (m,) of the cells that were not kept.

    Counts and errors are of all possible cells, and were looked at before the next round is asked.
    """
    assert cells.leaves is not None  # ``occupied`` says which cells they are
    empty_cells = ~np.isin(grid.possible, cells.leaves.ids)
    return grid.middles(grid.possible[empty_cells]), counts[empty_cells], errors[empty_cells]


def picture_details(cells: Coreset) -> dict[str, Any]:
    """Return details for pictures: the heaviest cells."""
    assert cells.cells is not None  # ``occupied`` says where they are
    drawn = np.sort(np.argsort(-cells.weights, kind="stable")[:DRAWN])
    details = {"leaves": len(cells.points), "cells": cells.cells[drawn], "cell_weights": cells.weights[drawn]}
    return details if cells.errors is None else details | {"cell_errors": cells.errors.weights[drawn]}


SIDE, OWN = 1 / 9, 7 / 9
"""A cell's share in its neighbour's blurred count, and in its own: along each column."""


def occupied(grid: GridCells, values: Floats, errors: Floats, k: int, rows: float) -> Coreset:
    """Return the cells that seem to hold rows, as points at their middles.

    Values (m,) are noisy counts of all possible cells. Cells are ranked by counts that are blurred with their
    neighbours', since rows that noise hides in one cell show in several; the shares are a normal blur of half a cell.
    From the top, cells are kept that noise alone would exceed in fewer than k cells of the grid, until they hold the
    public number of rows and a standard error of their sum, and at least k. Weights are the counts as they came:
    blurred ones would draw centres to the borders of groups.
    """
    ids = grid.possible
    blurred, error = _blurred(grid, values, 1), np.sqrt(_blurred(grid, errors**2, 2))
    falling = np.argsort(-blurred, kind="stable")
    cumulative = np.maximum(values[falling], 0.0).cumsum() - np.sqrt((errors[falling] ** 2).cumsum())
    chance = min(0.5, k / len(ids))
    clear = int((blurred > -few_bits(NormalDist().inv_cdf(chance)) * error).sum())
    enough = int(np.searchsorted(np.maximum.accumulate(cumulative), rows)) + 1
    kept_ids = np.sort(falling[: max(k, min(clear, enough))])
    return Coreset(
        grid.middles(ids[kept_ids]),
        values[kept_ids],
        leaves=Leaves(np.zeros(len(kept_ids), np.int64), ids[kept_ids]),
        errors=Errors(errors[kept_ids], np.zeros(len(kept_ids))),
        cells=grid.corners(ids[kept_ids]),
    )


def _blurred(grid: GridCells, values: Floats, power: int) -> Floats:
    """Blur values (power 1) or variances (2) of the possible cells along each column, with reflecting borders."""
    grid_values = np.zeros(grid.space.sizes[0])
    grid_values[grid.possible] = values
    grid_values = grid_values.reshape(grid.parts)
    for axis, parts in enumerate(grid.parts):
        if parts > 1:
            along = np.moveaxis(grid_values, axis, 0)
            padded = np.concatenate([along[:1], along, along[-1:]])
            smoothed = SIDE**power * (padded[:-2] + padded[2:]) + OWN**power * padded[1:-1]
            grid_values = np.moveaxis(smoothed, 0, axis)
    blurred: Floats = grid_values.ravel()[grid.possible]
    return blurred
