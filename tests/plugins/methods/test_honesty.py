"""Stated errors against what the released centres' own rows have: as a whole, and that they are no smaller."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import pytest

from cloister.accounting.privacy_target import PrivacyTarget
from cloister.core.budget import Budget
from cloister.core.clustering import Problem
from cloister.core.types import Floats
from cloister.metrics import labels
from cloister.plugins.methods.clipping import DistanceBins
from cloister.plugins.methods.distances import GROUP_BINS, Distances, GroupDistances, Reach, plausible_rows, tail
from cloister.plugins.methods.grid_means import cut_off
from cloister.plugins.methods.rounds import nearest_within
from tests.plugins.methods.runs import LOCAL, cube, made, run
from tests.plugins.tables import coreset
from tests.test_benchmark_datasets import datasets, script

sys.modules.setdefault("datasets", datasets)
sys.modules.setdefault("shapes", script("shapes"))
honesty, shapes = script("honesty"), sys.modules["shapes"]

FEW = (
    "five groups, 2 columns, 8,000 rows",
    "six groups, 6 columns, 30,000 rows",
    "far group of 5%, 2 columns, 20,000 rows",
    "far group of 5%, 10 columns, 60,000 rows",
    "heavy tails, 4 columns, 30,000 rows",
    "skewed, 5 columns, 20,000 rows",
    "outliers of 10%, 6 columns, 50,000 rows",
    "no groups, 2 columns, 20,000 rows",
    "a category of 3, 2 numbers, 20,000 rows",
    "rows said 20% low, 2 columns, 60,000",
    "rows said 20% high, 2 columns, 60,000",
    "bounds 8 times too wide, 3 columns, 50,000 rows",
)
"""Shapes of the short form. All of them together: benchmarks/honesty.py."""


@pytest.mark.thorough
def test_nine_of_ten_figures_of_the_default_lie_within_two_stated_errors() -> None:
    """In 22 of 24 cells at least, and in the mean 97 of 100 figures; a cell of few figures may miss by chance."""
    cells = list[dict[str, float]]()
    for shape in shapes.generated():
        if shape.name in FEW:
            for epsilon in (0.3, 1.0):
                cells.append(honesty.summary([honesty.measured(shape, "auto", epsilon) for _ in range(3)]))
    assert len(cells) == 2 * len(FEW)
    for figures in ("centers", "sizes"):
        held = [cell[figures] for cell in cells]
        assert sum(share >= 0.9 for share in held) >= 22
        assert np.mean(held) >= 0.97


def deviations(name: str, seeds: int) -> tuple[Floats, Floats]:
    """Sizes and coordinates of three clear groups of unequal sizes, less the exact ones, in stated errors."""
    g = np.random.default_rng(3)
    groups = g.choice(3, 6000, p=[0.5, 0.3, 0.2])
    rows = np.array([[-0.6, -0.5], [0.5, 0.6], [0.6, -0.6]])[groups] + 0.05 * g.normal(size=(6000, 2))
    problem = Problem(3, cube(2), 6000, PrivacyTarget(0.5, 1 / (6000 * math.log(6000))).measured({"gaussian"}))
    sizes, centers = list[Floats](), list[Floats]()
    for seed in range(seeds):
        found = run(made(name), rows, problem, seed)[0]
        own = labels(rows, found.centers)
        exact = np.bincount(own, minlength=3)
        means = np.array([rows[own == j].mean(axis=0) for j in range(3)])
        sizes.append((found.weights - exact) / found.details["weights_error"])
        centers.append(((found.centers - means) / found.details["centers_error"]).ravel())
    return np.concatenate(sizes), np.concatenate(centers)


@pytest.mark.parametrize(
    ("name", "of_sizes", "of_centers"),
    [("radius-means", 0.88, 0.52), ("grid-means", 0.94, 0.52), ("shrunk-lloyd", 0.84, 0.52)],
)
def test_an_error_that_is_stated_a_fifth_smaller_is_seen(name: str, of_sizes: float, of_centers: float) -> None:
    """Root mean squares of deviations in stated errors are a tenth below these limits; seeds are fixed. Of clear groups
    sizes are off by noise alone; coordinates hold what clipping and shrinking may have done beside it."""
    sizes, centers = deviations(name, 80)
    for found, limit in ((sizes, of_sizes), (centers, of_centers)):
        size = float(np.sqrt((found**2).mean()))
        assert 0.8 * limit < size < limit < size / 0.8
    assert float((np.abs(centers) <= 2).mean()) >= 0.97


def test_what_clipping_cut_off_is_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the mean length that each group's radius cuts off, by the distances of the last round."""
    from cloister.plugins.methods import measuring

    rows = np.random.default_rng(5).exponential([0.2, 0.05], (8000, 2)).clip(0, 1)
    stated, cut = measuring.step_errors, list[Floats]()

    def seen(*args: Any, **more: Any) -> dict[str, Any]:
        if np.ndim(more["cut"]):
            cut.append(more["cut"])
        return stated(*args, **more)

    monkeypatch.setattr(measuring, "step_errors", seen)
    for seed in range(4):
        run(made("radius-means"), rows, Problem(2, cube(2), 8000, Budget("gaussian", 0.003)), seed)
    assert len(cut) == 4 * 2
    assert max(each.max() for each in cut) > 0.001


