"""Description of a result's clusters, from released values alone: no row is read, and no budget is spent.

Standard errors are those that the method states (``Clustering.details``): of the noise, and of its approximations, such
as rows of one cell that two centres share, clipped offsets and shrunken steps. A figure that a method does not release
is None, and so is an error that it does not state.
"""

from __future__ import annotations

from html import escape
from typing import Any, final

import attrs
import numpy as np

from cloister.core.registry.records import objective_in
from cloister.core.types import Bools, Floats
from cloister.run.estimates import (
    Estimate,
    rounded_centers,
    shares_of_rows,
    table,
    table_in,
)
from cloister.run.layers.histograms import Descriptions, descriptions_of
from cloister.run.layers.keywords import Word, words_of
from cloister.run.result import Result
from cloister.run.shown import as_shares, category_places, center_texts, size_texts
from cloister.run.warnings import beyond, unlisted, unproved, untrusted
from cloister.showing.histograms import contents_of
from cloister.showing.quality import POINTS, estimate, model_of, silhouette

CLEAR = 2.0
"""Standard errors from the mean of all centres beyond which a centre counts as high or low in a column."""

MARKED = 0.75
"""The same in standard deviations of the centres: of two equal clusters, each is one away from the mean."""

NAMED = 3
"""Maximum number of columns named as setting a cluster apart."""

MOSTLY = 0.5
"""Share above which a category's value is said to be the one that rows mostly have."""

WORDS = 6
"""Maximum number of keywords shown per cluster."""

COUNTS_NOTE = (
    "Only some words of each row are counted (see the statement), so more rows may have a word than its count."
)
"""Note on the counts of keywords."""

MIN_SHARE = 0.005
"""Smallest share of a category's value that is shown."""


@final
@attrs.frozen
class ClusterProfile:
    """Profile of a cluster.

    Args:
        number: index of its centre.
        size: noisy number of rows nearest to the centre.
        size_error: standard error of the size.
        share: of all sizes.
        center: (d,) in the caller's units.
        center_error: (d,) standard errors of the coordinates.
        apart: columns that set it apart, such as 'age high' or 'ward mostly A', the clearest first.
        categories: share of each listed value among the cluster's rows, by column.
        called: its number, with its name if it has one.
        held: description of its rows as text, by described column.
        share_error: standard error of the share.
        category_errors: standard errors of ``categories``; empty if none are stated.
        coordinates: (d,) the centre as text, with its errors, as every table shows it.
    """

    number: int
    size: float | None
    size_error: float | None
    share: float | None
    center: tuple[float, ...]
    center_error: tuple[float, ...] | None
    apart: tuple[str, ...]
    categories: dict[str, dict[str, float]] = attrs.field(factory=dict)
    called: str = ""
    held: dict[str, str] = attrs.field(factory=dict)
    share_error: float | None = None
    category_errors: dict[str, dict[str, float]] = attrs.field(factory=dict)
    coordinates: tuple[str, ...] = ()

    @property
    def size_text(self) -> str:
        """Size with its standard error, as text."""
        return "-" if self.size is None else Estimate.of_size(self.size, self.size_error).text

    @property
    def share_text(self) -> str:
        """Share with its standard error, as text."""
        return "-" if self.share is None else Estimate.of_share(self.share, self.share_error).text

    @property
    def mixed(self) -> frozenset[str]:
        """Columns that ``mixtures`` describes: one for each value of a category."""
        return frozenset(f"{column}={value}" for column, shares in self.categories.items() for value in shares)

    @property
    def mixtures(self) -> dict[str, str]:
        """Shares of each category's values as text, the largest first, without those below ``MIN_SHARE``."""
        return {column: self._mixture(column) for column in self.categories}

    def _mixture(self, column: str) -> str:
        shares, errors = self.categories[column], self.category_errors.get(column, {})
        order = sorted(
            (value for value, share in shares.items() if share >= MIN_SHARE), key=lambda value: -shares[value]
        )
        return ", ".join(f"{value} {Estimate.of_share(shares[value], errors.get(value)).text}" for value in order)

    @property
    def text(self) -> str:
        """Text of one line, and one more for each described column."""
        size = "" if self.size is None else f", {self.size_text} rows"
        share = "" if self.share is None else f" ({self.share_text})"
        line = f"cluster {self.called}{size}{share}: {', '.join(self.apart) or 'nothing clear sets it apart'}"
        return "\n  ".join([line, *(f"{name}: {text}" for name, text in self.held.items())])


