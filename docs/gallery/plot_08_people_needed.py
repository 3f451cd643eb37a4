"""
How many people does local privacy need?
========================================

Under Local trust every person randomises her own row, and only a large number of people makes up for the noise: ten
times the people give a tenth of the squared error. One report per person (``one-round``), five tight groups; the lower
line is the cost of the true centres, the upper one that of a single centre in the middle.
"""

import matplotlib.pyplot as plt
import numpy as np

import cloister

g = np.random.default_rng(7)
angles = 2 * np.pi * np.arange(5) / 5
places = 0.7 * np.column_stack([np.cos(angles), np.sin(angles)])
people = np.array([1_000, 4_000, 16_000, 64_000, 256_000])

figure, axis = plt.subplots(figsize=(7, 4.2), layout="constrained")
for epsilon, colour in ((1, "#D55E00"), (2, "#0072B2"), (4, "#009E73")):
    costs = []
    for n in people:
        rows = places[g.integers(0, 5, n)] + g.normal(0, 0.05, (n, 2))
        model = cloister.KMeans(5, method="one-round", trust="local", epsilon=epsilon, bounds="ball:1", rows=n)
        costs.append([-model.fit(rows).score(rows) / n for _ in range(3)])
    axis.errorbar(
        people, np.mean(costs, 1), np.std(costs, 1), marker="o", capsize=3, color=colour, label=f"ε = {epsilon}"
    )
for level in (2 * 0.05**2, 0.7**2):
    axis.axhline(level, ls="--", c="grey")
axis.set(xscale="log", yscale="log", xlabel="people", ylabel="mean squared distance")
axis.legend()
plt.show()
