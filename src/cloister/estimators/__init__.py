"""scikit-learn estimators over the registry."""

from __future__ import annotations

from cloister.core.errors import MissingExtra

try:
    import sklearn as _sklearn  # noqa: F401  # before the modules that need it, for an error that says what to install
except ImportError:
    raise MissingExtra("scikit-learn", "sklearn", "an estimator of cloister") from None

from cloister.estimators.base import PrivateClusterer
from cloister.estimators.clusterers import KMeans, KMedians, OneRound, estimator_of
from cloister.estimators.rows import InvalidRows
from cloister.estimators.scaler import PublicScaler

__all__ = ["InvalidRows", "KMeans", "KMedians", "OneRound", "PrivateClusterer", "PublicScaler", "estimator_of"]
