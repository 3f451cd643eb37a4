"""
All methods on toy sets
=======================

Twelve k-means methods under Central trust, on six generated data sets of 3,000 rows, each with ε = 1. A column of
pictures is a data set, a row is a method; crosses are the released centres, and colours show the nearest centre.
Above each picture: the cost relative to scikit-learn's k-means, which is not private. 1.00 means that privacy cost
nothing.

Methods that look for their start agree wherever the groups are of the kind that k-means finds; those that begin from
public places (``fastlloyd``, ``gauss-lloyd``, ``su-lloyd``) can end with two centres in one group. No method, private
or not, finds moons or rings: k-means divides space by straight lines, so such shapes need several centres each.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn import cluster, datasets

import cloister

n = 3000
places = [[-8, 6], [7, 7], [-1, -1], [5, -8]]
blobs, _ = datasets.make_blobs(n, centers=places, cluster_std=1.2, random_state=0)
sizes = [1800, 600, 400, 200]
sets = {
    "blobs": (blobs, 4),
    "unequal sizes": (datasets.make_blobs(sizes, centers=places, cluster_std=1.2, random_state=0)[0], 4),
    "stretched": (datasets.make_blobs(n, random_state=170)[0] @ [[0.6, -0.6], [-0.4, 0.8]], 3),
    "unequal widths": (datasets.make_blobs(n, cluster_std=[1.0, 2.5, 0.5], random_state=170)[0], 3),
    "moons, k = 6": (datasets.make_moons(n, noise=0.05, random_state=0)[0], 6),
    "nothing to find": (np.random.default_rng(0).uniform(0, 1, (n, 2)), 4),
}
methods = [
    "grid-means",
    "radius-means",
    "shrunk-lloyd",
    "hst-means",
    "fastlloyd",
    "gauss-lloyd",
    "su-lloyd",
    "tree-means",
    "tree-coreset",
    "tree-coreset-lsh",
]
warnings.filterwarnings("ignore", message=".*")  # what a small budget may do to a method is shown here on purpose

figure, axes = plt.subplots(len(methods), len(sets), figsize=(12, 25), layout="constrained")
for column, (name, (given, k)) in zip(axes.T, sets.items(), strict=True):
    middle, half = (given.max(0) + given.min(0)) / 2, np.ptp(given, 0).max() / 2
    rows = (given - middle) / half  # into bounds of -1 to 1, which would be public
    best = -cluster.KMeans(k, n_init=5, random_state=0).fit(rows).score(rows)
    for axis, method in zip(column, methods, strict=True):
        model = cloister.KMeans(k, method=method, epsilon=1, delta=1e-6, bounds=(-1, 1), rows=n, zoom="off").fit(rows)
        axis.scatter(*rows[::6].T, c=model.predict(rows[::6]), s=4, cmap="tab10", vmin=0, vmax=9)
        axis.scatter(*model.cluster_centers_.T, marker="X", c="black", edgecolors="white", s=90)
        axis.set(xlim=(-1.1, 1.1), ylim=(-1.1, 1.1), xticks=[], yticks=[], aspect="equal")
        axis.set_title(f"{-model.score(rows) / best:.2f}", fontsize=14)
    column[0].set_title(f"{name}\n{column[0].get_title()}", fontsize=14)
for axis, method in zip(axes[:, 0], methods, strict=True):
    axis.set_ylabel(method, fontsize=14)
plt.show()
