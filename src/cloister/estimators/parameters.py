"""The parameters of an estimator that would run as a result says it was run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cloister.core.domains import Ball
from cloister.run.result import Result


def parameters_of(result: Result) -> dict[str, Any]:
    """Parameters by name. Each component and option is named, so that no later default changes what they mean."""
    privacy, problem, method = result.privacy, result.problem, result.method
    frame = method.get("frame")
    return {
        "n_clusters": problem["k"],
        "method": method["name"],
        "epsilon": privacy.epsilon,
        "delta": privacy.delta,
        "bounds": _bounds(problem["bounds"]),
        "rows": None if privacy.count_share else problem["rows"],
        "zoom": "off" if frame is None else "auto" if frame["options"]["share"] is None else frame["options"]["share"],
        "scale": "none" if frame is None else frame["options"]["scale"],
        "components": _components(method),
        "options": _options(method),
        "not_private": not privacy.private,
        "rows_per_user": privacy.rows_per_user,
    }


def _bounds(bounds: Mapping[str, Any]) -> Any:
    """In a form that no column's name can change the meaning of."""
    if "radius" in bounds:
        return Ball(tuple(bounds["center"]), bounds["radius"])
    return list(zip(bounds["lower"], bounds["upper"], strict=True))


def _components(config: Mapping[str, Any], path: str = "") -> dict[str, str]:
    found = dict[str, str]()
    for name, inner in config["slots"].items():
        found |= {f"{path}{name}": inner["name"], **_components(inner, f"{path}{name}.")}
    return found


def _options(config: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    found = {f"{path}{name}": value for name, value in config["options"].items()}
    for name, inner in config["slots"].items():
        found |= _options(inner, f"{path}{name}.")
    return found