@final
@attrs.frozen
class Profile:
    """Profile of a result's clusters.

    Args:
        clusters: in the order of the centres.
        columns: names of the d columns.
        silhouette: mean silhouette of the rows (``metrics.silhouette``).
        cost: mean of distance^``power`` from a row to its nearest centre, in the caller's units, or in the run's units
            of distance if ``scaled``.
        power: 2 for k-means, 1 for k-median.
        scaled: whether columns had units of their own (``Result.units``), which silhouette and sizes are in, too.
        warnings: further warnings, as sentences.
        beyond: centres that clipped rows may have moved, which errors do not cover (``run.warnings``).
        unproved: how many rows may lie outside the released intervals (``run.warnings``).
        described: histograms of the clusters, or None.
        words: keywords per cluster, by decreasing lift; empty if none were counted.
        untrusted: sizes and centres that should not be trusted (``run.warnings``).
    """

    clusters: tuple[ClusterProfile, ...]
    columns: tuple[str, ...]
    silhouette: Estimate | None
    cost: Estimate | None
    power: float
    scaled: bool
    warnings: tuple[str, ...] = ()
    beyond: tuple[str, ...] = ()
    unproved: tuple[str, ...] = ()
    described: Descriptions | None = None
    words: tuple[tuple[Word, ...], ...] = ()
    untrusted: tuple[str, ...] = ()

    @property
    def by_size(self) -> list[ClusterProfile]:
        """Clusters, the largest first."""
        return sorted(self.clusters, key=lambda cluster: -(cluster.size or 0.0))

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        return attrs.asdict(self, value_serializer=_plain)

    def _repr_html_(self) -> str:
        """Return a table for notebooks: sizes, what sets clusters apart, and centres, with standard errors."""
        shown = range(min(len(self.columns), MANY_COLUMNS))
        ellipsis = [f"... {len(self.columns) - len(shown)} more"] if len(shown) < len(self.columns) else []
        rows = [
            [
                c.called,
                c.size_text,
                c.share_text,
                ", ".join(c.apart) or "-",
                *c.coordinates[: len(shown)],
            ]
            for c in self.by_size
        ]
        head = ["cluster", "rows (noisy)", "share", "what sets it apart", *(self.columns[j] for j in shown), *ellipsis]
        caption = f"{len(self.clusters)} clusters, from released values alone"
        histogram_lines = [cluster.text for cluster in self.by_size if cluster.held]
        lines = "".join(
            f"<p>{escape(line)}</p>"
            for line in [*histogram_lines, *self.keyword_lines, *self.estimate_lines, *self.notes]
        )
        return table(head, rows, caption) + lines

    def text(self) -> str:
        """Describe the clusters, a line each, the largest first."""
        return "\n".join(
            [*(cluster.text for cluster in self.by_size), *self.keyword_lines, *self.estimate_lines, *self.notes]
        )

    @property
    def keyword_lines(self) -> list[str]:
        """Keywords of each cluster, a line each, and a note on their counts."""
        lines = [f"keywords of cluster {c.called}: {self.words_in(c.number)}" for c in self.by_size if self.words]
        return [*lines, COUNTS_NOTE] if lines else []

    def words_in(self, number: int) -> str:
        """Return a cluster's keywords with the most lift, with their counts."""
        return ", ".join(word.text for word in self.words[number][:WORDS]) or "none"

    @property
    def notes(self) -> list[str]:
        """Notes on the standard errors, and all warnings."""
        warned = [f"WARNING: {text}." for text in (*self.untrusted, *self.warnings, *self.beyond)]
        warned += [f"note: {text}." for text in self.unproved]
        has_errors = [c.size_error is not None or c.center_error is not None for c in self.clusters]
        if not any(has_errors):
            unknown = (
                "Standard errors are unknown: the method, or the version that made this result, does not state them."
            )
            return [unknown, *warned]
        return [
            "\u00b1 is one standard error, of noise and of the method's approximations. It is no bound: in most "
            "trials two of them covered nine figures of ten or more, in the worst six or seven.",
            *warned,
        ]

    @property
    def estimate_lines(self) -> list[str]:
        """Silhouette and cost, a line each, estimated or unknown."""
        means = "distance" if self.power == 1 else "squared distance"
        units = " in the run's units of distance" if self.scaled else ""
        estimates = {"silhouette": self.silhouette, f"mean {means} to the nearest centre{units}": self.cost}
        return [
            f"{name}: {'unknown: the method releases too little' if figure is None else figure.text}"
            for name, figure in estimates.items()
        ]


