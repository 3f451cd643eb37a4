"""The data sets of the benchmarks: stored ones, Gaussian mixtures by recipe, and the FastLloyd paper's synthetic ones.

Stored sets are read from the folder that the environment variable CLOISTER_DATA names, an array ``X`` in a file
NAME.npz each; nothing is downloaded. ``cloister data get NAME --out FOLDER`` gets those that its catalogue has; the
others (mnist_test10k, breast_wisconsin_699, higgs_10k and G2) have to be put there by hand.

Every set is min-max scaled to [-1, 1], as the papers do it. **The scaling is read off the data, so it leaks and is for
benchmarks only: a private run is told its bounds, or pays for them** (law 1).
"""

from __future__ import annotations

import math
import os
import re
from pathlib import Path
from typing import Final, final

import attrs
import numpy as np

from cloister.core.errors import InvalidInput, UnknownName
from cloister.core.types import AnyArray, Floats
from cloister.lab.catalogue import catalogue
from cloister.lab.comparing.conditions import usual_delta as delta
from cloister.lab.generated import scaled as scale
from cloister.lab.separated import in_proportion, separated

__all__ = ["DataSet", "delta", "load", "raw", "scale"]

EPSILONS: Final = (0.1, 0.25, 0.5, 0.75, 1.0)
"""The privacy budgets of every table and figure (FastLloyd, section 6.2.1)."""

TWELVE: Final = (
    "iris",
    "wine",
    "lsun",
    "house",
    "digits8x8",
    "s1",
    "birch2_25k",
    "adult",
    "shuttle",
    "mnist_test10k",
    "g10k_d32_k16",
    "g100k_d10_k10",
)
"""The sets on which the rivals were measured (benchmarks/peers.py)."""

SYNTH_CLUSTERS: Final = (2, 4, 8, 16, 32)
SYNTH_DIMENSIONS: Final = (2, 4, 8, 16, 32, 64, 128, 256, 512)
"""The 45 combinations of the Synth sets, three seeds each (FastLloyd, section 6.1.3)."""

SYNTH_K_CLUSTERS: Final = (2, 4, 8, 16, 32, 64, 128)
"""The Synth-K sets, d = 2 (FastLloyd, section 6.1.3)."""

ABLATION_GRID: Final = (2, 4, 8, 16)
ABLATION_SEPARATIONS: Final = (0.25, 0.5, 0.75)
"""The ablation sets: k and d from the grid, one set per separation (FastLloyd, appendix B)."""

_STORED: Final = {
    "iris": 3,
    "wine": 3,
    "lsun": 3,
    "house": 3,
    "digits8x8": 10,
    "s1": 15,
    "birch2": 100,
    "skin": 10,
    "birch2_25k": 100,
    "adult": 3,
    "shuttle": 7,
    "mnist_test10k": 10,
    "yeast": 10,
    "breast_wisconsin_699": 2,
    "covertype_first20k": 7,
    "higgs_10k": 2,
    "s2": 15,
    "a1": 20,
    "a2": 35,
    "d31": 31,
    "r15": 15,
    "unbalance": 8,
    "dim032": 16,
}
_MIXTURES: Final = {"g10k_d32_k16": (10_000, 32, 16, 11), "g100k_d10_k10": (100_000, 10, 10, 12)}
_G2: Final = re.compile(r"g2-(\d+)-(\d+)")


@final
@attrs.frozen(eq=False)
class DataSet:
    """A benchmark set.

    Args:
        name: what ``load`` calls it, or how it was generated.
        rows: (n, d) float64 in [-1, 1].
        k: how many clusters the papers look for in it.
    """

    name: str
    rows: Floats = attrs.field(repr=False)
    k: int


def load(name: str) -> DataSet:
    """One of the sets by name: the twelve, yeast, breast_wisconsin_699, or g2-<dim>-<sd> such as g2-32-50.

    Raises:
        UnknownName: there is no such set.
        InvalidInput: CLOISTER_DATA is not set, or its folder does not hold the set.
    """
    if name in _MIXTURES:
        n, d, k, seed = _MIXTURES[name]
        return DataSet(name, scale(_gaussians(n, d, k, seed)), k)
    if name in _STORED:
        return DataSet(name, scale(_read(f"{name}.npz")), _STORED[name])
    if _G2.fullmatch(name):
        return DataSet(name, scale(_read(f"g2/{name}.npz")), 2)
    raise UnknownName("data set", name, [*_STORED, *_MIXTURES, "g2-<dim>-<sd>"])


