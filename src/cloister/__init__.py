"""cloister: clustering the rows that nobody is allowed to see."""

from __future__ import annotations

from cloister._version import __version__
from cloister.run import offer

TYPE_CHECKING = False  # type checkers know the name: importing ``typing`` would take longer than the rest of this file
if TYPE_CHECKING:
    from typing import Any

    from cloister.estimators import (
        KMeans as KMeans,
        KMedians as KMedians,
        OneRound as OneRound,
        PublicScaler as PublicScaler,
    )
    from cloister.run.result import Result

__all__ = ["KMeans", "KMedians", "OneRound", "PublicScaler", "__version__"]


def __getattr__(name: str) -> Any:
    """Import the estimators only when somebody uses one: the command line must start without NumPy."""
    if name not in __all__:
        raise AttributeError(f"module 'cloister' has no attribute '{name}'")
    from cloister import estimators

    return getattr(estimators, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _curve(result: Result) -> Any:
    from cloister.showing.plots import draw_curve

    return draw_curve(result)


def _map(result: Result, axes: Any, *, project: bool) -> Any:
    from cloister.showing.plots import draw_map

    return draw_map(result, axes, project=project)


def _page(result: Result, axes: Any = None) -> str:
    from cloister.showing.report import html_of

    return html_of(result, axes)


def _html(result: Result) -> str:
    from cloister.showing.profile import centers_html

    return centers_html(result)


def _profile(result: Result) -> Any:
    from cloister.showing.profile import profile_of

    return profile_of(result)


def _estimator(result: Result) -> Any:
    from cloister.estimators import estimator_of

    return estimator_of(result)


offer(curve=_curve, map=_map, page=_page, html=_html, profile=_profile, estimator=_estimator)
