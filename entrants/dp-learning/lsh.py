"""Google's private_lsh_clustering as an entrant of `cloister bench`."""

import json
import os

import numpy as np
from clustering import clustering_algorithm, clustering_params

low, high = np.loadtxt(os.environ["BENCH_BOUNDS"], delimiter=",", ndmin=2).T
middle, radius = (low + high) / 2, float(np.linalg.norm(high - low) / 2)
rows = np.clip(np.load(os.environ["BENCH_ROWS_NPY"]), low, high) - middle
budget = clustering_params.DifferentialPrivacyParam(
    epsilon=float(os.environ["BENCH_EPSILON"]), delta=float(os.environ["BENCH_DELTA"])
)
releases = [
    (
        clustering_algorithm.private_lsh_clustering(
            int(os.environ["BENCH_K"]), clustering_params.Data(rows, radius), budget
        ).centers
        + middle
    ).tolist()
    for _ in range(int(os.environ["BENCH_REPEATS"]))
]
with open(os.environ["BENCH_OUT"], "w") as file:
    json.dump(releases if len(releases) > 1 else releases[0], file)
