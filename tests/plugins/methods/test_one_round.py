"""One-round k-means: who is asked what, what it costs, and what comes out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cloister.core.clustering import Leaves
from cloister.metrics import nicv
from cloister.plugins.methods.one_round import Cells
from cloister.run.request import PreparedRun
from tests.plugins.methods.runs import SEED, fitted, groups, planned
from tests.plugins.tables import Table, coreset


def plan(k: int = 8, d: int = 100, rows: int = 10**6, **request: Any) -> PreparedRun:
    return planned("one-round", k, d, rows, **request)


@pytest.mark.parametrize(
    ("epsilon", "q", "v"), [(0.5, 0.073, 0.177), (1, 0.070, 0.0444), (2, 0.062, 0.0113), (4, 0.040, 0.0030)]
)
def test_share_of_the_counts_and_expected_error_are_those_of_the_study(epsilon: float, q: float, v: float) -> None:
    run = plan(epsilon=epsilon, options={"partitions": 1})
    shares = [part.user_share for part in run.forecast(SEED)[0].parts]
    assert [share and share.fraction for share in shares] == pytest.approx([q, 1 - q], abs=0.002)
    assert run.composed.value.expected_error(run.problem) == pytest.approx(v, rel=0.03)


def test_two_partitions_only_where_little_noise_is_expected_and_independent_of_each_other() -> None:
    assert len(plan(rows=10**5).forecast(SEED)[0].parts) == 2
    cells: list[Any] = [part.cells for part in plan().forecast(SEED)[0].parts]
    assert [cells.index(each) for each in cells] == [0, 1, 0, 1]
    assert not np.array_equal(cells[0].around, cells[1].around)


@pytest.mark.parametrize(("d", "parts"), [(1, 1), (3, 1), (4, 4)])
def test_in_few_dimensions_only_counts_are_asked(d: int, parts: int) -> None:
    (asked,) = plan(d=d, k=4).forecast(SEED)
    assert len(asked.parts) == parts
    assert (asked.parts[-1].vectors is None) == (d < 4)


def test_clusters_are_found_from_one_report_each() -> None:
    rows, centers = groups(60_000, 4, 8, 0.01, ball=True)
    result = fitted("one-round", rows, 4, epsilon=3.0)
    assert nicv(rows, result.centers) < nicv(rows, centers) + 0.06
    assert np.abs(result.weights - 15_000).max() < 4500


def test_centres_are_as_good_as_those_who_report_allow_however_many_were_planned() -> None:
    """Errors of all planned users would call the cells of a tenth of them insignificant: a cost of 0.18 to 0.65."""
    rows, _ = groups(15_000, 4, 20, 0.01, ball=True)
    few, enough = (fitted("one-round", rows, 4, epsilon=2.0, rows=n).centers for n in (150_000, 15_000))
    assert few == pytest.approx(enough, abs=1e-9)
    assert nicv(rows, few) < 0.1


def test_sums_of_leaves_are_looked_up_at_their_own_level_and_divided_by_at_least_one_row() -> None:
    """Algorithm 4, line 13."""
    leaves = Leaves(np.array([1, 0, 1]), np.array([2, 0, 1]))
    grown = coreset(np.zeros((3, 2)), [4.0, 0.5, -2.0], leaves=leaves)
    values = np.arange(8.0).reshape(4, 2)
    cells = Cells.of([grown, grown], [Table([values, 2 * values], [1.0, 2.0])] * 2)
    assert cells.errors.sums.tolist() == [2, 1, 2] * 2
    assert cells.means(None).points[:3].tolist() == [[2, 2.5], [0, 1], [4, 6]]
    found = cells.of_groups(np.array([0, 1, 0, 1, 2, 2]), 4)
    assert found == pytest.approx(np.array([[6, 8], [8 / 4.5, 11 / 4.5], [4, 7], [0, 0]]))  # (8 + 4, 10 + 6) / (4 - 2)


def test_the_paper_s_method_finds_clusters() -> None:
    rows, _ = groups(100_000, 2, 10, 0.01, ball=True)
    assert nicv(rows, fitted("one-round-lsh", rows, 2, epsilon=4.0).centers) < 0.2  # one centre: about 0.5
