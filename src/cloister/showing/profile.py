"""Description of a result's clusters, from released values alone: no row is read, and nothing is spent.

A standard error is the method's own statement (``Clustering.details``): of the noise, and of what the method cannot see
or chose to change, such as rows of one cell that two centres share, clipped offsets and shrunken steps. A figure that a
method does not release is None, and so is an error that nobody stated.

``centers_html`` is what a notebook shows of a result: the centres with their noisy sizes, and the promise.
"""

from __future__ import annotations

from html import escape
from typing import Any, final

import attrs
import numpy as np

from cloister.core.types import Bools, Floats
from cloister.run.estimates import (
    Estimate,
    meant,
    shares_of_rows,
    table,
    table_in,
)
from cloister.run.layers.histograms import Descriptions, descriptions_of
from cloister.run.layers.keywords import Word, words_of
from cloister.run.result import Result
from cloister.run.shown import as_shares, category_places, center_texts, size_texts
from cloister.run.warnings import beyond, unlisted, unproved, untrusted
from cloister.showing.figures import POINTS, estimated, model_of, silhouette
from cloister.showing.telling import held

CLEAR = 2.0
"""Standard errors by which a centre must be off the mean of all centres, to be said to be high or low."""

MARKED = 0.75
"""The same in spreads of the centres. Of two equal clusters, each is one spread off the mean."""

NAMED = 3
"""Most columns that are said to set a cluster apart."""


MOSTLY = 0.5
"""A category's value with a larger share is what most rows have."""

WORDS = 6
"""Most words that are said of a group."""

COUNTED = "Of each row only some words count, as the statement says: more rows may have a word than its count."
"""Words on counts of words."""

SEEN = 0.005
"""Smallest share of a category that is mentioned."""


@final
@attrs.frozen
class ClusterProfile:
    """One cluster.

    Args:
        number: index of its centre. called: by number, and by name if it has one.
        size: noisy rows nearest to the centre. size_error: its standard error. share: of all sizes. share_error.
        center: (d,) in the caller's units. center_error: standard errors (d,) of its coordinates.
        apart: columns that set it apart, as in 'age high' or 'ward mostly A', the clearest first.
        categories: the share of each listed value, by column, of all rows of the group. category_errors: their standard
            errors; empty if nobody stated any.
        held: words on what its rows hold, by described column.
        coordinates: the centre (d,) as text, with its errors, as every table shows it.
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
        return "-" if self.size is None else Estimate.of_size(self.size, self.size_error).text

    @property
    def share_text(self) -> str:
        return "-" if self.share is None else Estimate.of_share(self.share, self.share_error).text

    @property
    def mixed(self) -> frozenset[str]:
        """The columns that ``mixtures`` tells of: one for each value of a category."""
        return frozenset(f"{column}={value}" for column, shares in self.categories.items() for value in shares)

    @property
    def mixtures(self) -> dict[str, str]:
        """Each column's categories by their shares, the largest first; those below half a hundredth are left out."""
        return {column: self._mixture(column) for column in self.categories}

    def _mixture(self, column: str) -> str:
        shares, errors = self.categories[column], self.category_errors.get(column, {})
        order = sorted((value for value, share in shares.items() if share >= SEEN), key=lambda value: -shares[value])
        return ", ".join(f"{value} {Estimate.of_share(shares[value], errors.get(value)).text}" for value in order)

    @property
    def text(self) -> str:
        """In one line, with one more for each described column."""
        size = "" if self.size is None else f", {self.size_text} rows"
        share = "" if self.share is None else f" ({self.share_text})"
        line = f"cluster {self.called}{size}{share}: {', '.join(self.apart) or 'nothing clear sets it apart'}"
        return "\n  ".join([line, *(f"{name}: {text}" for name, text in self.held.items())])


