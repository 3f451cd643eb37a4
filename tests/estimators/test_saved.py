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
from cloister.run.result import Result
from tests.estimators.fitted import blobs, mixed, model


def test_a_saved_result_is_loaded_as_an_estimator_that_predicts_alike(tmp_path: Path) -> None:
    frame = pd.DataFrame(blobs(), columns=["age", "glucose"])
    fitted = model(method="fastlloyd", scale=[1, 3]).fit(frame)
    for ending in ("json", "npz"):
        fitted.result_.save(tmp_path / f"r.{ending}")
        loaded = cloister.KMeans.load(tmp_path / f"r.{ending}")
        assert (loaded.score(frame), loaded.privacy_) == (fitted.score(frame), fitted.privacy_)
        assert list(loaded.feature_names_in_) == ["age", "glucose"]
        for rows in (frame, frame.assign(mrn=1)[["mrn", "glucose", "age"]]):
            np.testing.assert_array_equal(loaded.predict(rows), fitted.predict(frame))
    with pytest.raises(ValueError, match="no column 'age'"):
        loaded.predict(frame.rename(columns={"age": "weight"}))


@pytest.mark.parametrize(
    ("method", "kind"),
    [("grid-means", cloister.KMeans), ("grid-median", cloister.KMedians), ("one-round", cloister.OneRound)],
)
def test_a_result_knows_its_estimator_whose_clone_fits_by_the_same_method(method: str, kind: Any) -> None:
    result = model(method=method, zoom="off", scale="none").fit(blobs()).result_
    found = Result.from_dict(json.loads(json.dumps(result.as_dict()))).estimator()
    assert type(found) is kind
    again = clone(found).fit(blobs()).result_
    assert (again.method, again.problem) == (result.method, result.problem)


def test_a_clone_of_what_is_loaded_takes_the_same_columns_and_works_in_the_same_frame() -> None:
    wards: dict[str, Any] = {"bounds": {"age": (0, 120)}, "categories": {"ward": ["A", "B"]}, "options": {"rounds": 2}}
    far: dict[str, Any] = {"method": "hst-means", "bounds": [(-1, 1), (-5e3, 5e3)], "zoom": 0.1}
    for fitted, rows in (
        (model(method="fastlloyd", scale=[2.0], **wards), mixed().dropna()),
        (model(**far), blobs() * [1.0, 1000.0]),
        (model(method="fastlloyd", bounds="ball:2"), blobs()),
    ):
        result = fitted.fit(rows).result_
        again = clone(result.estimator()).fit(rows).result_
        assert (again.method, again.problem, again.columns) == (result.method, result.problem, result.columns)


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
    rows, users = blobs(300), [f"patient {i:05d}" for i in range(300)]
    fitted = model(kind, rows=300, threads=2, progress=False)
    if kind is cloister.OneRound:
        fitted.fit(rows)
    else:
        ledger = str(tmp_path / "budget.db")
        Ledger.open(ledger, create=True).declare("mine", 100.0, 1e-3, unit="users")
        fitted.set_params(ledger=ledger, dataset="mine", rows_per_user=1).fit(rows, users=users)
    fitted.predict(rows), fitted.transform(rows), fitted.score(rows)
    marks = traces(rows) | {user.encode() for user in users}
    for content in dumped(fitted):
        assert not [mark for mark in marks if mark in content]
        np.testing.assert_array_equal(joblib.load(io.BytesIO(content)).predict(rows), fitted.predict(rows))
    fitted.kept_ = rows.tolist()
    assert all(any(mark in content for mark in marks) for content in dumped(fitted))
