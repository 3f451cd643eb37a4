"""
A lifetime budget, spent over time
==================================

Guarantees add up: two results from the same rows together have a larger ε than either. A ledger adds up all runs on a
data set, and refuses the one that would exceed its lifetime budget before that run has read a row.

The picture shows the same lifetime budget, ε = 2 at δ = 1e-5, under both kinds of composition: ``basic`` adds epsilons;
``zcdp`` adds rho, which allows more runs if there are many. Each run asks for ε = 0.4. The bars end where the ledger
refuses.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import cloister
from cloister.accounting.ledger.ledger import Ledger
from cloister.core.errors import BudgetExceeded

rows = np.clip(np.random.default_rng(6).normal(0, 0.3, (5000, 2)), -1, 1)
ledger = Ledger.open(Path(tempfile.mkdtemp()) / "budget.db", create=True)

figure, axis = plt.subplots(figsize=(8, 3.8), layout="constrained")
for place, composition in enumerate(("basic", "zcdp")):
    ledger.declare(composition, epsilon=2, delta=1e-5, composition=composition)
    model = cloister.KMeans(
        4,
        method="hst-means",
        epsilon=0.4,
        delta=1e-6,
        bounds=(-1, 1),
        rows=5000,
        ledger=ledger.path,
        dataset=composition,
        zoom="off",
    )
    try:
        while True:
            model.fit(rows)
    except BudgetExceeded as refused:
        print(refused)
    runs = ledger.runs(composition)
    spent = np.cumsum([run.rho if composition == "zcdp" else run.epsilon for run in runs])
    whole = spent[-1] + float(ledger.status()[place].left.split()[1].rstrip(","))
    axis.bar(
        np.arange(1, len(runs) + 1) + 0.4 * place - 0.2,
        spent / whole,
        0.38,
        label=composition,
        color=("#D55E00", "#0072B2")[place],
    )
axis.axhline(1, ls="--", c="grey")
axis.set(xlabel="run", ylabel="share of the lifetime budget")
axis.legend()
plt.show()
