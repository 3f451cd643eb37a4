"""HST clustering, and methods beside it, on rows: clusters found in few and many columns, passes, pictures."""

from __future__ import annotations

import numpy as np
import pytest

from cloister.core.budget import Budget
from cloister.core.clustering import Problem
from cloister.core.registry.compose import compose
from cloister.core.registry.registry import built_in
from cloister.core.session import forecast
from cloister.metrics import nicv
from tests.plugins.methods.runs import GAUSSIAN, SEED, cube, groups, made, run


def problem_of(d: int) -> Problem:
    return Problem(6, cube(d), 6000, Budget("gaussian", 1.0))


@pytest.mark.parametrize(
    ("name", "d", "options"),
    [
        ("tree-means", 2, {}),
        ("tree-means", 20, {}),
        ("tree-means", 2, {"passes": 3, "margin": 0.2}),
        ("hst-means", 1, {}),
        ("hst-means", 5, {}),
        ("hst-means", 20, {}),
        ("evolution", 8, {}),
        ("grid-means", 1, {}),
        ("grid-means", 5, {}),
        ("radius-means", 2, {}),
        ("radius-means", 60, {}),
    ],
    ids=str,
)
def test_clear_clusters_are_found_in_any_number_of_columns(name: str, d: int, options: dict[str, float]) -> None:
    rows, truth = groups(6000, 6, d)
    found = min(nicv(rows, run(made(name, **options), rows, problem_of(d), s)[0].centers) for s in range(3))
    assert found < 3 * nicv(rows, truth) + 0.002 * d


def test_three_passes_ask_one_tree_each() -> None:
    assert len(forecast(made("tree-means", passes=3, margin=0.2), problem_of(2), SEED)) == 4


@pytest.mark.parametrize("name", ["hst-means", "grid-means"])
def test_pictures_get_the_cells_that_the_rows_are_in_and_a_curve_that_falls(name: str) -> None:
    rows, _ = groups(6000, 6, 2)
    details = run(made(name), rows, problem_of(2))[0].details
    cells, costs = np.asarray(details["cells"]), np.asarray(details.get("costs", [1.0, 0.0]))
    assert (np.diff(costs) <= 0).all()
    assert costs[0] > 10 * costs[-1]
    inside = ((cells[:, 0] <= rows[:50, None]) & (rows[:50, None] <= cells[:, 1])).all(axis=2)
    assert inside.any(axis=1).mean() > 0.9  # but for rows that stand between two lattice points


def test_tree_coreset_is_the_one_round_method_on_central_oracles() -> None:
    central = compose(built_in(), "Method", "tree-coreset", {}, {})
    assert central.value == made("one-round", GAUSSIAN)
    assert central.trust == "Central"