@final
@attrs.frozen
class Profile:
    """Description of a result's clusters.

    Args:
        clusters: in the order of the centres.
        columns: names of the d columns.
        silhouette: mean silhouette of the rows (``metrics.silhouette``).
        cost: mean of distance^``power`` from a row to its nearest centre, in the caller's units, or, if ``scaled``, in
            those that the run took distances in.
        power: 2 for k-means, 1 for k-median.
        scaled: whether columns had units of their own (``Result.units``): silhouette and sizes are in them too.
        warnings: what else the released values say of the rows, in sentences.
        untrusted: sizes and centres that are not to be trusted (``run.cautions``).
        beyond: centres that clipped rows may have moved, which errors do not cover; unproved: how many rows may lie
            beyond the intervals that were released (``run.cautions``).
        described: what groups were described by; None: by nothing.
        words: of each group, those of the most lift first; empty where none were counted.
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
        """The clusters as people look at them: the largest first."""
        return sorted(self.clusters, key=lambda cluster: -(cluster.size or 0.0))

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return attrs.asdict(self, value_serializer=_plain)

    def _repr_html_(self) -> str:
        """For notebooks: sizes, what sets clusters apart and centres, with their standard errors."""
        shown = range(min(len(self.columns), MANY_COLUMNS))
        more = [f"... {len(self.columns) - len(shown)} more"] if len(shown) < len(self.columns) else []
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
        head = ["cluster", "rows (noisy)", "share", "what sets it apart", *(self.columns[j] for j in shown), *more]
        caption = f"{len(self.clusters)} clusters, from released values alone"
        told = [cluster.text for cluster in self.clusters if cluster.held]
        lines = "".join(f"<p>{escape(line)}</p>" for line in [*told, *self.spoken, *self.figures, *self.notes])
        return table(head, rows, caption) + lines

    def text(self) -> str:
        """In words, a line per cluster, the largest first."""
        return "\n".join([*(cluster.text for cluster in self.by_size), *self.spoken, *self.figures, *self.notes])

    @property
    def spoken(self) -> list[str]:
        """The words that tell groups apart most, a line each, and what their counts are of."""
        told = [f"words of cluster {c.called}: {self.words_in(c.number)}" for c in self.by_size if self.words]
        return [*told, COUNTED] if told else []

    def words_in(self, number: int) -> str:
        """The words that tell a group apart most, with their counts."""
        return ", ".join(word.text for word in self.words[number][:WORDS]) or "none"

    @property
    def notes(self) -> list[str]:
        """Notes on what the figures are worth."""
        warned = [f"WARNING: {text}." for text in (*self.untrusted, *self.warnings, *self.beyond)]
        warned += [f"note: {text}." for text in self.unproved]
        known = [c.size_error is not None or c.center_error is not None for c in self.clusters]
        if not any(known):
            unknown = "Standard errors are not known: the method, or the version that made this result, states none."
            return [unknown, *warned]
        return [
            "\u00b1 is one standard error, of noise and of what the method approximates: two of them held nine of "
            "ten figures or more in most trials, and six or seven in the worst, so it is an estimate and no bound.",
            *warned,
        ]

    @property
    def figures(self) -> list[str]:
        """Silhouette and cost, a line each: what is estimated, and what is not known."""
        means = "distance" if self.power == 1 else "squared distance"
        where = " in the units that the run took distances in" if self.scaled else ""
        found = {"silhouette": self.silhouette, f"mean {means} to the nearest centre{where}": self.cost}
        return [
            f"{name}: {'not known: the method releases too little' if figure is None else figure.text}"
            for name, figure in found.items()
        ]


def profile_of(result: Result) -> Profile:
    """The profile of a result of any method, old ones too. Reads released values only."""
    details = result.details
    sizes, errors = result.weights, table_in(details, "centers_error", result.centers.shape)
    size_errors = table_in(details, "weights_error", (len(result.centers),))
    of_all, of_all_errors = (None if sizes is None else shares_of_rows(sizes, size_errors)) or (None, None)
    centers = meant(result.centers, details, result.domain) if errors is None else result.centers
    apart, told, texts = _apart(result), descriptions_of(result), center_texts(result)
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
            {} if told is None else held(told, i),
            None if of_all_errors is None else float(of_all_errors[i]),
            held_errors[i],
            tuple(texts[i]),
        )
        for i, center in enumerate(centers)
    )
    power = 1.0 if result.objective == "k-median" else 2.0
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
        told,
        tuple(map(tuple, words_of(result))),
        tuple(untrusted(result)),
    )


def _plain(_owner: Any, _field: Any, value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value.as_dict() if isinstance(value, Descriptions) else value


def _figures(result: Result, power: float) -> tuple[Estimate | None, Estimate | None]:
    """Silhouette and cost; the cost in the caller's units, if all columns have one."""
    model = model_of(result)
    if model is None:
        return None, None
    doubts, k = model.doubts(power), len(result.centers)
    unit = float(np.asarray(result.details.get("units", 1.0)).flat[0]) if result.units is None else 1.0
    cost = estimated(model, lambda m: m.cost(power) * unit**power, doubts[1] * unit**power)
    if k < 2:
        return None, Estimate(*cost)
    return Estimate(*estimated(model, lambda m: silhouette(m.points(POINTS), m.centers), doubts[0])), Estimate(*cost)


