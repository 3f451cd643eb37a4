"""Published figures, in data files with their source: lines of place, value, error and source, and comments."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path
from typing import Final, TypeAlias, final

import attrs

FOLDER: Final = Path(__file__).with_name("published")

Place: TypeAlias = tuple[str, str, str, float]
"""PaperTable, panel, series and x."""


@final
@attrs.frozen
class Published:
    """Published figure.

    Args:
        value: as published.
        error: its standard error; None: not published.
        source: of the figure.
    """

    value: float
    error: float | None
    source: str


@cache
def published(paper: str) -> dict[Place, Published]:
    """Return the published figures of a paper by place; none if it has no file."""
    path = FOLDER / f"{paper}.csv"
    if not path.is_file():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    return {
        (row["table"], row["panel"], row["series"], float(row["x"])): Published(
            float(row["value"]), float(row["error"]) if row["error"] else None, row["source"]
        )
        for row in rows
    }
