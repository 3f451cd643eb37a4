"""JSON that says every name once and no number that is none: other people's files are read by nothing else."""

from __future__ import annotations

import json
from typing import Any, NoReturn


def parsed(content: bytes) -> Any:
    """JSON without names that stand twice and without numbers that are none. Raises ValueError."""
    return json.loads(content.decode("utf-8"), object_pairs_hook=_distinct, parse_constant=_no_constant)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose names differ: readers disagree about which of two equal names counts."""
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a name stands twice")
    return dict(pairs)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