def _apart(result: Result) -> list[tuple[str, ...]]:
    """Distinction of each centre: the columns in which it is farthest from the weighted mean of all centres, in
    spreads of the centres there, if that is beyond noise; of a category one value."""
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
    found = list[tuple[str, ...]]()
    for i in range(k):
        order = _one_per_category(result, marks[i], clear[i])[:NAMED]
        found.append(tuple(_said(result, j, float(marks[i, j]), bool(mostly[i, j])) for j in order))
    return found


def _difference_errors(result: Result, away: Floats, errors: Floats, weights: Floats) -> Floats:
    """Standard errors (k, d) of the differences from the mean of all centres: a centre's own in full, those of the
    mean's centres by their weights, and what the weights' own errors move it by."""
    size_errors = table_in(result.details, "weights_error", weights.shape)
    moved = 0.0
    if result.weights is not None and size_errors is not None and result.weights.max() > 0:
        moved = (size_errors / np.maximum(result.weights, 0.0).sum()) ** 2 @ away**2
    return np.asarray(np.sqrt(errors**2 + weights**2 @ errors**2 + moved))


def _one_per_category(result: Result, marks: Floats, clear: Bools) -> list[int]:
    """Return the clear columns, the clearest first. A category has the value that is most above the mean, if any is
    above, or else the one most below: what the others lack follows from it."""
    kept = set(np.flatnonzero(clear).tolist())
    for places in category_places(result).values():
        values = [j for j in places if j in kept]
        named = max(values, key=lambda j: (marks[j] > 0, abs(marks[j])), default=None)
        kept -= {j for j in values if j != named}
    return sorted(kept, key=lambda j: (-abs(marks[j]), j))


def _said(result: Result, j: int, mark: float, mostly: bool) -> str:
    """Return that a column is high or low; of a category's value, that it is frequent or rare."""
    name = result.columns[j]
    if name not in result.one_hot:
        return f"{name} {'high' if mark > 0 else 'low'}"
    column, value = result.one_hot[name]
    return f"{column} {'mostly' if mostly else 'often' if mark > 0 else 'rarely'} {value}"


Shares = list[dict[str, dict[str, float]]]
"""By centre, by category, by value."""


def _categories(result: Result) -> tuple[Shares, Shares]:
    """Return the share of each listed value in each cluster, if the run had categories, and their standard errors, if
    it stated any. What is left has none of the values."""
    centers, errors = as_shares(result)
    shares: Shares = [{} for _ in centers]
    doubts: Shares = [{} for _ in centers]
    for column, places in category_places(result).items():
        values = [result.one_hot[result.columns[j]][1] for j in places]
        for i in np.flatnonzero(centers[:, places].any(axis=1)):
            shares[i][column] = dict(zip(values, centers[i, places].tolist(), strict=True))
            if errors is not None:
                doubts[i][column] = dict(zip(values, errors[i, places].tolist(), strict=True))
    return shares, doubts


MANY_COLUMNS = 20
"""Most columns that a notebook shows; the result holds all."""


def centers_html(result: Result) -> str:
    """A table of centres, the largest group first, with the privacy statement below. Released values only."""
    shown = result.columns[:MANY_COLUMNS]
    more = [] if len(shown) == len(result.columns) else [f"... {len(result.columns) - len(shown)} more"]
    sizes, texts = size_texts(result), center_texts(result)
    rows = [[result.called[i], *([] if sizes is None else [sizes[i]]), *texts[i][: len(shown)]] for i in result.by_size]
    head = ["centre", *([] if sizes is None else ["rows (noisy)"]), *shown, *more]
    caption = f"{len(result.centers)} private centres by {result.method['name']}"
    return f"{table(head, rows, caption)}{result.privacy._repr_html_()}"
