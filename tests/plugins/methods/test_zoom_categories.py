"""Columns that are no numbers to cluster by: the default weight of a category, which never takes over a clustering,
whatever the table; and columns that groups are described by."""

from __future__ import annotations

import itertools
from typing import Any

import attrs
import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

from cloister.core.budget import Budget
from cloister.core.clustering import Problem
from cloister.core.errors import InvalidInput
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.lab.hospital import hospital
from cloister.metrics import labels
from cloister.plugins.methods.zoom import Zoom
from cloister.plugins.methods.zoom_categories import SPREAD, distance
from cloister.plugins.oracles.central.discrete_gaussian import DiscreteGaussian
from cloister.run.fit import fit, source
from cloister.run.request import Request, prepare
from tests.asking import asking
from tests.plugins.methods.runs import cube, made, run

WARDS = {"ward": ["medical", "surgical", "children"]}


def test_a_category_s_columns_are_not_counted_and_cost_nothing() -> None:
    """The range of 0 and 1 is known: what numbers are promised is what they are promised alone."""
    budget = Budget("gaussian", 1.0)
    alone = Zoom(method=made("hst-means"), counts=DiscreteGaussian(), scale="bounds")
    beside = attrs.evolve(alone, scale="category:3,category:3,category:3,bounds,bounds")
    two, five = (Problem(3, cube(d, 9.0), 20_000, budget) for d in (2, 5))
    assert beside.columns_of(five).space == alone.columns_of(two).space
    assert beside.share_of(five) == alone.share_of(two) > 0
    assert beside.unseen_of(five) == alone.unseen_of(two) < 1
    rows = np.random.default_rng(1).normal(0, 1, (20_000, 5))
    rows[:, :3] = np.eye(3)[np.arange(20_000) % 3]
    found = run(beside, rows, five)[0].details["intervals"]
    assert found[:3].tolist() == [[-9, 9]] * 3
    assert (np.abs(found[3:]) < 7).all()


def test_a_hospital_s_ward_costs_little_against_weights_by_hand() -> None:
    """Before, two wards were as far apart as the ends of a column: 0.80, where weights by hand reach 0.99."""
    made = hospital(20_000, 1)
    frame, bounds = pd.DataFrame(dict(made.columns)), dict(made.bounds)
    population = source(frame, bounds=bounds, categories=WARDS)
    columns = ["age", "systolic", "heart_rate", "creatinine", "stay", "weight", "temperature", "glucose"]
    weights = dict(zip(columns, 1 / np.array([15, 15, 13, 0.8, 4, 14, 0.5, 30]), strict=True))

    def agreement(**scale: Any) -> float:
        """Adjusted Rand index of a seeded fit's labels and the true groups."""
        request = Request(k=7, epsilon=1.0, delta=1e-7, bounds=bounds, rows=len(frame), seed=0, **scale)
        result = fit(request, population, noise=NoiseRng.for_tests(0))
        found = labels(population.table(), result.centers, units=result.units)
        return float(adjusted_rand_score(made.labels, found))

    assert agreement() > agreement(scale=weights) - 0.05


def test_centres_spent_on_a_category_gain_less_than_the_numbers_lose() -> None:
    for m, d, k in itertools.product((2, 3, 20), (1, 2, 8, 50), (2, 7, 40)):
        square = distance(m, d, k) ** 2
        assert (1 - 1 / m) * square / 2 <= SPREAD**2 * (1 + 1e-12), (m, d, k)
        for c in range(2, min(m, k) + 1):
            lost = d * SPREAD**2 * ((k / c) ** (-2 / d) - k ** (-2 / d))
            assert (c - 1) * square / (2 * m) <= lost * (1 + 1e-9), (m, d, k, c)


def test_a_category_alone_and_one_of_one_value_have_a_distance() -> None:
    assert distance(2, 0, 5) == 2.0
    assert distance(3, 0, 5) == pytest.approx(np.sqrt(3))
    assert 0 < distance(1, 4, 5) < 1


# Columns that are described only: in a frame of those that were clustered, whatever others are


def test_groups_are_told_apart_beside_a_column_of_a_range_a_billion_times_as_wide() -> None:
    """Nothing is zoomed or scaled, so that the columns of the clustering have one unit: their own."""
    g, group = np.random.default_rng(1), np.arange(6000) % 3
    x, y = g.normal(0, 0.05, (2, 6000)) + np.array([-0.6, 0.0, 0.6])[group]
    frame = pd.DataFrame({"x": x, "y": y, "paid": group * 4e8})
    asked = Request(
        k=3,
        method="tree-means",
        epsilon=20.0,
        delta=1e-6,
        bounds={"x": (-1, 1), "y": (-1, 1), "paid": (0, 1e9)},
        rows=6000,
        seed=1,
        describe="paid",
        zoom="off",
        scale="none",
    )
    found = fit(asked, source(frame, columns=["x", "y"], described=["paid"]), noise=NoiseRng.for_tests(1))
    (counts,) = found.details["described"]["counts"]
    assert sorted(np.argmax(counts, axis=1).tolist()) == [0, 6, 12]
    assert np.max(counts, axis=1).min() > 1900


@pytest.mark.parametrize("inner", ["described", "worded", "zoom"])
def test_what_has_a_frame_of_its_own_is_refused_in_the_frame_of_another(inner: str) -> None:
    """Its lattice would take the place of the outer one, and centres would lie anywhere."""
    wrong: dict[str, Any] = {"k": 2, "method": "zoom", "components": {"method": inner}, "epsilon": 1.0, "delta": 1e-6}
    with pytest.raises(InvalidInput, match="inside another one that does"):
        prepare(asking(bounds=(0, 200), rows=900, **wrong), ["x", "y"]).forecast(PublicRng.from_seed(1))
