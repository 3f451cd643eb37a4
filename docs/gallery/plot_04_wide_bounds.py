"""
Bounds too wide, with zoom and without
======================================

Noise grows with the bounds. Bounds of -16 to 16 for rows between -1 and 1 pay for the empty space, unless a part of
the budget first locates the rows: that is what ``zoom`` does, and it is on by default. Below: the cost relative to that
with tight bounds, for bounds 1, 4, 16 and 1,000 times too wide.
"""

import matplotlib.pyplot as plt
import numpy as np

import cloister

n = 10_000
g = np.random.default_rng(2)
places = g.uniform(-0.8, 0.8, (6, 2))
rows = np.clip(places[g.integers(0, 6, n)] + g.normal(0, 0.06, (n, 2)), -1, 1)
factors = np.array([1, 4, 16, 1000])


def cost(factor, zoom):
    bounds = (-float(factor), float(factor))
    model = cloister.KMeans(6, method="hst-means", epsilon=1, delta=1e-6, bounds=bounds, rows=n, zoom=zoom).fit(rows)
    return -model.score(rows) / n


figure, axis = plt.subplots(figsize=(7, 4.2), layout="constrained")
for zoom, colour in (("auto", "#0072B2"), ("off", "#D55E00")):
    costs = np.array([[cost(factor, zoom) for _ in range(4)] for factor in factors])
    axis.errorbar(factors, costs.mean(1), costs.std(1), marker="o", capsize=3, color=colour, label=f"zoom {zoom}")
axis.set(xscale="log", yscale="log", xlabel="bounds are so many times too wide", ylabel="mean squared distance")
axis.set_xticks(factors, [f"{factor:,}" for factor in factors])
axis.legend()
plt.show()
