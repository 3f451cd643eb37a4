"""One import for authors of plugins: ``from cloister.plugin import Spec, hookimpl``.

``plugin.pyi``, beside this file, lists the names. Each is imported from its module on first use, so that a manifest
loads neither NumPy nor SciPy.
"""

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

_HOMES = {
    alias.name: str(node.module)
    for node in ast.parse(Path(__file__).with_suffix(".pyi").read_text()).body
    if isinstance(node, ast.ImportFrom)
    for alias in node.names
}
"""The module that defines each name."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'cloister.plugin' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(_HOMES)
