"""Texts on the frame of a zoomed run: its price, and the intervals and units that the run released."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cloister.core.decimals import resolved

SHOWN = 12
"""Largest number of columns whose intervals a statement lists; the result holds all."""

CLIPPED = "Zoom: rows outside the intervals that it found were clipped, which no size, centre or standard error shows."


def price(share: float, unseen: float, unknown: Sequence[str]) -> str:
    """Return the share of the budget that finds the rows' range, and what that may miss.

    Args: unseen (as of ``Zoom.unseen_of``), unknown (names of columns whose range nobody knows).
    """
    ranges = f" and the unknown range of {', '.join(unknown)}" if unknown else ""
    promised = (
        f"Except in one run of 1,000, no group of at least {unseen:.1%} of the rows has its middle outside the "
        f"intervals that it finds."
        if unseen < 1
        else "How many rows lie outside the intervals that it finds cannot be promised."
    )
    return f"Zoom: {share:.1%} of the budget finds where the rows are within their bounds{ranges}. {promised}"


def notes(paid: str, columns: Sequence[str], details: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a statement's sentences on a frame.

    Args: paid (the price; empty if nothing was asked), columns (names), details (of the result).
    """
    if "intervals" not in details:
        return ()
    intervals, units = details["intervals"], details["units"]
    columns = columns[: len(units)]
    shown = ", ".join(
        f"{name} {resolved(low, high - low, 6)} to {resolved(high, high - low, 6)}"
        for name, (low, high) in zip(columns[:SHOWN], intervals[:SHOWN], strict=True)
    )
    others = f", and {len(columns) - SHOWN} more in the result" if len(columns) > SHOWN else ""
    released = (
        (f"{CLIPPED} {paid.removeprefix('Zoom: ')} It released these intervals: {shown}{others}.",) if paid else ()
    )
    if np.allclose(units, units[0]):
        return released
    sizes = ", ".join(f"{name} {unit:.6g}" for name, unit in zip(columns[:SHOWN], units[:SHOWN], strict=True))
    return (
        *released,
        f"Each column has its own unit of distance. The units are {sizes}{others}; centres are in the caller's units.",
    )