def profile_of(result: Result) -> Profile:
    """Return the profile of a result of any method and version, from released values alone."""
    details = result.details
    sizes, errors = result.weights, table_in(details, "centers_error", result.centers.shape)
    size_errors = table_in(details, "weights_error", (len(result.centers),))
    of_all, of_all_errors = (None if sizes is None else shares_of_rows(sizes, size_errors)) or (None, None)
    centers = rounded_centers(result.centers, details, result.domain) if errors is None else result.centers
    apart, descriptions, texts = _apart(result), descriptions_of(result), center_texts(result)
    held_shares, held_errors = _categories(result)
    clusters = tuple(
        ClusterProfile(
            i,
            None if sizes is None else float(sizes[i]),
            None if sizes is None or size_errors is None else float(size_errors[i]),
            None if of_all is None else float(of_all[i]),
            tuple(center.tolist()),
            None if errors is None else tuple(errors[i].tolist()),
            apart[i],
            held_shares[i],
            result.called[i],
            {} if descriptions is None else contents_of(descriptions, i),
            None if of_all_errors is None else float(of_all_errors[i]),
            held_errors[i],
            tuple(texts[i]),
        )
        for i, center in enumerate(centers)
    )
    power = 1.0 if objective_in(result.method) == "k-median" else 2.0
    scores, cost = _figures(result, power)
    return Profile(
        clusters,
        result.columns,
        scores,
        cost,
        power,
        result.units is not None,
        unlisted(result),
        tuple(beyond(result)),
        tuple(unproved(result)),
        descriptions,
        tuple(map(tuple, words_of(result))),
        tuple(untrusted(result)),
    )