def raw(name: str) -> Floats:
    """The rows of a stored set as they are."""
    return _read(f"{name}.npz").astype(np.float64)


def _read(file: str) -> AnyArray:
    folder = os.environ.get("CLOISTER_DATA")
    if not folder:
        raise InvalidInput(f"the benchmark data are elsewhere: set CLOISTER_DATA to the folder that holds {file}")
    path = Path(folder) / file
    if not path.is_file():
        name = path.stem
        how = f"'cloister data get {name} --out {folder}' gets it" if name in catalogue() else "put it there"
        raise InvalidInput(f"CLOISTER_DATA is {folder}, which does not hold {file}: {how}")
    with np.load(path) as stored:
        rows: AnyArray = stored["X"]
    return rows


def _gaussians(n: int, d: int, k: int, seed: int) -> Floats:
    """Spherical Gaussians of unequal size and width; the order of the draws is part of the recipe."""
    rng = np.random.default_rng(seed)
    centers = rng.uniform(-0.75, 0.75, (k, d))
    weights = rng.dirichlet(np.full(k, 5.0))
    labels = rng.choice(k, n, p=weights)
    widths = rng.uniform(0.05, 0.15, k)
    return centers[labels] + widths[labels, None] * rng.standard_normal((n, d))


def g2(dim: int, sd: int, seed: int) -> DataSet:
    """A G2 set by its recipe, for the sizes that are not stored: same law as the published one, other points.

    1024 rows around (500, ..., 500), 1024 around (600, ..., 600), standard deviation ``sd``, rounded.
    Source: Fränti, Mariescu-Istodor, Zhong 2016.
    """
    rng = np.random.default_rng((seed, dim, sd))
    means = np.repeat([500.0, 600.0], 1024)[:, None]
    return DataSet(f"g2-{dim}-{sd}-seed{seed}", scale(np.rint(rng.normal(means, sd, (2048, dim)))), 2)


def synth(k: int, d: int, seed: int, n: int = 10_000, separation: float | None = None) -> DataSet:
    """A Synth set: ``n`` rows in Gaussian clusters of sizes 1 : 2 : ... : k, and 0 to 100 outliers.

    Outliers are added to the n rows, uniform within four standard deviations of each column's mean, as in Qiu and Joe.
    The same arguments give the same set on one machine; linear algebra libraries may differ in the last digits.

    Args:
        separation: index of every cluster to its nearest neighbour, see ``separated``; None draws it from [0.16, 0.26].

    Source: FastLloyd, section 6.1.3, after Su et al. 2016; clusters as ``separated`` makes them.
    """
    rng = np.random.default_rng((seed, k, d))
    drawn = float(rng.uniform(0.16, 0.26))
    rows = separated(k, d, drawn if separation is None else separation, rng).sample(in_proportion(n, k), rng)
    reach = 4 * rows.std(axis=0)
    outliers = rows.mean(axis=0) + reach * rng.uniform(-1, 1, (int(rng.integers(0, 101)), d))
    shuffled = rng.permutation(np.concatenate([rows, outliers]))
    return DataSet(f"synth-k{k}-d{d}-seed{seed}", scale(shuffled), k)


def synth_k(k: int, seed: int) -> DataSet:
    """A Synth-K set: ``synth`` in the plane, k up to 128 (FastLloyd, section 6.1.3)."""
    return attrs.evolve(synth(k, 2, seed), name=f"synth-k-k{k}-seed{seed}")


def ablation(k: int, d: int, separation: float, seed: int) -> DataSet:
    """An ablation set: cluster sizes uniform in [0.7, 1.3] * 2048 / k, no outliers (FastLloyd, appendix B).

    The sets of one seed differ in nothing but the separation.
    """
    rng = np.random.default_rng((seed, k, d))
    mean = 2048 / k
    sizes = rng.integers(math.ceil(0.7 * mean), math.floor(1.3 * mean), k, endpoint=True)
    rows = rng.permutation(separated(k, d, separation, rng).sample(sizes, rng))
    return DataSet(f"ablation-k{k}-d{d}-s{separation:g}-seed{seed}", scale(rows), k)
