"""Scaling before a fit: by public bounds, or by the rows, which no promise covers."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import cloister
from tests.estimators.fitted import blobs, model

WIDE = {"age": (0, 120), "glucose": (50, 250)}


def test_bounds_land_on_the_ends_and_come_back() -> None:
    frame = pd.DataFrame({"age": [0.0, 60.0, 120.0, 240.0], "glucose": [50.0, 150.0, 250.0, np.nan]})
    scaler = cloister.PublicScaler(WIDE).fit(frame)
    scaled = scaler.transform(frame)
    np.testing.assert_array_equal(scaled, [[-1, -1], [0, 0], [1, 1], [3, np.nan]])
    np.testing.assert_allclose(scaler.inverse_transform(scaled), frame)
    assert list(scaler.set_output(transform="pandas").transform(frame).columns) == ["age", "glucose"]


@pytest.mark.parametrize("bounds", [None, "unknown", {"age": (0, 120), "weight": (0, 9)}, "ball:1", [(0, 1)] * 3])
def test_bounds_that_do_not_give_two_ends_for_each_column_are_refused(bounds: object) -> None:
    with pytest.raises(ValueError, match="bounds"):
        cloister.PublicScaler(bounds).fit(pd.DataFrame({"age": [1.0, 2.0], "glucose": [60.0, 70.0]}))


def test_a_scaler_that_reads_the_rows_gives_one_away_exactly_and_the_public_one_does_not() -> None:
    """The adversary holds two fitted pipelines of neighbouring data sets; the promise of each has epsilon = 1."""
    rows = blobs()
    rows = rows[np.argsort(rows[:, 0])]  # the row in question is an extreme one, too
    neighbours = rows, rows[1:]
    leaky = [make_pipeline(StandardScaler(), model(epsilon=1.0, bounds=(-3, 3))).fit(some)[0] for some in neighbours]
    found = leaky[0].mean_ * len(rows) - leaky[1].mean_ * (len(rows) - 1)
    np.testing.assert_allclose(found, rows[0], atol=1e-9)
    public = [make_pipeline(cloister.PublicScaler((-1, 1)), model(epsilon=1.0)).fit(some)[0] for some in neighbours]
    assert pickle.dumps(public[0]) == pickle.dumps(public[1])


def test_the_statement_says_that_scaling_before_the_fit_is_outside_the_promise() -> None:
    told = "whatever was done to the rows beforehand: scaling them by their own means"
    assert told in model().fit(blobs()).privacy_.text()


def test_columns_are_selected_as_the_clusterers_select_them() -> None:
    """By bounds that name them, or by ``columns``: what is left out may hold anything, and may be gone later."""
    frame = pd.DataFrame({"id": ["a", "b"], "glucose": [50.0, 250.0], "age": [0.0, 120.0], "score": [1.0, 2.0]})
    named = ["glucose", "age"]
    for given in ({"bounds": WIDE}, {"bounds": [(50, 250), (0, 120)], "columns": named}):
        scaler = cloister.PublicScaler(**given).fit(frame)
        for rows in (frame, frame[["age", "glucose"]]):
            np.testing.assert_array_equal(scaler.transform(rows), [[-1, -1], [1, 1]])
        assert list(scaler.get_feature_names_out()) == named
        assert list(cloister.KMeans(2, **given)._population(frame, None, None).columns) == named
        with pytest.raises(ValueError, match="no column 'glucose'"):
            scaler.transform(frame[["age", "id"]])
    with pytest.raises(ValueError, match="does not hold numbers"):
        cloister.PublicScaler((0, 1)).fit(frame)
