"""
When the budget buys nothing
============================

Below some ε, noise decides, and the result can be worse than one centre in the middle of the bounds, which needs no
rows at all. It helps to shrink each step according to its known noise, as ``shrunk-lloyd`` does. ``auto`` uses public
figures alone, and cannot know that these groups lie close to the middle; it warns if the budget is too small. 300 rows,
three groups, k = 3; mean of five runs.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import cloister

n = 300
g = np.random.default_rng(10)
rows = np.array([[-0.2, 0.1], [0.2, 0.15], [0, -0.25]])[g.integers(0, 3, n)] + g.normal(0, 0.04, (n, 2))
epsilons = np.array([0.01, 0.03, 0.1, 0.3, 1])
warnings.filterwarnings("ignore", message=".*")  # each small budget is warned about: that is the subject

figure, axis = plt.subplots(figsize=(7, 4.2), layout="constrained")
for method, colour in (
    ("tree-coreset", "#D55E00"),
    ("gauss-lloyd", "#CC79A7"),
    ("shrunk-lloyd", "#0072B2"),
    ("auto", "#009E73"),
):
    found = []
    for epsilon in epsilons:
        model = cloister.KMeans(3, method=method, epsilon=epsilon, delta=1e-5, bounds=(-1, 1), rows=n, zoom="off")
        found.append(np.mean([-model.fit(rows).score(rows) / n for _ in range(5)]))
    axis.plot(epsilons, found, marker="o", color=colour, label=method)
axis.axhline((rows**2).sum(1).mean(), ls="--", c="grey", label="one centre in the middle")
axis.set(xscale="log", yscale="log", xlabel="ε", ylabel="mean squared distance")
axis.legend()
plt.show()
