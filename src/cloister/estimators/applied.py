"""Labels, distances and scores of the caller's rows by a fitted estimator: NOT private."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from cloister import metrics
from cloister.core.errors import InvalidInput, UtilityWarning
from cloister.core.types import AnyArray, Bools, Floats, Ints
from cloister.estimators.parameters import warn
from cloister.estimators.rows import among, refuse_others, refusing, table
from cloister.rows.frames import frame_of, picked
from cloister.rows.places import refuse_unordered
from cloister.rows.selection import table_columns
from cloister.run.estimates import distinct_texts
from cloister.run.fit import source
from cloister.run.result import Result


class ReleasedCenters(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):  # type: ignore[misc]  # untyped bases
    """Base class that applies released centres to rows; ``PrivateClusterer`` releases them."""

    result_: Result
    cluster_centers_: Floats
    missing: str
    threads: int | None
    user_column: str | None

    _power: ClassVar[int] = 2
    """Exponent of distances in the cost behind ``score``."""

    _by_names: bool = False
    """True if columns of a data frame were selected by name, so that new frames may have others."""

    def predict(self, X: Any) -> Ints:  # noqa: N803
        """Return the index (n,) of each row's nearest released centre. NOT private: computed from the rows you pass.

        With ``missing='drop'``, rows with missing or infinite cells have the label -1.
        """
        with refusing():
            rows, used = self._usable(X)
            if not len(rows):
                return np.full(len(used), -1)
            labels = metrics.labels(rows, self.cluster_centers_, self.threads, self.result_.units)
            return labels if len(rows) == len(used) else among(used, labels, -1)

    def transform(self, X: Any) -> Floats:  # noqa: N803
        """Return distances (n, n_clusters) to the released centres. NOT private: computed from the rows you pass.

        If columns are scaled, distances are in the run's units. With ``missing='drop'``, rows with missing or infinite
        cells have NaN.
        """
        with refusing():
            rows, used, centers = self._measured(X)
            if not len(rows):
                return np.full((len(used), len(centers)), np.nan)
            away = metrics.distances(rows, centers, self.threads)
            return away if len(rows) == len(used) else among(used, away, np.nan)

    def score(self, X: Any, y: Any = None, *, clip: bool = True, **kwargs: Any) -> float:  # noqa: N803
        """Return minus the cost of the usable rows of X. NOT private: computed from the rows you pass.

        The cost is the sum of squared distances to the nearest centre; for k-median, of distances.

        Args:
            X: rows, as for ``predict``.
            y: ignored.
            clip: clip rows to the bounds first, as the run did.
            **kwargs: refused.

        Warns:
            UtilityWarning: rows lie outside the bounds; the message gives the unclipped score.
        """
        refuse_others(kwargs, "score")
        with refusing():
            rows, used = self._usable(X)
            if not used.any():
                raise InvalidInput("no row can be used: each has a missing or infinite cell")
            moved, outside = self.result_.clipped(rows)
            score = self._score_of(moved if clip and outside.any() else rows)
            if clip and outside.any():
                clipped, unclipped = distinct_texts([score, self._score_of(rows)])
                words = (
                    f"the score {clipped} is of rows clipped to the bounds, as the run clipped them: of the rows as "
                    f"they are it is {unclipped} (score(X, clip=False))"
                )
                warn(set(), UtilityWarning(words))
            return score

    def _score_of(self, rows: AnyArray) -> float:
        """Return minus the cost of rows (n, d) given in the caller's units."""
        scaled, centers = self._in_units(rows)
        return -metrics.cost(scaled, centers, self._power, self.threads)

    def _measured(self, rows: Any) -> tuple[AnyArray, Bools, Floats]:
        """Return the usable rows, their mask, and the centres, each column in the run's unit of distance."""
        checked, used = self._usable(rows)
        scaled, centers = self._in_units(checked)
        return scaled, used, centers

    def _in_units(self, rows: AnyArray) -> tuple[AnyArray, Floats]:
        """Return rows (n, d) and the centres, each column in the run's unit of distance."""
        units = self.result_.units
        if units is None:
            return rows, self.cluster_centers_
        return rows / units.astype(rows.dtype), self.cluster_centers_ / units

    def _usable(self, rows: Any) -> tuple[AnyArray, Bools]:
        """Return the usable rows and their mask (n,)."""
        check_is_fitted(self)
        checked = self._features(rows)
        used: Bools = np.ones(len(checked), bool)
        if self.missing == "drop":
            np.isfinite(checked).all(axis=1, out=used)
        return checked if used.all() else checked[used], used

    def _features(self, rows: Any) -> AnyArray:
        """Return the features (n, d) of new rows, as the fit built them."""
        frame, drop, categories = frame_of(rows), self.missing == "drop", self.result_.problem.get("categories")
        refuse_unordered(rows)
        names = table_columns(self.result_.columns, categories or {})
        if frame is None:
            if categories:
                raise InvalidInput(f"rows have categories: give a data frame with {', '.join(names)}")
            return table(self, rows, reset=False, drop=drop)
        if not self._by_names:
            users = None if self.user_column is None else str(self.user_column)
            names = [name for name in map(str, frame.columns) if name != users]
        named = hasattr(self, "feature_names_in_")
        chosen = source(rows, columns=names, missing=self.missing, threads=self.threads, categories=categories)
        validate_data(self, picked(frame, names, named), reset=False, skip_check_array=True)
        if not drop:
            chosen.check()
        features: AnyArray = chosen.features()
        return features
