"""scikit-learn's k-means as an entrant of `cloister bench`."""

import json
import os

import numpy as np
from sklearn.cluster import KMeans

rows = np.load(os.environ["BENCH_ROWS_NPY"])
releases = [
    KMeans(n_clusters=int(os.environ["BENCH_K"]), n_init=1).fit(rows).cluster_centers_.tolist()
    for _ in range(int(os.environ["BENCH_REPEATS"]))
]
with open(os.environ["BENCH_OUT"], "w") as file:
    json.dump(releases if len(releases) > 1 else releases[0], file)
