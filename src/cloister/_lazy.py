"""Lazy faces: modules that import each name they offer from its own module, when somebody first asks for it."""

from __future__ import annotations

import ast
from functools import cache
from importlib import import_module
from pathlib import Path

TYPE_CHECKING = False  # importing ``typing`` would take longer than the rest of this file
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


@cache
def homes(face: str) -> dict[str, str]:
    """Return the module of each name that a face offers, by name.

    Args:
        face: the face's ``__file__``. The stub beside it lists the names, for type checkers, editors and this function.
    """
    stub = ast.parse(Path(face).with_suffix(".pyi").read_text("utf-8"))
    return {
        alias.name: str(node.module) for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }


def attach(name: str, face: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a face.

    Args:
        name: its ``__name__``.
        face: its ``__file__``.
    """

    def get(attribute: str) -> Any:
        if attribute not in homes(face):
            raise AttributeError(f"module '{name}' has no attribute '{attribute}'")
        return getattr(import_module(homes(face)[attribute]), attribute)

    return get, lambda: sorted(homes(face))
