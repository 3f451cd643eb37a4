"""Rivals from other packages, which take part in a study if they are installed. None of them is private."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from threadpoolctl import threadpool_limits

from cloister.core.domains import Box, Domain
from cloister.core.errors import CloisterError, InvalidInput
from cloister.core.frames import unknown_columns
from cloister.core.types import Floats

FLAWS: Final = MappingProxyType(
    {
        "sklearn": "NOT private: scikit-learn's k-means with a single k-means++ start",
        "diffprivlib": "NOT private: it spends more epsilon than asked with 5 columns or more, and an empty cluster "
        "breaks its guarantee",
    }
)
"""Flaws of the rivals, by name."""


def rival_centers(name: str, rows: Floats, k: int, epsilon: float, domain: Domain, units: Floats) -> Floats:
    """Return a rival's centres (k, d).

    Args:
        name: a key of ``FLAWS``.
        rows: (n, d) in the caller's units.
        k: number of centres.
        epsilon: budget, which only diffprivlib obeys.
        domain: in the caller's units.
        units: (d,) of distance.

    Raises: CloisterError: the rival is not installed, or it fails.
    """
    fit = _diffprivlib if name == "diffprivlib" else _sklearn
    with threadpool_limits(1):
        return fit(rows / units, k, epsilon, domain, units) * units


def check_rival(name: str, domain: Domain) -> None:
    """Raise CloisterError if a rival cannot run."""
    _kmeans(name)
    if name == "diffprivlib" and not isinstance(domain, Box):
        raise InvalidInput("diffprivlib needs bounds per column, not a ball")
    if name == "diffprivlib" and unknown_columns(domain):
        raise InvalidInput("diffprivlib needs bounds of every column")


def _kmeans(name: str) -> Callable[..., Any]:
    module = {"sklearn": "sklearn.cluster", "diffprivlib": "diffprivlib.models"}[name]
    try:
        estimator: Callable[..., Any] = importlib.import_module(module).KMeans
    except ModuleNotFoundError:
        raise CloisterError("the rival diffprivlib is not installed: pip install diffprivlib") from None
    except Exception as error:  # another package's import may raise anything
        raise CloisterError(
            f"the rival {name} is installed but cannot be imported beside the other packages: "
            f"{str(error).partition(' (')[0]}"
        ) from error
    return estimator


def _sklearn(rows: Floats, k: int, epsilon: float, domain: Domain, units: Floats) -> Floats:
    return np.asarray(_kmeans("sklearn")(n_clusters=k, n_init=1).fit(rows).cluster_centers_, np.float64)


def _diffprivlib(rows: Floats, k: int, epsilon: float, domain: Domain, units: Floats) -> Floats:
    check_rival("diffprivlib", domain)
    assert isinstance(domain, Box)
    bounds = np.array(domain.lower) / units, np.array(domain.upper) / units
    try:
        model = _kmeans("diffprivlib")(n_clusters=k, epsilon=epsilon, bounds=bounds)
        centers = np.asarray(model.fit(rows).cluster_centers_, np.float64)
    except Exception as error:  # may be anything, and its message may quote rows
        raise CloisterError(f"diffprivlib failed with {type(error).__name__}") from error
    if not np.isfinite(centers).all():
        raise CloisterError("diffprivlib returned centres that are not finite")
    return centers
