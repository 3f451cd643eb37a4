"""The rows that callers hand over: names, missing cells, weights; and those that are not in memory yet."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import cloister
from cloister import KMeans, PublicScaler, metrics
from cloister.core.errors import InvalidInput, UtilityWarning
from cloister.run.fit import source
from tests.estimators.fitted import blobs, mixed, model


@pytest.fixture(scope="module")
def fitted() -> Any:
    return quick().fit(blobs())


def quick(**more: Any) -> Any:
    """A model for what does not depend on the method."""
    return model(**{"method": "fastlloyd", "options": {"rounds": 1}, "zoom": "off", **more})


def columns_of(rows: Any, **asked: Any) -> tuple[str, ...]:
    """The columns of a fit, after all that asks for the same columns again."""
    fitted = quick(**asked).fit(rows)
    assert fitted.transform(rows).shape == (2000, 3)
    assert fitted.score(rows) < 0
    assert (fitted.predict(rows) >= 0).all()
    found: tuple[str, ...] = fitted.result_.columns
    return found


@pytest.mark.filterwarnings("error:X (has|does not have) .*feature names")
def test_columns_of_pandas_that_are_no_texts_are_known_by_their_names_as_texts() -> None:
    rows = pd.DataFrame(np.column_stack([blobs(), np.arange(2000)]))
    plain = quick().fit(rows[[0, 1]])
    assert not hasattr(plain, "feature_names_in_"), "scikit-learn knows no names but texts"
    assert (plain.predict(blobs()) >= 0).all()
    assert columns_of(rows[[0, 1]]) == columns_of(rows, bounds={0: (-1, 1), 1: (-1, 1)}) == ("0", "1")
    assert columns_of(rows, columns=[1, 0]) == columns_of(rows, columns=["1", "0"]) == ("1", "0")
    wards = rows[[0, 1]].assign(ward="A").set_axis([0, 1, 3], axis=1)
    assert columns_of(wards, categories={3: ["A", "B"]}, columns=[0, 1]) == ("0", "1", "3=A", "3=B")
    people = quick(user_column=2, rows_per_user=1, columns=[0, 1]).fit(rows)
    assert people.result_.privacy.rows_per_user == 1


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a", "a"], "more than one column is called 'a': rename them"),
        ([0, "0"], "more than one column is called '0': rename them"),
        *(([name, 1], "a column has no name: name it, as in") for name in (np.nan, None, pd.NaT)),
        (pd.Index([pd.NA, "a"], dtype=object), "a column has no name: name it, as in"),
        (pd.MultiIndex.from_tuples([("a", "x"), ("a", "y")]), "several levels: join them first, as in rows.columns ="),
    ],
)
def test_columns_of_pandas_without_a_name_of_their_own_are_refused_in_a_line(names: Any, message: str) -> None:
    frame = pd.DataFrame(blobs(), columns=names)
    plain = quick().fit(pd.DataFrame(blobs(), columns=["a", "b"]))
    for refused in (model().fit, plain.predict, source):
        with pytest.raises(InvalidInput, match=message):
            refused(frame)


def test_bounds_and_tables_of_arrow_name_a_column_once() -> None:
    with pytest.raises(InvalidInput, match="the bounds name column '0' more than once"):
        model(bounds={0: (-1, 1), "0": (-1, 1), 1: (-1, 1)}).fit(pd.DataFrame(blobs()))
    with pytest.raises(InvalidInput, match=r"^more than one column is called 'a': rename them$"):
        model().fit(pa.table([[1.5, 2.5]] * 2, names=["a", "a"]))


@pytest.mark.parametrize("convert", [lambda frame: frame, pl.from_pandas])
def test_the_columns_that_bounds_and_categories_name_are_used_and_others_may_stand_beside_them(convert: Any) -> None:
    frame = convert(mixed())
    fitted = quick(bounds={"age": (0, 120)}, categories={"ward": ["A", "B"]}, missing="drop").fit(frame)
    assert fitted.result_.columns == ("ward=A", "ward=B", "age")
    assert list(fitted.feature_names_in_) == ["ward", "age"]
    labels = fitted.predict(frame)
    assert np.flatnonzero(labels == -1).tolist() == [4]
    assert (fitted.predict(convert(mixed()[["age", "ward"]])) == labels).all()
    with pytest.raises(ValueError, match="categories: give a data frame with ward, age"):
        fitted.predict(np.ones((2, 2)))


def test_text_is_refused_and_arrays_have_no_names() -> None:
    with pytest.raises(ValueError, match="column 'ward' does not hold numbers"):
        model().fit(mixed())
    for given in ({"columns": ["age"]}, {"categories": {"ward": ["A"]}}):
        with pytest.raises(ValueError, match="data frame"):
            model(**given).fit(blobs())


def test_rows_that_cannot_be_used_are_dropped_alike_everywhere() -> None:
    broken, gone = blobs(), np.full((2, 2), np.nan)
    broken[3, 0], broken[7, 1] = np.nan, np.inf
    kept = np.delete(broken, [3, 7], axis=0)
    fitted = quick(missing="drop").fit(broken)
    labels, distances = fitted.predict(broken), fitted.transform(broken)
    for dropped in (labels == -1, np.isnan(distances).all(axis=1)):
        assert np.flatnonzero(dropped).tolist() == [3, 7]
    np.testing.assert_array_equal(np.delete(labels, [3, 7]), fitted.predict(kept))
    np.testing.assert_array_equal(np.delete(distances, [3, 7], axis=0), fitted.transform(kept))
    assert fitted.score(broken) == fitted.score(kept)
    assert np.flatnonzero(fitted.fit_predict(broken) == -1).tolist() == [3, 7]
    assert (fitted.predict(gone) == -1).all()
    with pytest.raises(ValueError, match="no row can be used"):
        fitted.score(gone)


def test_weights_of_rows_are_refused_with_the_reason() -> None:
    rows = blobs()
    fitted = quick().fit(rows, sample_weight=None)
    for ask in (fitted.fit, fitted.fit_predict, fitted.score):
        with pytest.raises(ValueError, match="a weight would let one row count as many"):
            ask(rows, sample_weight=np.ones(2000))
        with pytest.raises(TypeError, match="unexpected keyword argument 'weights'"):
            ask(rows, weights=np.ones(2000))


def test_each_estimator_scores_by_its_own_cost() -> None:
    rows = blobs()
    means, medians, one_round = (model(kind).fit(rows) for kind in (KMeans, cloister.KMedians, cloister.OneRound))
    for fitted, power in ((means, 2), (medians, 1)):
        assert fitted.score(rows) == pytest.approx(-(fitted.transform(rows).min(axis=1) ** power).sum())
    assert (one_round.privacy_.trust, one_round.result_.method["name"]) == ("Local", "one-round")
    assert "SIMULATED" in one_round.privacy_.text()


SECRET = 0.987654321
UNUSABLE: dict[str, Any] = {
    "one column": np.array([SECRET, 2.0]),
    "a list": [SECRET, 2.0],
    "one number": SECRET,
    "complex": np.array([[SECRET + 1j, 2.0]]),
    "of several lengths": [[SECRET, 2.0], [1.0]],
    "text": [[str(SECRET), "x"]],
    "beyond floats": [[int(SECRET * 10**9) * 10**400, 1]],
    "solid": np.full((2, 2, 2), SECRET),
    "missing": [[SECRET, np.nan]],
    "a series": pd.Series([SECRET, 2.0]),
}
"""Rows that scikit-learn and NumPy refuse, each with a cell that must not be quoted."""


@pytest.mark.parametrize("what", UNUSABLE)
def test_no_refusal_of_rows_quotes_a_cell(what: str, fitted: Any) -> None:
    asks = [quick().fit, fitted.predict, fitted.transform, fitted.score, quick().fit_predict]
    if what != "missing":  # which a scaler lets pass
        asks.append(PublicScaler(bounds=(-1, 1)).fit)
    for ask in asks:
        with pytest.raises(ValueError) as error:  # noqa: PT011  # any: what it does not say is what counts
            ask(UNUSABLE[what])
        assert "98765" not in str(error.value)


def test_a_refusal_of_uneven_rows_does_not_count_them() -> None:
    with pytest.raises(ValueError, match="different numbers of cells") as error:
        quick().fit([*[[1.0, 2.0]] * 5, [1.0]])
    assert not any(letter.isdigit() for letter in str(error.value))


def test_a_fit_forgets_the_names_of_the_fit_before() -> None:
    fitted = quick(bounds={"age": (0, 120)}).fit(mixed())
    fitted.set_params(bounds=(-1, 1)).fit(blobs())
    with pytest.warns(UserWarning, match="fitted without feature names"):
        assert (fitted.predict(pd.DataFrame(blobs(), columns=["p", "q"])) == fitted.predict(blobs())).all()


def test_a_score_is_of_rows_clipped_as_the_run_clipped_them_and_says_the_other() -> None:
    rows = np.concatenate([blobs(1000), [[1e7, 0.0]]])
    fitted = quick(rows=1000).fit(rows)
    with pytest.warns(UtilityWarning, match="as the run clipped them.*clip=False"):
        clipped = fitted.score(rows)
    assert clipped == pytest.approx(-metrics.cost(np.clip(rows, -1, 1), fitted.cluster_centers_))
    assert fitted.score(rows, clip=False) == pytest.approx(-metrics.cost(rows, fitted.cluster_centers_))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fitted.score(rows[:-1]) > -3000


READ = r"pandas\.read_parquet\(path\).* 'cloister fit', which takes paths"


NOT_HERE: dict[str, tuple[Callable[[], Any], str]] = {
    "a path as text": (lambda: "rows.parquet", READ),
    "an address": (lambda: "duckdb:///lake.db", r"ibis\.connect\(address\)\.table\('NAME'\)"),
    "a lazy frame": (pl.LazyFrame, r"lazy LazyFrame of polars: fetch them first, as in rows\.collect\(\)"),
    "a frame of dask": (
        lambda: pytest.importorskip("dask.dataframe").from_pandas(pd.DataFrame({"a": [0.0, 1.0]}), npartitions=1),
        r"rows\.compute\(\)",
    ),
    "a relation": (
        lambda: pytest.importorskip("duckdb").sql("select 1.0 as a"),
        "rows are a relation of DuckDB: give a table",
    ),
}


@pytest.mark.parametrize("what", NOT_HERE)
def test_rows_that_are_elsewhere_are_to_be_fetched_first(what: str, fitted: Any) -> None:
    made, says = NOT_HERE[what]
    relation = what == "a relation"
    for ask in (quick().fit, *([] if relation else [fitted.predict, PublicScaler("-1:1").fit])):
        with pytest.raises(ValueError, match=says):
            ask(made())
    if relation:
        with pytest.raises(ValueError, match=r"have no order: fetch them, as in rows\.df\(\)"):
            fitted.predict(made())


# types that are not read


def told(rows: Any, **more: Any) -> str:
    with pytest.raises(ValueError, match=r"^.+$") as refusal:
        quick(**more).fit(rows)
    return str(refusal.value)


FRAME = pd.DataFrame(blobs(), columns=["a", "b"])


@pytest.mark.parametrize(
    ("rows", "kind"),
    [
        (FRAME.astype(pd.SparseDtype("float")), r"Sparse\[float64, nan\]"),
        (FRAME.astype("category"), "category"),
        (FRAME.round().astype("Int64").astype("category"), "category"),
        (
            pa.table({"a": pa.array(FRAME["a"]).dictionary_encode(), "b": pa.array(FRAME["b"])}),
            "dictionary<values=double.*",
        ),
    ],
    ids=["Sparse", "category of floats", "category of integers", "dictionary of Arrow"],
)
def test_numbers_of_a_type_that_is_not_read_are_called_numbers(rows: Any, kind: str) -> None:
    """'Does not hold numbers: a category' sent people to leave the column out, or to list its values."""
    assert re.search(
        rf"column 'a' holds numbers of type {kind}: convert them, as in column\.(astype|cast)\(", told(rows)
    )


@pytest.mark.skipif(np.dtype(np.longdouble).itemsize == 8, reason="long doubles are doubles here")
def test_long_doubles_in_a_frame_are_called_numbers() -> None:
    assert "holds numbers of type float128: convert them" in told(FRAME.astype(np.longdouble))


@pytest.mark.parametrize("cell", [float, str, Decimal], ids=["floats", "texts", "decimals"])
def test_of_a_column_of_objects_the_same_is_said_whatever_its_cells_are(cell: Any) -> None:
    """Its cells are not looked at: what they are is no news that a message may carry."""
    objects = FRAME.map(lambda value: cell(str(value))).astype(object)
    assert "if its cells are numbers, convert them, as in column.astype(float). Only a column" in told(objects)


def test_intervals_and_categories_of_text_are_no_numbers() -> None:
    for column in (pd.cut(FRAME["a"], 3), FRAME["a"].astype(str).astype("category")):
        assert "column 'a' does not hold numbers: leave it out" in told(FRAME.assign(a=column))


def test_a_category_of_numbers_can_still_be_listed() -> None:
    rows = FRAME.assign(ward=np.arange(2000) % 3).astype({"ward": "category"})
    found = quick(categories={"ward": [0, 1, 2]}, bounds={"a": (-1, 1), "b": (-1, 1)}).fit(rows)
    assert found.result_.columns == ("a", "b", "ward=0", "ward=1", "ward=2")


def test_a_span_of_time_is_no_date() -> None:
    spans = pd.to_timedelta(np.arange(2000), unit="m")
    lazy = pl.DataFrame({"a": FRAME["a"].to_numpy(), "b": spans.to_numpy()})
    arrow = pa.table({"a": pa.array(FRAME["a"]), "b": pa.array(spans)})
    for rows in (FRAME.assign(b=spans), lazy, arrow):
        assert "column 'b' does not hold numbers but is a span of time" in told(rows)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (np.zeros(100, [("a", "f8"), ("b", "f8")]), "rows are a structured array: make a data frame"),
        (np.zeros(100, [("a", "f8"), ("b", "f8")]).view(np.recarray), "rows are a structured array"),
        ({"a": [0.0] * 100, "b": [0.0] * 100}, "rows are a dict: make a data frame"),
        ([{"a": 0.0, "b": 1.0}] * 100, "rows are a list of dicts: make a data frame"),
        ({0.0, 1.0}, "rows are a set: give a table of numbers"),
        ((row for row in [[0.0, 1.0]]), "rows are a generator: give a table of numbers"),
        (np.zeros((100, 2), "M8[s]"), r"rows are an array of datetime64[s]: turn them into numbers"),
        (np.zeros((100, 2), "m8[h]"), r"rows are an array of timedelta64[h]: turn them into numbers"),
    ],
    ids=["structured", "records", "dict", "dicts", "set", "generator", "moments", "spans"],
)
def test_rows_that_are_no_table_are_refused_in_words_of_our_own(fitted: Any, rows: Any, said: str) -> None:
    """NumPy said 'float() argument must be a string or a real number', and moments were taken for plain numbers."""
    for call in (quick().fit, fitted.predict, PublicScaler((-1, 1)).fit):
        with pytest.raises(ValueError, match=re.escape(said)):
            call(rows)
    if "set" not in said and "generator" not in said:
        with pytest.raises(InvalidInput, match="rows are a"):
            source(rows)
