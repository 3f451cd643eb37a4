"""Checks of solvers of released weighted points, and of tree builders."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import wraps
from typing import Any

import numpy as np

from cloister.core.questions import OpenedQuestion
from cloister.plugin import Budget, Coreset, Floats, InvalidInput, Problem, PublicRng, Released
from cloister.testing.check import noting_input, require
from cloister.testing.checks import bucketings
from cloister.testing.stubs import SCRIPTS, InventedTable, reseeded_numpy

RNG = PublicRng.from_seed(70)


def coresets() -> Iterator[tuple[str, Coreset, int]]:
    """Yield released points as noise makes them, with k."""
    g = np.random.default_rng(71)
    points = g.uniform(-1, 1, (60, 3))
    positive = g.uniform(1, 100, 60)
    yield "60 points", Coreset(points, positive), 4
    yield "one centre", Coreset(points, positive), 1
    yield "one column", Coreset(points[:, :1], positive), 3
    yield "weights of both signs", Coreset(points, g.normal(0, 100, 60)), 5
    yield "all weights negative", Coreset(points, -positive), 5
    yield "all weights zero", Coreset(points, np.zeros(60)), 5
    yield "one positive weight", Coreset(points, np.where(np.arange(60) == 7, 5.0, -1.0)), 3
    yield "fewer points than centres", Coreset(points[:3], positive[:3]), 5
    yield "one point", Coreset(points[:1], positive[:1]), 4
    yield "all points the same", Coreset(np.ones((20, 2)), positive[:20]), 4
    yield "huge weights", Coreset(points, positive * 1e12), 4
    yield "tiny weights", Coreset(points, positive * 1e-12), 4


def any_released_points_give_k_finite_centers(solver: Any) -> None:
    """Whatever noise does to the points' weights, the solver returns k finite centres: the budget is already spent."""
    for name, coreset, k in coresets():
        centers = _solve(solver, name, coreset, k)
        expected_shape = (k, coreset.points.shape[1])
        require(
            np.shape(centers) == expected_shape,
            f"{name}: centres have the shape {np.shape(centers)}, not {expected_shape}",
        )
        require(np.isfinite(centers).all(), f"{name}: a centre is not finite")


def the_same_points_and_key_give_the_same_centers(solver: Any) -> None:
    """Solvers are pure functions of points, k and the public key, without global randomness."""
    for name, coreset, k in coresets():
        one = _solve(solver, name, coreset, k)
        with reseeded_numpy():
            other = _solve(solver, name, coreset, k)
        require(np.array_equal(one, other), f"{name}: solved twice, the centres differ")


def points_and_weights_are_left_alone(solver: Any) -> None:
    """Solvers change none of their inputs: released points are used again."""
    for name, coreset, k in coresets():
        points, weights = coreset.points.copy(), coreset.weights.copy()
        _solve(solver, name, coreset, k)
        same = np.array_equal(points, coreset.points) and np.array_equal(weights, coreset.weights)
        require(same, f"{name}: the coreset was changed")


def _solve(solver: Any, name: str, coreset: Coreset, k: int) -> Floats:
    with noting_input(name), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a remark about released points is no failure, whatever pytest makes of it
        centers: Floats = solver.solve(Released(coreset, ()), k, RNG)
    return centers


SOLVERS = (
    any_released_points_give_k_finite_centers,
    the_same_points_and_key_give_the_same_centers,
    points_and_weights_are_left_alone,
)


def _problem(domain: Any) -> Problem:
    return Problem(4, domain, 1000, Budget("pure", 1.0))


def _trees(builder: Any) -> Iterator[tuple[Problem, Any]]:
    """Yield the builder's trees for the kit's domains, but for those that it refuses."""
    for i, domain in enumerate(bucketings.DOMAINS):
        with suppress(InvalidInput):
            yield _problem(domain), builder.open(_problem(domain), PublicRng.from_seed(90).child(i))


def _bucketing_check(check: Callable[[Any], None]) -> Callable[[Any], None]:
    """Return a check of bucketings for the trees of a builder."""

    @wraps(check)
    def of_builder(builder: Any) -> None:
        check(lambda domain, rng: builder.open(_problem(domain), rng))

    return of_builder


def children_are_in_their_parents(builder: Any) -> None:
    """Rows' buckets in a ``nested`` tree are those of the next level, halved, and its space is nested too."""
    for problem, tree in _trees(builder):
        require(
            tree.nested == tree.space.nested,
            f"{problem.domain}: nested is {tree.nested}, of its space {tree.space.nested}",
        )
        if tree.nested:
            bucketings.check_nested(str(problem.domain), tree, bucketings.rows_of(problem.domain, tree))


def any_counts_grow_a_coreset(builder: Any) -> None:
    """Whatever noise does to the counts, a tree returns finite points inside the domain, with finite weights.

    There is at least one point; equal counts give equal points.
    """
    for problem, tree in _trees(builder):
        part = OpenedQuestion(tree, None, None, None)  # type: ignore[arg-type]  # an invented table opens no channel
        for script in SCRIPTS:
            with noting_input(f"{problem.domain}, counts: {script.name}"):
                grown, again = (
                    tree.grow(InventedTable(part, script, PublicRng.from_seed(91), 1000.0)) for _ in range(2)
                )
            _check_coreset(grown, problem, f"{problem.domain}, counts: {script.name}")
            _check_leaves(grown, tree, problem, f"{problem.domain}, counts: {script.name}")
            same = np.array_equal(grown.points, again.points) and np.array_equal(grown.weights, again.weights)
            require(same, f"{problem.domain}, counts: {script.name}: grown twice, the points differ")


def _check_coreset(grown: Coreset, problem: Problem, label: str) -> None:
    points, weights, domain = grown.points, grown.weights, problem.domain
    require(
        points.ndim == 2
        and len(points) >= 1
        and points.shape[1] == domain.dimension
        and weights.shape == (len(points),),
        f"{label}: points have the shape {points.shape}, weights {weights.shape}",
    )
    require(np.isfinite(weights).all(), f"{label}: a weight is not finite")
    bucketings.check_inside(label, "point", points, domain)


def _check_leaves(grown: Coreset, tree: Any, problem: Problem, label: str) -> None:
    """Raise unless points name their buckets and no row is in two of them."""
    m, leaves, sizes = len(grown.points), grown.leaves, np.array(tree.space.sizes)
    require(leaves is not None, f"{label}: the coreset does not name the buckets of its points")
    assert leaves is not None
    levels, ids = leaves.levels, leaves.ids
    require(levels.shape == (m,) == ids.shape, f"{label}: {m} points have leaves of shapes {levels.shape}, {ids.shape}")
    valid = (levels >= 0) & (levels < len(sizes)) & (ids >= 0)
    require(bool(valid.all()) and bool((ids < sizes[levels]).all()), f"{label}: a leaf is no bucket of the tree")
    located = tree.locate(bucketings.rows_of(problem.domain, tree))
    leaves_per_row = np.zeros(len(located), np.int64)
    for level in range(len(sizes)):
        leaves_per_row += np.isin(located[:, level], ids[levels == level])
    require(bool((leaves_per_row <= 1).all()), f"{label}: {int((leaves_per_row > 1).sum())} rows are in several leaves")


TREES = (
    _bucketing_check(bucketings.ids_are_within_the_space),
    _bucketing_check(bucketings.a_row_falls_in_the_same_bucket_in_any_batch),
    _bucketing_check(bucketings.its_digest_travels),
    children_are_in_their_parents,
    any_counts_grow_a_coreset,
)
