"""Description of a result's clusters, from released values alone: no row is read, and nothing is spent.

A standard error is the method's own statement (``Clustering.details``): of the noise, and of what the method cannot see
or chose to change, such as rows of one cell that two centres share, clipped offsets and shrunken steps. A figure that a
method does not release is None, and so is an error that nobody stated.

``centers_html`` is what a notebook shows of a result: the centres with their noisy sizes, and the promise.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any, final

import attrs
import numpy as np

from cloister.core.types import Floats
from cloister.run.cautions import beyond, unlisted, unproved
from cloister.run.descriptions import Descriptions, descriptions_of
from cloister.run.estimates import Estimate, center_texts, meant, table, table_in, told_apart
from cloister.run.result import Result
from cloister.run.words import Word, words_of
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
        size: noisy rows nearest to the centre. size_error: its standard error. share: of all sizes.
        center: (d,) in the caller's units. center_error: standard errors (d,) of its coordinates.
        apart: columns that set it apart, as in 'age high' or 'ward mostly A', the clearest first.
        categories: the share of each listed value, by column, of all rows of the group.
        held: words on what its rows hold, by described column.
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

    @property
    def size_text(self) -> str:
        return "-" if self.size is None else Estimate(self.size, self.size_error).text

    @property
    def mixed(self) -> frozenset[str]:
        """The columns that ``mixtures`` tells of: one for each value of a category."""
        return frozenset(f"{column}={value}" for column, shares in self.categories.items() for value in shares)

    @property
    def mixtures(self) -> dict[str, str]:
        """Each column's categories by their shares, the largest first; those below half a hundredth are left out."""
        return {
            column: ", ".join(
                f"{value} {share:.0%}"
                for value, share in sorted(shares.items(), key=lambda item: -item[1])
                if share >= SEEN
            )
            for column, shares in self.categories.items()
        }

    @property
    def text(self) -> str:
        """In one line, with one more for each described column."""
        size = "" if self.size is None else f", {self.size_text} rows"
        share = "" if self.share is None else f" ({self.share:.1%})"
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

    @property
    def by_size(self) -> list[ClusterProfile]:
        """The clusters as people look at them: the largest first."""
        return sorted(self.clusters, key=lambda cluster: -(cluster.size or 0.0))

    def coordinates(self, cluster: ClusterProfile, bare: bool = False) -> list[str]:
        """A centre's coordinates (d,) with their errors, if not bare; where nobody stated any, with as many digits as
        tell the centres apart."""
        if cluster.center_error is None:
            return [
                texts[cluster.number] for texts in map(told_apart, zip(*(c.center for c in self.clusters), strict=True))
            ]
        every = [Estimate(*pair) for pair in zip(cluster.center, cluster.center_error, strict=True)]
        return [each.figure if bare else each.text for each in every]

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
                "-" if c.share is None else f"{c.share:.1%}",
                ", ".join(c.apart) or "-",
                *self.coordinates(c)[: len(shown)],
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
        warned = [f"WARNING: {text}." for text in (*self.warnings, *self.beyond)]
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
    total = 0.0 if sizes is None else float(np.maximum(sizes, 0.0).sum())
    centers = meant(result.centers, details, result.domain) if errors is None else result.centers
    apart, shares, told = _apart(result, errors), _categories(result), descriptions_of(result)
    clusters = tuple(
        ClusterProfile(
            i,
            None if sizes is None else float(sizes[i]),
            None if sizes is None or size_errors is None else float(size_errors[i]),
            None if sizes is None or not total else max(0.0, float(sizes[i])) / total,
            tuple(center.tolist()),
            None if errors is None else tuple(errors[i].tolist()),
            apart[i],
            shares[i],
            result.called[i],
            {} if told is None else held(told, i),
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


def _apart(result: Result, errors: Floats | None) -> list[tuple[str, ...]]:
    """Distinction of each centre: the columns in which it is farthest from the weighted mean of all centres, in
    spreads of the centres there, if that is beyond noise."""
    centers = result.centers
    weights = np.ones(len(centers)) if result.weights is None else np.maximum(result.weights, 0.0)
    weights = weights / weights.sum() if weights.any() else np.full(len(centers), 1 / len(centers))
    away = centers - weights @ centers
    spread = np.sqrt(weights @ away**2)
    marks = np.divide(away, spread, out=np.zeros_like(away), where=spread > 0)
    clear = np.abs(marks) >= MARKED
    if errors is not None:
        clear &= np.abs(away) > CLEAR * errors
    values, found = result.one_hot, list[tuple[str, ...]]()
    for row, seen, center in zip(marks, clear, centers, strict=True):
        order = [j for j in np.argsort(-np.abs(row), kind="stable") if seen[j]][:NAMED]
        found.append(tuple(_said(result.columns[j], values, float(row[j]), float(center[j])) for j in order))
    return found


def _said(name: str, one_hot: Mapping[str, tuple[str, str]], mark: float, center: float) -> str:
    """That a column is high or low; of a category's value, that it is frequent or rare."""
    if name not in one_hot:
        return f"{name} {'high' if mark > 0 else 'low'}"
    column, value = one_hot[name]
    return f"{column} {'mostly' if center > MOSTLY else 'often' if mark > 0 else 'rarely'} {value}"


def _categories(result: Result) -> list[dict[str, dict[str, float]]]:
    """The share of each listed value in each cluster, if the run had categories. What is left has none of them."""
    places = {name: j for j, name in enumerate(result.columns)}
    found: list[dict[str, dict[str, float]]] = [{} for _ in result.centers]
    for column, values in dict(result.problem.get("categories", {})).items():
        features = [places.get(f"{column}={value}") for value in values]
        if None in features:
            continue
        for i, center in enumerate(result.centers):
            held = np.maximum([center[j] for j in features if j is not None], 0.0)
            if held.any():
                shares = held / max(1.0, held.sum())  # noise may lift their sum above all rows
                found[i][column] = {str(value): float(share) for value, share in zip(values, shares, strict=True)}
    return found


MANY_COLUMNS = 20
"""Most columns that a notebook shows; the result holds all."""


def centers_html(result: Result) -> str:
    """A table of centres, the largest group first, with the privacy statement below. Released values only."""
    shown = result.columns[:MANY_COLUMNS]
    more = [] if len(shown) == len(result.columns) else [f"... {len(result.columns) - len(shown)} more"]
    sizes = [] if result.weights is None else ["rows (noisy)"]
    texts = center_texts(result.centers, result.details, result.domain)
    rows = [
        [result.called[i], *([] if result.weights is None else [f"{result.weights[i]:.0f}"]), *texts[i][: len(shown)]]
        for i in result.by_size
    ]
    caption = f"{len(result.centers)} private centres by {result.method['name']}"
    return f"{table(['centre', *sizes, *shown, *more], rows, caption)}{result.privacy._repr_html_()}"
