"""Generated tables with the shapes on which stated errors are judged (honesty.py): each with public bounds, a number of
groups, the number of rows that the caller names, and the centres to start exact Lloyd rounds from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import attrs
import numpy as np

from cloister.core.types import AnyArray, Floats


@attrs.frozen(eq=False)
class Shape:
    """A table and what is public of it.

    Args:
        name: of the shape.
        rows: (n, d) in the caller's units; of categories codes, in the columns that ``categories`` names.
        k: number of groups.
        bounds: (low, high) of each column of numbers.
        public_rows: the number of rows that the caller names.
        groups: (n,) the group each row was drawn from.
        categories: number of values, by position of the column.
    """

    name: str
    rows: AnyArray
    k: int
    bounds: tuple[tuple[float, float], ...]
    public_rows: int
    groups: AnyArray
    categories: Mapping[int, int] = attrs.field(factory=dict)


Draw = Callable[[np.random.Generator], dict[str, Any]]


def blobs(
    rng: np.random.Generator,
    n: int,
    d: int,
    shares: list[float],
    *,
    width: float = 0.05,
    apart: float = 0.25,
    at: Floats | None = None,
    bounds: tuple[float, float] = (-1.0, 1.0),
) -> dict[str, Any]:
    """Round groups of these shares of the rows, with centres at least ``apart`` from one another."""
    k = len(shares)
    centers = at if at is not None else _apart(rng, k, d, apart)
    groups = rng.choice(k, n, p=np.array(shares) / np.sum(shares))
    widths = width * rng.uniform(0.7, 1.4, k)
    rows = centers[groups] + widths[groups, None] * rng.normal(size=(n, d))
    return {"rows": rows, "k": k, "bounds": (bounds,) * d, "groups": groups}


def _apart(rng: np.random.Generator, k: int, d: int, apart: float) -> Floats:
    centers = rng.uniform(-0.7, 0.7, (1, d))
    while len(centers) < k:
        candidate = rng.uniform(-0.7, 0.7, d)
        if np.linalg.norm(centers - candidate, axis=1).min() >= apart:
            centers = np.vstack([centers, candidate])
    return centers


def far_small(rng: np.random.Generator, n: int, d: int, share: float, k: int = 4) -> dict[str, Any]:
    """Groups near the middle, and one small group that lies far from them."""
    centers = np.vstack([rng.uniform(-0.35, 0.15, (k - 1, d)), np.full((1, d), 0.8)])
    return blobs(rng, n, d, [(1 - share) / (k - 1)] * (k - 1) + [share], width=0.06, at=centers)


def tails(rng: np.random.Generator, n: int, columns: int) -> dict[str, Any]:
    """Customers: ages, counts, a spend with a heavy tail within wide bounds, and waiting times."""
    groups = rng.choice(4, n, p=[0.4, 0.3, 0.15, 0.15])
    rows = [
        rng.normal(np.array([28, 45, 62, 50])[groups], 5),
        rng.poisson(np.array([3, 8, 12, 30])[groups]),
        np.exp(rng.normal(np.log(np.array([80, 250, 500, 1800])[groups]), 0.6)),
        rng.exponential(np.array([40, 90, 200, 20])[groups]),
    ]
    bounds = ((0, 120), (0, 200), (0, 20_000), (0, 1000))
    return {"rows": np.column_stack(rows[:columns]), "k": 4, "bounds": bounds[:columns], "groups": groups}


def skewed(rng: np.random.Generator, n: int, d: int, k: int) -> dict[str, Any]:
    """Groups with lognormal columns."""
    centers, groups = _apart(rng, k, d, 0.3), rng.choice(k, n, p=rng.dirichlet(6 * np.ones(k)))
    spread = np.exp(rng.normal(0, 0.8, (n, d))) - 1
    return {"rows": centers[groups] + 0.08 * spread, "k": k, "bounds": ((-1.0, 2.0),) * d, "groups": groups}


def outliers(rng: np.random.Generator, n: int, d: int, k: int, share: float) -> dict[str, Any]:
    """Round groups, and a share of the rows spread evenly over the bounds."""
    made = blobs(rng, n, d, [1.0] * k, apart=0.3)
    anywhere = rng.random(n) < share
    made["rows"][anywhere] = rng.uniform(-1, 1, (int(anywhere.sum()), d))
    return made


def no_groups(rng: np.random.Generator, n: int, d: int, k: int) -> dict[str, Any]:
    """One normal cloud, to be parted into k."""
    rows = 0.3 * rng.normal(size=(n, d))
    return {"rows": rows, "k": k, "bounds": ((-1.0, 1.0),) * d, "groups": rows[:, 0].argsort().argsort() * k // n}


def wards(rng: np.random.Generator, n: int, values: int, numbers: int) -> dict[str, Any]:
    """Patients: numbers that differ by group, and a category that mostly follows the group."""
    k = 4
    groups = rng.choice(k, n, p=[0.4, 0.3, 0.2, 0.1])
    centers = np.array([[65.0, 140, 12], [45, 125, 6], [30, 118, 4], [8, 100, 3]])[:, :numbers]
    rows = centers[groups] + rng.normal(size=(n, numbers)) * np.array([8.0, 10, 2])[:numbers]
    code = np.where(rng.random(n) < 0.85, groups % values, rng.integers(0, values, n))
    bounds = ((0.0, 120.0), (50.0, 250.0), (0.0, 100.0))[:numbers]
    return {
        "rows": np.column_stack([rows, code]),
        "k": k,
        "bounds": bounds,
        "groups": groups,
        "categories": {numbers: values},
    }


def wrong_rows(rng: np.random.Generator, n: int, d: int, factor: float) -> dict[str, Any]:
    """Three groups, one of 8%, and a public number of rows that is off by a factor."""
    centers = np.array([[-0.5, -0.8], [0.2, -0.2], [0.67, 0.7]])
    centers = np.hstack([centers, rng.uniform(-0.5, 0.5, (3, d - 2))])
    made = blobs(rng, n, d, [0.46, 0.46, 0.08], width=0.07, at=centers)
    return made | {"public_rows": round(n * factor)}


def wide(rng: np.random.Generator, n: int, d: int, times: float) -> dict[str, Any]:
    """Round groups in bounds that are many times too wide."""
    made = blobs(rng, n, d, [0.3, 0.25, 0.2, 0.15, 0.1], apart=0.5)
    return made | {"bounds": ((-times, times),) * d}


MAKERS: Final[dict[str, Draw]] = {
    "two groups, 2 columns, 1,000 rows": lambda g: blobs(g, 1_000, 2, [0.6, 0.4], apart=0.6),
    "five groups, 2 columns, 8,000 rows": lambda g: blobs(g, 8_000, 2, [0.3, 0.25, 0.2, 0.15, 0.1], apart=0.4),
    "sixteen groups, 2 columns, 200,000 rows": lambda g: blobs(g, 200_000, 2, [1.0] * 16, width=0.03),
    "eight groups, 3 columns, 1,000,000 rows": lambda g: blobs(g, 1_000_000, 3, [1.0] * 8, apart=0.5),
    "six groups, 6 columns, 30,000 rows": lambda g: blobs(g, 30_000, 6, [0.3, 0.2, 0.2, 0.1, 0.1, 0.1], apart=0.5),
    "ten groups, 16 columns, 100,000 rows": lambda g: blobs(g, 100_000, 16, [1.0] * 10, width=0.1, apart=0.8),
    "eight groups, 30 columns, 50,000 rows": lambda g: blobs(g, 50_000, 30, [1.0] * 8, width=0.15, apart=1.0),
    "five groups, 60 columns, 100,000 rows": lambda g: blobs(g, 100_000, 60, [1.0] * 5, width=0.15, apart=2.0),
    "unequal sizes, 4 columns, 60,000 rows": lambda g: blobs(g, 60_000, 4, [50, 20, 10, 10, 5, 5], apart=0.5),
    "overlapping groups, 8 columns, 40,000 rows": lambda g: blobs(g, 40_000, 8, [1.0] * 6, width=0.25, apart=0.6),
    "far group of 5%, 2 columns, 20,000 rows": lambda g: far_small(g, 20_000, 2, 0.05),
    "far group of 3%, 4 columns, 100,000 rows": lambda g: far_small(g, 100_000, 4, 0.03),
    "far group of 5%, 10 columns, 60,000 rows": lambda g: far_small(g, 60_000, 10, 0.05),
    "far group of 3%, 30 columns, 200,000 rows": lambda g: far_small(g, 200_000, 30, 0.03),
    "far group of 2%, 3 columns, 8,000 rows": lambda g: far_small(g, 8_000, 3, 0.02),
    "heavy tails, 4 columns, 30,000 rows": lambda g: tails(g, 30_000, 4),
    "heavy tails, 3 columns, 200,000 rows": lambda g: tails(g, 200_000, 3),
    "heavy tails, 4 columns, 8,000 rows": lambda g: tails(g, 8_000, 4),
    "skewed, 5 columns, 20,000 rows": lambda g: skewed(g, 20_000, 5, 5),
    "skewed, 2 columns, 100,000 rows": lambda g: skewed(g, 100_000, 2, 6),
    "skewed, 12 columns, 50,000 rows": lambda g: skewed(g, 50_000, 12, 4),
    "outliers of 5%, 2 columns, 50,000 rows": lambda g: outliers(g, 50_000, 2, 5, 0.05),
    "outliers of 10%, 6 columns, 50,000 rows": lambda g: outliers(g, 50_000, 6, 4, 0.1),
    "no groups, 2 columns, 20,000 rows": lambda g: no_groups(g, 20_000, 2, 5),
    "no groups, 10 columns, 50,000 rows": lambda g: no_groups(g, 50_000, 10, 6),
    "a category of 3, 2 numbers, 20,000 rows": lambda g: wards(g, 20_000, 3, 2),
    "a category of 4, 1 number, 300,000 rows": lambda g: wards(g, 300_000, 4, 1),
    "a category of 4, 3 numbers, 60,000 rows": lambda g: wards(g, 60_000, 4, 3),
    "rows said 20% low, 2 columns, 60,000": lambda g: wrong_rows(g, 60_000, 2, 0.8),
    "rows said 10% low, 2 columns, 60,000": lambda g: wrong_rows(g, 60_000, 2, 0.9),
    "rows said 20% high, 2 columns, 60,000": lambda g: wrong_rows(g, 60_000, 2, 1.2),
    "rows said 20% low, 6 columns, 30,000": lambda g: wrong_rows(g, 30_000, 6, 0.8),
    "bounds 8 times too wide, 3 columns, 50,000 rows": lambda g: wide(g, 50_000, 3, 8.0),
    "bounds 30 times too wide, 8 columns, 100,000 rows": lambda g: wide(g, 100_000, 8, 30.0),
}


def generated(series: int = 0) -> Iterator[Shape]:
    """The shapes, drawn anew for each series."""
    for number, (name, make) in enumerate(MAKERS.items()):
        made = make(np.random.default_rng([51, series, number]))
        rows = np.asarray(made["rows"], np.float64)
        yield Shape(**{"name": name, "public_rows": len(rows), **made, "rows": rows})
