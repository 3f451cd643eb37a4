"""The demonstration: handwritten digits, clustered without showing any of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

from cloister.metrics import nicv
from cloister.run.fit import Started, fit, parties, source
from cloister.run.request import Request
from cloister.run.result import Result

PARTIES = ("north", "south", "west")
"""The parties of a federated demonstration."""


@attrs.frozen(eq=False)
class Demo:
    """The demonstration's outcome. Args: result, costs (name to mean squared distance), shape (rows, columns)."""

    result: Result
    costs: dict[str, float]
    shape: tuple[int, int]


def demonstrate(
    epsilon: float,
    delta: float,
    k: int,
    seed: int | None,
    progress: Callable[[int], None] | None = None,
    started: Started | None = None,
    federated: bool = False,
) -> Demo:
    """Cluster the 1,797 digits that scikit-learn carries (8 x 8 pixels, 0 to 16), next to non-private baselines.

    Args: federated (deal the rows out to three parties, who pool masked sums, all in this process).
    """
    from sklearn.cluster import KMeans
    from sklearn.datasets import load_digits

    loaded: Any = load_digits()
    rows = np.asarray(loaded.data, np.float64)
    request = Request(
        k=k,
        epsilon=epsilon,
        delta=delta,
        bounds=(0.0, 16.0),
        rows=1800,
        seed=seed,
        trust="aggregated" if federated else None,
        parties=len(PARTIES) if federated else 0,
    )
    population: Any = source(rows, None, "refuse", progress)
    if federated:
        shares = {n: rows[i :: len(PARTIES)] for i, n in enumerate(PARTIES)}
        population = parties({name: source(part, None, "refuse", progress) for name, part in shares.items()})
    result = fit(request, population, started=started)
    baseline: Any = KMeans(k, random_state=0)
    baseline.set_params(n_init=10).fit(rows)
    costs = {
        "scikit-learn, not private": nicv(rows, baseline.cluster_centers_),
        "cloister, private": nicv(rows, result.centers),
        "the exact mean, not private": nicv(rows, rows.mean(axis=0, keepdims=True)),
        "the midpoint of the bounds": nicv(rows, np.full((1, rows.shape[1]), 8.0)),
    }
    return Demo(result, costs, rows.shape)
