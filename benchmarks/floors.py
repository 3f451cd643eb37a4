"""What is possible: NICV over scikit-learn's of oracles that know what no method does, on the twelve sets: the floors
in docs/explanation/accuracy.md.

    python benchmarks/floors.py

With mu = mu(epsilon, delta), and scikit-learn's own groups of n_g rows and root mean square radius r_g about their
means:

* *membership*: who knows every row's group, sizes and radii, and not where groups are. It releases sums of each
  group's offsets several times over, clipped to what is known of the place by then: within the domain's half diagonal
  at first, then within R_t, R_t^2 = r_g^2 + d (R_(t-1) / (n_g mu sqrt(s_t)))^2, with the shares s_t of mu^2 that cost
  least. The last means are its centres.
* *ball*: who knows the place, too, and pays for one release within the group's own radius: noise of r_g / (n_g mu) in
  every column of a mean. Before rows change sides it costs d sum_g r_g^2 / n_g / mu^2: 1 + d / q^2, for groups of one
  size.
* *shape*: the same with noise of each column in proportion to the root of its spread, which is best where columns are
  independent.

Centres are drawn ``DRAWS`` times, shrunk to the middle of the domain by their known noise, and rows go to the nearest.

None is a bound for all methods: counts can find places for less than membership pays, and nobody knows whether the
floors can be reached.
"""

from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import math

import numpy as np
from scipy.optimize import minimize
from sklearn.cluster import KMeans

from cloister.accounting import mu_of
from cloister.core.types import Floats
from cloister.lab.machine import machine
from cloister.lab.papers import sets as datasets
from cloister.metrics import nicv

EPSILONS = (0.1, 0.25, 0.5, 1.0)
KINDS = ("membership", "ball", "shape")
LOOKS, DRAWS = 4, 10
"""Most releases of *membership*; draws of the noise."""


def located(sizes: Floats, radii: Floats, half_diagonal: float, d: int, mu: float) -> Floats:
    """Variance of a coordinate of each group's mean (k,) by the releases of *membership* that lose the least."""

    def noises(logits: Floats) -> Floats:
        shares = np.exp(logits - logits.max())
        shares = np.maximum(shares / shares.sum(), 1e-9)
        reach, noise = np.full(len(sizes), half_diagonal), np.zeros(len(sizes))
        for share in shares:
            noise = (reach / (sizes * mu)) ** 2 / share
            reach = np.minimum(np.sqrt(radii**2 + d * noise), half_diagonal)
        return noise

    def lost(logits: Floats) -> float:
        return float((sizes * np.minimum(d * noises(logits), half_diagonal**2)).sum())

    found = [minimize(lost, np.zeros(looks), method="Nelder-Mead") for looks in range(1, LOOKS + 1)]
    return noises(min(found, key=lambda one: one.fun).x)


def floors(name: str) -> dict[str, list[float]]:
    """NICV over scikit-learn's by kind, for each epsilon."""
    data, g = datasets.load(name), np.random.default_rng(0)
    n, d = data.rows.shape
    model = KMeans(data.k, n_init=5, random_state=0).fit(data.rows)
    groups = [data.rows[model.labels_ == j] for j in range(data.k)]
    sizes = np.array([len(rows) for rows in groups], np.float64)
    means = np.array([rows.mean(axis=0) for rows in groups])
    spreads = np.array([rows.std(axis=0) for rows in groups])
    radii, reference = np.sqrt((spreads**2).sum(axis=1)), nicv(data.rows, means)

    def drawn(variances: Floats) -> float:
        """The mean ratio for noise of these variances (k, d)."""
        centers = means + g.normal(size=(DRAWS, *means.shape)) * np.sqrt(variances)
        squares, noise = (centers**2).sum(axis=2), variances.sum(axis=1)
        centers = centers * np.maximum(0.0, 1 - noise / squares)[:, :, None]
        return float(np.mean([nicv(data.rows, np.clip(one, -1, 1)) for one in centers])) / reference

    found: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for epsilon in EPSILONS:
        mu = mu_of(epsilon, 1 / (n * math.log(n)))
        ones = np.ones((data.k, d))
        found["membership"].append(drawn(located(sizes, radii, math.sqrt(d), d, mu)[:, None] * ones))
        found["ball"].append(drawn((radii / (sizes * mu))[:, None] ** 2 * ones))
        found["shape"].append(drawn(spreads.sum(axis=1, keepdims=True) * spreads / (sizes[:, None] * mu) ** 2))
    return found


def main() -> None:
    print(machine(), "\n")
    print("| set | " + " | ".join(f"{kind}, ε = {epsilon:g}" for kind in KINDS for epsilon in EPSILONS) + " |")
    print("| --- |" + " --- |" * len(KINDS) * len(EPSILONS))
    every = dict[str, dict[str, list[float]]]()
    for name in datasets.TWELVE:
        every[name] = floors(name)
        print(f"| {name} | " + " | ".join(f"{x:.3g}" for kind in KINDS for x in every[name][kind]) + " |", flush=True)
    means = [np.exp(np.mean([np.log(found[kind]) for found in every.values()], axis=0)) for kind in KINDS]
    print("| geometric mean | " + " | ".join(f"{x:.3f}" for mean in means for x in mean) + " |")


if __name__ == "__main__":
    main()
