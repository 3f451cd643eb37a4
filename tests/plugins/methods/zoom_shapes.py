"""Tables with groups that zoom may lose, and what its question finds of them, over and over.

``benchmarks/zoom_groups.py`` prints the same.

A shape is rows and the groups in them. Their exact bins are counted once; a run is fresh noise and the intervals read
out of it, by the code of the method.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

from cloister.accounting import PrivacyTarget
from cloister.accounting.budgeting import problem_of
from cloister.core.clustering import Problem
from cloister.core.domains import Box
from cloister.core.registry.compose import compose
from cloister.core.registry.registry import registry
from cloister.core.types import Floats, Ints
from cloister.plugins.methods.zoom import Zoom, lattice_of
from cloister.plugins.methods.zoom_ranges import Columns

N = 40_000

Made = tuple[Floats, Ints, float, float]
"""Rows (n, d), their groups (n,), and the public bounds of every column."""


def _groups(*shares: float) -> Ints:
    return np.repeat(np.arange(len(shares)), np.rint(np.array(shares) * N).astype(int))


def _normal(g: Any, shares: Any, middles: Any, width: Any, low: float, high: float, d: int = 6) -> Made:
    """Normal groups: in the first column at these middles, anywhere in the others."""
    groups = _groups(*shares)
    places = g.uniform(low + (high - low) / 4, high - (high - low) / 4, (len(shares), d))
    places[:, 0] = middles
    widths = np.broadcast_to(np.asarray(width, float), len(shares))[groups][:, None]
    return places[groups] + widths * g.standard_normal((len(groups), d)), groups, low, high


def _others(g: Any, column: Floats, groups: Ints, low: float, high: float, d: int = 2) -> Made:
    """A first column, and normal others in the middle of the bounds."""
    rest = (low + high) / 2 + (high - low) / 50 * g.standard_normal((len(column), d - 1))
    return np.column_stack([column, rest]), groups, low, high


def third(g: Any) -> Made:
    return _normal(g, [0.55, 0.3, 0.15], [4.0, 5.0, 12.5], 0.4, 2, 30)


def thin(g: Any) -> Made:
    """A group of 15% spread over a third of the range: no bin of it shows."""
    rows, groups, low, high = third(g)
    rows[groups == 2, 0] = g.uniform(8, 28, (groups == 2).sum())
    return rows, groups, low, high


def heavy_tails(g: Any) -> Made:
    groups = _groups(0.6, 0.3, 0.1)
    return _others(g, groups * 30.0 + g.standard_t(1.5, N), groups, -1000, 1000, 3)


def five_small(g: Any) -> Made:
    return _normal(g, [0.8, 0.04, 0.04, 0.04, 0.04, 0.04], [0, 10, 30, 50, 70, 90], 1.0, -100, 100, 3)


def one_far(g: Any) -> Made:
    return _normal(g, [0.96, 0.04], [0.0, 900.0], [1.0, 5.0], -1000, 1000, 2)


def one_sided(g: Any) -> Made:
    groups = _groups(0.92, 0.08)
    return _others(g, np.where(groups, 600 + g.exponential(100, N), g.exponential(5, N)), groups, 0, 1000)


def at_edges(g: Any) -> Made:
    """Groups on the edges of bins, half of each on either side."""
    groups = _groups(0.9, 0.05, 0.05)
    edges = np.array([0.0, 0.25, 0.75])[groups] * 2 - 1 + 1e-4 * g.choice([-1, 1], N)
    return _others(g, edges, groups, -1, 1)


def a_point_and_a_group(g: Any) -> Made:
    groups = _groups(0.95, 0.05)
    return _others(g, np.where(groups, g.normal(70, 8, N), 0.0), groups, -100, 100, 4)


def log_normal(g: Any) -> Made:
    groups = _groups(0.9, 0.1)
    return _others(g, np.exp(g.normal(0, 1, N) + 3.0 * groups), groups, 0, 1e4, 3)


def far_ends(g: Any) -> Made:
    return _normal(g, [0.95, 0.05], [-990.0, 990.0], 2.0, -1000, 1000, 3)


def a_ramp(g: Any) -> Made:
    """A group of a tenth whose rows thin out evenly over all of the range."""
    groups = _groups(0.9, 0.1)
    return _others(g, np.where(groups, 1000 * np.sqrt(g.random(N)), g.normal(20, 3, N)), groups, 0, 1000, 9)


SHAPES: tuple[Callable[[Any], Made], ...] = (
    third,
    thin,
    heavy_tails,
    five_small,
    one_far,
    one_sided,
    at_edges,
    a_point_and_a_group,
    log_normal,
    far_ends,
    a_ramp,
)

SETTINGS = {
    "three rows a user, epsilon 1": (1.0, 3),
    "epsilon 0.3": (0.3, None),
    "epsilon 0.5": (0.5, None),
    "epsilon 1": (1.0, None),
    "epsilon 4": (4.0, None),
}


@attrs.frozen
class Found:
    """Of so many runs.

    Args: share (stated before), cut (runs in which an end was cut), lost (runs in which a group of at least the share
    had its middle or its mean outside), beyond (runs with more rows beyond an end than promised), width (median, of the
    first column's interval, in bounds).
    """

    share: float
    runs: int
    cut: int
    lost: int
    beyond: int
    width: float


class Noisy:
    """Fresh noise on exact counts."""

    def __init__(self, exact: list[Floats], error: float, g: Any) -> None:
        self._exact, self._error, self._g = exact, error, g
        self._seen: dict[tuple[int, int], Floats] = {}

    def at(self, ids: Any, level: int = 0) -> Floats:
        key = level, int(ids[0])
        if key not in self._seen:  # ids are the parts of one bin
            self._seen[key] = np.rint(self._exact[level][ids] + self._error * self._g.standard_normal(len(ids)))
        return self._seen[key]

    def standard_error(self, ids: Any, level: int = 0) -> Floats:
        return np.full(len(ids), self._error)


def zoom_of(method: str, epsilon: float, per_user: int | None, domain: Box) -> tuple[Zoom[Any], Problem]:
    """Zoom around a method, and the problem that a run has."""
    composed = compose(registry(), "Method", "zoom", {"method": method}, {})
    return composed.value, problem_of(composed, PrivacyTarget(epsilon, 1e-6, rows_per_user=per_user), 3, domain, N)


def exact_counts(columns: Columns, domain: Box, rows: Floats) -> list[Floats]:
    """Counts of every level of every column."""
    ids = columns.locate(lattice_of(domain).snap(rows))
    return [
        np.bincount(some, minlength=size).astype(float) for some, size in zip(ids.T, columns.space.sizes, strict=True)
    ]


def repeated(
    shape: Callable[[Any], Made],
    method: str,
    epsilon: float,
    per_user: int | None,
    runs: int,
    seed: int = 1,
    share: float | None = None,
) -> Found | None:
    """What many runs of the question find; None if nothing is asked. Args: share, of the budget; None: zoom's own."""
    g = np.random.default_rng(seed)
    rows, groups, low, high = shape(g)
    d = rows.shape[1]
    domain = Box((low,) * d, (high,) * d)
    zoom, problem = zoom_of(method, epsilon, per_user, domain)
    zoom = attrs.evolve(zoom, share=share)
    if not zoom.share_of(problem):
        return None
    look, unseen = problem.split(zoom.share_of(problem))[0], zoom.unseen_of(problem)
    columns = zoom.columns_of(look)
    error = math.sqrt(zoom.counts.variance(columns.space, look.budget, look.context(look.budget)))
    exact = exact_counts(columns, domain, rows)
    big = [rows[groups == i] for i in np.unique(groups) if (groups == i).sum() >= max(0.04, unseen) * N]
    middles = np.array([f(group, axis=0) for group in big for f in (np.median, np.mean)]).reshape(-1, d)
    middles, ordered = np.clip(middles, low, high), np.sort(rows, axis=0)
    cut, lost, beyond, widths = 0, 0, 0, list[float]()
    for _ in range(runs):
        found = zoom.read(Noisy(exact, error, g), look, unseen, domain)
        widths.append((found[0, 1] - found[0, 0]) / (high - low))
        cut += bool((found != (low, high)).any())
        lost += bool((middles < found[:, 0]).any() or (middles > found[:, 1]).any())
        outside = list[float]()  # but for rows beyond the bounds: those are theirs who gave them
        for column, (first, last) in zip(ordered.T, found, strict=True):
            outside.append((first > low) * np.searchsorted(column, first))
            outside.append((last < high) * (len(column) - np.searchsorted(column, last, "right")))
        beyond += bool(max(outside) >= unseen / 2 * N)
    return Found(unseen, runs, cut, lost, beyond, float(np.median(widths)))
