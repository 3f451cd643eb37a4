"""No method may be worse than one centre in the domain's middle, however little a budget buys."""

from __future__ import annotations

import numpy as np
import pytest

from cloister.core.randomness import NoiseRng
from cloister.core.registry.registry import registry
from cloister.metrics import cost
from cloister.plugins.methods.grid_means import MAX_COLUMNS
from cloister.run.fit import fit, source
from cloister.run.request import Request
from tests.plugins.methods.runs import groups

RUNS = 10
"""Of each method, with seeded noise. Their means vary by 0.05 of the middle's cost."""

NOT_K_MEANS = (
    "hst-median",
    "tree-median",
    "tree-coreset-median",
    "private-lloyd-median",
    "weighted-centers-median",
    "k-variates",
    "auto-median",
    "grid-median",
)
BASELINES = ("naive-noise",)
"""Documented as what does not work: rows noised one by one, whose noise no centre is told."""

METHODS = sorted(
    spec.name
    for spec in registry().specs("Method")
    if spec.private and spec.name not in NOT_K_MEANS and spec.name not in BASELINES
)
CASES = [(method, d) for method in METHODS for d in (2, 8) if method != "grid-means" or d <= MAX_COLUMNS]


@pytest.mark.thorough
@pytest.mark.parametrize(("method", "d"), CASES)
def test_two_hundred_rows_at_a_tiny_budget_cost_no_more_than_one_centre_in_the_middle(method: str, d: int) -> None:
    (rows, _), ratios = groups(200, 4, d, spread=0.15), list[float]()
    for seed in range(RUNS):
        request = Request(k=4, method=method, epsilon=0.02, delta=1e-4, bounds=(-1.0, 1.0), rows=200, seed=seed)
        found = fit(request, source(rows, None, "refuse"), noise=NoiseRng.for_tests(seed))
        ratios.append(cost(rows, found.centers) / cost(rows, np.zeros((1, d))))
    assert np.mean(ratios) < 1.1
