"""One run in one process: bounds, fit, result, statement.

Ways to look at a result are offered by floors above: ``run`` knows no picture, page or estimator, nor where they are.
The package's face offers them (``cloister/__init__``), each as a function that imports its module when it is called.
Imports nothing: whoever imports any part of cloister imports this.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_VIEWS: dict[str, Callable[..., Any]] = {}


def offer(**views: Callable[..., Any]) -> None:
    """Fill in views by name. A later one of the same name takes the earlier one's place."""
    _VIEWS.update(views)


def view(name: str) -> Callable[..., Any]:
    """The view of that name, whose first argument is the result. Raises: KeyError: nobody offers it."""
    return _VIEWS[name]
