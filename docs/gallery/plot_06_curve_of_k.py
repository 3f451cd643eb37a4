"""
How many groups?
================

The methods that build a tree price every number of centres at once, on the released tree: the curve costs nothing
beyond the run itself. Where it stops to fall steeply is the number of groups. Here there are nine.
"""

import numpy as np

import cloister
from cloister.plotting.figures import draw_curve

n = 20_000
g = np.random.default_rng(5)
places = np.array([[x, y] for x in (-0.6, 0, 0.6) for y in (-0.6, 0, 0.6)])
rows = np.clip(places[g.integers(0, 9, n)] + g.normal(0, 0.05, (n, 2)), -1, 1)
model = cloister.KMeans(15, method="hst-means", epsilon=1, delta=1e-6, bounds=(-1, 1), rows=n).fit(rows)
figure = draw_curve(model.result_)
