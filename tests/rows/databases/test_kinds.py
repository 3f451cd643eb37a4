"""Every kind of question, domain and vector as a query: the exact integers of rows in memory, whatever the rows."""

from __future__ import annotations

import itertools
import os
import sys
import time
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import attrs
import numpy as np
import pyarrow as pa
import pytest

from cloister.core.domains import Ball, Box
from cloister.core.frames import (
    GRADES,
    OCTAVES,
    STEPS,
    UNKNOWN,
    DropColumns,
    Reframed,
    SignLogScale,
    cube,
    grade_starts,
)
from cloister.core.lattice import Bound
from cloister.core.nearest import NearestCenter
from cloister.core.questions import count, vector_sum
from cloister.core.randomness import PublicRng
from cloister.core.types import Floats, Ints
from cloister.plugins.methods.clipping import DistanceBins
from cloister.plugins.methods.described import Facet, Facets
from cloister.plugins.methods.measuring import Shells
from cloister.plugins.methods.zoom_ranges import Columns
from cloister.plugins.populations.arrays import Arrays
from cloister.plugins.populations.sql_table import SqlTable
from cloister.rows.databases.database import Database
from cloister.rows.databases.lattices import snap_rows
from cloister.rows.databases.stage import Described, Stage, stepped
from cloister.rows.options import Reading
from tests.rows.databases.asking import QUESTIONS, points
from tests.rows.databases.engines import TestEngine, mostly
from tests.rows.databases.hostile import as_table, hostile
from tests.rows.databases.rounds import SQUARE, answers, differences, same

BOX = Box((-1.0, 0.0, -7.0), (0.7, 1.0, 11.0))


def asked_of(name: str, domain: Any, m: int, seed: int) -> Any:
    """Questions of this kind, of the columns that are clustered. A frame's are about rows of the cube."""
    first = domain.first if isinstance(domain, DropColumns) else domain
    return QUESTIONS[name](cube(first.dimension) if isinstance(first, Reframed) else first, m, seed)


def rows_for(domain: Any, seed: int, n: int = 400) -> Floats:
    """Hostile rows of a box, a ball, a frame, one of them beside other columns, or grades."""
    match domain:
        case Box():
            return hostile(seed, n, domain.lower, domain.upper, domain.unit, points(domain, 9, seed))
        case Ball():
            low, high = domain.middle - domain.radius, domain.middle + domain.radius
            return hostile(seed, n, low, high, domain.unit, points(domain, 9, seed))
        case Reframed():
            off, scale = np.array(domain.offset), np.array(domain.scale)
            low, high = (np.clip(off + side * np.minimum(scale, 1e307), -1e308, 1e308) for side in (-2, 2))
            return hostile(
                seed, n, low, np.maximum(high, np.nextafter(low, np.inf)), np.maximum(scale * 2.0**-20, 5e-324)
            )
        case DropColumns():
            return np.hstack([rows_for(domain.first, seed, n), np.linspace(-1e300, 1e300, 2 * n).reshape(n, 2)])
        case _:
            rows = rows_for(domain.others, seed, n)
            g = np.random.default_rng(seed)
            powers = 2.0 ** g.integers(-70, 70, rows.shape) * g.choice([-1, 1], rows.shape)
            powers *= 1 + g.integers(0, 256, rows.shape) / 256
            near = np.nextafter(powers, np.where(g.random(rows.shape) < 0.5, 0, np.inf))
            return np.where(g.random(rows.shape) < 0.3, near, np.where(g.random(rows.shape) < 0.3, powers, rows))


@mostly("duckdb", "postgres")
@pytest.mark.parametrize("kind", sorted(QUESTIONS))
def test_every_kind_of_question_gets_the_integers_of_rows_in_memory(engine: TestEngine, kind: str) -> None:
    rows = rows_for(BOX, 3)
    assert differences(engine, rows, BOX, *asked_of(kind, BOX, 6, 4)) == []


