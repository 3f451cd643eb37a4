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
    """Map public bounds to [-1, 1], column by column: what a pipeline with a promise may scale by.

    ``fit`` learns nothing from the rows: it checks their shape, names and types, and what it keeps follows from the
    bounds. scikit-learn's own scalers keep exact means or extremes of the rows, outside any guarantee. Rows outside the
    bounds land outside [-1, 1], where ``KMeans(bounds=(-1, 1))`` clips them; a missing cell stays one.

    Args:
        bounds: public bounds, as ``KMeans`` takes them, but for balls and 'unknown'.
        columns: names or patterns of a data frame's columns, as ``KMeans`` takes them; None: those that bounds name, or
            all. Others may stand beside them, and are left out of what is scaled.

    Attributes:
        offset_, scale_: (n_features,) what is taken off, and what the rest is divided by.
    """

    feature_names_in_: Any

    _by_names: bool = False
    """Whether columns of a data frame were chosen by name, so that others may stand beside them."""

    def __init__(self, bounds: Any = None, *, columns: Sequence[str] | None = None) -> None:
        self.bounds = bounds
        self.columns = columns

    def fit(self, X: Any, y: Any = None) -> PublicScaler:  # noqa: N803
        """Take the bounds for the columns of X (n, d). Raises: InvalidRows (a ValueError): they do not fit."""
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
        """The rows (n, d), with each column's bounds at -1 and 1. NOT private: it is the rows you pass."""
        check_is_fitted(self)
        with refusing():
            return (table(self, self._named(X), reset=False, drop=True) - self.offset_) / self.scale_

    def _chosen(self, rows: Any) -> Any:
        """The columns of a data frame that ``KMeans`` would use; other rows as they are."""
        frame, self._by_names = frame_of(rows), False
        if frame is None:
            refuse_names(self.columns, None, None)
            return rows
        self._by_names = self.columns is not None or named_in(self.bounds) is not None
        used = source(rows, bounds=self.bounds, columns=self.columns, missing="drop").selection.used
        return picked(frame, used)

    def _named(self, rows: Any) -> Any:
        """The columns of a data frame that were chosen in ``fit``; other rows as they are."""
        frame = frame_of(rows) if self._by_names else None
        if frame is None:
            return rows
        wanted, names = list(self.feature_names_in_), list(map(str, frame.columns))
        for name in wanted:
            if name not in names:
                raise UnknownName("column", name, names)
        return picked(frame, wanted, named=True)

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
