"""Weighted k-means on released points."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from cloister.core.clustering import Coreset, Released
from cloister.core.randomness import PublicRng
from cloister.core.registry.components import component, option
from cloister.core.types import Floats
from cloister.plugins.solvers.points import each_a_center, heavy_or_all


@component
class KMeansPlusPlus:
    """scikit-learn's k-means with k-means++ starts, on points that are released already: post-processing.

    Points of weight at most 0 are left out, unless all are.

    Source: Arthur and Vassilvitskii 2007; scikit-learn.
    """

    starts: int = option(default=10, low=1, help="independent starts; the best on the released points is kept")
    rounds: int = option(default=300, low=1, help="largest number of Lloyd rounds per start")

    def solve(self, coreset: Released[Coreset], k: int, rng: PublicRng) -> Floats:
        from sklearn.cluster import KMeans

        heavy = heavy_or_all(coreset.value)
        if len(heavy.points) <= k:
            return each_a_center(heavy, k)
        seed = int(rng.child("k-means++").generator().integers(2**31))
        # n_init takes a number as well as the text that scikit-learn's annotation-free default suggests
        starts: Any = self.starts
        solver = KMeans(k, n_init=starts, max_iter=self.rounds, random_state=seed)
        with warnings.catch_warnings():  # fewer than k distinct points is no news to the user, and no failure
            warnings.simplefilter("ignore")
            fitted = solver.fit(heavy.points, sample_weight=heavy.weights)
        return np.asarray(fitted.cluster_centers_, np.float64)