@mostly("duckdb")
def test_rows_exactly_on_an_edge_are_in_the_bin_that_ends_there(engine: TestEngine) -> None:
    """Edges are squared distances, and belong to the bin below: rows on them, and a step to either side."""
    center, largest = np.array([3, -5]), 2**18
    near = NearestCenter(center[None], SQUARE.max_norm)
    radii = largest >> np.arange(8)
    steps = np.concatenate([radii - 1, radii, radii + 1])
    points_ = np.concatenate([center + np.stack([sign * steps, 0 * steps], axis=1) for sign in (1, -1)])
    rows = SQUARE.real(points_) + SQUARE.middle
    assert np.array_equal(SQUARE.snap(rows), points_)
    for cells in (DistanceBins(near, largest), DistanceBins(near, largest, grouped=True)):
        assert set(cells.edges[-8:].tolist()) & set((radii**2).tolist())
        assert differences(engine, rows, SQUARE, (count, cells)) == []
    shells = Shells.around(center[None], largest // 4, 4, PublicRng.from_seed(3))
    assert set(shells.outer[:-1].tolist()) & set((radii**2).tolist())
    assert differences(engine, rows, SQUARE, (count, shells)) == []


@attrs.frozen(eq=False)
class OffsetsFrom:
    """Rows relative to other centres than those that they are in the buckets of."""

    cells: NearestCenter
    centers: Ints
    bound: Bound

    def values(self, rows: Ints, buckets: Ints) -> Ints:
        return np.asarray(rows - self.centers[buckets[:, 0]], np.int64)

    def bundled(self, arrays: Any) -> dict[str, Any]:
        return {"kind": "offsets", "centers": arrays.add(self.centers), **self.bound.bundled}


@mostly("duckdb")
def test_offsets_from_other_centres_than_the_buckets_are_shrunk_to_their_bound(engine: TestEngine) -> None:
    """A bucket's radius says nothing of how far its rows are from another centre."""
    near = NearestCenter(SQUARE.snap(np.array([[-0.5, 0.0], [0.5, 0.0]])), SQUARE.max_norm, SQUARE.max_norm // 4)
    far = OffsetsFrom(near, near.centers[::-1].copy(), Bound(SQUARE.max_norm // 4, 2))
    rows = np.random.default_rng(2).uniform(-1, 1, (300, 2))
    points_ = SQUARE.snap(rows)
    ids = near.locate(points_)
    vectors = far.values(points_, ids)[ids[:, 0] >= 0]
    assert ((vectors**2).sum(axis=1) > far.bound.l2**2).any()
    assert differences(engine, rows, SQUARE, (count, near), (vector_sum, far)) == []


DOMAINS: dict[str, Any] = {
    "ball": Ball((0.1, -0.2, 0.3), 0.8),
    "small ball far away": Ball((1e15, -1e300, 0.0), 1e-3),
    "wide ball": Ball((0.0, 1e200), 0.9e100),
    "tiny ball": Ball((5e-324, -1e-200), 1.1e-100),
    "wide box": Box((-1e99, 3.0), (1e99, 4.0)),
    "tiny box": Box((-1e-99, -1e-110), (0.5e-99, 1e-110)),
    "box far away": Box((1e15, -1e15), (1e15 + 1, -1e15 + 0.5)),
    "frame": Reframed((0.1, -0.2, 30.0), (0.4, 3.0, 1e-3)),
    "frame far away": Reframed((1e16, -1e300, 1e300), (0.5, 1e290, 1e-8)),
    "tiny and wide frame": Reframed((0.0, 5e-324, -1e308), (1e-300, 5e-324, 1.7e308)),
}
DOMAINS |= {
    f"{name} beside columns that are only described": DropColumns(DOMAINS[name], 2) for name in ("ball", "frame")
}


@mostly("duckdb")
@pytest.mark.parametrize("name", sorted(DOMAINS))
def test_rows_are_put_on_the_same_lattice_whatever_its_bounds(engine: TestEngine, name: str) -> None:
    domain = DOMAINS[name]
    rows = rows_for(domain, 5)
    assert differences(engine, rows, domain, *asked_of("grid", domain, 3, 6)) == []


@mostly("duckdb")
def test_columns_of_unknown_range_are_graded_and_counted_in_bins(engine: TestEngine) -> None:
    box = Box((UNKNOWN[0], -1.0, UNKNOWN[0]), (UNKNOWN[1], 1.0, UNKNOWN[1]))
    domain = SignLogScale(box, (0, 2))
    rows = rows_for(domain, 7)
    for sides in ((2**15, 2**20, 2**15), (0, 2**20, 2**15)):
        bins = Columns(sides, 4)
        assert differences(engine, rows, domain, (count, bins)) == []


@mostly("duckdb")
@pytest.mark.parametrize(
    ("kind", "bound"),
    [
        ("centers", Bound(300_000, 3)),
        ("centers", Bound(900_000, 3, 1_000_000)),
        ("clipped", Bound(1, 3)),
        ("clipped", Bound(300_000, 3)),
        ("weighted", Bound(2**25, 3, 1)),
        ("weighted", Bound(900_000, 3, 1_000_000)),
    ],
)
def test_vectors_beyond_their_bound_are_shrunk(engine: TestEngine, kind: str, bound: Bound) -> None:
    rows = rows_for(BOX, 8)
    asked = [
        (how, Tighter(of, bound)) if how is vector_sum and of.bound.dimension == 3 else (how, of)
        for how, of in asked_of(kind, BOX, 4, 9)
    ]
    assert differences(engine, rows, BOX, *asked) == []


class Tighter:
    """Vectors with another bound than their own."""

    def __init__(self, vectors: Any, bound: Bound) -> None:
        self.cells, self.bound, self._vectors = vectors.cells, bound, vectors

    def values(self, rows: Any, buckets: Any) -> Any:
        return self._vectors.values(rows, buckets)

    def bundled(self, arrays: Any) -> Any:
        return {**self._vectors.bundled(arrays), **self.bound.bundled}


def test_a_row_as_far_away_as_may_be_is_near(engine: TestEngine) -> None:
    near = NearestCenter(SQUARE.snap(np.zeros((1, 2))), SQUARE.max_norm, int(SQUARE.snap(np.array([[0.5, 0.0]]))[0, 0]))
    rows = np.array([[0.5, 0.0], [np.nextafter(0.5, 1), 0.0], [0.51, 0.0], [0.0, -0.5]])
    assert differences(engine, rows, SQUARE, (count, near)) == []


SEARCHED = float(os.environ.get("CLOISTER_SEARCH", "30"))
"""Seconds of the long search on each engine."""


def drawn(seed: int) -> tuple[Any, list[Any]]:
    """A domain, and questions about its rows."""
    g = np.random.default_rng(seed)
    d = int(g.integers(1, 13))
    wide = 10.0 ** g.uniform(-3, 3) if g.random() < 0.7 else 10.0 ** g.uniform(-95, 95)
    middle = g.uniform(-1, 1, d) * wide * 10.0 ** g.choice([0, 0, 3, 12])
    half = wide * 2.0 ** -g.integers(0, 12, d)
    low, high = middle - half, np.maximum(middle + half, np.nextafter(middle - half, np.inf))
    m = int(g.integers(1, max(2, min(12, 200 // d))))
    domains = [Box(tuple(low), tuple(high)), Ball(tuple(middle), wide), Reframed(tuple(middle), tuple(half))]
    domain: Any = domains[g.choice(3, p=[0.6, 0.2, 0.2])]
    kinds = g.choice(sorted(QUESTIONS), int(g.integers(1, 3)), replace=False)
    return domain, [one for kind in kinds for one in asked_of(str(kind), domain, m, seed)]


@pytest.mark.long
def test_no_difference_is_found(engine: TestEngine) -> None:
    end = time.monotonic() + SEARCHED
    for seed in itertools.count(100):
        domain, asked = drawn(seed)
        rows = rows_for(domain, seed, int(np.random.default_rng(seed).choice([1, 30, 300])))
        if np.isfinite(rows).all(axis=1).any():
            assert differences(engine, rows, domain, *asked) == [], seed
        if time.monotonic() > end:
            break


@mostly("duckdb")
def test_of_a_category_of_many_values_rows_are_located_in_python(engine: TestEngine) -> None:
    """PostgreSQL's queries have no room for them."""
    rows, domain = np.random.default_rng(22).uniform(-1, 0.01, (60, 260)), cube(260)
    near = NearestCenter(domain.snap(rows[:3])[:, :2], domain.max_norm)
    cells = Facets(near, (Facet(0, 260),), tuple(domain.sides.tolist()), 16)
    (told,) = differences(engine, rows, domain, (count, cells))
    assert "is too long: rows are located in Python" in told


@pytest.mark.parametrize("engine", ["duckdb"], indirect=True)
def test_queries_that_would_be_slow_are_not_made_and_the_answers_are_the_same(
    engine: TestEngine, dialect: Callable[..., None]
) -> None:
    dialect(terms=lambda backend: 1)
    told = differences(engine, rows_for(BOX, 3), BOX, *asked_of("centers", BOX, 6, 4))
    assert told
    assert all("products is slower than reading the rows" in line for line in told)


@pytest.mark.parametrize("sets", [True, False])
@pytest.mark.parametrize("engine", ["duckdb", "postgres"], indirect=True)
def test_all_columns_are_counted_in_one_query_where_an_engine_can(
    engine: TestEngine, sets: bool, dialect: Callable[..., None]
) -> None:
    box = Box((-1.0,) * 3, (1.0,) * 3)
    rows = rows_for(box, 7)
    question = count, Columns(tuple(box.sides.tolist()), 2)
    if not sets:
        dialect(engine.name, sets=False)
    with SqlTable(
        engine.put("sets", as_table(rows)), Reading(columns="*", missing="drop", passes="query")
    ) as population:
        population.check()
        with patch.object(Database, "answer", autospec=True, side_effect=Database.answer) as asked:
            found = answers(population, box, question)
    assert asked.call_count == (1 if sets else 3)
    assert same(found, answers(Arrays(rows, Reading(missing="drop")), box, question))


# number by number


def hard_numbers() -> np.ndarray:
    """The ends of every octave and of some grades in it, and what is next to them, of both signs; zeros; numbers below
    the first octave and beyond the last one, up to the largest of all."""
    first = np.arange(2 * OCTAVES) * STEPS
    ends = grade_starts(np.concatenate([first, first + 1, first + 100, first + STEPS - 1, [GRADES]]))
    beyond = [5e-324, 2.0**-70, 2.0**65, 2.0**70, 1e300, sys.float_info.max]
    found = np.concatenate([ends, np.nextafter(ends, 0), np.nextafter(ends, np.inf), beyond])
    return np.unique(np.concatenate([found, -found]))


@mostly("duckdb", "postgres")
def test_every_number_has_the_grade_that_it_has_in_memory(engine: TestEngine) -> None:
    numbers, box = np.append(hard_numbers(), -0.0), Box((UNKNOWN[0], -1.0), (UNKNOWN[1], 1.0))
    graded = SignLogScale(box, (0,))
    rows = np.column_stack([numbers, np.zeros(len(numbers))])
    table = engine.put("grades", as_table(rows).append_column("i", [np.arange(len(numbers))]))
    database = Database(table)
    known = Described()
    stage = snap_rows(Stage(table, ("x0", "x1"), database.dialect.fence), known.of(graded))
    found = database.answer(stage.table.select("i", grade=stage[stage.row[0]]))
    wanted = graded.snap(rows)[:, 0]
    got = found["grade"].to_numpy()[np.argsort(found["i"].to_numpy())]
    assert [x.hex() for x in numbers[got != wanted].tolist()] == []
    assert (wanted.min(), wanted.max()) == (-GRADES, GRADES - 1)
    assert isinstance(stage.bound, Bound)
    assert stage.bound.l2 >= np.hypot(GRADES, box.max_norm) > stage.bound.l2 - 2


@pytest.mark.parametrize("cuts", [(0,), range(-90, 90, 20), (-99, -98, -98, -97, 3, 4, 5, 6, 100), (-100, *range(30))])
def test_the_step_is_the_number_of_cuts_at_most_as_large(engine: TestEngine, cuts: tuple[int, ...]) -> None:
    of, x = np.array(cuts), np.arange(-100, 101)
    values = np.random.default_rng(0).integers(0, 2**60, len(of) + 1)
    table = engine.put("steps", pa.table({"x": x.astype(float)}))
    database = Database(table)
    own = database.dialect.steps
    query = table.select(table.x, any=stepped(table.x, of, values, 100), own=own(table.x, of, values, 100))
    found = database.answer(query.order_by("x"))
    wanted = values[np.searchsorted(of, x, "right")]
    assert found["any"].to_pylist() == wanted.tolist()
    assert found["own"].to_pylist() == wanted.tolist()
