"""cloister: clustering the rows that nobody is allowed to see."""

from __future__ import annotations

from cloister._version import __version__

TYPE_CHECKING = False  # type checkers know the name: importing ``typing`` would take longer than the rest of this file
if TYPE_CHECKING:
    from typing import Any

    from cloister.estimators import (
        KMeans as KMeans,
        KMedians as KMedians,
        OneRound as OneRound,
        PublicScaler as PublicScaler,
    )

__all__ = ["KMeans", "KMedians", "OneRound", "PublicScaler", "__version__"]


def __getattr__(name: str) -> Any:
    """Import the estimators only when somebody uses one: the command line must start without NumPy."""
    if name not in __all__:
        raise AttributeError(f"module 'cloister' has no attribute '{name}'")
    from cloister import estimators

    return getattr(estimators, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
