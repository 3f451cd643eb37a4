"""The default weight of a category: it never takes over a clustering, whatever the table."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

from cloister.core.randomness import NoiseRng
from cloister.lab.made import hospital
from cloister.plugins.methods.zoom import SPREAD, distance
from cloister.run.fit import fit, source
from cloister.run.request import Request

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


def test_a_hospital_s_ward_costs_little_against_weights_by_hand() -> None:
    """Before, two wards were as far apart as the ends of a column: 0.80, where weights by hand reach 0.99."""
    made = hospital(20_000, 1)
    frame, bounds = pd.DataFrame(dict(made.columns)), dict(made.bounds)
    columns = ["age", "systolic", "heart_rate", "creatinine", "stay", "weight", "temperature", "glucose"]
    weights = dict(zip(columns, 1 / np.array([15, 15, 13, 0.8, 4, 14, 0.5, 30]), strict=True))
    by_hand = agreement(frame, made.labels, 7, bounds, categories=WARDS, scale=weights)
    assert agreement(frame, made.labels, 7, bounds, categories=WARDS) > by_hand - 0.05


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
