"""Options from a config file, by the names of their flags or their names in Python. A value that no flag could have is
refused."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, get_args

from cloister.core.errors import InvalidInput, UnknownName
from cloister.run.options import Said


def read_config(path: Path | None, options: Mapping[str, Said]) -> dict[str, Any]:
    """Read options from a file, by their own names. Args: options (that it may have).

    Raises: InvalidInput: it cannot be read, or says an option twice. UnknownName: it has another one.
    """
    found, known = dict[str, Any](), _names(options)
    for name, value in _table(path).items():
        plain = name.replace("-", "_")
        if plain not in known:
            raise UnknownName("option", plain, known, "(in the config file)")
        if known[plain] in found:
            raise InvalidInput(f"the config file {path} says {plain} twice, by two names: leave one out")
        found[known[plain]] = value
    return found


def _names(options: Mapping[str, Said]) -> dict[str, str]:
    """Options by every name that they have: in Python, and as long flags."""
    flags = {flag: name for name, each in options.items() for flag in each.flags if flag.startswith("--")}
    called = {flag.lstrip("-").replace("-", "_"): name for flag, name in flags.items()}
    return {name: name for name in options} | called


def _table(path: Path | None) -> dict[str, Any]:
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
    return loaded


def as_declared(value: Any, kind: Any, name: str) -> Any:
    """A config file's value of an option of this type, without a change. Raises: InvalidInput: it is of another."""
    kinds = {getattr(each, "__origin__", each) for each in get_args(kind) or (kind,)}
    if value is None or Any in kinds:
        return value
    if bool in kinds:
        return flag(value, name)
    if float in kinds or int in kinds:
        return typed(value, float if float in kinds else int, name)
    if list in kinds:
        return _listed(value, name)
    if str in kinds and not isinstance(value, str):
        raise InvalidInput(f"{name} in the config file is {value!r}: give text, in quotes")
    if str not in kinds and not isinstance(value, dict):
        raise InvalidInput(f"'{name}' in the config file is {value!r}: give a table of names and values")
    return value


def _listed(value: Any, name: str) -> list[str]:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",")]
    if not (isinstance(value, list) and all(isinstance(each, str) for each in value)):
        raise InvalidInput(f"{name} in the config file is {value!r}: give a list of names")
    return value


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
