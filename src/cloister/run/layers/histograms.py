"""Histograms of groups, in columns that they were clustered by and in others (``--describe``).

A method is put into the wrapper that counts what its groups' rows hold, around its frame. Described columns come last
among the rows' columns.

Released counts are made to fit together. A group's rows were counted once for every described column, each time with
noise of its own. By least squares they are as many as the columns' totals say together, weighted by the inverse of
their variances, and a column's counts are moved by one amount so that they add up to that. All of it is computed from
released values, and costs nothing.

With m counts of variances s^2, n rows of variance V and the share p of a value, its error is

    Var p = (s^2 (1 - 2/m) + mean(s^2)/m + (1/m - p)^2 V) / n^2,

since what counts of one variance differ from their mean is independent of all totals. Where that leaves negative
counts, the nearest counts without any are taken: true ones are among those, so that the squares of all errors only
shrink.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, final

import attrs
import numpy as np

from cloister.core.domains import first_columns
from cloister.core.errors import Damaged, InvalidInput
from cloister.core.frames import unknown_columns
from cloister.core.registry.compose import Composed
from cloister.core.types import Floats
from cloister.core.wrappers import METHOD
from cloister.rows.categories import BOOLEAN
from cloister.rows.selection import Selection
from cloister.run.layers.count_oracle import count_oracle
from cloister.run.layers.layer import Scope

if TYPE_CHECKING:
    from cloister.run.result import Result

SHARE = 0.15
"""Default share of the budget for histograms and keywords."""

LARGEST = 0.9
"""Largest share: the groups must be found, too."""

OTHER, FALSE = "other", "false"
"""Rows with no listed value; of a column of booleans those that are not true."""


@final
@attrs.frozen
class HistogramLayer:
    """Histograms that a request asks for. Args: table (whose ``described`` columns are meant), part (of the budget)."""

    table: Selection
    part: float

    def seen(self, scope: Scope) -> Scope:
        """Return the figures of the columns that are clustered by.

        Raises: InvalidInput: the range of another column is not known.
        """
        beside = self._beside
        if hidden := [j for j in unknown_columns(scope.domain) if j >= scope.domain.dimension - beside]:
            raise InvalidInput(
                f"column '{self.table.features[hidden[0]]}' is described only, and its range is not known: give its "
                f"bounds"
            )
        return attrs.evolve(scope, domain=first_columns(scope.domain, beside))

    def around(self, method: Composed, scope: Scope, share: float) -> Composed:
        """Return the method with its groups described.

        Raises: InvalidInput: the method counts no rows, so that no oracle of its trust is known; or as the component.
        """
        counts = count_oracle(method, self.seen(scope))
        if counts is None:
            raise InvalidInput(
                f"'{method.spec.name}' as composed ({method.trust} trust) has no oracle for such counts, and cannot "
                f"describe its groups: take another method or trust model, or leave out --describe (describe=)"
            )
        listed = list[str]()
        for name in self.table.described:
            category = self.table.category(name)
            values = len(category.values) if category is not None else int(name in self.table.booleans)
            listed.append(f"{self.table.place(name)}:{values}" if values else str(self.table.place(name)))
        options = {"columns": ",".join(listed), "beside": self._beside, "share": share}
        parts = {METHOD: method, "counts": counts}
        return scope.kit.wrapper("description").given(options=options, parts=parts).composed()

    @property
    def _beside(self) -> int:
        """How many of the last columns are described only."""
        return len(self.table.features) - len(self.table.clustered.features)


def read(request: Any, table: Selection) -> tuple[Any, HistogramLayer | None]:
    """Return the histograms that a request asks for. Keywords beside them take half of what is for both."""
    if not table.described:
        return request, None
    share = share_of(request)
    return request, HistogramLayer(table.without_keywords, share - share / 2 if table.texts else share)


def share_of(request: Any) -> float:
    """Return the share of the budget for histograms and keywords. Raises: InvalidInput: it is none."""
    share: Any = request.describe_share
    if not (isinstance(share, (int, float)) and 0 < share <= LARGEST):
        raise InvalidInput(
            f"describe_share is {share!r}: give a part of the budget such as 0.15, above 0 and at most {LARGEST:g} "
            f"(--describe-share)"
        )
    return share


@final
@attrs.frozen(eq=False)
class DescribedColumn:
    """Histograms of all groups in one column.

    Args:
        name: of the column.
        labels: of its m values; of numbers the parts of the range, as in "0 to 7.5".
        edges: (m + 1,) ends of these parts; None for categories.
        counts: (k, m) rows, of a group by value. None is negative, and those of a group add up to its size.
        shares: (k, m) of a group's rows. errors: (k, m) their standard errors.
        whole: (m,) shares of all rows. whole_errors: (m,).
    """

    name: str
    labels: tuple[str, ...]
    edges: Floats | None
    counts: Floats
    shares: Floats
    errors: Floats
    whole: Floats
    whole_errors: Floats

    @property
    def above(self) -> Floats:
        """Differences (k, m) of the groups' shares from those of all rows."""
        return self.shares - self.whole

    @property
    def above_errors(self) -> Floats:
        """Standard errors (k, m) of these differences: a group's rows are a part of all rows."""
        part = self.counts.sum(axis=1, keepdims=True) / max(float(self.counts.sum()), 1e-300)
        return np.asarray(np.sqrt(np.maximum(self.errors**2 * (1 - 2 * part) + self.whole_errors**2, 0.0)))

    def quantile(self, group: int, share: float) -> float:
        """Return the number that this share of a group's rows is below; NaN for categories.

        Rows are taken to be spread evenly within a part of the range.
        """
        if self.edges is None:
            return math.nan
        below = np.concatenate([[0.0], np.cumsum(self.shares[group])])
        return float(np.interp(share, below / max(below[-1], 1e-300), self.edges))

    def quantile_error(self, group: int, share: float) -> float:
        """Return the standard error of ``quantile``; NaN for categories.

        It is half of what the quantile moves by if the shares below it are off by one standard error, and that of a
        place within a part of the range, of which nothing is known. Shares of a group add up to 1, so that those of j
        of m parts are off by errors^2 j (1 - j / m) together.
        """
        if self.edges is None:
            return math.nan
        m, place = len(self.labels), self.quantile(group, share)
        j = float(np.interp(place, self.edges, np.arange(m + 1)))
        off = math.sqrt(float((self.errors[group] ** 2).mean()) * max(j * (1 - j / m), 0.0))
        ends = [self.quantile(group, min(max(share + way, 0.0), 1.0)) for way in (-off, off)]
        return math.hypot((ends[1] - ends[0]) / 2, float(self.edges[1] - self.edges[0]) / math.sqrt(12))


