"""
Noisy sizes and their error
===========================

The size of each group is released with noise and its standard error: the bars are two standard errors. The crosses
are the true sizes, which a real report could not show. Small groups are the first to disappear in the noise.
"""

import matplotlib.pyplot as plt
import numpy as np

import cloister

n = 2000
g = np.random.default_rng(3)
places = np.array([[-0.7, -0.6], [0.6, 0.6], [0.6, -0.6], [-0.6, 0.6], [0, 0]])
rows = np.clip(places[g.choice(5, n, p=[0.4, 0.3, 0.15, 0.1, 0.05])] + g.normal(0, 0.08, (n, 2)), -1, 1)

figure, axes = plt.subplots(1, 3, figsize=(10, 3.6), sharey=True, layout="constrained")
for axis, epsilon in zip(axes, (0.1, 0.3, 1.0), strict=True):
    model = cloister.KMeans(5, method="hst-means", epsilon=epsilon, delta=1e-6, bounds=(-1, 1), rows=n, zoom="off")
    labels = model.fit_predict(rows)
    sizes, errors = model.cluster_weights_, np.asarray(model.result_.details["weights_error"])
    order = np.argsort(-sizes)
    axis.errorbar(range(5), sizes[order], 2 * errors[order], fmt="o", capsize=5, color="#0072B2")
    axis.scatter(range(5), np.bincount(labels, minlength=5)[order], marker="x", s=70, color="#D55E00", zorder=3)
    axis.set(title=f"ε = {epsilon:g}", xlabel="cluster", xticks=range(5))
axes[0].set_ylabel("rows")
plt.show()
