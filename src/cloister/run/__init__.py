"""One run in one process: bounds, fit, result, statement.

Views of a result (pictures, pages, estimators) belong to packages above ``run``. ``cloister/__init__`` registers them,
each as a function that imports its module when called. Imports nothing: every import of cloister passes here.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_VIEWS: dict[str, Callable[..., Any]] = {}


def offer(**views: Callable[..., Any]) -> None:
    """Register views by name; a later one replaces an earlier one."""
    _VIEWS.update(views)


def view(name: str) -> Callable[..., Any]:
    """Return the view of that name, whose first argument is the result. Raises KeyError if there is none."""
    return _VIEWS[name]
