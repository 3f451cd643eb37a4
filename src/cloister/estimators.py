"""scikit-learn estimators over the registry."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from cloister import metrics
from cloister.core.errors import InvalidInput, MissingExtra
from cloister.core.types import AnyArray, Floats, Ints
from cloister.run.account import Account
from cloister.run.bounds import domain_of
from cloister.run.fit import fit, source
from cloister.run.request import Request
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
        method: registry name of the method (``cloister list Method``); 'auto' picks the one that predicts the least
            error for these figures, whatever the rows are.
        epsilon: privacy budget of one ``fit``, in nats.
        delta: probability with which the guarantee may fail; 0 for methods with pure noise only.
        bounds: public bounds: a pair for all columns, a pair per column, a mapping of column names to pairs.
        rows: public number of rows, a round figure; None: 1% of the budget counts them.
        zoom: 'auto', 'off' or the share of the budget that finds where rows are within wide bounds.
        scale: units of distances: 'none', 'bounds' (each column's width) or a weight per column; by default 'bounds'
            where widths differ by more than a factor of two. ``predict``, ``transform`` and ``score`` use them too.
        components: component name per slot, e.g. {"counts": "discrete-laplace"}.
        options: option values, e.g. {"rounds": 5}.
        missing: 'refuse' rows with missing cells, or 'drop' them.
        user_column: column of a data frame that names each row's user; of an array pass ``fit(X, users=names)``. The
            guarantee is then for users, with all their rows.
        rows_per_user: most rows of one user that count, a public number; ``rows`` is then of these.
        ledger, dataset: file and declared name of a lifetime budget that this fit is charged to.
        not_private: allow methods that give no guarantee.
        random_state: repeats the public choices (the start). The noise is never repeatable.
        threads: how many work on the rows; by default as many as BLAS may take. Results do not depend on it.
        trust: 'central', 'local', 'shuffled' or 'aggregated': fills all slots that ``components`` does not name.

    Attributes:
        cluster_centers_: (n_clusters, n_features) released centres.
        cluster_weights_: (n_clusters,) noisy rows per centre, or None.
        privacy_: the privacy statement.
        result_: everything that was released.
    """

    def __init__(
        self, n_clusters: int = 8, *, method: str = "auto", epsilon: float = 1.0, delta: float = 0.0,
        bounds: Any = None,
        rows: int | None = None, zoom: str | float = "auto", scale: Any = None,
        components: Mapping[str, str] | None = None, options: Mapping[str, Any] | None = None,
        missing: str = "refuse", ledger: str | None = None, dataset: str | None = None, not_private: bool = False,
        random_state: int | None = None, threads: int | None = None, user_column: str | None = None,
        rows_per_user: int | None = None, trust: str | None = None,
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
        self.threads = threads
        self.user_column = user_column
        self.rows_per_user = rows_per_user
        self.trust = trust

    def fit(self, X: Any, y: Any = None, users: Any = None) -> KMeans:  # noqa: N803
        """Release centres of X (n, d), spending epsilon and delta.

        Args: users: names (n,) of the rows' users, whole numbers or texts, in place of ``user_column``.

        Raises: InvalidRows (a ValueError): unusable input. CloisterError: any other refusal. No budget is spent then.
        """
        try:
            self.result_: Result = self._fitted(X, users)
        except InvalidInput as error:
            raise InvalidRows(str(error)) from error
        self.cluster_centers_: Floats = self.result_.centers
        self.cluster_weights_ = self.result_.weights
        self.privacy_ = self.result_.privacy
        self._n_features_out = len(self.cluster_centers_)
        return self

    def _fitted(self, rows: Any, users: Any) -> Result:
        if self.user_column is not None:
            if users is not None:
                raise InvalidInput("users are named twice: give user_column, or users, not both")
            users = _frame(rows, self.user_column).get_column(self.user_column).to_list()
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
            seed=self.random_state, rows_per_user=self.rows_per_user, trust=self.trust,
        )  # fmt: skip
        population = source(checked, None, self.missing, threads=self.threads, users=users)
        result = fit(request, population, account=account)
        if warning := result.details.get("auto", {}).get("warning"):
            warnings.warn(warning, UserWarning, stacklevel=3)
        return result

    def predict(self, X: Any) -> Ints:  # noqa: N803
        """Index (n,) of the nearest released centre of each row of X. NOT private: it tells about the rows you pass."""
        return metrics.labels(*self._measured(X), self.threads)

    def fit_predict(self, X: Any, y: Any = None, **kwargs: Any) -> Ints:  # noqa: N803
        """``fit`` and then ``predict`` on the same rows. The labels are NOT private; only the centres are."""
        return self.fit(X).predict(X)

    def transform(self, X: Any) -> Floats:  # noqa: N803
        """Distances (n, n_clusters) to the released centres, in the run's units where columns are scaled. NOT private:
        it tells about the rows you pass."""
        return metrics.distances(*self._measured(X), self.threads)

    def score(self, X: Any, y: Any = None) -> float:  # noqa: N803
        """Minus the k-means cost of X. NOT private: it tells about the rows you pass."""
        return -metrics.cost(*self._measured(X), threads=self.threads)

    def _measured(self, rows: Any) -> tuple[AnyArray, Floats]:
        """Rows and centres, each column in the run's unit of distance."""
        checked, units = self._checked(rows, reset=False), self.result_.units
        if units is None:
            return checked, self.cluster_centers_
        return checked / units.astype(checked.dtype), self.cluster_centers_ / units

    def _checked(self, rows: Any, reset: bool) -> AnyArray:
        """Apply scikit-learn's own validation: shape, feature names, and finiteness unless rows may be dropped. The
        user column is not clustered by; new rows may lack it."""
        if not reset:
            check_is_fitted(self)
        if self.user_column is not None and (reset or self.user_column in getattr(rows, "columns", ())):
            rows = _frame(rows, self.user_column).drop(self.user_column).to_native()
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


def _frame(rows: Any, column: str) -> Any:
    """A data frame with this column. Raises: InvalidInput: the rows are none."""
    import narwhals as nw

    frame = nw.from_native(rows, eager_only=True, pass_through=True)
    if column not in getattr(frame, "columns", ()):
        raise InvalidInput(
            f"there is no column '{column}' that could name users: give a data frame that has it, or users=names"
        )
    return frame


class InvalidRows(InvalidInput, ValueError):
    """An input error of cloister that is also a ValueError, as callers of scikit-learn expect."""
