"""
ε against cost
==============

The smaller ε, the stronger the guarantee, and the farther off the centres are. From a certain ε on, which depends on
the number of rows, a larger budget helps very little. Each point is the mean of three runs, the bar one standard
deviation; all on mixtures of eight groups.

The upper dashed line is one centre in the middle of the bounds, which needs no rows at all and which a run should
beat. The lower one is scikit-learn.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn import cluster

import cloister

g = np.random.default_rng(1)
places = g.uniform(-0.8, 0.8, (8, 2))
epsilons = np.array([0.02, 0.05, 0.1, 0.3, 1, 3])

figure, axis = plt.subplots(figsize=(7, 4.5), layout="constrained")
for n, colour in ((1_000, "#D55E00"), (10_000, "#0072B2"), (100_000, "#009E73")):
    rows = np.clip(places[g.integers(0, 8, n)] + g.normal(0, 0.06, (n, 2)), -1, 1)
    costs = np.array(
        [
            [
                -cloister.KMeans(8, epsilon=e, delta=1e-7, bounds=(-1, 1), rows=n, zoom="off").fit(rows).score(rows) / n
                for _ in range(3)
            ]
            for e in epsilons
        ]
    )
    axis.errorbar(epsilons, costs.mean(1), costs.std(1), marker="o", capsize=3, color=colour, label=f"{n:,} rows")
best = -cluster.KMeans(8, n_init=5, random_state=0).fit(rows).score(rows) / n
axis.axhline((rows**2).sum(1).mean(), ls="--", c="grey")
axis.axhline(best, ls="--", c="grey")
axis.set(xscale="log", yscale="log", xlabel="ε", ylabel="mean squared distance to the nearest centre")
axis.legend()
plt.show()
