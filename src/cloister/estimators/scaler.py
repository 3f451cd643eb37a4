"""Scaling by public bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from cloister.core.domains import Box
from cloister.core.errors import InvalidInput
from cloister.core.frames import unknown_columns
from cloister.core.types import AnyArray, Floats
from cloister.estimators.rows import refusing, table
from cloister.run.bounds import domain_of


class PublicScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]  # untyped bases
    """Map public bounds to [-1, 1], column by column: what a pipeline with a promise may scale by.

    ``fit`` learns nothing from the rows: it checks their shape, names and types, and what it keeps follows from the
    bounds. scikit-learn's own scalers keep exact means or extremes of the rows, outside any guarantee. Rows outside the
    bounds land outside [-1, 1], where ``KMeans(bounds=(-1, 1))`` clips them; a missing cell stays one.

    Args:
        bounds: public bounds, as ``KMeans`` takes them, but for balls and 'unknown'.

    Attributes:
        offset_, scale_: (n_features,) what is taken off, and what the rest is divided by.
    """

    def __init__(self, bounds: Any = None) -> None:
        self.bounds = bounds

    def fit(self, X: Any, y: Any = None) -> PublicScaler:  # noqa: N803
        """Take the bounds for the columns of X (n, d). Raises: InvalidRows (a ValueError): they do not fit."""
        d = table(self, X, reset=True, drop=True).shape[1]
        names = getattr(self, "feature_names_in_", range(d))
        with refusing():
            domain = domain_of(self.bounds, [str(name) for name in names])
            if not isinstance(domain, Box) or unknown_columns(domain):
                raise InvalidInput(f"bounds {self.bounds!r} give no two ends for each column: name them")
        lower, upper = np.array(domain.lower), np.array(domain.upper)
        self.offset_: Floats = lower / 2 + upper / 2
        self.scale_: Floats = upper / 2 - lower / 2
        return self

    def transform(self, X: Any) -> Floats:  # noqa: N803
        """The rows (n, d), with each column's bounds at -1 and 1. NOT private: it is the rows you pass."""
        check_is_fitted(self)
        return (table(self, X, reset=False, drop=True) - self.offset_) / self.scale_

    def inverse_transform(self, X: Any) -> Floats:  # noqa: N803
        """Scaled rows, or a result's centres (m, d), in the caller's units."""
        check_is_fitted(self)
        floats: Any = [np.float64, np.float32]
        scaled: AnyArray = check_array(X, dtype=floats, ensure_all_finite=False)
        return scaled * self.scale_ + self.offset_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
