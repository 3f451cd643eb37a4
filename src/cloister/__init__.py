"""cloister: clustering the rows that nobody is allowed to see."""

from __future__ import annotations

from cloister._version import __version__

TYPE_CHECKING = False  # type checkers know the name: importing ``typing`` would take longer than the rest of this file
if TYPE_CHECKING:
    from typing import Any

    from cloister.estimators import KMeans as KMeans

__all__ = ["KMeans", "__version__"]


def __getattr__(name: str) -> Any:
    """Import the estimator only when somebody uses it: the command line must start without NumPy."""
    if name == "KMeans":
        from cloister.estimators import KMeans

        return KMeans
    raise AttributeError(f"module 'cloister' has no attribute '{name}'")
