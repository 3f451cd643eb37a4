"""The default weight of a category: it never takes over a clustering, whatever the table."""

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
from cloister.core.randomness import NoiseRng
from cloister.lab.made import blobs, hospital
from cloister.plugins.methods.zoom import SPREAD, Zoom, distance
from cloister.plugins.oracles.central.discrete_gaussian import DiscreteGaussian
from cloister.run.fit import fit, source
from cloister.run.request import Request
from tests.plugins.methods.runs import cube, made, run

WARDS = {"ward": ["medical", "surgical", "children"]}


def agreement(frame: pd.DataFrame, labels: Any, k: int, bounds: Any, **more: Any) -> float:
    """Adjusted Rand index of a seeded fit's labels and the true groups."""
    categories = more.pop("categories", None)
    population = source(frame, None, "refuse", bounds=bounds, categories=categories)
    request = Request(k=k, epsilon=1.0, delta=1e-7, bounds=bounds, rows=len(frame), seed=0, **more)
    result = fit(request, population, noise=NoiseRng.for_tests(0))
    units = 1.0 if result.units is None else result.units
    rows, centers = population.table() / units, result.centers / units
    found = ((rows[:, None, :] - centers) ** 2).sum(axis=2).argmin(axis=1)
    return float(adjusted_rand_score(labels, found))


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
    assert (found[3:] @ [-1, 1] > 4).all()


def test_a_hospital_s_ward_costs_little_against_weights_by_hand() -> None:
    """Before, two wards were as far apart as the ends of a column: 0.80, where weights by hand reach 0.99."""
    made = hospital(20_000, 1)
    frame, bounds = pd.DataFrame(dict(made.columns)), dict(made.bounds)
    columns = ["age", "systolic", "heart_rate", "creatinine", "stay", "weight", "temperature", "glucose"]
    weights = dict(zip(columns, 1 / np.array([15, 15, 13, 0.8, 4, 14, 0.5, 30]), strict=True))
    by_hand = agreement(frame, made.labels, 7, bounds, categories=WARDS, scale=weights)
    assert agreement(frame, made.labels, 7, bounds, categories=WARDS) > by_hand - 0.05


@pytest.mark.parametrize(
    ("columns", "k", "values", "wide", "told"),
    [(2, 3, 2, 5, 0.9), (2, 8, 3, 1, 0.0), (4, 5, 8, 5, 0.0), (8, 7, 3, 5, 0.9)],
)
def test_a_category_beside_groups_of_numbers_leaves_them_as_they_are(
    columns: int, k: int, values: int, wide: int, told: float
) -> None:
    """Args: wide (how many times wider than the rows bounds are), told (share of rows whose value follows their
    group)."""
    made, rng = blobs(20_000, columns, k, separation=0.34, seed=3), np.random.default_rng(3)
    codes = np.where(rng.random(20_000) < told, made.labels % values, rng.integers(0, values, 20_000))
    frame = pd.DataFrame(dict(made.columns)).assign(kind=np.array(list("ABCDEFGH"))[codes])
    bounds = {name: (-float(wide), float(wide)) for name in made.columns}
    categories = {"kind": list("ABCDEFGH"[:values])}
    assert agreement(frame, made.labels, k, bounds, categories=categories) > 0.93


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
