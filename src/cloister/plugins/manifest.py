"""What cloister itself offers, through the hook that every plugin uses. Imports nothing heavy."""

from __future__ import annotations

from collections.abc import Iterable

from cloister.core.components import Spec
from cloister.core.registry import hookimpl

LLOYD = "cloister.plugins.lloyd:Lloyd"
DIAA = "Diaa, Humphries, Kerschbaum: FastLloyd (2024)"
SU = "Su, Cao, Li, Bertino, Jin: Differentially private k-means clustering (2016)"
ABSOLUTE = {"updates": "absolute", "radius": "none", "clip_steps": False, "keep_below": 1.0}


@hookimpl
def cloister_components() -> Iterable[Spec]:
    """Methods first, then what fills their slots."""
    gauss = {"counts": "discrete-gaussian", "sums": "discrete-gaussian"}
    laplace = {"counts": "discrete-laplace", "sums": "discrete-laplace"}
    exact = {"counts": "exact", "sums": "exact"}
    return [
        Spec("fastlloyd", "Method", LLOYD, "k-means by noisy rounds within a radius, relative updates, folding", paper=DIAA, presets=gauss),
        Spec("gauss-lloyd", "Method", LLOYD, "k-means by noisy rounds with Gaussian noise", paper=DIAA, presets={**gauss, **ABSOLUTE}),
        Spec("su-lloyd", "Method", LLOYD, "k-means by noisy rounds with Laplace noise: pure privacy", paper=SU, presets={**laplace, **ABSOLUTE}),
        Spec("lloyd", "Method", LLOYD, "k-means by exact rounds, NOT private, for comparison",
             presets={**exact, **ABSOLUTE}, private=False),
        *_both("discrete-laplace", "discrete_laplace", "DiscreteLaplace", "with two-sided geometric noise: pure privacy",
               "Ghosh, Roughgarden, Sundararajan (2009)"),
        *_both("discrete-gaussian", "discrete_gaussian", "DiscreteGaussian", "with discrete Gaussian noise",
               "Canonne, Kamath, Steinke (2020); Balle, Wang (2018)"),
        *_both("exact", "exact", "Exact", "without noise, NOT private, for comparison", "", private=False),
        Spec("kmeans++", "NonPrivateSolver", "cloister.plugins.solvers.kmeans:KMeansPlusPlus",
             "weighted k-means on released points", paper="Arthur, Vassilvitskii (2007)"),
        Spec("arrays", "Population", "cloister.plugins.populations.arrays:Arrays", "rows in memory: NumPy, pandas, polars"),
        Spec("files", "Population", "cloister.plugins.populations.files:Files", "rows in files, a chunk at a time"),
    ]  # fmt: skip


def _both(name: str, module: str, prefix: str, summary: str, paper: str, private: bool = True) -> list[Spec]:
    """A count oracle and a vector-sum oracle of one noise law."""
    target = f"cloister.plugins.oracles.{module}:{prefix}"
    return [
        Spec(name, "FrequencyOracle", f"{target}Counts", f"counts {summary}", "Central", paper, private=private),
        Spec(name, "VectorSumOracle", f"{target}Sums", f"vector sums {summary}", "Central", paper, private=private),
    ]
