"""Strict JSON for other people's files: no duplicate names, no NaN or Infinity."""

from __future__ import annotations

import json
from typing import Any, NoReturn


def parsed(content: bytes) -> Any:
    """The value of a JSON text. Raises: ValueError for duplicate names, NaN, Infinity or malformed text."""
    return json.loads(content.decode("utf-8"), object_pairs_hook=_distinct, parse_constant=_no_constant)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object with distinct names: readers disagree about which of two equal names counts."""
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a name stands twice")
    return dict(pairs)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")
