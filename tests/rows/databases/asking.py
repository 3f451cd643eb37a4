"""Questions of every kind that a curator's methods ask, about rows of a domain."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

from cloister.core.buckets import FinestLevel
from cloister.core.budget import Budget
from cloister.core.clustering import Problem
from cloister.core.nearest import NearestCenter
from cloister.core.questions import Rows, count, vector_sum
from cloister.core.randomness import PublicRng
from cloister.core.types import Ints
from cloister.plugins.methods.clipping import ClippedOffsets, DistanceBins
from cloister.plugins.methods.described import Facet, Facets
from cloister.plugins.methods.hst import Spared
from cloister.plugins.methods.lloyd_median import Pulls
from cloister.plugins.methods.measuring import Shells
from cloister.plugins.trees.directions import directions
from cloister.plugins.trees.grid_cells import GridCells
from cloister.plugins.trees.nearest_direction import NearestDirection
from cloister.plugins.trees.quadtree import ShiftedQuadtree
from cloister.plugins.trees.simhash import SimHash
from cloister.run.row_count import SingleBucket

Asked = tuple[tuple[Any, Any], ...]


def points(domain: Any, m: int, seed: int) -> Ints:
    """Lattice points (m, d) of a domain, some of them twice."""
    g = np.random.default_rng(seed)
    found = domain.snap(domain.middle + g.uniform(-1, 1, (m, domain.dimension)) * domain.sides * domain.unit)
    again = g.random(m) < 0.2
    found[again] = found[g.integers(0, m, again.sum())]
    return np.asarray(found, np.int64)


def _near(domain: Any, m: int, seed: int, within: bool = False) -> NearestCenter:
    reach = int(np.random.default_rng(seed).integers(1, domain.max_norm)) if within else None
    return NearestCenter(points(domain, m, seed), domain.max_norm, reach)


def _problem(domain: Any, m: int) -> Problem:
    return Problem(m, domain, 1000, Budget("exact", math.inf))


def _counted(cells: Any) -> Asked:
    return ((count, cells),)


def _summed(cells: Any, domain: Any) -> Asked:
    return (count, cells), (vector_sum, Rows.of(cells, domain))


def _centers(domain: Any, m: int, seed: int) -> Asked:
    near, bounded = _near(domain, m, seed), _near(domain, m, seed, within=True)
    return (
        *_summed(near, domain),
        (vector_sum, near.offsets()),
        *_summed(bounded, domain),
        (vector_sum, bounded.offsets()),
    )


def _clipped(domain: Any, m: int, seed: int) -> Asked:
    near, g = _near(domain, m, seed), np.random.default_rng(seed)
    radii = g.integers(1, 2 * domain.max_norm, m)
    return (count, near), (vector_sum, ClippedOffsets(near, near.centers, radii)), (vector_sum, near.offsets())


def _pulls(domain: Any, m: int, seed: int) -> Asked:
    bounded = _near(domain, m, seed, within=True)
    return (count, bounded), (vector_sum, Pulls(bounded, int(np.random.default_rng(seed).integers(1, domain.max_norm))))


def _grid(domain: Any, m: int, seed: int) -> Asked:
    parts = np.random.default_rng(seed).integers(1, max(2, int(2000 ** (1 / domain.dimension))) + 1, domain.dimension)
    return _summed(GridCells(domain, tuple(parts.tolist())), domain)


def _quadtree(domain: Any, m: int, seed: int, **options: Any) -> Any:
    return ShiftedQuadtree(**options).open(_problem(domain, m), PublicRng.from_seed(seed))


def _tree(domain: Any, m: int, seed: int) -> Asked:
    depth = int(np.random.default_rng(seed).integers(1, min(8 * domain.dimension, 60) + 1))
    return _counted(_quadtree(domain, m, seed, depth=depth, dimensions=60))


def _projected_tree(domain: Any, m: int, seed: int) -> Asked:
    return _counted(_quadtree(domain, m, seed, dimensions=max(1, min(3, domain.dimension - 1)), depth=12))


def _spared(domain: Any, m: int, seed: int) -> Asked:
    bad = np.random.default_rng(seed).random(m) < 0.5
    return _counted(Spared(_quadtree(domain, m, seed, depth=7), _near(domain, m, seed), bad))


def _last(domain: Any, m: int, seed: int) -> Asked:
    return _summed(FinestLevel(SimHash(depth=7).open(_problem(domain, m), PublicRng.from_seed(seed))), domain)


def _signs(domain: Any, m: int, seed: int) -> Asked:
    return _counted(SimHash(depth=9).open(_problem(domain, m), PublicRng.from_seed(seed)))


def _directions(domain: Any, m: int, seed: int) -> Asked:
    around = directions(PublicRng.from_seed(seed), m, domain.dimension, "unit")
    twice = np.concatenate([around, -around[: m // 2], around[: m // 3]])
    return _summed(NearestDirection(twice), domain)


def _facets(domain: Any, m: int, seed: int) -> Asked:
    """Every column by itself, and some of them together as the values of a category, at levels of any size."""
    g, d = np.random.default_rng(seed), domain.dimension
    first, values, bins = int(g.integers(1, d + 1)), int(g.integers(1, d + 1)), int(g.integers(2, 40))
    facets = (Facet(int(g.integers(0, d - values + 1)), values), *(Facet(j) for j in range(d)))
    near = NearestCenter(points(domain, m, seed)[:, :first], domain.max_norm)
    narrow = tuple(int(side) for side in g.integers(1, domain.sides + 1))
    own = Facets(near, facets, narrow, bins)
    return _counted(own) + _counted(attrs.evolve(own, size=max(own.sizes) + 1))


def _shells(domain: Any, m: int, seed: int) -> Asked:
    radius = int(np.random.default_rng(seed).integers(1, 2 * domain.max_norm))
    shells = Shells.around(points(domain, 1, seed), radius, 2 * m, PublicRng.from_seed(seed))
    return (count, shells), (vector_sum, shells.offsets())


QUESTIONS: dict[str, Callable[[Any, int, int], Asked]] = {
    "one": lambda domain, m, seed: _summed(SingleBucket(), domain),
    "centers": _centers,
    "clipped": _clipped,
    "weighted": _pulls,
    "distances": lambda domain, m, seed: _counted(DistanceBins(_near(domain, m, seed), 2 * domain.max_norm)),
    "grouped": lambda domain, m, seed: _counted(
        DistanceBins(_near(domain, m, seed), 2 * domain.max_norm, grouped=True)
    ),
    "grid": _grid,
    "quadtree": _tree,
    "projected quadtree": _projected_tree,
    "spared": _spared,
    "last": _last,
    "signs": _signs,
    "directions": _directions,
    "shells": _shells,
    "facets": _facets,
}
"""By kind. Args: a domain, how many centres or directions, a seed."""
