"""k-median by noisy rounds: what a row may change, and where the centres go."""

from __future__ import annotations

import math
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from cloister.core.budget import Budget
from cloister.core.clustering import Clustering, Problem
from cloister.core.domains import Box, Domain
from cloister.core.nearest import NearestCenter
from cloister.core.randomness import PublicRng
from cloister.core.session import Session
from cloister.core.types import Floats
from cloister.plugins.methods.lloyd_median import STEPS, TOP, LloydMedian, Pulls, weiszfeld
from cloister.plugins.oracles.central.exact import Exact
from tests.plugins.methods.runs import cube, run

SQUARE = cube(2)


@attrs.frozen
class Given:
    """A start that finds these centres."""

    centers: Floats

    def cluster(self, problem: Problem, session: Session[Any], rng: PublicRng) -> Clustering:
        return Clustering(self.centers)


def without_noise(domain: Domain, rows: Floats, centers: Floats, **options: float) -> Clustering:
    """One exact round from these centres."""
    method: LloydMedian[Any] = LloydMedian(start=Given(centers), counts=Exact(), sums=Exact(), rounds=1, **options)
    return run(method, rows, Problem(len(centers), domain, len(rows), Budget("exact", math.inf)))[0]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(-(2**20), 2**20), min_size=3, max_size=3), st.integers(1, 2**21), st.integers(-1, 1))
def test_no_row_exceeds_the_joint_bound(row: list[int], smoothing: int, at: int) -> None:
    """Also where r is the smoothing length or next to it, and pull and weight are both largest."""
    rows = np.array([row])
    exact = math.isqrt(int((rows**2).sum()))
    for s in (smoothing, max(1, exact + at)):
        pulls = Pulls(NearestCenter(np.zeros((1, 3), np.int64), 2**21), s)
        values = pulls.values(rows, np.zeros((1, 1), np.int64))[0]
        assert sum(int(v) ** 2 for v in values) <= STEPS**2 + TOP**2 <= pulls.bound.l2**2
        assert np.abs(values).sum() <= pulls.bound.l1
        assert 0 <= values[-1] <= TOP


# Where centres go


def test_without_noise_rounds_find_the_geometric_median() -> None:
    """Rows on either side of it, in the same directions and not as far: the pulls of two cancel out."""
    g, domain, middle = np.random.default_rng(2), Box((5.0, -20.0, 100.0), (6.0, 0.0, 101.0)), [5.4, -9.0, 100.6]
    away, found = g.uniform(-1, 1, (200, 3)), domain.sample(g, 1, 0.0)
    rows = np.concatenate([middle + 0.1 * away, middle - g.uniform(0.2, 0.4, (200, 1)) * away])
    for _ in range(60):
        found = without_noise(domain, rows, found, smoothing=1e-4).centers
    assert np.linalg.norm(found - middle) < 1e-3


def test_rows_beyond_the_radius_pull_nobody_and_no_step_is_longer() -> None:
    rows = np.array([[0.0, 0.05]] * 2 + [[0.9, 0.0]] * 50)
    options = {"radius_scale": 0.1 / (SQUARE.diameter / 2), "stretch": 2.0}
    near = without_noise(SQUARE, rows, np.zeros((1, 2)), **options)
    assert near.weights.tolist() == [2.0]
    assert abs(near.centers[0, 0]) < 1e-4
    assert near.centers[0, 1] > 0.04
    far = without_noise(SQUARE, rows[2:] * 0.105, np.zeros((1, 2)), **options)
    assert np.linalg.norm(far.centers) <= 0.1 * (1 + 1e-6)


@pytest.mark.parametrize(
    ("sums", "error", "shrink", "expected"),
    [
        ([30.0, 40.0, 10.0], 0.0, 1.0, [0.25 * 3.0, 0.25 * 4.0]),
        ([30.0, 40.0, 10.0], 5.0, 1.0, [0.75 * (1 - 2 * 25 / 2500), 1 - 2 * 25 / 2500]),
        ([3.0, -4.0, 10.0], 4.0, 1.0, [0.0, 0.0]),
        *(([100.0, 0.0, weight], 1.0, 0.0, [0.25 * 100 / 2, 0.0]) for weight in (-100.0, 0.0, 1e-30)),
    ],
)
def test_a_step_is_the_pull_over_the_weight_without_what_may_be_noise_and_never_flipped(
    sums: list[float], error: float, shrink: float, expected: list[float]
) -> None:
    step = weiszfeld(np.array([sums]), np.full(1, error), smoothing=0.5, stretch=1.0, shrink=shrink)
    assert step == pytest.approx(np.array([expected]))
