"""
Noisy sizes
===========

The size of each group is released with noise. Each dot is what one run said, twenty runs for each ε; the crosses are
the true sizes, which a real report could not show. Noise is about as large for a small group as for a large one:
small groups are the first to drown.
"""

import matplotlib.pyplot as plt
import numpy as np

import cloister

n = 2000
g = np.random.default_rng(3)
places = np.array([[-0.7, -0.6], [0.6, 0.6], [0.6, -0.6], [-0.6, 0.6], [0, 0]])
groups = g.choice(5, n, p=[0.4, 0.3, 0.15, 0.1, 0.05])
rows = np.clip(places[groups] + g.normal(0, 0.08, (n, 2)), -1, 1)

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
for axis, epsilon in zip(axes, (0.2, 1.0), strict=True):
    for _ in range(20):
        model = cloister.KMeans(5, method="hst-means", epsilon=epsilon, delta=1e-6, bounds=(-1, 1), rows=n, zoom="off")
        model.fit(rows)
        place = np.array([np.argmin(((places - center) ** 2).sum(1)) for center in model.cluster_centers_])
        axis.scatter(place + g.uniform(-0.15, 0.15, 5), model.cluster_weights_, s=12, c="#0072B2", alpha=0.6)
    axis.scatter(range(5), np.bincount(groups), marker="x", s=80, c="#D55E00", zorder=3)
    axis.set(title=f"ε = {epsilon:g}", xlabel="group", xticks=range(5))
axes[0].set_ylabel("rows")
plt.show()
