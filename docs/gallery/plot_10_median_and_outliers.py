"""
k-median and k-means where there are outliers
=============================================

k-means squares distances, so a few distant rows pull its centres away. k-median does not, and hardly moves. Here one
row in twelve is anywhere in the bounds; ε = 1 for both.
"""

import matplotlib.pyplot as plt
import numpy as np

import cloister

n = 12_000
g = np.random.default_rng(9)
places = np.array([[-0.7, -0.7], [-0.4, -0.75], [-0.6, -0.4]])
rows = places[g.integers(0, 3, n)] + g.normal(0, 0.04, (n, 2))
rows[: n // 12] = g.uniform(-1, 1, (n // 12, 2))
rows = np.clip(rows, -1, 1)

figure, axes = plt.subplots(1, 2, figsize=(9, 4.6), sharey=True, layout="constrained")
for axis, (method, name) in zip(axes, (("hst-means", "k-means"), ("hst-median", "k-median")), strict=True):
    model = cloister.KMeans(3, method=method, epsilon=1, delta=1e-6, bounds=(-1, 1), rows=n, zoom="off").fit(rows)
    axis.scatter(*rows[::4].T, s=3, c=model.predict(rows[::4]), cmap="Set2")
    axis.scatter(*model.cluster_centers_.T, marker="X", s=120, c="black", edgecolors="white")
    axis.set(title=f"{name} ({method})", aspect="equal")
plt.show()
