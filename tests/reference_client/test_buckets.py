"""A device finds a row's bucket as cloister does where buckets meet: ties, edges, cells of one lattice step.

Here is each kind of bucket with many rows; each round of each method, with a few, is among the vectors.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from cloister.core.buckets import FinestLevel
from cloister.core.domains import Ball, Box, Domain
from cloister.core.lattice import Bound
from cloister.core.nearest import NearestCenter
from cloister.core.randomness import PublicRng
from cloister.core.types import Ints
from cloister.plugins.methods.clipping import ClippedOffsets, DistanceBins
from cloister.plugins.methods.described import Facet, Facets
from cloister.plugins.methods.hst import Spared
from cloister.plugins.methods.lloyd_median import Pulls
from cloister.plugins.methods.measuring import Shells
from cloister.plugins.methods.weighted_centers.buckets import (
    Assigned,
    AxisIntervals,
    Centred,
    Created,
    HashValues,
    Own,
    Reassigned,
    Regions,
)
from cloister.plugins.methods.weighted_centers.hashes import PStable
from cloister.plugins.methods.weighted_centers.intervals import Intervals
from cloister.plugins.methods.weighted_centers.prefixes import Prefixes
from cloister.plugins.methods.zoom_ranges import Columns
from cloister.plugins.trees.directions import NORM, directions
from cloister.plugins.trees.grid_cells import GridCells
from cloister.plugins.trees.nearest_direction import NearestDirection
from cloister.plugins.trees.net_tree import NetTreeOpened, _net
from cloister.plugins.trees.nets import Net, energy
from cloister.plugins.trees.projection import RADIUS, Projection
from cloister.plugins.trees.quadtree import Quadtree
from cloister.plugins.trees.reduction import Reduction
from cloister.plugins.trees.simhash import SimHashTree
from tests.reference_client.comparing import check_cells, check_vectors

SEED = PublicRng.from_seed(12)
BOX = Box((-1.0, 0.0, 5.0), (1.0, 1e-3, 9.0))
BALL = Ball((0.5, 0.5), 3.0)


def rows_of(domain: Domain, n: int = 500) -> Ints:
    """Lattice rows: anywhere, and with every coordinate at an edge or next to the middle."""
    g, sides = np.random.default_rng(3), domain.sides
    wide = g.integers(-sides, sides + 1, (n, domain.dimension))
    edges = g.choice([-1.0, -0.5, 0.0, 0.5, 1.0], (n // 2, domain.dimension)) * sides
    few = g.integers(-2, 3, (n // 2, domain.dimension))
    rows = np.concatenate([wide, edges.astype(np.int64), few])
    return rows[(rows**2).sum(axis=1) <= domain.max_norm**2]


@pytest.mark.parametrize("parts", [(7, 3, 2), (40, 3000, 1), (65536, 1, 1)])
def test_grids(parts: tuple[int, ...]) -> None:
    check_cells(GridCells(BOX, parts), rows_of(BOX))


@pytest.mark.parametrize("side", [2, 2**10, 2**19])
def test_ranges_of_columns(side: int) -> None:
    ends = np.array([[-side] * 3, [side] * 3, [0, -1, 1]])
    rows = np.random.default_rng(5).integers(-side, side + 1, (500, 3))
    check_cells(Columns((side, 0, side), 4), np.concatenate([rows, ends]))


def test_directions_of_which_several_are_equally_near() -> None:
    axes = NORM * np.eye(3, dtype=np.int64)
    check_cells(NearestDirection(np.concatenate([axes, -axes, axes[::-1]])), rows_of(BOX))
    spread = directions(SEED, 24, 3)
    doubled = np.concatenate([spread, -spread[::-1], spread])
    on_borders = (spread[:, None] + spread[None])[:, :8].reshape(-1, 3) // 2**12  # between two directions, or 0
    check_cells(NearestDirection(doubled), on_borders)
    signs, rows = SimHashTree(BOX, spread[:9], 1.0), np.concatenate([rows_of(BOX), on_borders])
    check_cells(signs, rows)
    check_cells(FinestLevel(signs), rows)


@pytest.mark.parametrize("within", [None, 1, 5, 300_000])
def test_centres_that_are_equally_near_and_rows_at_the_very_limit(within: int | None) -> None:
    g = np.random.default_rng(4)
    centers = np.concatenate([g.integers(-3, 4, (30, 2)), g.integers(-600_000, 600_000, (20, 2))])
    near = NearestCenter(centers, BALL.max_norm, within)
    far = [centers[40] + move for move in np.array([[3, 4], [0, 5], [0, 6], [180_000, 240_000], [180_000, 240_001]])]
    rows = np.concatenate([rows_of(BALL), np.array(far)])
    check_cells(near, rows)
    check_vectors(near.offsets(), rows)
    check_vectors(Pulls(near, 5), rows)
    radii = g.integers(1, 300_000, len(centers))
    check_vectors(ClippedOffsets(near, centers, radii), rows)


def test_shells_and_distances_at_their_edges() -> None:
    middle = np.array([[10, -20]])
    shells = Shells(NearestDirection(directions(SEED, 5, 2)), middle, 100)
    square = int(shells.outer[1])  # 100^2: (60, 80), (100, 0)
    assert square == 100**2
    moves = np.array([[60, 80], [100, 0], [60, 81], [60, 79], [0, 0], [0, 141], [0, 142], [-200, 0], [0, -201]])
    rows = np.concatenate([rows_of(BALL), middle + moves])
    check_cells(shells, rows)
    check_vectors(shells.offsets(), rows)
    bins = DistanceBins(NearestCenter(middle, BALL.max_norm), 1600)
    check_cells(bins, np.concatenate([rows, middle + np.array([[0, 400], [0, 401], [240, 320]])]))
    two = NearestCenter(np.concatenate([middle, middle + 900]), BALL.max_norm)
    check_cells(DistanceBins(two, 1600, grouped=True, step=2), np.concatenate([rows, middle + 900, middle + 450]))


@pytest.mark.parametrize(("depth", "top"), [(1, 0), (12, 3), (24, 5)])
@pytest.mark.parametrize("sides", [(349_525, 174, 699_050), (3, 2, 9)], ids=str)
def test_quadtrees_down_to_cells_of_one_step(depth: int, top: int, sides: tuple[int, ...]) -> None:
    """Of the narrow columns many cells are empty."""
    tree = Quadtree(Reduction(BOX, None, np.array(sides)), SEED.child("cuts"), depth, top, 3.0)
    rows = np.clip(rows_of(BOX, 150), -np.array(sides), sides)
    check_cells(tree, rows)
    near = NearestCenter(np.array([[0, 0, 0], [300_000, 0, 300_000]]), BOX.max_norm)
    check_cells(Spared(tree, near, np.array([True, False])), rows)


@pytest.mark.parametrize("size", [0, 17])
@pytest.mark.parametrize("bins", [2, 7, 1024])
def test_what_groups_hold_at_ends_of_parts_and_where_several_values_or_none_are_there(size: int, bins: int) -> None:
    """Columns 1 to 3 are a category of three values, or of two, or each a number; ranges are narrower than rows, and of
    one step, or of few."""
    g = np.random.default_rng(11)
    near = NearestCenter(np.concatenate([g.integers(-3, 4, (4, 2)), [[0, 300_000]] * 2]), BOX.max_norm)
    facets = (Facet(1, 3), Facet(0), Facet(2, 2), Facet(3), Facet(1, 1), Facet(2))
    cells = Facets(near, facets, (300_001, 5, 2, 1), bins, max(size, bins) if size else 0)
    rows = np.concatenate([np.hstack([rows_of(BOX), g.integers(-2, 3, (len(rows_of(BOX)), 1))]), _few(4, 7)])
    ends = np.arange(2 * 300_001 + 1)[:: 300_001 // bins] - 300_001
    rows = np.concatenate([rows, np.stack([ends, *np.zeros((3, len(ends)), np.int64)], axis=1)])
    check_cells(cells, rows)


def _few(columns: int, side: int) -> Ints:
    """Rows of small numbers."""
    return np.random.default_rng(13).integers(-side, side + 1, (400, columns))


def tree_of(projection: Projection, nets: Sequence[Net]) -> NetTreeOpened:
    return NetTreeOpened(projection, tuple(nets), SEED.child("ids"), 1, 1, 1.0, 1)


@pytest.mark.parametrize(("m", "scale"), [(1, 3.0), (2, 0.7), (5, 3.0), (8, 0.7)])
def test_nets_whose_ids_are_packed_and_hashed(m: int, scale: float) -> None:
    """At the larger scale most rows leave the ball."""
    domain = Box((-1.0,) * 9, (1.0,) * 9)
    nets = [_net(m, level, SEED.child("shift", level)) for level in range(1, 12)]
    check_cells(tree_of(Projection.random(domain, m, scale, SEED), nets), rows_of(domain, 120))


@pytest.mark.parametrize("groups", [0, 1, 4])
def test_centres_that_rows_created_of_several_radii(groups: int) -> None:
    """Lists of hash values overlap, and places are doubled, so that what a row created is equally near in several."""
    g, hash = np.random.default_rng(6), PStable(100_000.0, 0.5, 0.01, 2).sample(2, 3, SEED)
    own, places, ranks = list[Own](), [np.empty((0, 2), np.int64)], list[int]()
    for group in range(groups):
        rank, found = group % 2, np.concatenate([np.full((6, 2), 1000), g.integers(-700_000, 700_000, (1, 2))])
        own.append(Own(rank, len(ranks), Created(hash, g.permutation(8)[:7], found, 500_000, 16)))
        places, ranks = [*places, found], [*ranks, *[rank] * len(found)]
    limit = np.array([[1000 + 300_000, 1000 + 400_000], [1000 - 500_000, 1000], [1000 - 500_001, 1000]])
    rows, every = np.concatenate([rows_of(BALL), limit]), np.concatenate(places)
    for procedure in own:
        check_cells(procedure.created, rows)
    assigned = Assigned(tuple(own[:3]), every, np.array(ranks, np.int64), BALL.max_norm, 64)
    check_cells(assigned, rows)
    check_cells(Reassigned(assigned, g.random(len(every)) < 0.4), rows)


@pytest.mark.parametrize("length", [3.0, 50_000.0, 1e9])
def test_regions_of_hash_values_and_intervals(length: float) -> None:
    """Short intervals' numbers differ by one or two; one that is longer than the domain holds all rows."""
    hash = PStable(2_000_000.0, 0.5, 0.01, 2).sample(2, 40, SEED)
    intervals = Intervals.of(BALL, length, SEED)
    near = np.random.default_rng(9).integers(-8, 9, (300, 2)) * int(min(length, 90_000))
    rows = np.concatenate([rows_of(BALL), near])
    check_cells(HashValues(hash, Prefixes((3, 17, 40))), rows)
    check_cells(AxisIntervals(hash, intervals), rows)
    values = np.unique(hash.of(rows))[::-1]
    regions = Regions(hash, intervals, values, intervals.of_rows(np.zeros((len(values), 2), np.int64)), 4096)
    check_cells(regions, rows)
    check_vectors(Centred(regions, intervals.middles(regions.chosen), Bound(70_000, 2)), rows)
    check_cells(Regions(hash, intervals, values[:0], regions.chosen[:0], 4), rows)


