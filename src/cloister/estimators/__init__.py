"""scikit-learn estimators over the registry."""

from __future__ import annotations

from cloister.estimators.base import PrivateClusterer
from cloister.estimators.clusterers import (
    EXPECTED_FAILED_CHECKS,
    KMeans,
    KMedians,
    OneRound,
    estimator_of,
    expected_failed_checks,
)
from cloister.estimators.rows import InvalidRows
from cloister.estimators.scaler import PublicScaler

__all__ = [
    "EXPECTED_FAILED_CHECKS",
    "InvalidRows",
    "KMeans",
    "KMedians",
    "OneRound",
    "PrivateClusterer",
    "PublicScaler",
    "estimator_of",
    "expected_failed_checks",
]