@pytest.mark.parametrize("radius", [0.5, 1.0, 3.0])
def test_the_mean_length_beyond_a_radius_is_what_rows_in_bins_have(radius: float) -> None:
    """Without noise, of rows at known distances: within what a bin does not resolve."""
    domain = cube(2, 4.0)
    near = nearest_within(math.inf, np.zeros((1, 2)), domain)
    g = np.random.default_rng(1)
    lengths = g.exponential(1.0, 100_000).clip(0, 5)
    angles = g.uniform(0, 2 * math.pi, 100_000)
    rows = domain.snap(lengths[:, None] * np.column_stack([np.cos(angles), np.sin(angles)]))
    bins = DistanceBins(near, 2 * domain.max_norm, GROUP_BINS, grouped=True)
    counts = np.bincount(bins.locate(rows)[:, 0], minlength=GROUP_BINS)[None].astype(float)
    found = GroupDistances(bins, counts, 0.0, 100_000.0).excess(np.array([radius]), domain)[0]
    exact = np.maximum(np.linalg.norm(domain.real(rows), axis=1) - radius, 0).mean()
    assert found == pytest.approx(exact, rel=0.5)


def reach(counts: list[float]) -> Reach:
    """Of two groups in one bin each: rows within about 1, and rows about 4 away."""
    near = nearest_within(math.inf, np.array([[-1.0, 0.0], [1.0, 0.0]]), cube(2, 4.0))
    bins = DistanceBins(near, 2 * cube(2, 4.0).max_norm)
    found = np.zeros(bins.number)
    found[np.searchsorted(bins.edges, (np.array([1.0, 4.0]) / cube(2, 4.0).unit) ** 2)] = counts
    return Reach(1.0, Distances(bins, found, np.zeros(bins.number)))


def test_what_is_cut_off_all_groups_may_lie_in_one_that_noise_hides() -> None:
    """A tenth of the rows is beyond the radius: either of two clear groups may have all of it, each of four by half.

    One that noise hides may have it too, and no row is cut off by more than half of the domain's diagonal.
    """
    domain, radii = cube(2, 4.0), np.ones(2)
    found = reach([900.0, 100.0])
    assert found.distances is not None
    overall = found.distances.excess(radii, 1000.0, domain)
    assert overall == pytest.approx(np.full(2, 0.1 * 3), rel=0.3)
    clear = found.excess(radii, np.array([500.0, 500.0]), np.ones(2), 1000.0, domain)
    assert clear == pytest.approx(overall * 2, rel=1e-3)
    four = found.excess(np.ones(4), np.full(4, 250.0), np.ones(4), 1000.0, domain)
    assert four == pytest.approx(overall[0] * 4 * math.sqrt(0.5), rel=1e-3)
    one = found.excess(radii, np.array([900.0, 100.0]), np.full(2, 60.0), 1000.0, domain)
    assert one == pytest.approx([overall[0] / 0.9, overall[0] / 0.1], rel=0.01)
    assert found.excess(radii, np.array([999.0, 1.0]), np.ones(2), 1000.0, domain)[1] <= domain.diameter / 2
    assert Reach(1.0).excess(radii, np.ones(2), np.ones(2), 1000.0, domain) is None


def test_rows_are_as_far_as_the_root_mean_square_of_their_distances() -> None:
    assert reach([900.0, 100.0]).spread(1000.0, cube(2, 4.0)) == pytest.approx(math.sqrt(0.9 * 1 + 0.1 * 16), rel=0.3)
    assert Reach(1.0).spread(1000.0, cube(2)) == 1.0


def test_cells_say_in_which_direction_clipping_cut_rows_off() -> None:
    at = np.array([[-1.0, 0.0], [0.5, 0.0], [3.0, 0.0], [9.0, 0.0]])
    found = cut_off(
        coreset(at, [10.0, 60.0, 30.0, 5.0]), np.array([[0.0, 0.0], [9.0, 0.0]]), np.ones(2), np.array([100, 5])
    )
    assert found == pytest.approx(np.array([[0.3 * 2, 0.0], [0.0, 0.0]]))


def test_sizes_hold_where_few_users_are_asked_for_each_count() -> None:
    """Root mean square of deviations in stated errors, of eight runs under Local trust: seeds are fixed."""
    g = np.random.default_rng(3)
    groups = g.choice(3, 20_000, p=[0.5, 0.3, 0.2])
    rows = np.array([[-0.6, -0.5], [0.5, 0.6], [0.6, -0.6]])[groups] + 0.05 * g.normal(size=(20_000, 2))
    problem = Problem(3, cube(2), 20_000, Budget("pure", 5.0))
    off = list[Floats]()
    for seed in range(8):
        found = run(made("radius-means", LOCAL), rows, problem, seed)[0]
        exact = np.bincount(labels(rows, found.centers), minlength=3)
        off.append((found.weights - exact) / found.details["weights_error"])
    assert 0.4 < float(np.sqrt(np.mean(np.square(off)))) < 1.0


def test_thin_rows_of_many_bins_show_together() -> None:
    """Each bin of the tail holds 1.5 standard errors: pooled they are seen, and noise behind them is not."""
    counts = np.array([0.0, 900.0, 300.0, 15.0, 16.0, 14.0, 15.0, -9.0, 8.0, -12.0])
    found = tail(counts, 10.0)
    assert found[1:3].tolist() == [900.0, 300.0]
    assert found[3:7] == pytest.approx([15.5, 15.5, 14.5, 14.5])
    assert found[7:].tolist() == [0.0, 0.0, 0.0]
    assert found[0] == 0


def test_the_public_number_of_rows_is_believed_unless_counts_say_clearly_that_it_is_another() -> None:
    assert plausible_rows(1029.0, 10.0, 1000) == 1000.0
    assert plausible_rows(1031.0, 10.0, 1000) == 1031.0
    assert plausible_rows(969.0, 10.0, 1000) == 969.0
    assert plausible_rows(-50.0, 10.0, 1000) == 1.0
