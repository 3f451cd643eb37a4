"""The centres of a result as a table that fits a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from cloister.run.estimates import center_texts
from cloister.run.result import Result

WIDEST = 24
"""Most characters of a heading that count: longer ones are cut."""

EDGES = 3
"""Characters around a cell."""


def table_of(result: Result, names: Sequence[str], width: int) -> Table:
    """A row per centre, or per column where only that fits; if neither does, as many columns as fit, and how many more
    there are.

    Args: names (of the columns, as they can be printed), width (of the terminal, in characters).
    """
    texts = center_texts(result.centers, result.details)
    upright = [["centre", *(str(i) for i in range(len(texts)))]]
    if result.weights is not None:
        upright.append(["rows (noisy)", *(f"{weight:.0f}" for weight in result.weights)])
    fixed = len(upright)
    upright += [[name, *(row[j] for row in texts)] for j, name in enumerate(names)]
    turned = [list(cells) for cells in zip(*upright, strict=True)]
    if _room(upright, width) == len(upright):
        return _table(upright)
    if _room(turned, width) == len(turned):
        return _table(turned)
    shown = max(_room(upright, width - len("... 1000 more") - EDGES), fixed + 1)
    more = len(upright) - shown
    return _table(upright[:shown], f"... {more} more" if more else "")


def _room(columns: list[list[str]], width: int) -> int:
    """How many of these columns fit."""
    wide, fit = 1, 0
    for cells in columns:
        wide += EDGES + max(min(len(cells[0]), WIDEST), *map(len, cells[1:]))
        if wide > width:
            break
        fit += 1
    return fit


def _table(columns: list[list[str]], last: str = "") -> Table:
    """Args: columns (each its heading and its cells), last (heading of an empty one)."""
    table = Table()
    for cells in columns:
        table.add_column(cells[0], justify="right")
    if last:
        table.add_column(last)
    for row in zip(*(cells[1:] for cells in columns), strict=True):
        table.add_row(*row)
    return table
