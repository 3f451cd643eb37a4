"""diffprivlib's k-means as an entrant of `cloister bench`."""

import json
import os

import numpy as np
from diffprivlib.models import KMeans

rows = np.load(os.environ["BENCH_ROWS_NPY"])
low, high = np.loadtxt(os.environ["BENCH_BOUNDS"], delimiter=",", ndmin=2).T
releases = [
    KMeans(n_clusters=int(os.environ["BENCH_K"]), epsilon=float(os.environ["BENCH_EPSILON"]), bounds=(low, high))
    .fit(rows)
    .cluster_centers_.tolist()
    for _ in range(int(os.environ["BENCH_REPEATS"]))
]
with open(os.environ["BENCH_OUT"], "w") as file:
    json.dump(releases if len(releases) > 1 else releases[0], file)
