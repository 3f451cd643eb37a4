"""Checks of tree builders: public partitions that grow from noisy counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import wraps
from typing import Any

import numpy as np

from cloister.core.budget import Budget
from cloister.core.clustering import Coreset, Problem
from cloister.core.errors import InvalidInput
from cloister.core.questions import OpenedQuestion
from cloister.core.randomness import PublicRng
from cloister.testing.check import given, require
from cloister.testing.checks import bucketings
from cloister.testing.scripts import SCRIPTS, Told


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
    """Where a tree is ``nested``, a row's bucket of one level is its bucket of the next, halved; and its space says
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
    require(np.isfinite(points).all() and np.isfinite(weights).all(), f"{where}: a point or weight is not finite")
    out = float(np.abs(domain.truncate(points) - points).max())
    require(out <= 1e-9 * domain.diameter, f"{where}: a point is {out:.4g} outside the domain")


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
