"""Base of the estimators: parameters, and a fit with its warnings and progress."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeAlias

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from cloister.core.defaults import DELTA
from cloister.core.errors import InvalidInput, PrivacyWarning
from cloister.core.registry.making import altered, parameters
from cloister.core.session import Method
from cloister.core.trust import Central, Local, Shuffled
from cloister.core.types import Floats, Ints
from cloister.estimators.applied import ReleasedCenters
from cloister.estimators.parameters import (
    columns_of,
    names_in,
    parameters_of,
    refuse_beyond_doubles,
    remember_fit,
    request_of,
    run_named,
    warn,
    warning_before,
)
from cloister.estimators.rows import refuse_names, refuse_others, refusing, table
from cloister.rows.frames import frame_of, picked
from cloister.rows.keywords import described
from cloister.rows.places import is_ibis_table, refuse_lazy, refuse_path, refuse_relation
from cloister.run.account import Account
from cloister.run.bounds import named_in
from cloister.run.fit import fit, source
from cloister.run.layers.histograms import SHARE
from cloister.run.result import Result
from cloister.run.statement import large_delta
from cloister.run.warnings import after
from cloister.showing.progress import progress

if TYPE_CHECKING:
    from typing import Self

    from matplotlib.figure import Figure

AnyMethod: TypeAlias = Method[Central] | Method[Local] | Method[Shuffled]
"""A component of one trust model: ``Method[Any]`` would let a type checker pass oracles of two."""

SOON = 2.0
"""Seconds of work after which progress is shown."""


class PrivateClusterer(ReleasedCenters):
    """Base of the estimators (documented in ``KMeans``). Fitted attributes hold released values only."""

    n_features_in_: int
    feature_names_in_: Any

    _defaults: ClassVar[Mapping[str, str]] = {}
    """Method that 'auto' stands for, and trust that None stands for."""

    def __init__(
        self,
        n_clusters: int | tuple[int, int] = 8,
        *,
        method: str | AnyMethod = "auto",
        epsilon: float = 1.0,
        delta: float = DELTA,
        bounds: Any = None,
        rows: int | None = None,
        zoom: str | float = "auto",
        scale: Any = None,
        components: Mapping[str, str] | None = None,
        options: Mapping[str, Any] | None = None,
        missing: str = "refuse",
        ledger: str | None = None,
        dataset: str | None = None,
        not_private: bool = False,
        random_state: int | None = None,
        threads: int | None = None,
        user_column: str | None = None,
        rows_per_user: int | None = None,
        trust: str | None = None,
        progress: bool | None = None,
        columns: Sequence[str] | None = None,
        categories: Mapping[str, Sequence[Any]] | None = None,
        describe: Sequence[str] | None = None,
        describe_words: str | None = None,
        most_words: int | None = None,
        describe_share: float = SHARE,
        start: Any = None,
    ) -> None:
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
        self.progress = progress
        self.columns = columns
        self.categories = categories
        self.describe = describe
        self.describe_words = describe_words
        self.most_words = most_words
        self.describe_share = describe_share
        self.start = start

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return parameters by name; if deep, also those of a method given as a component (see ``set_params``)."""
        params: dict[str, Any] = super().get_params(deep=deep)
        below = deep and not isinstance(self.method, str)
        return {**params, **(parameters(self.method, "method") if below else {})}

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name.

        Options and parts of a method given as a component have a path: ``method__rounds=3``, ``method__counts=`` a
        component or its name. The method is replaced by an altered copy.

        Raises:
            InvalidRows: (a ValueError) the method has no such option or part, or is a name.
        """
        below = {path.removeprefix("method__"): params[path] for path in params if path.startswith("method__")}
        remaining = {name: value for name, value in params.items() if not name.startswith("method__")}
        method = remaining.get("method", self.method)
        with refusing():
            if below and isinstance(method, str):
                raise InvalidInput(
                    f"method is the name '{method}', which has no parameters: give a component, as in "
                    f"method=cloister.plugin.make('Method', 'fastlloyd'), or use components= and options="
                )
            if below:
                remaining["method"] = altered(method, below, "Method")
        super().set_params(**remaining)
        return self

    def fit(self, X: Any, y: Any = None, users: Any = None, resume: str | None = None, **kwargs: Any) -> Self:  # noqa: N803
        """Release centres of X (n, d), spending epsilon and delta.

        Args:
            X: array, data frame, or Ibis table (which is read in its database).
            y: ignored.
            users: names (n,) of the rows' users, whole numbers or texts, in place of ``user_column``.
            resume: id of an interrupted run in the ledger, to continue it, or of a finished one, to recompute its
                result. The error that interrupts a run has a note with its id.
            **kwargs: refused, ``sample_weight`` with its reason.

        Raises:
            InvalidRows: (a ValueError) unusable input, or row weights. No budget is spent.
            CloisterError: any other refusal. No budget is spent.

        Warns:
            PrivacyWarning, UtilityWarning: if public figures suffice, before anything is spent, so that a filter that
                turns warnings into errors costs nothing.
        """
        refuse_others(kwargs, "fit")
        issued, unguarded = set[str](), self.ledger is None and not self.not_private
        with refusing():
            result = self._fitted(X, users, resume, partial(warn, issued), unguarded)
        if unguarded:
            remember_fit(self._kin(), result.privacy.epsilon, result.privacy.delta)
        self._take(result)  # first: a filter that makes an error of what follows must not lose what was paid for
        late = large_delta(result.privacy.delta, result.privacy.rows) if result.privacy.count_share else ""
        for warning in (*([PrivacyWarning(late)] if late else []), *after(result)):
            warn(issued, warning)
        return self

    def _take(self, result: Result) -> None:
        self.result_ = result
        self.cluster_centers_: Floats = result.centers
        self.cluster_weights_ = result.weights
        self.privacy_ = result.privacy
        self._n_features_out = len(result.centers)

    def _fitted(
        self, rows: Any, users: Any, resume: str | None, caution: Callable[[UserWarning], None], unguarded: bool
    ) -> Result:
        refuse_beyond_doubles(self)
        if self.user_column is not None and users is not None:
            raise InvalidInput("users are named twice: give user_column, or users, not both")
        with (
            progress(self.progress, 0.0 if self.progress else SOON) as bar,
            run_named() as reserved,
            ExitStack() as stack,
        ):
            population = self._population(rows, users, bar.advance)
            if unguarded and (warning := warning_before(self._kin(), self.epsilon, self.delta)):
                caution(warning)
            if is_ibis_table(rows):
                stack.callback(population.close)  # its snapshot
            return fit(
                request_of(self, self._defaults),
                population,
                started=bar.started,
                reserved=reserved,
                account=Account.of(self.ledger, self.dataset, resume),
                caution=caution,
            )

    def _population(self, rows: Any, users: Any, advance: Any) -> Any:
        """Return the population of a fit, and set scikit-learn's attributes for its features."""
        frame, self._by_names = frame_of(rows), False
        stays = is_ibis_table(rows)
        for refuse in (refuse_relation, refuse_lazy, refuse_path):
            refuse(rows)
        if frame is None and not stays:
            refuse_names(self.columns, self.categories, self.user_column)
            rows = table(self, rows, reset=True, drop=self.missing == "drop")
        columns, categories = names_in(self) if frame is not None or stays else (self.columns, self.categories)
        population = source(
            rows,
            bounds=self.bounds,
            columns=columns,
            missing=self.missing,
            progress=advance,
            threads=self.threads,
            users=users,
            user_column=None if self.user_column is None else str(self.user_column),
            categories=categories,
            described=described(self.describe, self.describe_words, self.most_words),
        )
        used = population.selection.clustered.used
        if stays:
            self.n_features_in_, self._by_names = len(used), True
            self.feature_names_in_ = np.array(used, dtype=object)
        elif frame is not None:
            validate_data(self, picked(frame, used), reset=True, skip_check_array=True)
            named = (columns, categories or None, named_in(self.bounds))
            self._by_names = any(names is not None for names in named)
        return population

    @property
    def labels_(self) -> NoReturn:
        """Labels, which a fitted estimator does not have: it holds released values only. Raises AttributeError."""
        raise AttributeError(
            f"{type(self).__name__} has no labels_: the cluster of every row tells about that row, which no epsilon "
            f"covers. predict(X), or fit_predict(X), gives them for rows that you hold: NOT private, and not to be "
            f"published"
        )

    @property
    def inertia_(self) -> NoReturn:
        """Inertia, which a fitted estimator does not have: it holds released values only. Raises AttributeError."""
        raise AttributeError(
            f"{type(self).__name__} has no inertia_: it is an exact sum over all rows, which no epsilon covers. "
            f"-score(X) gives it for rows that you hold: NOT private, and not to be published"
        )

    def _kin(self) -> str:
        """Return an id that an estimator shares with its clones, in other processes too."""
        if "_family" not in vars(self):
            self._family = uuid.uuid4().hex
        return self._family

    def __sklearn_clone__(self) -> Self:
        cloned: Any = super().__sklearn_clone__()
        made: Self = cloned
        made._family = self._kin()
        return made

    def fit_predict(self, X: Any, y: Any = None, **kwargs: Any) -> Ints:  # noqa: N803
        """Fit, then predict the same rows. The labels are NOT private; only the centres are."""
        return self.fit(X, y, **kwargs).predict(X)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return a fitted estimator from a saved result (``Result.save``, ``cloister fit --out``).

        Raises:
            InvalidInput: no such file.
            Damaged: it is no result, or not what was saved.
        """
        return cls.of(Result.load(path))

    @classmethod
    def of(cls, result: Result) -> Self:
        """Return a fitted estimator with a result's centres.

        Its parameters are those of the run as far as the result records them: a clone fits alike, once it is given the
        rows' users or the ledger again.
        """
        made = cls(**parameters_of(result))
        names = columns_of(result)
        made.n_features_in_ = len(result.columns) if names is None else len(names)
        if names is not None:
            made.feature_names_in_, made._by_names = np.array(names, dtype=object), True
        made._take(result)
        return made

    def plot(self, axes: Sequence[str] | None = None, *, project: bool = False, curve: bool = False) -> Figure:
        """Plot the released centres, or cost against k, as ``result_.plot`` does. Reads no row."""
        check_is_fitted(self)
        with refusing():
            return self.result_.plot(axes, project=project, curve=curve)

    def _repr_html_inner(self) -> str:
        return f"{super()._repr_html_inner()}{self._promise()}"

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] += self._promise()
        return bundle

    def _promise(self) -> str:
        """Return the privacy statement shown below scikit-learn's diagram once fitted."""
        return self.privacy_._repr_html_() if hasattr(self, "privacy_") else ""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "drop"
        tags.non_deterministic = True  # noise is fresh in every fit, and never seedable
        return tags
