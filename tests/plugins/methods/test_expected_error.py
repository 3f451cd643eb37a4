"""Predicted errors: formulas of public figures that fall with every row and every bit of budget, and come true."""

from __future__ import annotations

import math
from typing import Any

import pytest

from cloister.accounting import Total
from cloister.core.budget import Budget
from cloister.core.capabilities import PredictsError
from cloister.core.clustering import Problem
from cloister.core.domains import Box
from cloister.core.registry.compose import compose
from cloister.core.registry.registry import registry
from cloister.plugins.methods.grid_means import MAX_COLUMNS

METHODS = (
    "fastlloyd",
    "gauss-lloyd",
    "su-lloyd",
    "hst-means",
    "radius-means",
    "shrunk-lloyd",
    "tree-coreset",
    "grid-means",
)
SIZES = ((1, 1), (3, 2), (10, 8), (16, 40))
"""Centres and columns."""


def made(name: str) -> Any:
    method = compose(registry(), "Method", name, {}, {}).value
    assert isinstance(method, PredictsError)
    return method


def problem_of(name: str, k: int, d: int, rows: int, epsilon: float) -> Problem:
    measure = {"pure"} if name == "su-lloyd" else {"gaussian"}
    return Problem(k, Box((-1.0,) * d, (1.0,) * d), rows, Total(epsilon, 1e-6).measured(measure))


@pytest.mark.parametrize(
    ("name", "k", "d"), [(m, *size) for m in METHODS for size in SIZES if m != "grid-means" or size[1] <= MAX_COLUMNS]
)
def test_it_falls_with_rows_and_with_budget_whatever_the_number_of_rounds(name: str, k: int, d: int) -> None:
    method = made(name)
    for figures in (
        [method.expected_error(problem_of(name, k, d, rows, 0.5)) for rows in (100, 1000, 5000, 10**5, 10**7)],
        [method.expected_error(problem_of(name, k, d, 3000, epsilon)) for epsilon in (0.02, 0.1, 0.3, 1.0, 3.0)],
    ):
        assert all(math.isfinite(v) and v >= 0 for v in figures)
        assert figures == sorted(figures, reverse=True)
        assert figures[-1] < figures[0]


@pytest.mark.parametrize("name", METHODS)
def test_it_is_in_units_of_the_domain(name: str) -> None:
    one, other = (
        Problem(4, Box((low,) * 5, (low + side,) * 5), 3000, problem_of(name, 4, 5, 3000, 1.0).budget)
        for low, side in ((-1.0, 2.0), (7.0, 1e4))
    )
    assert made(name).expected_error(one) == pytest.approx(made(name).expected_error(other), rel=1e-3)


def test_without_noise_nothing_is_expected_to_be_lost() -> None:
    exact = compose(registry(), "Method", "fastlloyd", {"counts": "exact", "sums": "exact"}, {}).value
    assert exact.expected_error(Problem(4, Box((-1.0,), (1.0,)), 100, Budget("exact", math.inf))) == 0
