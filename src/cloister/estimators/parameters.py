"""Conversion between an estimator's parameters, requests and results, and the warnings of a fit.

Fits of an estimator and its clones without a ledger are added up per process, since nothing else does.
"""

from __future__ import annotations

import sys
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import Any

import attrs

from cloister.core.domains import Ball
from cloister.core.doubles import beyond_doubles
from cloister.core.errors import InvalidInput, PrivacyWarning
from cloister.core.registry.making import drafted
from cloister.core.registry.records import paths_in
from cloister.rows.categories import categories_of
from cloister.rows.selection import table_columns
from cloister.run.layers.warm_start import Start, scale_of
from cloister.run.request import Request
from cloister.run.result import Result


def parameters_of(result: Result) -> dict[str, Any]:
    """Return parameters that repeat a result's run, with explicit components and options: defaults may change."""
    privacy, problem, method = result.privacy, result.problem, result.method
    share = method.get("frame", {"options": {"share": 0.0}})["options"]["share"]
    components, options = paths_in(method)
    return {
        "n_clusters": problem["k"],
        "method": method["name"],
        "epsilon": privacy.epsilon,
        "delta": privacy.delta,
        "bounds": _bounds(result),
        "rows": None if privacy.count_share else problem["rows"],
        "zoom": "auto" if share is None else share,
        "scale": scale_of(result),
        "components": components,
        "options": options,
        "not_private": not privacy.private,
        "rows_per_user": privacy.rows_per_user,
        "columns": columns_of(result),
        "categories": problem.get("categories"),
        "missing": result.missing,
    }


def refuse_beyond_doubles(estimator: Any) -> None:
    """Raise InvalidInput if a whole number in a parameter exceeds the largest double."""
    for name, value in estimator.get_params(deep=False).items():
        if beyond_doubles(value):
            raise InvalidInput(f"{name} has a whole number beyond 1.8e308, the largest double: give a smaller number")


def request_of(estimator: Any, defaults: Mapping[str, str]) -> Request:
    """Return the request for an estimator's parameters, with its class's defaults of method and trust."""
    auto = isinstance(estimator.method, str) and estimator.method == "auto"
    method = defaults.get("method", estimator.method) if auto else estimator.method
    return Request(
        k=estimator.n_clusters,
        method=drafted(method, estimator.components, estimator.options),
        epsilon=estimator.epsilon,
        delta=estimator.delta,
        bounds=estimator.bounds,
        rows=estimator.rows,
        zoom=estimator.zoom,
        scale=estimator.scale,
        not_private=estimator.not_private,
        seed=estimator.random_state,
        rows_per_user=estimator.rows_per_user,
        describe=estimator.describe,
        describe_words=estimator.describe_words,
        most_words=estimator.most_words,
        describe_share=estimator.describe_share,
        trust=estimator.trust or defaults.get("trust"),
        start=estimator.start,
    )


def names_in(estimator: Any) -> tuple[Any, Any]:
    """Return the columns and categories of a table: the estimator's own, or else those of its start."""
    if estimator.start is None:
        return estimator.columns, estimator.categories
    start = Start.of(estimator.start)
    categories = {**start.categories, **(estimator.categories or {})}
    columns = start.columns(categories) if estimator.columns is None else estimator.columns
    return columns, categories or None


def columns_of(result: Result) -> list[str] | None:
    """Return the table columns that a result's features were made of; None for an array, which has no names."""
    if result.columns == tuple(str(j) for j in range(len(result.columns))):
        return None
    return table_columns(result.columns, result.problem.get("categories", {}))


def _bounds(result: Result) -> Any:
    """Return a result's bounds as pairs, whose meaning depends on no column's name; categories need none."""
    bounds = result.problem["bounds"]
    if "radius" in bounds:
        return Ball(tuple(bounds["center"]), bounds["radius"])
    encoded = {f for category in categories_of(result.problem.get("categories")) for f in category.features}
    pairs = zip(result.columns, bounds["lower"], bounds["upper"], strict=True)
    return [(low, high) for name, low, high in pairs if name not in encoded] or None


INSIDE = "cloister", "contextlib", "sklearn"
"""Packages that a warning's line skips to reach the caller's."""


@contextmanager
def run_named() -> Iterator[Callable[[str], None]]:
    """Yield a callback for the id of a ledger's run, and add a note on how to resume it to whatever interrupts it."""
    runs = list[str]()
    try:
        yield runs.append
    except BaseException as error:
        for run in runs:
            error.add_note(f"the ledger's run {run} was cut off: go on with it by fit(X, resume={run!r})")
        raise


def warn(issued: set[str], warning: UserWarning) -> None:
    """Issue a warning at the caller's line, unless its text is among those issued before."""
    if str(warning) not in issued:
        issued.add(str(warning))
        warnings.warn(warning, stacklevel=_outside())


def _outside() -> int:
    """Return the stack level of the user's line, for a warning issued by our caller."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in INSIDE:
        frame, level = frame.f_back, level + 1
    return level


MANY = 5
"""Fits at which their total budget is warned of, and again at each doubling: cross-validation makes five by default."""

MOST = 1000
"""Families remembered; beyond that the oldest are forgotten."""


@attrs.frozen
class Fits:
    """Number of one family's fits, and their total epsilon and delta."""

    fits: int = 0
    epsilon: float = 0.0
    delta: float = 0.0


_FITS: OrderedDict[str, Fits] = OrderedDict()
_LOCK = Lock()


def remember_fit(family: str, epsilon: float, delta: float) -> None:
    """Add a finished fit to its family's total."""
    with _LOCK:
        had = _FITS.pop(family, Fits())
        _FITS[family] = Fits(had.fits + 1, had.epsilon + epsilon, had.delta + delta)
        while len(_FITS) > MOST:
            _FITS.popitem(last=False)


def warning_before(family: str, epsilon: float, delta: float) -> PrivacyWarning | None:
    """Return the warning due before one more fit of a family with this budget, or None."""
    with _LOCK:
        had = _FITS.get(family, Fits())
    fits = had.fits + 1
    if fits % MANY or (fits // MANY) & (fits // MANY - 1):
        return None
    total = f"epsilon = {had.epsilon + epsilon:.4g}" + (
        f", delta = {had.delta + delta:.4g}" if had.delta + delta else ""
    )
    return PrivacyWarning(
        f"this is fit {fits} of this estimator and its clones in this process, without a ledger. If they share rows "
        f"(as in a grid search or cross-validation), their guarantees add up: {total} for those rows, not the "
        f"epsilon = {epsilon:.4g} of one fit. Choose parameters on rows that are not secret, or divide "
        f"epsilon and delta by the number of fits; ledger= and dataset= refuse whatever exceeds a budget for life"
    )
