"""Options from a config file, merged with those from flags. A value that no flag could have is refused."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cloister.core.errors import InvalidInput, UnknownName

TEXTS = {
    "method", "trust", "missing", "ledger", "dataset", "out", "engine", "scheduler", "user_column", "delimiter",
    "encoding", "table",
}  # fmt: skip
"""Options whose value in a config file must be text."""


def read_config(path: Path | None) -> dict[str, Any]:
    """Read options from a file, under the names of the flags."""
    if path is None:
        return {}
    try:
        text = path.read_text()
        loaded = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        raise InvalidInput(f"cannot read the config file {path}: {error.strerror or error}") from error
    except ValueError as error:
        raise InvalidInput(f"the config file {path} is neither TOML nor JSON: {error}") from error
    if not isinstance(loaded, dict):
        raise InvalidInput(f"the config file {path} is not a table of options: give option names with their values")
    return {name.replace("-", "_"): value for name, value in loaded.items()}


def merged(given: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    """Merge options: flags win over the file; ``with``, ``set`` and ``category`` are merged entry by entry."""
    for name in config:
        if name not in given:
            raise UnknownName("option", name, given, "(in the config file)")
    for name in TEXTS & set(config):
        if not isinstance(config[name], str):
            raise InvalidInput(f"{name} in the config file is {config[name]!r}: give text, in quotes")
    columns = config.get("columns", [])
    if not isinstance(columns, str) and not (isinstance(columns, list) and all(isinstance(c, str) for c in columns)):
        raise InvalidInput(f"columns in the config file is {columns!r}: give a list of names")
    all_of_them = {name: config.get(name) if value is None else value for name, value in given.items()}
    for name in ("with", "set", "category"):
        tables = config.get(name, {})
        if not isinstance(tables, dict):
            raise InvalidInput(f"'{name}' in the config file is {tables!r}: give a table of names and values")
        all_of_them[name] = {**tables, **(given.get(name) or {})}
    return all_of_them


def flag(value: Any, name: str) -> bool:
    """An option that is true, false or not given, as a bool. Raises: InvalidInput for anything else."""
    if value not in (None, True, False):
        raise InvalidInput(f"{name} is {value!r}: give true or false")
    return value is True


def typed(value: Any, kind: Callable[[Any], Any], name: str) -> Any:
    """Convert a number by ``kind`` without changing its value. Raises: InvalidInput."""
    try:
        if isinstance(value, (bool, str)):
            raise TypeError
        if kind is int and int(value) != value:
            raise InvalidInput(f"{name} is {value!r}: give a whole number")
        return kind(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"{name} is {value!r}, which is not a number") from None
