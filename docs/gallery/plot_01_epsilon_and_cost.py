"""
ε against cost
==============

The smaller ε, the stronger the promise, and the farther the centres are off.
"""

import matplotlib.pyplot as plt
import numpy as np

import cloister

rows = np.random.default_rng(0).normal(0, 0.3, (1000, 2))
model = cloister.KMeans(3, epsilon=1.0, delta=1e-6, bounds=(-1, 1), rows=1000).fit(rows)
plt.scatter(*model.cluster_centers_.T)
