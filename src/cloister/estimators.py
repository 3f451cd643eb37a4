"""scikit-learn estimators over the registry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cloister.core.errors import InvalidInput, MissingExtra
from cloister.core.types import AnyArray, Floats, Ints
from cloister.run.bounds import domain_of
from cloister.run.fit import Account, Request, fit, source
from cloister.run.result import Result

try:
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError:
    raise MissingExtra("scikit-learn", "sklearn", "cloister.KMeans") from None


class KMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):  # type: ignore[misc]  # untyped bases
    """Private k-means with scikit-learn's interface.

    Fitted attributes hold released values only: there are no ``labels_`` and no ``inertia_``, since both would carry
    every row. What ``predict``, ``transform`` and ``score`` return is computed from the rows you pass: NOT private,
    and not to be published.

    Args:
        n_clusters: number of centres.
        method: registry name of the method (``cloister list Method``).
        epsilon: privacy budget of one ``fit``, in nats.
        delta: probability with which the guarantee may fail; 0 for methods with pure noise only.
        bounds: public bounds: a pair for all columns, a pair per column, a mapping of column names to pairs.
        rows: public number of rows, a round figure.
        zoom: 'auto', 'off' or the share of the budget that finds where rows are within wide bounds.
        scale: units of distances: 'none', 'bounds' (each column's width) or a weight per column; by default 'bounds'
            where widths differ by more than a factor of two. ``predict``, ``transform`` and ``score`` use them too.
        components: component name per slot, e.g. {"counts": "discrete-laplace"}.
        options: option values, e.g. {"rounds": 5}.
        missing: 'refuse' rows with missing cells, or 'drop' them.
        ledger, dataset: file and declared name of a lifetime budget that this fit is charged to.
        not_private: allow methods that give no guarantee.
        random_state: repeats the public choices (the start). The noise is never repeatable.

    Attributes:
        cluster_centers_: (n_clusters, n_features) released centres.
        cluster_weights_: (n_clusters,) noisy rows per centre, or None.
        privacy_: the privacy statement.
        result_: everything that was released.
    """

    def __init__(
        self, n_clusters: int = 8, *, method: str = "fastlloyd", epsilon: float = 1.0, delta: float = 0.0,
        bounds: Any = None,
        rows: int | None = None, zoom: str | float = "auto", scale: Any = None,
        components: Mapping[str, str] | None = None, options: Mapping[str, Any] | None = None,
        missing: str = "refuse", ledger: str | None = None, dataset: str | None = None, not_private: bool = False,
        random_state: int | None = None,
    ) -> None:  # fmt: skip
        self.n_clusters = n_clusters
        self.method = method
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.rows = rows
        self.zoom = zoom
        self.scale = scale
        self.components = components
        self.options = options
        self.missing = missing
        self.ledger = ledger
        self.dataset = dataset
        self.not_private = not_private
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> KMeans:  # noqa: N803
        """Release centres of X (n, d), spending epsilon and delta.

        Raises: InvalidRows (a ValueError): unusable input. CloisterError: any other refusal. No budget is spent then.
        """
        try:
            self.result_: Result = self._fitted(X)
        except InvalidInput as error:
            raise InvalidRows(str(error)) from error
        self.cluster_centers_: Floats = self.result_.centers
        self.cluster_weights_ = self.result_.weights
        self.privacy_ = self.result_.privacy
        self._n_features_out = len(self.cluster_centers_)
        return self

    def _fitted(self, rows: Any) -> Result:
        checked = self._checked(rows, reset=True)
        account = Account.of(self.ledger, self.dataset)
        names = getattr(self, "feature_names_in_", None)
        bounds = self.bounds
        if isinstance(bounds, Mapping) and names is not None:
            bounds = domain_of(bounds, [str(name) for name in names])
        request = Request(
            k=self.n_clusters, method=self.method, epsilon=self.epsilon, delta=self.delta, bounds=bounds,
            rows=self.rows, zoom=self.zoom, scale=self.scale,
            components=self.components or {}, options=self.options or {}, not_private=self.not_private,
            seed=self.random_state,
        )  # fmt: skip
        return fit(request, source(checked, None, self.missing), account=account)

    def predict(self, X: Any) -> Ints:  # noqa: N803
        """Index (n,) of the nearest released centre of each row of X. NOT private: it tells about the rows you pass."""
        nearest: Ints = np.argmin(self.transform(X), axis=1)
        return nearest

    def fit_predict(self, X: Any, y: Any = None, **kwargs: Any) -> Ints:  # noqa: N803
        """``fit`` and then ``predict`` on the same rows. The labels are NOT private; only the centres are."""
        return self.fit(X).predict(X)

    def transform(self, X: Any) -> Floats:  # noqa: N803
        """Distances (n, n_clusters) to the released centres, in the run's units where columns are scaled. NOT private:
        it tells about the rows you pass."""
        check_is_fitted(self)
        units = 1.0 if (own := self.result_.units) is None else own
        rows = self._checked(X, reset=False).astype(np.float64) / units
        out = np.empty((len(rows), len(self.cluster_centers_)))
        for j, center in enumerate(self.cluster_centers_ / units):
            out[:, j] = np.linalg.norm(rows - center, axis=1)
        return out

    def score(self, X: Any, y: Any = None) -> float:  # noqa: N803
        """Minus the k-means cost of X. NOT private: it tells about the rows you pass."""
        return -float((self.transform(X).min(axis=1) ** 2).sum())

    def _checked(self, rows: Any, reset: bool) -> AnyArray:
        """Apply scikit-learn's own validation: shape, feature names, and finiteness unless rows may be dropped."""
        if isinstance(rows, np.ma.MaskedArray):
            raise InvalidRows("rows are a masked array: fill masked cells with NaN, as in rows.filled(numpy.nan)")
        finite = "allow-nan" if self.missing == "drop" and reset else True
        try:
            checked: Any = validate_data(
                self, rows, reset=reset, dtype=[np.float64, np.float32], ensure_all_finite=finite
            )
        except ValueError as error:
            if "could not convert" not in str(error):
                raise
            raise InvalidRows(
                "some cells are not numbers: encode them as numbers, or leave their columns out"
            ) from None
        return np.asarray(checked)


class InvalidRows(InvalidInput, ValueError):
    """An input error of cloister that is also a ValueError, as callers of scikit-learn expect."""