@final
@attrs.frozen(eq=False)
class Descriptions:
    """Descriptions of all groups, in the order of the centres. Args: sizes, size_errors: (k,) rows; columns."""

    sizes: Floats
    size_errors: Floats
    columns: tuple[DescribedColumn, ...]

    def telling(self, group: int, clear: float = 2.0) -> list[tuple[DescribedColumn, int]]:
        """Return the values, as columns and positions of labels, whose shares differ clearly from those of all rows.

        Those that differ most come first. Args: clear (standard errors).
        """
        differences = list[tuple[float, int, int]]()
        for j, column in enumerate(self.columns):
            away, errors = np.abs(column.above[group]), column.above_errors[group]
            differences += [(-float(away[i]), j, int(i)) for i in np.flatnonzero(away > clear * errors)]
        return [(self.columns[j], i) for _, j, i in sorted(differences)]

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, by column."""
        return {
            "sizes": self.sizes.tolist(),
            "sizes_error": self.size_errors.tolist(),
            "columns": {
                column.name: {
                    "labels": list(column.labels),
                    **({} if column.edges is None else {"edges": column.edges.tolist()}),
                    **{
                        name: getattr(column, name).tolist()
                        for name in ("counts", "shares", "errors", "whole", "whole_errors")
                    },
                }
                for column in self.columns
            },
        }


def descriptions_of(result: Result) -> Descriptions | None:
    """Return the histograms of a result's groups; None if it has none. Raises: Damaged: they do not fit together."""
    if "described" not in result.details:
        return None
    try:
        described, named = result.details["described"], list(result.problem["described"].items())
        columns = [named[i] for i in described["columns"]]
        counts = [np.array(each, np.float64) for each in described["counts"]]
        variances = [np.square(np.array(each, np.float64)) for each in described["errors"]]
        edges = [np.array(each, np.float64) if each else None for each in described["edges"]]
        labels = [_labels(values, ends) for (_, values), ends in zip(columns, edges, strict=True)]
        if not all(
            each.shape == (len(result.centers), len(label)) == variance.shape
            for each, label, variance in zip(counts, labels, variances, strict=True)
        ):
            raise ValueError("shapes")
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        raise Damaged("the result's description of its groups is damaged: run the fit again") from None
    precise = [1 / np.maximum(each.sum(axis=1), 1e-12) for each in variances]
    size_variances = 1 / np.sum(precise, axis=0)
    sizes = np.sum([each.sum(axis=1) * p for each, p in zip(counts, precise, strict=True)], axis=0) * size_variances
    sizes = np.maximum(sizes, np.sqrt(size_variances))
    parts = zip(columns, labels, edges, counts, variances, strict=True)
    return Descriptions(
        sizes,
        np.sqrt(size_variances),
        tuple(
            _column(name, label, ends, each, variance, sizes, size_variances)
            for (name, _), label, ends, each, variance in parts
        ),
    )


def _column(
    name: str,
    labels: tuple[str, ...],
    edges: Floats | None,
    counts: Floats,
    variances: Floats,
    sizes: Floats,
    size_variances: Floats,
) -> DescribedColumn:
    counts = _adding_up(counts, sizes)
    shares, whole = counts / sizes[:, None], counts.sum(axis=0) / sizes.sum()
    errors = _errors(shares, variances, sizes[:, None], size_variances[:, None])
    all_errors = _errors(whole, variances.sum(axis=0), sizes.sum(), size_variances.sum())
    return DescribedColumn(name, labels, edges, counts, shares, errors, whole, all_errors)


def _adding_up(counts: Floats, sizes: Floats) -> Floats:
    """Return the nearest counts (k, m), by squares: none is negative, and a group's add up to its size (k,)."""
    falling = -np.sort(-counts, axis=1)
    moved = (np.cumsum(falling, axis=1) - sizes[:, None]) / np.arange(1, counts.shape[1] + 1)
    positive = (falling > moved).sum(axis=1) - 1
    return np.asarray(np.maximum(counts - moved[np.arange(len(counts)), positive][:, None], 0.0))


def _errors(shares: Floats, variances: Floats, size: Any, size_variance: Any) -> Floats:
    m, mean = shares.shape[-1], variances.mean(axis=-1, keepdims=True)
    raised = variances * (1 - 2 / m) + mean / m
    return np.asarray(np.sqrt(raised + (1 / m - shares) ** 2 * size_variance) / size)


def _labels(values: Sequence[str], edges: Floats | None) -> tuple[str, ...]:
    if edges is not None:
        return tuple(f"{low:.4g} to {high:.4g}" for low, high in pairwise(edges))
    return (*values, FALSE if list(values) == [BOOLEAN] else OTHER)
