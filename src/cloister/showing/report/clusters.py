"""Clusters of a result as a report shows them: each centre between the public bounds, with its standard errors."""

from __future__ import annotations

import math

import attrs
import numpy as np

from cloister.core.types import Floats, Ints
from cloister.run.result import Result
from cloister.run.warnings import hardly_any, small_sizes
from cloister.showing.frame import ERRORS
from cloister.showing.parallel import MOST_COLUMNS, extent, most_varying, relative_positions
from cloister.showing.plot_data import domain_of
from cloister.showing.profile import ClusterProfile, Profile

MOST_CARDS = 100
"""Maximum number of clusters with a card, the largest ones."""

MOST_DOTS, OWN_DOTS = 12, 8
"""Number of columns up to which all are drawn; of more, the number drawn per cluster: those that set it apart."""

MOST_ROWS = 1000
"""Maximum number of centres in the table."""


@attrs.frozen
class Dot:
    """Coordinate of a centre. Positions are percentages of the way from the lower to the upper bound.

    Args:
        column: its name.
        value: as text.
        at: position of the centre.
        mean: position of the mean of all centres.
        low: lower end of the error bar, or None without an error.
        high: upper end of the error bar, or None.
    """

    column: str
    value: str
    at: float
    mean: float
    low: float | None
    high: float | None


@attrs.frozen
class Card:
    """Card of a cluster.

    Args:
        number: index of its centre.
        called: its number, with its name if it has one.
        size: as text, or None.
        share: of all rows, in percent, or None.
        share_text: with its error.
        apart: what sets it apart.
        doubtful: whether its size may be 0, within noise.
        dots: its centre by column, without categories; of many columns those that differ most from the mean.
        categories: shares of each category's values, as text.
    """

    number: int
    called: str
    size: str | None
    share: float | None
    share_text: str
    apart: tuple[str, ...]
    doubtful: bool
    dots: tuple[Dot, ...]
    categories: dict[str, str]


@attrs.frozen
class CentreTable:
    """Table of the centres as text.

    Args:
        columns: names of the columns shown.
        rows: number, name, size and a cell per column.
        all_columns: number of columns in the result.
        all_rows: number of centres in the result.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[int, str, str | None, tuple[str, ...]], ...]
    all_columns: int
    all_rows: int


def cards_of(result: Result, profile: Profile) -> list[Card]:
    """Return the ``MOST_CARDS`` largest clusters, the largest first. Raises: Damaged: the result has no bounds."""
    low, high = extent(domain_of(result))
    weights = np.ones(len(result.centers)) if result.weights is None else np.maximum(result.weights, 0.0)
    mean = np.average(result.centers, axis=0, weights=weights if weights.any() else None)
    heights, middle = relative_positions(result.centers, low, high), relative_positions(mean, low, high)
    cards, doubtful = [], hardly_any(result) | small_sizes(result)
    for cluster in profile.by_size[:MOST_CARDS]:
        unmixed = np.flatnonzero([name not in cluster.mixed for name in profile.columns])
        drawn = unmixed[_shown_columns(np.abs(heights[cluster.number] - middle)[unmixed])]
        named = [(j, profile.columns[j], cluster.coordinates[j]) for j in drawn]
        dots = tuple(
            _dot(cluster, *entry, float(low[entry[0]]), float(high[entry[0]]), float(middle[entry[0]]))
            for entry in named
        )
        cards.append(_card(cluster, dots, bool(doubtful[cluster.number])))
    return cards


def table_of(result: Result, profile: Profile) -> CentreTable:
    """Return the centres with their standard errors, the largest cluster first, in the columns that vary most."""
    low, high = extent(domain_of(result))
    shown = most_varying(relative_positions(result.centers, low, high), MOST_COLUMNS)
    rows = tuple(
        (c.number, c.called, _size(c), tuple(c.coordinates[j] for j in shown)) for c in profile.by_size[:MOST_ROWS]
    )
    return CentreTable(tuple(profile.columns[j] for j in shown), rows, len(profile.columns), len(profile.clusters))


def _card(cluster: ClusterProfile, dots: tuple[Dot, ...], doubtful: bool) -> Card:
    share, text = None if cluster.share is None else 100 * cluster.share, cluster.share_text
    return Card(
        cluster.number, cluster.called, _size(cluster), share, text, cluster.apart, doubtful, dots, cluster.mixtures
    )


def _shown_columns(away: Floats) -> Ints:
    """Return the columns drawn for a cluster, given its distances ``away`` (d,) from the mean of all centres."""
    if len(away) <= MOST_DOTS:
        return np.arange(len(away))
    return np.sort(np.argsort(-away, kind="stable")[:OWN_DOTS])


def _dot(cluster: ClusterProfile, j: int, column: str, text: str, low: float, high: float, mean: float) -> Dot:
    def at(value: float) -> float:
        return round(100 * float(relative_positions(np.array(value), np.array(low), np.array(high))), 2)

    value = cluster.center[j]
    reach = math.nan if cluster.center_error is None else ERRORS * cluster.center_error[j]
    ends = (at(value - reach), at(value + reach)) if math.isfinite(reach) else (None, None)
    return Dot(column, text, at(value), round(100 * mean, 2), *ends)


def _size(cluster: ClusterProfile) -> str | None:
    return None if cluster.size is None else cluster.size_text
