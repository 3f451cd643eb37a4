"""
People with many rows
=====================

A guarantee for rows protects one visit or one purchase. To protect a person with all her visits, at most m of each
person's rows are kept, and the noise is m times as large. A large m adds noise for the few people who have so many
rows; a small one discards rows, which costs little if one person's rows are like anybody's. Here 20,000 people have up
to twenty rows each, most of them few; ε = 0.05 for a person, mean of four runs and one standard deviation.

An ε of 0.05 for rows, the dashed line, looks better, but guarantees a person with twenty rows no more than ε = 1.
"""

import matplotlib.pyplot as plt
import numpy as np

import cloister

g = np.random.default_rng(8)
places = g.uniform(-0.8, 0.8, (6, 2))
rows_of = np.minimum(g.geometric(0.3, 20_000), 20)
users = np.repeat(np.arange(20_000), rows_of)
n = len(users)
rows = np.clip(places[g.integers(0, 6, n)] + g.normal(0, 0.07, (n, 2)), -1, 1)


def costs(**how):
    models = [cloister.KMeans(6, method="hst-means", epsilon=0.05, delta=1e-6, bounds=(-1, 1), **how) for _ in range(4)]
    return [-model.fit(rows, users=None if "rows_per_user" not in how else users).score(rows) / n for model in models]


most = np.array([1, 2, 4, 8, 20])
found = np.array([costs(rows=int(np.minimum(rows_of, m).sum()), rows_per_user=int(m)) for m in most])
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
axis.errorbar(most, found.mean(1), found.std(1), marker="o", capsize=3, color="#0072B2", label="promise for people")
axis.axhline(np.mean(costs(rows=n)), ls="--", c="grey", label="promise for rows")
axis.set(xlabel="rows kept of each person, m", ylabel="mean squared distance", xticks=most)
axis.legend()
plt.show()
