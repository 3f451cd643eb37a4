"""Data sets of papers: stored ones, Gaussian mixtures by recipe, and the FastLloyd paper's synthetic ones.

Stored sets are read from the folder that the environment variable CLOISTER_DATA names, an array ``X`` in a file
NAME.npz each, as ``cloister data get NAME --out FOLDER`` writes them; sets that scikit-learn carries need no folder.
Nothing is downloaded.

Every set is min-max scaled to [-1, 1], as the papers do it. **The scaling is read off the data, so it leaks and is for
benchmarks only: a private run is told its bounds, or pays for them** (law 1).
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final, final

import attrs
import numpy as np

from cloister.core.errors import CloisterError, InvalidInput, UnknownName
from cloister.core.types import AnyArray, Floats
from cloister.lab.catalogue import catalogue
from cloister.lab.comparing.conditions import usual_delta as delta
from cloister.lab.download import rows_of
from cloister.lab.generated import scaled as scale
from cloister.lab.separated import in_proportion, separated

__all__ = ["DataSet", "data_of", "delta", "load", "missing", "raw", "scale"]

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
"""Sets on which other authors' programs were measured."""

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
    """Data set of a paper.

    Args:
        name: what ``load`` calls it, or how it was generated.
        rows: (n, d) float64 in [-1, 1].
        k: number of clusters that papers look for in it.
    """

    name: str
    rows: Floats = attrs.field(repr=False)
    k: int


@lru_cache(maxsize=64)
def data_of(recipe: str) -> DataSet:
    """Return a set by name, or by a generator and its numbers: 'synth 4 8 1', 'ablation 4 8 0.25 1'.

    Raises:
        UnknownName: there is no such set.
        InvalidInput: its rows are not here.
    """
    kind, *numbers = recipe.split()
    if not numbers:
        return load(recipe)
    return GENERATORS[kind](*(float(number) if "." in number else int(number) for number in numbers))


def clusters(name: str) -> int:
    """Return the number of clusters that papers look for in a set of ``load``."""
    return _MIXTURES[name][2] if name in _MIXTURES else _STORED.get(name, 2)


def missing(recipe: str) -> str | None:
    """Return why a set's rows cannot be had, and what to do; None: they can."""
    name = recipe.split()[0]
    if name != recipe or name in _MIXTURES:
        return None
    try:
        raw(name)
    except CloisterError as error:
        return str(error)
    return None


def load(name: str) -> DataSet:
    """Return a set by name: one of the twelve, yeast, skin ..., or g2-<dim>-<sd> such as g2-32-50.

    Raises:
        UnknownName: there is no such set.
        InvalidInput: its rows are neither in the folder of CLOISTER_DATA nor carried by scikit-learn.
    """
    if name in _MIXTURES:
        n, d, k, seed = _MIXTURES[name]
        return DataSet(name, scale(_gaussians(n, d, k, seed)), k)
    if name in _STORED or _G2.fullmatch(name):
        return DataSet(name, scale(raw(name)), _STORED.get(name, 2))
    raise UnknownName("data set", name, [*_STORED, *_MIXTURES, "g2-<dim>-<sd>"])


def raw(name: str) -> Floats:
    """Return the rows (n, d) of a stored set as they are. Raises: InvalidInput: they are not here."""
    file = f"g2/{name}.npz" if _G2.fullmatch(name) else f"{name}.npz"
    folder = os.environ.get("CLOISTER_DATA")
    if folder and (path := Path(folder) / file).is_file():
        with np.load(path) as stored:
            rows: AnyArray = stored["X"]
        return rows.astype(np.float64)
    entry = catalogue().get(name)
    if entry is not None and entry.carried is not None:
        return rows_of(entry)
    get = f"'cloister data get {name} --out {folder or 'FOLDER'}' gets it" if entry is not None else "put it there"
    if folder:
        raise InvalidInput(f"CLOISTER_DATA is {folder}, which does not hold {file}: {get}")
    raise InvalidInput(f"{name} is not here: set CLOISTER_DATA to the folder that holds {file} ({get})")


def _gaussians(n: int, d: int, k: int, seed: int) -> Floats:
    """Draw spherical Gaussians of unequal size and width; the order of the draws is part of the recipe."""
    rng = np.random.default_rng(seed)
    centers = rng.uniform(-0.75, 0.75, (k, d))
    weights = rng.dirichlet(np.full(k, 5.0))
    labels = rng.choice(k, n, p=weights)
    widths = rng.uniform(0.05, 0.15, k)
    return centers[labels] + widths[labels, None] * rng.standard_normal((n, d))


def g2(dim: int, sd: int, seed: int) -> DataSet:
    """Draw a G2 set by its recipe, for sizes that are not stored: same law as the published one, other points.

    1024 rows around (500, ..., 500), 1024 around (600, ..., 600), standard deviation ``sd``, rounded.
    Source: Fränti, Mariescu-Istodor, Zhong 2016.
    """
    rng = np.random.default_rng((seed, dim, sd))
    means = np.repeat([500.0, 600.0], 1024)[:, None]
    return DataSet(f"g2-{dim}-{sd}-seed{seed}", scale(np.rint(rng.normal(means, sd, (2048, dim)))), 2)


def synth(k: int, d: int, seed: int, n: int = 10_000, separation: float | None = None) -> DataSet:
    """Draw a Synth set: ``n`` rows in Gaussian clusters of sizes 1 : 2 : ... : k, and 0 to 100 outliers.

    Outliers are added to the n rows, uniform within four standard deviations of each column's mean, as in Qiu and Joe.
    The same arguments give the same set on one machine; linear algebra libraries may differ in the last digits.

    Args:
        k: number of clusters.
        d: number of columns.
        seed: of everything.
        n: number of rows, without outliers.
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
    """Draw a Synth-K set: ``synth`` in the plane, k up to 128 (FastLloyd, section 6.1.3)."""
    return attrs.evolve(synth(k, 2, seed), name=f"synth-k-k{k}-seed{seed}")


def ablation(k: int, d: int, separation: float, seed: int) -> DataSet:
    """Draw an ablation set: cluster sizes uniform in [0.7, 1.3] * 2048 / k, no outliers (FastLloyd, appendix B).

    The sets of one seed differ in nothing but the separation.
    """
    rng = np.random.default_rng((seed, k, d))
    mean = 2048 / k
    sizes = rng.integers(math.ceil(0.7 * mean), math.floor(1.3 * mean), k, endpoint=True)
    rows = rng.permutation(separated(k, d, separation, rng).sample(sizes, rng))
    return DataSet(f"ablation-k{k}-d{d}-s{separation:g}-seed{seed}", scale(rows), k)


GENERATORS: Final[Mapping[str, Callable[..., DataSet]]] = {
    "g2": g2,
    "synth": synth,
    "synth_k": synth_k,
    "ablation": ablation,
}
"""Generators that recipes name."""