def _plain(_owner: Any, _field: Any, value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value.as_dict() if isinstance(value, Descriptions) else value


def _figures(result: Result, power: float) -> tuple[Estimate | None, Estimate | None]:
    """Estimate silhouette and cost, the latter in the caller's units if all columns have the same one."""
    model = model_of(result)
    if model is None:
        return None, None
    model_errors, k = model.model_errors(power), len(result.centers)
    unit = float(np.asarray(result.details.get("units", 1.0)).flat[0]) if result.units is None else 1.0
    cost = estimate(model, lambda m: m.cost(power) * unit**power, model_errors[1] * unit**power)
    if k < 2:
        return None, Estimate(*cost)
    score = estimate(model, lambda m: silhouette(m.points(POINTS), m.centers), model_errors[0])
    return Estimate(*score), Estimate(*cost)


def _apart(result: Result) -> list[tuple[str, ...]]:
    """Name the columns that set each centre apart, one value per category.

    They are those in which it is farthest from the weighted mean of all centres, in standard deviations of the centres,
    if that is beyond noise.
    """
    (centers, errors), k = as_shares(result), len(result.centers)
    weights = np.ones(k) if result.weights is None else np.maximum(result.weights, 0.0)
    weights = weights / weights.sum() if weights.any() else np.full(k, 1 / k)
    away = centers - weights @ centers
    spread = np.sqrt(weights @ away**2)
    marks = np.divide(away, spread, out=np.zeros_like(away), where=spread > 0)
    clear = np.abs(marks) >= MARKED
    if errors is not None:
        clear &= np.abs(away) > CLEAR * _difference_errors(result, away, errors, weights)
    mostly = centers - CLEAR * (0.0 if errors is None else errors) > MOSTLY
    distinctions = list[tuple[str, ...]]()
    for i in range(k):
        order = _one_per_category(result, marks[i], clear[i])[:NAMED]
        distinctions.append(tuple(_distinction(result, j, float(marks[i, j]), bool(mostly[i, j])) for j in order))
    return distinctions


def _difference_errors(result: Result, away: Floats, errors: Floats, weights: Floats) -> Floats:
    """Return standard errors (k, d) of the differences from the weighted mean of all centres.

    They combine the centre's own error, the errors of the mean's centres by weight, and the errors of the weights.
    """
    size_errors = table_in(result.details, "weights_error", weights.shape)
    moved = 0.0
    if result.weights is not None and size_errors is not None and result.weights.max() > 0:
        moved = (size_errors / np.maximum(result.weights, 0.0).sum()) ** 2 @ away**2
    return np.asarray(np.sqrt(errors**2 + weights**2 @ errors**2 + moved))


def _one_per_category(result: Result, marks: Floats, clear: Bools) -> list[int]:
    """Return the clear columns, the clearest first, with one value per category.

    It is the value most above the mean, or else the one most below.
    """
    remaining = set(np.flatnonzero(clear).tolist())
    for places in category_places(result).values():
        values = [j for j in places if j in remaining]
        named = max(values, key=lambda j: (marks[j] > 0, abs(marks[j])), default=None)
        remaining -= {j for j in values if j != named}
    return sorted(remaining, key=lambda j: (-abs(marks[j]), j))


def _distinction(result: Result, j: int, mark: float, mostly: bool) -> str:
    """Say that a column is high or low, or that a category's value is frequent or rare."""
    name = result.columns[j]
    if name not in result.one_hot:
        return f"{name} {'high' if mark > 0 else 'low'}"
    column, value = result.one_hot[name]
    return f"{column} {'mostly' if mostly else 'often' if mark > 0 else 'rarely'} {value}"


Shares = list[dict[str, dict[str, float]]]
"""Shares per centre, category and value."""


def _categories(result: Result) -> tuple[Shares, Shares]:
    """Return the share of each listed value in each cluster, and the standard errors if they are stated.

    What is missing to 1 is the share of rows with none of the values.
    """
    centers, errors = as_shares(result)
    shares: Shares = [{} for _ in centers]
    standard_errors: Shares = [{} for _ in centers]
    for column, places in category_places(result).items():
        values = [result.one_hot[result.columns[j]][1] for j in places]
        for i in np.flatnonzero(centers[:, places].any(axis=1)):
            shares[i][column] = dict(zip(values, centers[i, places].tolist(), strict=True))
            if errors is not None:
                standard_errors[i][column] = dict(zip(values, errors[i, places].tolist(), strict=True))
    return shares, standard_errors


MANY_COLUMNS = 20
"""Maximum number of columns shown in a notebook."""


def centers_html(result: Result) -> str:
    """Return a table for notebooks of the centres, the largest cluster first, with the privacy statement below."""
    shown = result.columns[:MANY_COLUMNS]
    ellipsis = [] if len(shown) == len(result.columns) else [f"... {len(result.columns) - len(shown)} more"]
    sizes, texts = size_texts(result), center_texts(result)
    rows = [[result.called[i], *([] if sizes is None else [sizes[i]]), *texts[i][: len(shown)]] for i in result.by_size]
    head = ["centre", *([] if sizes is None else ["rows (noisy)"]), *shown, *ellipsis]
    caption = f"{len(result.centers)} private centres by {result.method['name']}"
    return f"{table(head, rows, caption)}{result.privacy._repr_html_()}"
