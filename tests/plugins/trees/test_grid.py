"""Grids: exact cells that cover the box once, cells of a ball, the significance rule, options."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from cloister.core.budget import Budget
from cloister.core.clustering import Problem
from cloister.core.domains import Ball, Box, Domain
from cloister.core.errors import InvalidInput
from cloister.core.randomness import PublicRng
from cloister.plugins.trees.grid import Grid, GridTree
from tests.plugins.tables import Table

SEED = PublicRng.from_seed(34)


def opened(domain: Domain, k: int = 2, rows: int = 1000, budget: Budget | None = None, **options: Any) -> GridTree:
    return Grid(**options).open(Problem(k, domain, rows, budget or Budget("pure", 1.0)), SEED)


def first_of(cell: int, side: int, reach: int) -> int:
    """The lowest coordinate x of a cell: floor((x + s) G / (2 s + 1)) = cell, in Python integers."""
    return -((-cell * (2 * reach + 1)) // side) - reach


@pytest.mark.parametrize("side", [1, 2, 7, 1000])
def test_cells_cover_a_column_once_and_in_order(side: int) -> None:
    """Every border, exactly: the first coordinate of each cell, and the one before it."""
    tree = opened(Box((0.0,), (3.0,)), side=side)
    s = int(tree.domain.sides[0])
    firsts = [first_of(cell, side, s) for cell in range(side)]
    assert firsts[0] == -s
    assert tree.locate(np.array(firsts)[:, None])[:, 0].tolist() == list(range(side))
    if side > 1:
        before = np.array(firsts[1:])[:, None] - 1
        assert tree.locate(before)[:, 0].tolist() == list(range(side - 1))
    assert tree.locate(np.array([[s]])).tolist() == [[side - 1]]


@pytest.mark.parametrize(("d", "side"), [(1, 5), (2, 3), (2, 16), (3, 7)])
def test_cells_of_a_ball_are_kept_exactly_if_a_row_can_be_in_them(d: int, side: int) -> None:
    """The lattice point of each cell that is nearest to the middle, in integers, against what ``grow`` looks at."""
    domain = Ball((0.5,) * d, 2.0)
    tree, reach = opened(domain, side=side), domain.max_norm
    spans = [(first_of(c, side, reach), first_of(c + 1, side, reach) - 1) for c in range(side)]
    nearest = [0 if low <= 0 <= high else min(abs(low), abs(high)) for low, high in spans]
    held = [i for i, xs in enumerate(itertools.product(nearest, repeat=d)) if sum(x * x for x in xs) <= reach**2]
    grown = tree.grow(Table(np.full(side**d, 9.0), np.ones(side**d)))
    assert grown.leaves.ids.tolist() == held
    assert np.abs(domain.truncate(grown.points) - grown.points).max() < 1e-9


def test_cells_between_lattice_steps_are_left_out() -> None:
    """A column 1e-7 as wide as the other one has a single lattice step: all of its rows are in one of four cells."""
    tree = opened(Box((0.0, 0.0), (1.0, 1e-7)), side=4)
    grown = tree.grow(Table(np.full(16, 9.0), np.ones(16)))
    assert tree.domain.sides[1] == 0
    assert grown.leaves.ids.tolist() == [0, 4, 8, 12]


def test_points_are_middles_in_the_caller_s_units() -> None:
    domain = Box((0.0, 10.0), (4.0, 30.0))
    grown = opened(domain, side=2).grow(Table(np.full(4, 9.0), np.ones(4)))
    assert grown.points == pytest.approx(np.array([[1.0, 15.0], [1.0, 25.0], [3.0, 15.0], [3.0, 25.0]]), abs=1e-4)


def test_cells_are_kept_by_significance_or_the_largest() -> None:
    domain = Box((0.0,), (1.0,))
    values, errors = np.array([0.0, 2.5, 2.6, 5.0, -9.0, 100.0]), np.array([1.0, 1.0, 1.0, 2.0, 1.0, 39.0])
    grown = opened(domain, side=6, k=1).grow(Table(values, errors))
    assert grown.leaves.ids.tolist() == [2, 5]
    assert grown.errors.weights.tolist() == [1.0, 39.0]
    grown = opened(domain, side=6, k=3).grow(Table(values, errors))
    assert grown.leaves.ids.tolist() == [2, 3, 5]  # two are significant: the three largest instead
    grown = opened(domain, side=6, k=50).grow(Table(values, errors))
    assert len(grown.points) == 6


@pytest.mark.parametrize(
    ("budget", "rows", "cells"),
    [
        (Budget("pure", 2.0), 500_000, 256),
        (Budget("pure", 2.0), 500_001, 1024),
        (Budget("zcdp", 2.0), 500_001, 1024),
        (Budget("gaussian", 4.0), 500_000, 256),
        (Budget("gaussian", 4.0), 500_001, 1024),
        (Budget("exact", 1.0), 1000, 256),
    ],
    ids=str,
)
def test_the_default_grid_follows_rows_times_epsilon_squared_in_every_measure(
    budget: Budget, rows: int, cells: int
) -> None:
    assert opened(Box((0.0, 0.0), (1.0, 1.0)), rows=rows, budget=budget).space.sizes == (cells,)


def test_a_grid_in_many_columns_is_refused_with_a_way_out() -> None:
    with pytest.raises(InvalidInput, match="spread-cells"):
        opened(Ball((0.0,) * 100, 1.0))