@pytest.mark.parametrize("m", [1, 2, 4])
def test_points_that_are_equally_near_to_several_of_a_nets(m: int) -> None:
    """Nets of few lattice steps, on which most points are half way between two."""
    domain = Box((-1.0,) * m, (1.0,) * m)
    whole = Projection(domain, np.eye(m, m + 1, dtype=np.int64), 0, 1.0)
    tree = tree_of(whole, [Net(step, np.zeros(m + 1, np.int64)) for step in (12, 6, 4)])
    check_cells(tree, np.random.default_rng(2).integers(-40, 41, (300, m)))


@pytest.mark.parametrize("m", [2, 4])
def test_points_of_a_net_outside_the_ball_are_put_back_on_it(m: int) -> None:
    """Rows at its border, in a matrix that keeps their directions: many a nearest point lies outside."""
    domain, toward = Box((-1.0,) * m, (1.0,) * m), np.random.default_rng(2).standard_normal((2000, m))
    lengths = np.sqrt((toward**2).sum(axis=1) - toward.sum(axis=1) ** 2 / (m + 1))
    rows = np.floor(toward * (2**19 * np.linspace(1 - 1e-5, 1, 2000) / lengths)[:, None])
    rows = rows[(rows**2).sum(axis=1) <= 2**40].astype(np.int64)[:300]
    nets = [Net(step, np.arange(m + 1)) for step in (3, 50, 7_000)]
    tree = tree_of(Projection(domain, 128 * np.eye(m, m + 1, dtype=np.int64), 0, 1.0), nets)
    points = nets[-1].points(tree.parent(2, tree.projection.of(rows)))
    assert int((energy(points) > (m + 1) * RADIUS**2).sum()) > 30
    check_cells(tree, rows)
