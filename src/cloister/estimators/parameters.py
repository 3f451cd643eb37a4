"""The request of an estimator's parameters, and those that would run as a result says it was run.

What a fit says besides its result: warnings at the caller's line, how to go on with a run that was cut off, and how
often an estimator and its clones were fitted in this process without a ledger, which nobody else adds up.
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
from cloister.rows.categories import categories_of
from cloister.rows.selection import table_columns
from cloister.run.layers.warm_start import Start, scale_of
from cloister.run.request import Request
from cloister.run.result import Result


def parameters_of(result: Result) -> dict[str, Any]:
    """Parameters by name. Each component and option is named, so that no later default changes what they mean."""
    privacy, problem, method = result.privacy, result.problem, result.method
    share = method.get("frame", {"options": {"share": 0.0}})["options"]["share"]
    return {
        "n_clusters": problem["k"],
        "method": method["name"],
        "epsilon": privacy.epsilon,
        "delta": privacy.delta,
        "bounds": _bounds(result),
        "rows": None if privacy.count_share else problem["rows"],
        "zoom": "auto" if share is None else share,
        "scale": scale_of(result),
        "components": _components(method),
        "options": _options(method),
        "not_private": not privacy.private,
        "rows_per_user": privacy.rows_per_user,
        "columns": columns_of(result),
        "categories": problem.get("categories"),
        "missing": result.missing,
    }


def refuse_beyond_doubles(estimator: Any) -> None:
    """Raises: InvalidInput: a whole number in a parameter is beyond all doubles."""
    for name, value in estimator.get_params(deep=False).items():
        if beyond_doubles(value):
            raise InvalidInput(f"{name} has a whole number beyond 1.8e308, the largest double: give a smaller number")


def request_of(estimator: Any, defaults: Mapping[str, str]) -> Request:
    """The request of its parameters. Args: defaults (what 'auto' means as the method, and None as the trust)."""
    auto = isinstance(estimator.method, str) and estimator.method == "auto"
    return Request(
        k=estimator.n_clusters,
        method=defaults.get("method", estimator.method) if auto else estimator.method,
        epsilon=estimator.epsilon,
        delta=estimator.delta,
        bounds=estimator.bounds,
        rows=estimator.rows,
        zoom=estimator.zoom,
        scale=estimator.scale,
        components=estimator.components or {},
        options=estimator.options or {},
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
    """The columns and the categories of a table: the estimator's own, or else those of its start."""
    if estimator.start is None:
        return estimator.columns, estimator.categories
    start = Start.of(estimator.start)
    categories = {**start.categories, **(estimator.categories or {})}
    columns = start.columns(categories) if estimator.columns is None else estimator.columns
    return columns, categories or None


def columns_of(result: Result) -> list[str] | None:
    """The columns of a table that a result's features were made of; None for those of an array, which has no names."""
    if result.columns == tuple(str(j) for j in range(len(result.columns))):
        return None
    return table_columns(result.columns, result.problem.get("categories", {}))


def _bounds(result: Result) -> Any:
    """In a form that no column's name can change the meaning of; those of categories are known."""
    bounds = result.problem["bounds"]
    if "radius" in bounds:
        return Ball(tuple(bounds["center"]), bounds["radius"])
    encoded = {f for category in categories_of(result.problem.get("categories")) for f in category.features}
    pairs = zip(result.columns, bounds["lower"], bounds["upper"], strict=True)
    return [(low, high) for name, low, high in pairs if name not in encoded] or None


def _components(config: Mapping[str, Any], path: str = "") -> dict[str, str]:
    found = dict[str, str]()
    for name, inner in config["slots"].items():
        found |= {f"{path}{name}": inner["name"], **_components(inner, f"{path}{name}.")}
    return found


def _options(config: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    found = {f"{path}{name}": value for name, value in config["options"].items()}
    for name, inner in config["slots"].items():
        found |= _options(inner, f"{path}{name}.")
    return found


INSIDE = "cloister", "contextlib", "sklearn"
"""Packages whose lines are none of the caller's."""


@contextmanager
def run_named() -> Iterator[Callable[[str], None]]:
    """Yield a function that is told a ledger's run; what then cuts it off says how to go on."""
    runs = list[str]()
    try:
        yield runs.append
    except BaseException as error:
        for run in runs:
            error.add_note(f"the ledger's run {run} was cut off: go on with it by fit(X, resume={run!r})")
        raise


def warn(said: set[str], warning: UserWarning) -> None:
    """Give a warning once, at the caller's line. Args: said (what was given before)."""
    if str(warning) not in said:
        said.add(str(warning))
        warnings.warn(warning, stacklevel=_outside())


def _outside() -> int:
    """The stack level of the caller's own line, for a warning that our caller gives."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in INSIDE:
        frame, level = frame.f_back, level + 1
    return level


MANY = 5
"""Fits at which it is said what they add up to, and again at each doubling: ``cross_val_score`` makes five."""

MOST = 1000
"""Families that are remembered; of more the oldest are forgotten."""


@attrs.frozen
class Fits:
    """Budget spent on one family's fits. Args: fits (how many), epsilon and delta (their sums)."""

    fits: int = 0
    epsilon: float = 0.0
    delta: float = 0.0


_FITS: OrderedDict[str, Fits] = OrderedDict()
_LOCK = Lock()


def remember_fit(family: str, epsilon: float, delta: float) -> None:
    """Remember a finished fit, by what it promised."""
    with _LOCK:
        had = _FITS.pop(family, Fits())
        _FITS[family] = Fits(had.fits + 1, had.epsilon + epsilon, had.delta + delta)
        while len(_FITS) > MOST:
            _FITS.popitem(last=False)


def warning_before(family: str, epsilon: float, delta: float) -> PrivacyWarning | None:
    """Warning before one more fit of a family, whose budget is (epsilon, delta); None: nothing."""
    with _LOCK:
        had = _FITS.get(family, Fits())
    fits = had.fits + 1
    if fits % MANY or (fits // MANY) & (fits // MANY - 1):
        return None
    whole = f"epsilon = {had.epsilon + epsilon:.4g}" + (
        f", delta = {had.delta + delta:.4g}" if had.delta + delta else ""
    )
    return PrivacyWarning(
        f"this is fit {fits} of this estimator and its clones in this process, without a ledger. If they share rows "
        f"(as in a grid search or cross-validation), their guarantees add up: {whole} for those rows, not the "
        f"epsilon = {epsilon:.4g} of one fit. Choose parameters on rows that are not secret, or divide "
        f"epsilon and delta by the number of fits; ledger= and dataset= refuse whatever exceeds a budget for life"
    )
