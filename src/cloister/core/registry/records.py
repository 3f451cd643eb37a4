"""What the record of a method in a plan or a result (``Composed.config``) says of it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from cloister.core.errors import UnknownName
from cloister.core.registry.registry import registry


def paths_in(config: Mapping[str, Any], path: str = "") -> tuple[dict[str, str], dict[str, Any]]:
    """Return the component names per slot path and the values per option path, which compose the method again."""
    names, options = dict[str, str](), {f"{path}{name}": value for name, value in config["options"].items()}
    for slot, part in config["slots"].items():
        inner, set_inside = paths_in(part, f"{path}{slot}.")
        names |= {f"{path}{slot}": part["name"], **inner}
        options |= set_inside
    return names, options


def objective_in(config: Mapping[str, Any]) -> str:
    """Return the objective, "k-means" or "k-median": by the method's Spec, or its name, or its parts' names."""
    name, slots = str(config.get("name", "")), dict(config.get("slots", {}))
    with suppress(UnknownName):  # of a plugin that is not installed here
        if objective := registry().spec("Method", name).objective:
            return objective
    names = [name, *(str(part.get("name", "")) for part in slots.values())]
    return "k-median" if any("median" in part_name for part_name in names) else "k-means"
