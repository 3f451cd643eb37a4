"""
A released map
==============

``cloister plot`` draws the released centres, as large as their released sizes, and the cells that the method
counted. A group has the same colour in every picture, and the name that you gave it. The map is made from the result
alone and can be published with it.
"""

import numpy as np

import cloister
from cloister.showing.plots import draw_map

n = 20_000
g = np.random.default_rng(11)
places = g.uniform(-0.8, 0.8, (8, 2))
rows = np.clip(places[g.integers(0, 8, n)] + g.normal(0, 0.06, (n, 2)), -1, 1)
model = cloister.KMeans(8, method="hst-means", epsilon=1, delta=1e-6, bounds=(-1, 1), rows=n).fit(rows)
largest, *_, smallest = model.result_.by_size
figure = draw_map(model.result_.named({largest: "the largest", smallest: "the smallest"}))
