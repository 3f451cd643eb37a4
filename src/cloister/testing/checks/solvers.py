"""Checks of solvers of released weighted points.

Checks of tree builders: public partitions that grow from noisy counts.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import wraps
from typing import Any

import numpy as np

from cloister.core.budget import Budget
from cloister.core.clustering import Coreset, Problem, Released
from cloister.core.errors import InvalidInput
from cloister.core.questions import OpenedQuestion
from cloister.core.randomness import PublicRng
from cloister.core.types import Floats
from cloister.testing.check import given, require
from cloister.testing.checks import bucketings
from cloister.testing.stubs import SCRIPTS, Told, other_coins

RNG = PublicRng.from_seed(70)


def coresets() -> Iterator[tuple[str, Coreset, int]]:
    """Released points as noise makes them, with k."""
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
    """Whatever noise made of the points' weights, k finite centres come out: the budget is spent, so failing is no
    choice."""
    for name, coreset, k in coresets():
        centers = _solved(solver, name, coreset, k)
        wanted = (k, coreset.points.shape[1])
        require(np.shape(centers) == wanted, f"{name}: centres have the shape {np.shape(centers)}, not {wanted}")
        require(np.isfinite(centers).all(), f"{name}: a centre is not finite")


def the_same_points_and_key_give_the_same_centers(solver: Any) -> None:
    """A solver is a pure function of points, k and the public key: no global randomness."""
    for name, coreset, k in coresets():
        one = _solved(solver, name, coreset, k)
        with other_coins():
            other = _solved(solver, name, coreset, k)
        require(np.array_equal(one, other), f"{name}: solved twice, the centres differ")


def points_and_weights_are_left_alone(solver: Any) -> None:
    """A solver changes nothing that it is given: released points are looked at again."""
    for name, coreset, k in coresets():
        points, weights = coreset.points.copy(), coreset.weights.copy()
        _solved(solver, name, coreset, k)
        same = np.array_equal(points, coreset.points) and np.array_equal(weights, coreset.weights)
        require(same, f"{name}: the coreset was changed")


def _solved(solver: Any, name: str, coreset: Coreset, k: int) -> Floats:
    with given(name), warnings.catch_warnings():
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
    """Its trees for the kit's domains, but for those that it refuses (``InvalidInput``)."""
    for i, domain in enumerate(bucketings.DOMAINS):
        with suppress(InvalidInput):
            yield _problem(domain), builder.open(_problem(domain), PublicRng.from_seed(90).child(i))


def _of_cells(check: Callable[[Any], None]) -> Callable[[Any], None]:
    """A check of bucketings, for what a builder builds."""

    @wraps(check)
    def of_builder(builder: Any) -> None:
        check(lambda domain, rng: builder.open(_problem(domain), rng))

    return of_builder


def children_are_in_their_parents(builder: Any) -> None:
    """In a tree that is ``nested``, a row's bucket of one level is its bucket of the next, halved; and its space says
    so."""
    for problem, tree in _trees(builder):
        require(
            tree.nested == tree.space.nested,
            f"{problem.domain}: nested is {tree.nested}, of its space {tree.space.nested}",
        )
        if tree.nested:
            ids = tree.locate(bucketings.rows_of(problem.domain, tree))
            require(np.array_equal(ids[:, 1:] >> 1, ids[:, :-1]), f"{problem.domain}: a bucket is not in its parent")


def any_counts_grow_a_coreset(builder: Any) -> None:
    """Whatever noise made of the counts, at least one finite point inside the domain comes out, with a finite weight;
    equal counts give equal points."""
    for problem, tree in _trees(builder):
        part = OpenedQuestion(tree, None, None, None)  # type: ignore[arg-type]  # a told table opens no channel
        for script in SCRIPTS:
            with given(f"{problem.domain}, counts: {script.name}"):
                grown, again = (tree.grow(Told(part, script, PublicRng.from_seed(91), 1000.0)) for _ in range(2))
            _judge(grown, problem, f"{problem.domain}, counts: {script.name}")
            _judge_leaves(grown, tree, problem, f"{problem.domain}, counts: {script.name}")
            same = np.array_equal(grown.points, again.points) and np.array_equal(grown.weights, again.weights)
            require(same, f"{problem.domain}, counts: {script.name}: grown twice, the points differ")


def _judge(grown: Coreset, problem: Problem, where: str) -> None:
    points, weights, domain = grown.points, grown.weights, problem.domain
    require(
        points.ndim == 2
        and len(points) >= 1
        and points.shape[1] == domain.dimension
        and weights.shape == (len(points),),
        f"{where}: points have the shape {points.shape}, weights {weights.shape}",
    )
    require(np.isfinite(weights).all(), f"{where}: a weight is not finite")
    bucketings.check_inside(where, "point", points, domain)


def _judge_leaves(grown: Coreset, tree: Any, problem: Problem, where: str) -> None:
    """Points say which buckets they stand for, and no row is in two of them."""
    m, leaves, sizes = len(grown.points), grown.leaves, np.array(tree.space.sizes)
    require(leaves is not None, f"{where}: the coreset does not say which buckets its points stand for")
    assert leaves is not None
    levels, ids = leaves.levels, leaves.ids
    require(levels.shape == (m,) == ids.shape, f"{where}: {m} points have leaves of shapes {levels.shape}, {ids.shape}")
    known = (levels >= 0) & (levels < len(sizes)) & (ids >= 0)
    require(bool(known.all()) and bool((ids < sizes[levels]).all()), f"{where}: a leaf is no bucket of the tree")
    located = tree.locate(bucketings.rows_of(problem.domain, tree))
    held = np.zeros(len(located), np.int64)
    for level in range(len(sizes)):
        held += np.isin(located[:, level], ids[levels == level])
    require(bool((held <= 1).all()), f"{where}: {int((held > 1).sum())} rows are in several leaves")


TREES = (
    _of_cells(bucketings.ids_are_within_the_space),
    _of_cells(bucketings.a_row_falls_in_the_same_bucket_in_any_batch),
    _of_cells(bucketings.its_digest_travels),
    children_are_in_their_parents,
    any_counts_grow_a_coreset,
)
