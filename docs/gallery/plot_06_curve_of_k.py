"""
How many groups?
================

Given a range of k, a single run with a single budget plans for the largest number, computes the cost of every smaller
number of centres from released values, and suggests one of them (:doc:`by which rule </explanation/which_method>`).
Here there are nine groups.
"""

import numpy as np

import cloister
from cloister.showing.plots import draw_curve

n = 20_000
g = np.random.default_rng(5)
places = np.array([[x, y] for x in (-0.6, 0, 0.6) for y in (-0.6, 0, 0.6)])
rows = np.clip(places[g.integers(0, 9, n)] + g.normal(0, 0.05, (n, 2)), -1, 1)
model = cloister.KMeans((2, 15), epsilon=1, delta=1e-6, bounds=(-1, 1), rows=n).fit(rows)
print("suggested:", model.result_.details["curve"]["suggested"])
figure = draw_curve(model.result_)
