"""
The same rows under four trust models
=====================================

The fewer people may see the rows, the more noise is needed. All pictures have the same 4,000 rows and ε = 1, and the
guarantee in the title holds for every row.

* **Central**: a curator sees the rows and adds noise once, to sums.
* **Aggregated**: parties hold a part of the rows each and pool masked sums; the noise is that of a curator, or a
  little more.
* **Shuffled**: a shuffler mixes the messages of people who have each added a little noise.
* **Local**: nobody sees rows; every person adds all the noise that she needs herself.
"""

import matplotlib.pyplot as plt
import numpy as np

import cloister
from cloister.metrics import cost
from cloister.run.fit import fit, parties, source
from cloister.run.request import Request

n = 4_000
g = np.random.default_rng(4)
places = np.array([[-0.6, 0.4], [0.5, 0.6], [0.1, -0.1], [-0.4, -0.6], [0.6, -0.5]])
rows = np.clip(places[g.integers(0, 5, n)] + g.normal(0, 0.07, (n, 2)), -1, 1)


def result_of(trust, method):
    if trust == "aggregated":  # four parties with 1,000 rows each
        held = parties({f"party {i}": source(part) for i, part in enumerate(np.split(rows, 4))})
        return fit(Request(k=5, epsilon=1, delta=1e-6, bounds=(-1, 1), rows=n, trust=trust, parties=4), held)
    delta = 0 if trust == "local" else 1e-6
    return (
        cloister.KMeans(5, method=method, trust=trust, epsilon=1, delta=delta, bounds=(-1, 1), rows=n).fit(rows).result_
    )


models = {
    "a curator": ("central", "auto"),
    "parties": ("aggregated", "auto"),
    "a shuffler": ("shuffled", "one-round"),
    "nobody": ("local", "one-round"),
}
figure, axes = plt.subplots(1, 4, figsize=(14, 4), layout="constrained")
for axis, (name, how) in zip(axes, models.items(), strict=True):
    result = result_of(*how)
    axis.scatter(*rows[::4].T, s=3, c="#bbbbbb")
    axis.scatter(*result.centers.T, marker="X", s=120, c="#D55E00", edgecolors="black")
    axis.set(xlim=(-1, 1), ylim=(-1, 1), xticks=[], yticks=[], aspect="equal")
    axis.set_title(f"{name}\nmean squared distance {cost(rows, result.centers) / n:.3f}")
plt.show()
