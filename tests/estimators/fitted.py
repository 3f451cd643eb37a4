"""Rows and models that the tests of estimators share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import cloister
from cloister.accounting.ledger.ledger import Ledger

NAMES = ["age", "<script>alert(1)</script>"]
"""The second is what somebody else may call a column."""


def blobs(n: int = 2000, seed: int = 0) -> Any:
    """Rows (n, 2) in three tight groups within [-1, 1]."""
    r = np.random.default_rng(seed)
    return np.array([[-0.6, -0.6], [0.6, 0.5], [-0.5, 0.6]])[r.integers(0, 3, n)] + r.normal(0, 0.05, (n, 2))


def mixed() -> Any:
    """A data frame with a number, a category that goes with it, identifiers and text, and a row that lacks its ward."""
    r = np.random.default_rng(1)
    ward = r.integers(0, 2, 2000)
    wards: list[Any] = ["A" if w else "B" for w in ward]
    wards[4] = None
    return pd.DataFrame(
        {
            "mrn": range(2000),
            "ward": wards,
            "age": np.where(ward, 30.0, 80.0) + r.normal(0, 3, 2000),
            "note": "x",
        }
    )


def model(kind: Any = cloister.KMeans, **more: Any) -> Any:
    """An estimator of three centres."""
    asked: dict[str, Any] = {"n_clusters": 3, "epsilon": 4.0, "delta": 1e-6, "bounds": (-1, 1), "rows": 2000}
    return kind(**{**asked, **more})


def runs(ledger: dict[str, str]) -> Any:
    """Those in a ledger, which parameters name."""
    return Ledger.open(ledger["ledger"]).runs()
