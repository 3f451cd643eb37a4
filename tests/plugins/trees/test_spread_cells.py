"""Spread cells: the filter in float32 against Python integers, ties, blocks, odd counts, options."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from cloister.core.budget import Budget
from cloister.core.clustering import Problem
from cloister.core.domains import REACH, Ball, Box, Domain
from cloister.core.errors import InvalidInput
from cloister.core.randomness import PublicRng
from cloister.core.types import Floats, Ints
from cloister.plugins.trees import nearest_direction as module
from cloister.plugins.trees.directions import NORM
from cloister.plugins.trees.spread_cells import SpreadCells, SpreadTree

SEED = PublicRng.from_seed(32)


@attrs.frozen
class Told:
    """Counts as given, with their standard errors."""

    digest_tag = "tests.test_spread_cells.Told"

    values: Floats
    errors: Floats

    def at(self, ids: Ints, level: int = 0) -> Floats:
        return self.values[ids]

    def standard_error(self, ids: Ints, level: int = 0) -> Floats:
        return self.errors[ids]


def ball(d: int) -> Ball:
    return Ball((0.0,) * d, 1.0)


def opened(d: int, cells: int, k: int = 3, **options: Any) -> SpreadTree:
    return SpreadCells(cells=cells, **options).open(Problem(k, ball(d), 1000, Budget("pure", 1.0)), SEED)


def in_integers(around: Ints, rows: Ints) -> list[int]:
    """The definition, in Python integers."""
    ids = list[int]()
    for row in rows.tolist():
        products = [sum(a * b for a, b in zip(g, row, strict=True)) for g in around.tolist()]
        j = max(range(len(products)), key=lambda i: (abs(products[i]), -i))
        ids.append(2 * j + (products[j] < 0))
    return ids


@st.composite
def tied(draw: st.DrawFn) -> tuple[Ints, Ints]:
    """Directions and rows of small integers: products tie often, among them with opposite signs and with zero."""
    d, many, n = draw(st.integers(1, 4)), draw(st.integers(1, 6)), draw(st.integers(1, 8))
    small = st.integers(-2, 2)
    around = draw(st.lists(st.lists(small, min_size=d, max_size=d), min_size=many, max_size=many))
    rows = draw(st.lists(st.lists(small, min_size=d, max_size=d), min_size=n, max_size=n))
    return np.array(around) * (NORM // 8), np.array(rows) * draw(st.sampled_from([1, 2**17]))


@settings(max_examples=300, deadline=None)
@given(tied())
def test_ties_go_to_the_lowest_direction_whatever_their_signs(case: tuple[Ints, Ints]) -> None:
    around, rows = case
    tree = SpreadTree(ball(rows.shape[1]), around, 3.0, 2)
    assert tree.locate(rows)[:, 0].tolist() == in_integers(around, rows)


@pytest.mark.parametrize(("d", "cells"), [(3, 2), (3, 64), (33, 64), (100, 32)])
def test_the_filter_changes_no_cell(d: int, cells: int) -> None:
    """Rows of every length, down to single lattice steps, and lattice neighbours of the borders between the two nearest
    cells."""
    g, tree = np.random.default_rng(d), opened(d, cells)
    directions = g.standard_normal((250, d))
    lengths = np.exp(g.uniform(0, np.log(REACH * 0.99), 250))
    rows = np.rint(directions * (lengths / np.linalg.norm(directions, axis=1))[:, None]).astype(np.int64)
    pairs = g.integers(0, cells // 2, (250, 2))
    sums = tree.around[pairs[:, 0]] * g.choice([-1, 1], 250)[:, None] + tree.around[pairs[:, 1]]
    border = np.rint(sums / NORM * 2**18).astype(np.int64) + g.integers(-1, 2, (250, d))
    rows = np.concatenate([rows, border, g.integers(-1, 2, (100, d))])
    assert tree.locate(rows)[:, 0].tolist() == in_integers(tree.around, rows)


@pytest.mark.parametrize("d", [1, 7, 100, 1500])
def test_float32_products_err_by_less_than_the_filter_allows(d: int) -> None:
    """Rows that make sums grow (parallel to |g|, one sign) or cancel; the bound of ``_nearest`` is for the difference
    of two."""
    tree, g = opened(d, 2, directions="unit"), np.random.default_rng(3)
    along = np.abs(tree.around[0]) / NORM
    signs = np.where(np.arange(d) % 2, 1, -1)
    rows = np.rint(np.stack([along, along * signs, *(along * g.choice([-1, 1], (50, d)))]) * REACH * 0.999).astype(
        np.int64
    )
    found = (tree._cells._rounded @ rows.astype(np.float32).T)[0].astype(float)
    exact = (rows.astype(object) @ tree.around[0].astype(object)).astype(float) / NORM
    lengths = np.linalg.norm(rows, axis=1)
    assert (np.abs(found - exact) <= 1.05 * (d + 2) * 2.0**-24 * lengths).all()


def test_few_rows_are_done_twice() -> None:
    """What the filter is for: at most 1% of ordinary rows are near a border (about 0.02% here)."""
    tree, g = opened(100, 256), np.random.default_rng(5)
    rows = ball(100).snap(ball(100).sample(g, 5000, 0.0))
    products = tree._cells._rounded @ rows.astype(np.float32).T
    slack = 2.1 * 102 * 2.0**-24 * np.linalg.norm(rows, axis=1)
    assert module._largest(products, slack)[1].mean() < 0.01


@pytest.mark.parametrize("block", [1, 33, 1000])
def test_blocks_do_not_matter(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = opened(20, 64)
    rows = ball(20).snap(ball(20).sample(np.random.default_rng(2), 300, 0.0))
    whole = tree.locate(rows)
    monkeypatch.setattr(module, "BLOCK", block)
    assert np.array_equal(tree.locate(rows), whole)


def test_opposite_rows_are_in_opposite_cells_and_lengths_do_not_matter() -> None:
    tree = opened(12, 128)
    rows = ball(12).snap(ball(12).sample(np.random.default_rng(7), 500, 0.0)) // 2
    ids = tree.locate(rows)
    assert np.array_equal(tree.locate(-rows), ids ^ 1)
    assert np.array_equal(tree.locate(2 * rows), ids)


def test_the_middle_is_in_the_first_cell() -> None:
    assert opened(9, 32).locate(np.zeros((2, 9), np.int64)).tolist() == [[0], [0]]


@pytest.mark.parametrize("domain", [ball(6), Box((-1.0, 0.0, 5.0), (1.0, 100.0, 5.001))], ids=["ball", "box"])
@pytest.mark.parametrize("value", [0.0, -1e12, 1e300, 1e-300])
def test_any_counts_give_finite_points_in_different_cells(domain: Domain, value: float) -> None:
    tree = SpreadCells(cells=16).open(Problem(2, domain, 1000, Budget("pure", 1.0)), SEED)
    for errors in (np.zeros(16), np.full(16, 1e6)):
        grown = tree.grow(Told(np.full(16, value), errors))
        assert grown.leaves is not None
        assert len(set(grown.leaves.ids.tolist())) == len(grown.points) >= 4
        assert np.isfinite(grown.points).all()
        assert np.abs(domain.truncate(grown.points) - grown.points).max() < 1e-9


def test_each_count_is_judged_by_its_own_error() -> None:
    values, errors = np.full(16, 10.0), np.full(16, 5.0)
    errors[[2, 3, 7, 11, 13]] = 3.0
    grown = opened(5, 16, k=2).grow(Told(values, errors))
    assert grown.leaves is not None
    assert grown.errors is not None
    assert grown.leaves.ids.tolist() == [2, 3, 7, 11, 13]
    assert grown.errors.weights.tolist() == [3.0] * 5
    assert grown.errors.sums.tolist() == [0.0] * 5


def test_more_clusters_than_cells_keep_every_cell() -> None:
    grown = opened(5, 4, k=10).grow(Told(np.zeros(4), np.ones(4)))
    assert grown.leaves is not None
    assert grown.leaves.ids.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "options",
    [
        {"cells": 0},
        {"cells": 1},
        {"cells": 48},
        {"cells": 2**17},
        {"cells": 8.0},
        {"directions": "random"},
        {"significance": -1.0},
        {"significance": float("nan")},
        {"fewest": 0},
    ],
    ids=str,
)
def test_options_refuse_nonsense(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        SpreadCells(**options)
