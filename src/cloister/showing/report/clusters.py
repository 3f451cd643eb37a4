"""The clusters of a result as a page shows them: each centre between the public bounds, with its standard errors."""

from __future__ import annotations

import math

import attrs
import numpy as np

from cloister.core.types import Floats, Ints
from cloister.run.result import Result
from cloister.run.warnings import hardly_any, small_sizes
from cloister.showing.frame import ERRORS
from cloister.showing.lines import MOST_COLUMNS, differing, extent, placed
from cloister.showing.plot_data import domain_of
from cloister.showing.profile import ClusterProfile, Profile

MOST_CARDS = 100
"""Most clusters drawn one by one: the largest ones."""

MOST_DOTS, OWN_DOTS = 12, 8
"""Up to so many columns are drawn for every cluster; if there are more, those of each cluster that set it apart."""

MOST_ROWS = 1000
"""Most centres in the table."""


@attrs.frozen
class Dot:
    """A centre in one column. Positions are percents of the way from the column's lower to its upper bound.

    Args: column, value (as text), at, mean (of all centres), low, high (ends of the error bar; None: no error stated).
    """

    column: str
    value: str
    at: float
    mean: float
    low: float | None
    high: float | None


@attrs.frozen
class Card:
    """One cluster.

    Args:
        number: index of its centre. called: by number, and by name if it has one.
        size: as text, or None. share: of all rows, in percent, or None. share_text: with its error.
        apart: what sets it apart.
        doubtful: its size is not clear of 0.
        dots: its centre, column by column, but for categories; of many columns those that differ most from the mean.
        categories: the shares of each column's categories, as text.
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
    """The centres as text. Args: columns, rows (number, called, size, a cell per column), all_columns, all_rows (in the
    result)."""

    columns: tuple[str, ...]
    rows: tuple[tuple[int, str, str | None, tuple[str, ...]], ...]
    all_columns: int
    all_rows: int


def cards_of(result: Result, profile: Profile) -> list[Card]:
    """The clusters, the largest first; of very many no others. Raises: Damaged: the result lacks its bounds."""
    low, high = extent(domain_of(result))
    weights = np.ones(len(result.centers)) if result.weights is None else np.maximum(result.weights, 0.0)
    mean = np.average(result.centers, axis=0, weights=weights if weights.any() else None)
    heights, middle = placed(result.centers, low, high), placed(mean, low, high)
    found, doubtful = [], hardly_any(result) | small_sizes(result)
    for cluster in profile.by_size[:MOST_CARDS]:
        own = np.flatnonzero([name not in cluster.mixed for name in profile.columns])
        drawn = own[_drawn(np.abs(heights[cluster.number] - middle)[own])]
        named = [(j, profile.columns[j], cluster.coordinates[j]) for j in drawn]
        dots = tuple(
            _dot(cluster, *each, float(low[each[0]]), float(high[each[0]]), float(middle[each[0]])) for each in named
        )
        found.append(_card(cluster, dots, bool(doubtful[cluster.number])))
    return found


def table_of(result: Result, profile: Profile) -> CentreTable:
    """The centres with their standard errors, the largest group first: all columns, or those in which they differ
    most."""
    low, high = extent(domain_of(result))
    shown = differing(placed(result.centers, low, high), MOST_COLUMNS)
    rows = tuple(
        (c.number, c.called, _size(c), tuple(c.coordinates[j] for j in shown)) for c in profile.by_size[:MOST_ROWS]
    )
    return CentreTable(tuple(profile.columns[j] for j in shown), rows, len(profile.columns), len(profile.clusters))


def _card(cluster: ClusterProfile, dots: tuple[Dot, ...], doubtful: bool) -> Card:
    share, text = None if cluster.share is None else 100 * cluster.share, cluster.share_text
    return Card(
        cluster.number, cluster.called, _size(cluster), share, text, cluster.apart, doubtful, dots, cluster.mixtures
    )


def _drawn(away: Floats) -> Ints:
    """The columns drawn for a cluster, in their order. Args: away (d,): how far its centre is from the mean."""
    if len(away) <= MOST_DOTS:
        return np.arange(len(away))
    return np.sort(np.argsort(-away, kind="stable")[:OWN_DOTS])


def _dot(cluster: ClusterProfile, j: int, column: str, text: str, low: float, high: float, mean: float) -> Dot:
    def at(value: float) -> float:
        return round(100 * float(placed(np.array(value), np.array(low), np.array(high))), 2)

    value = cluster.center[j]
    reach = math.nan if cluster.center_error is None else ERRORS * cluster.center_error[j]
    ends = (at(value - reach), at(value + reach)) if math.isfinite(reach) else (None, None)
    return Dot(column, text, at(value), round(100 * mean, 2), *ends)


def _size(cluster: ClusterProfile) -> str | None:
    return None if cluster.size is None else cluster.size_text
