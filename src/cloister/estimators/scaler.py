"""Scaling by public bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from cloister.core.domains import Box
from cloister.core.errors import InvalidInput, UnknownName
from cloister.core.frames import unknown_columns
from cloister.core.types import AnyArray, Floats
from cloister.estimators.rows import refuse_names, refusing, table
from cloister.rows.frames import frame_of, picked
from cloister.run.bounds import domain_of, named_in
from cloister.run.fit import source


class PublicScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]  # untyped bases
    """Scaler that maps public bounds to [-1, 1], column by column, and so is safe in a private pipeline.

    ``fit`` learns nothing from the rows: it checks their shape, names and types; its attributes follow from the bounds.
    scikit-learn's own scalers keep exact means or extremes of the rows, outside any guarantee. Rows outside the bounds
    land outside [-1, 1], where ``KMeans(bounds=(-1, 1))`` clips them; missing cells stay missing.

    Args:
        bounds: public bounds, as ``KMeans`` takes them, but for balls and 'unknown'.
        columns: names or patterns of a data frame's columns, as ``KMeans`` takes them; None: those that bounds name, or
            all. Other columns are left out.

    Attributes:
        offset_: (n_features,) subtracted from each row.
        scale_: (n_features,) divisor after that.
    """

    feature_names_in_: Any

    _by_names: bool = False
    """True if columns of a data frame were selected by name, so that new frames may have others."""

    def __init__(self, bounds: Any = None, *, columns: Sequence[str] | None = None) -> None:
        self.bounds = bounds
        self.columns = columns

    def fit(self, X: Any, y: Any = None) -> PublicScaler:  # noqa: N803
        """Set offset and scale from the bounds. Raises InvalidRows (a ValueError) if they do not fit X (n, d)."""
        with refusing():
            d = table(self, self._chosen(X), reset=True, drop=True).shape[1]
            names = getattr(self, "feature_names_in_", range(d))
            domain = domain_of(self.bounds, [str(name) for name in names])
            if not isinstance(domain, Box) or unknown_columns(domain):
                raise InvalidInput(f"bounds {self.bounds!r} give no two ends for each column: name them")
        lower, upper = np.array(domain.lower), np.array(domain.upper)
        self.offset_: Floats = lower / 2 + upper / 2
        self.scale_: Floats = upper / 2 - lower / 2
        return self

    def transform(self, X: Any) -> Floats:  # noqa: N803
        """Return the rows (n, d) with each column's bounds mapped to -1 and 1. NOT private: they are your rows."""
        check_is_fitted(self)
        with refusing():
            return (table(self, self._named(X), reset=False, drop=True) - self.offset_) / self.scale_

    def _chosen(self, rows: Any) -> Any:
        """Return the columns of a data frame that ``KMeans`` would use; other rows unchanged."""
        frame, self._by_names = frame_of(rows), False
        if frame is None:
            refuse_names(self.columns, None, None)
            return rows
        self._by_names = self.columns is not None or named_in(self.bounds) is not None
        used = source(rows, bounds=self.bounds, columns=self.columns, missing="drop").selection.used
        return picked(frame, used)

    def _named(self, rows: Any) -> Any:
        """Return the columns of a data frame that ``fit`` selected; other rows unchanged."""
        frame = frame_of(rows) if self._by_names else None
        if frame is None:
            return rows
        used, names = list(self.feature_names_in_), list(map(str, frame.columns))
        for name in used:
            if name not in names:
                raise UnknownName("column", name, names)
        return picked(frame, used, named=True)

    def inverse_transform(self, X: Any) -> Floats:  # noqa: N803
        """Return scaled rows, or a result's centres (m, d), in the caller's units."""
        check_is_fitted(self)
        floats: Any = [np.float64, np.float32]
        scaled: AnyArray = check_array(X, dtype=floats, ensure_all_finite=False)
        return scaled * self.scale_ + self.offset_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
