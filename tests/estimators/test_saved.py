"""Fitted estimators that are saved, sent and loaded hold what was released, and nothing else."""

from __future__ import annotations

import io
import json
import pickle
import struct
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import cloister
from cloister.accounting.ledger.ledger import Ledger
from cloister.run.fit import fit, source
from cloister.run.request import Request
from cloister.run.result import Result
from tests.estimators.fitted import blobs, mixed, model


def test_a_saved_result_is_loaded_as_an_estimator_that_predicts_alike(tmp_path: Path) -> None:
    frame = pd.DataFrame(blobs(), columns=["age", "glucose"])
    fitted = model(method="fastlloyd", scale=[1, 3]).fit(frame)
    for ending in ("json", "npz"):
        fitted.result_.save(tmp_path / f"r.{ending}")
        loaded = cloister.KMeans.load(tmp_path / f"r.{ending}")
        np.testing.assert_array_equal(loaded.predict(frame), fitted.predict(frame))
        assert loaded.score(frame) == fitted.score(frame)
        assert list(loaded.feature_names_in_) == ["age", "glucose"]
        assert loaded.privacy_ == fitted.privacy_
    assert (loaded.predict(frame.assign(mrn=1)[["mrn", "glucose", "age"]]) == fitted.predict(frame)).all()
    with pytest.raises(ValueError, match="no column 'age'"):
        loaded.predict(frame.rename(columns={"age": "weight"}))


@pytest.mark.parametrize(
    ("method", "kind"), [("grid-means", "KMeans"), ("k-variates", "KMedians"), ("one-round", "OneRound")]
)
def test_a_result_knows_its_estimator_whose_clone_fits_by_the_same_method(method: str, kind: str) -> None:
    result = model(method=method, zoom="off", scale="none").fit(blobs()).result_
    read = Result.from_dict(json.loads(json.dumps(result.as_dict())))
    found = read.estimator()
    assert type(found).__name__ == kind
    again = clone(found).fit(blobs()).result_
    assert (again.method, again.problem) == (result.method, result.problem)
    assert again.privacy.headline == result.privacy.headline


def test_a_clone_of_what_is_loaded_takes_the_same_columns_and_categories() -> None:
    frame = mixed().dropna()
    asked: dict[str, Any] = {"bounds": {"age": (0, 120)}, "categories": {"ward": ["A", "B"]}, "options": {"rounds": 2}}
    result = model(method="fastlloyd", scale=[2.0], **asked).fit(frame).result_
    again = clone(result.estimator()).fit(frame).result_
    assert (again.method, again.problem, again.columns) == (result.method, result.problem, result.columns)


def test_a_clone_of_what_is_loaded_works_in_the_same_frame() -> None:
    rows = blobs() * [1.0, 1000.0]
    result = model(method="hst-means", bounds=[(-1, 1), (-5e3, 5e3)], zoom=0.1).fit(rows).result_
    assert "frame" in result.method
    assert clone(result.estimator()).fit(rows).result_.method == result.method
    ball = fit(Request(k=3, epsilon=4.0, delta=1e-6, bounds="ball:2", rows=2000), source(blobs(), None, "refuse"))
    assert ball.estimator().fit(blobs()).result_.problem == ball.problem


def traces(rows: Any) -> set[bytes]:
    """How cells may stand in a file: as floats of either size, and as text."""
    cells = [float(cell) for cell in np.ravel(rows)]
    return {
        *(struct.pack(order + kind, cell) for cell in cells for order in "<>" for kind in "df"),
        *(repr(cell).encode() for cell in cells),
    }


def dumped(estimator: Any) -> list[bytes]:
    file = io.BytesIO()
    joblib.dump(estimator, file)
    return [pickle.dumps(estimator, protocol) for protocol in range(2, 6)] + [file.getvalue()]


@pytest.mark.parametrize("kind", [cloister.KMeans, cloister.KMedians, cloister.OneRound])
def test_no_cell_and_no_user_of_the_rows_is_in_what_is_pickled(kind: Any, tmp_path: Path) -> None:
    """The adversary searches for every cell; that she would find one is seen on a thing that does hold the rows."""
    rows = blobs(300)
    local = kind is cloister.OneRound
    users = [f"patient {i:05d}" for i in range(300)]
    ledger = str(tmp_path / "budget.db")
    Ledger.open(ledger, create=True).declare("mine", 100.0, 1e-3, unit="users")
    guarded: dict[str, Any] = {} if local else {"ledger": ledger, "dataset": "mine", "rows_per_user": 1}
    fitted = model(kind, rows=300, threads=2, progress=False, **guarded)
    fitted.fit(rows) if local else fitted.fit(rows, users=users)
    fitted.predict(rows), fitted.transform(rows), fitted.score(rows)
    marks = traces(rows) | {user.encode() for user in users}
    for content in dumped(fitted):
        assert not [mark for mark in marks if mark in content]
        np.testing.assert_array_equal(joblib.load(io.BytesIO(content)).predict(rows), fitted.predict(rows))
    fitted.kept_ = rows.tolist()
    assert all(any(mark in content for mark in marks) for content in dumped(fitted))
