"""Quality metrics of released centres, computed on the caller's own rows.

**Nothing here is private.** Every figure is computed from raw rows, without noise: publishing it is outside the
guarantee of the run that released the centres. The centres themselves stay private.
"""

from __future__ import annotations

import math
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import ArrayLike

from cloister.core.errors import InvalidInput
from cloister.core.types import AnyArray, Floats, Ints
from cloister.rows.distances import CentersAboutMean, check_finite
from cloister.rows.labelling import Labelling
from cloister.rows.workers.threads import Threads

_CHUNK = 2**16
"""Numbers per chunk: they and the intermediate results fit a core's second-level cache."""

_ABREAST = 64
"""Rows compared with the whole sample at once: fewer would read it from memory too often."""

_LABELLED = 2**16
"""Rows that are labelled at once."""


def cost(rows: ArrayLike, centers: ArrayLike, power: float = 2, threads: int | None = None) -> float:
    """Return the sum over rows of (distance to the nearest centre)^power. Computed from raw rows: NOT private.

    Args:
        rows: (n, d) numbers of any real type; read in chunks, so that a memory map stays on disk.
        centers: (k, d).
        power: 2 is the k-means cost, 1 the k-median cost.
        threads: by default one per core.

    Raises:
        InvalidInput: empty or not finite input, or shapes that do not fit.
    """
    if not (math.isfinite(power) and power > 0):
        raise InvalidInput(f"the power of a cost must be positive and finite, not {power}: 2 is k-means, 1 k-median")
    table, places = _fitting(rows, centers)
    labelling = Labelling.of(places)

    def away(part: slice) -> list[float]:
        batch = table[part]
        label = labelling.labels(batch, part.start)
        return [
            _cost(batch[rows], places, label[rows], power) for rows in _parts(batch, max(1, _CHUNK // batch.shape[1]))
        ]

    return math.fsum(value for values in Threads(threads).run(away, _parts(table, _LABELLED)) for value in values)


def _cost(rows: AnyArray, centers: Floats, label: Ints, power: float) -> float:
    """Return the cost of rows with these labels, from differences, which lose no digits far from the origin."""
    away = np.take(centers, label, axis=0, mode="clip")
    np.subtract(rows, away, out=away, dtype=np.float64)
    if power == 2:
        return float(np.vdot(away, away))  # in the library's own order: a figure for people
    return float(np.sum(np.einsum("ij,ij->i", away, away) ** (power / 2)))


def nicv(rows: ArrayLike, centers: ArrayLike) -> float:
    """Return the normalised intra-cluster variance, the k-means cost over n. Computed from raw rows: NOT private.

    Args: rows (n, d), centers (k, d).

    Source: Su et al. 2016; FastLloyd, section 6.2.1.
    """
    table, places = _fitting(rows, centers)
    return cost(table, places) / len(table)


def k_median_cost(rows: ArrayLike, centers: ArrayLike) -> float:
    """Return the sum over rows of the distance to the nearest centre. Computed from raw rows: NOT private.

    Args: rows (n, d), centers (k, d).
    """
    return cost(rows, centers, power=1)


def silhouette(rows: ArrayLike, centers: ArrayLike, sample: int = 10_000, seed: int = 0) -> float:
    """Return the mean silhouette of the clusters around the centres, in [-1, 1]. Computed from raw rows: NOT private.

    -1 when all rows (of the sample) are nearest to one centre (FastLloyd, appendix D), 0 when every row is alone.

    Args:
        rows: (n, d).
        centers: (k, d).
        sample: largest number of rows used, drawn at random; the work grows with its square.
        seed: of that draw.

    Source: Rousseeuw 1987.
    """
    if sample < 2:
        raise InvalidInput(f"a silhouette needs a sample of at least 2 rows, not {sample}")
    table, places = _fitting(rows, centers)
    labels = _labels(table, places)
    if len(table) > sample:
        drawn = np.random.default_rng(seed).choice(len(table), sample, replace=False)
        table, labels = table[drawn], labels[drawn]
    clusters = len(np.unique(labels))
    if clusters == 1:
        return -1.0
    if clusters == len(labels):
        return 0.0
    return _silhouette(table.astype(np.float64), labels)


def _silhouette(rows: Floats, labels: Ints) -> float:
    """Return the mean silhouette, by distances that keep their digits far from the origin, unlike inner products."""
    _, cluster = np.unique(labels, return_inverse=True)
    sizes, about = np.bincount(cluster), CentersAboutMean.of(rows)
    member = np.eye(len(sizes))[cluster]

    def scores(part: slice) -> Floats:
        away = np.empty((part.stop - part.start, len(rows)))
        about.fill(rows[part], away, part.start)
        sums, own_cluster = away @ member, cluster[part]
        own_entries = np.arange(len(own_cluster)), own_cluster
        inside = sums[own_entries] / np.maximum(sizes[own_cluster] - 1, 1)
        means = sums / sizes
        means[own_entries] = np.inf
        outside = means.min(axis=1)
        larger = np.maximum(inside, outside)
        apart = np.divide(outside - inside, larger, out=np.zeros(len(own_cluster)), where=larger > 0)
        return np.where(sizes[own_cluster] > 1, apart, 0.0)

    return float(np.concatenate(list(Threads(None).run(scores, _parts(rows, _ABREAST)))).mean())


def davies_bouldin(rows: ArrayLike, centers: ArrayLike) -> float:
    """Return the Davies-Bouldin index of the clusters, lower is better. Computed from raw rows: NOT private.

    It uses the clusters' own means, not the centres. Infinite when all rows are nearest to one centre (FastLloyd,
    appendix D), 0 when every row is alone.

    Args: rows (n, d), centers (k, d).

    Source: Davies and Bouldin 1979.
    """
    table, places = _fitting(rows, centers)
    labels = _labels(table, places)
    clusters = len(np.unique(labels))
    if clusters == 1:
        return math.inf
    if clusters == len(labels):
        return 0.0
    used, cluster = np.unique(labels, return_inverse=True)
    means, away = places[used].copy(), np.zeros(clusters)
    for j in range(clusters):
        rows_there = table[cluster == j].astype(np.float64)
        means[j] += (rows_there - means[j]).mean(axis=0)  # about the centre: a mean of large numbers loses digits
        away[j] = np.linalg.norm(rows_there - means[j], axis=1).mean()
    return davies_bouldin_of(means, away)


def davies_bouldin_of(means: Floats, spreads: Floats) -> float:
    """Return the Davies-Bouldin index of clusters with means (k, d) and mean distances (k,) of rows from them.

    It is 0 if every row is at its mean, or all means are equal.
    """
    apart = np.linalg.norm(means[:, None] - means[None], axis=2)
    if not spreads.any() or not apart.any():
        return 0.0
    apart[apart == 0] = np.inf
    return float(np.max((spreads[:, None] + spreads) / apart, axis=1).mean())


def center_mse(centers: ArrayLike, reference: ArrayLike) -> float:
    """Return the mean squared distance between centres and reference centres under the optimal one-to-one matching.

    As private as the reference is: centres found without privacy (``reference_centers``) make it NOT private.

    Args: centers (k, d), reference (k, d).

    Source: FastLloyd, appendix D; Kuhn 1955.
    """
    from scipy.optimize import linear_sum_assignment

    matched, target = _numbers("centers", centers), _numbers("reference", reference)
    if matched.shape != target.shape:
        raise InvalidInput(
            f"centers of shape {matched.shape} cannot be matched with a reference of shape {target.shape}"
        )
    squared = np.square(matched[:, None, :] - target[None, :, :]).sum(axis=2)
    row, column = linear_sum_assignment(squared)
    return float(squared[row, column].mean())


def reference_centers(rows: ArrayLike, k: int, seed: int) -> Floats:
    """Return centres (k, d) of scikit-learn's k-means, best of 10 starts. Computed from raw rows: NOT private.

    Args:
        rows: (n, d) with n >= k.
        k: number of centres.
        seed: of the k-means++ starts.
    """
    table = _table("rows", rows)
    if not 1 <= k <= len(table):
        raise InvalidInput(f"k must be between 1 and the {len(table)} rows, not {k}")
    from sklearn.cluster import KMeans

    starts: Any = 10  # a number as well as the text that the annotation-free default suggests
    model = KMeans(n_clusters=k, init="k-means++", n_init=starts, random_state=seed).fit(_numbers("rows", table))
    return np.asarray(model.cluster_centers_, np.float64)


@final
@attrs.frozen
class Mean:
    """Mean over independent runs, with its 95% interval.

    Args:
        value: the mean.
        standard_error: of the mean; infinite for a single run, which says nothing about its spread.
        low, high: 95% Student-t interval of the mean.
    """

    value: float
    standard_error: float
    low: float
    high: float


def mean_interval(values: ArrayLike) -> Mean:
    """Return the mean of independent runs and its 95% Student-t interval: value +- t(0.975; m - 1) s / sqrt(m).

    Args:
        values: (m,) finite figures. Leave out infinite ones (Davies-Bouldin of a single cluster) and say how many.
    """
    from scipy.special import stdtrit

    x = _list("values", values)
    if len(x) == 0:
        raise InvalidInput("a mean needs at least one value")
    mean = math.fsum(x) / len(x)
    if len(x) == 1:
        return Mean(mean, math.inf, -math.inf, math.inf)
    error = float(np.std(x, ddof=1)) / math.sqrt(len(x))
    reach = float(stdtrit(len(x) - 1, 0.975)) * error
    return Mean(mean, error, mean - reach, mean + reach)


@final
@attrs.frozen
class Evaluation:
    """Metrics of one set of centres. Computed from raw rows: NOT private.

    Args:
        nicv: k-means cost over n.
        k_median: sum of distances to the nearest centre.
        silhouette: mean silhouette, -1 for a single cluster.
        davies_bouldin: infinite for a single cluster.
        center_mse: mean squared distance to the matched reference centres; None without a reference.
    """

    nicv: float
    k_median: float
    silhouette: float
    davies_bouldin: float
    center_mse: float | None = None

    def as_dict(self) -> dict[str, float | str | None]:
        """Return the metrics by name, fit for JSON: infinity becomes the text 'inf'."""
        figures: dict[str, float | None] = attrs.asdict(self)
        return {name: "inf" if figure == math.inf else figure for name, figure in figures.items()}


def evaluate(rows: ArrayLike, centers: ArrayLike, reference: ArrayLike | None = None) -> Evaluation:
    """Return all metrics. Computed from raw rows: NOT private.

    Args:
        rows: (n, d).
        centers: (k, d).
        reference: (k, d), such as ``reference_centers`` returns.
    """
    table, places = _fitting(rows, centers)
    return Evaluation(
        nicv(table, places),
        k_median_cost(table, places),
        silhouette(table, places),
        davies_bouldin(table, places),
        None if reference is None else center_mse(places, reference),
    )


def labels(rows: ArrayLike, centers: ArrayLike, threads: int | None = None, units: ArrayLike | None = None) -> Ints:
    """Return the index (n,) of every row's nearest centre. Computed from raw rows: NOT private.

    Of equally near centres it is the first. A row's label depends on that row alone, and is the same in SQL
    (formula: ``rows.labelling``).

    Args:
        rows: (n, d).
        centers: (k, d).
        threads: by default one per core.
        units: (d,) unit of distance in each column; None: 1.
    """
    return _labels(*_fitting(rows, centers), threads, None if units is None else _list("units", units))


def distances(rows: ArrayLike, centers: ArrayLike, threads: int | None = None) -> Floats:
    """Return the distances (n, k) of every row to every centre. Computed from raw rows: NOT private.

    Args:
        rows: (n, d).
        centers: (k, d).
        threads: by default one per core.
    """
    table, places = _fitting(rows, centers)
    out, about = np.empty((len(table), len(places))), CentersAboutMean.of(places)

    def fill(part: slice) -> None:
        about.fill(table[part], out[part], part.start)

    for _ in Threads(threads).run(fill, _parts(table, max(1, _CHUNK // sum(places.shape)))):
        pass
    return out


def _parts(rows: AnyArray, step: int) -> list[slice]:
    return [slice(start, min(start + step, len(rows))) for start in range(0, len(rows), step)]


def _labels(rows: AnyArray, centers: Floats, threads: int | None = None, units: Floats | None = None) -> Ints:
    out, labelling = np.empty(len(rows), np.int64), Labelling.of(centers, units)

    def fill(part: slice) -> None:
        out[part] = labelling.labels(rows[part], part.start)

    for _ in Threads(threads).run(fill, _parts(rows, _LABELLED)):
        pass
    return out


def _fitting(rows: ArrayLike, centers: ArrayLike) -> tuple[AnyArray, Floats]:
    """Return rows in their own type and centres as float64, of the same number of columns."""
    table, places = _table("rows", rows), _numbers("centers", centers)
    if table.shape[1] != places.shape[1]:
        raise InvalidInput(f"rows have {table.shape[1]} columns and centers {places.shape[1]}")
    return table, places


def _numbers(name: str, values: ArrayLike) -> Floats:
    """Return a non-empty table of finite float64."""
    numbers = _table(name, values).astype(np.float64)
    check_finite(name, numbers)
    return numbers


def _table(name: str, values: ArrayLike) -> AnyArray:
    """Return a non-empty table of real numbers, in their own type."""
    table = _array(name, values)
    if table.ndim != 2 or 0 in table.shape:
        raise InvalidInput(f"{name} must be a table of shape (n, d) that is not empty, not of shape {table.shape}")
    return table


def _list(name: str, values: ArrayLike) -> Floats:
    """Return a list of finite float64, possibly empty."""
    numbers = _array(name, values).astype(np.float64)
    if numbers.ndim != 1:
        raise InvalidInput(f"{name} must be a plain list of numbers, not of shape {numbers.shape}")
    if not np.isfinite(numbers).all():
        raise InvalidInput(f"{name} must be finite: number {int(np.argmin(np.isfinite(numbers)))} is not")
    return numbers


def _array(name: str, values: ArrayLike) -> AnyArray:
    try:
        array: AnyArray = np.asarray(values)
    except ValueError as error:
        raise InvalidInput(f"{name} must be numbers in a regular shape: {error}") from error
    if array.dtype.kind not in "biuf":
        raise InvalidInput(f"{name} must be real numbers, not of type {array.dtype}")
    return array
