"""Every kind of question, domain and vector as a query: the exact integers of rows in memory, whatever the rows."""

from __future__ import annotations

import sys
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pytest

from cloister.core.domains import Ball, Box
from cloister.core.frames import GRADES, OCTAVES, STEPS, UNKNOWN, Graded, Reframed, Without, cube, least_of
from cloister.core.lattice import Bound
from cloister.core.nearest import NearestCenter
from cloister.core.questions import count, vector_sum
from cloister.core.types import Floats
from cloister.plugins.methods.zoom_ranges import Columns
from cloister.plugins.populations.arrays import Arrays
from cloister.plugins.populations.sql_table import SqlTable
from cloister.rows.databases.database import DIALECTS, Database
from cloister.rows.databases.lattices import snapped
from cloister.rows.databases.stage import Described, Stage
from tests.rows.databases.asking import QUESTIONS, points
from tests.rows.databases.engines import TestEngine, mostly
from tests.rows.databases.hostile import as_table, hostile
from tests.rows.databases.rounds import answers, differences, same

BOX = Box((-1.0, 0.0, -7.0), (0.7, 1.0, 11.0))


def asked_of(name: str, domain: Any, m: int, seed: int) -> Any:
    """Questions of this kind. A frame's are about rows of the cube."""
    return QUESTIONS[name](cube(domain.dimension) if isinstance(domain, Reframed) else domain, m, seed)


def rows_for(domain: Any, seed: int, n: int = 400) -> Floats:
    """Hostile rows of a box, a ball, a frame, or grades."""
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
        case _:
            rows = rows_for(domain.others, seed, n)
            g = np.random.default_rng(seed)
            powers = 2.0 ** g.integers(-70, 70, rows.shape) * g.choice([-1, 1], rows.shape)
            powers *= 1 + g.integers(0, 256, rows.shape) / 256
            near = np.nextafter(powers, np.where(g.random(rows.shape) < 0.5, 0, np.inf))
            return np.where(g.random(rows.shape) < 0.3, near, np.where(g.random(rows.shape) < 0.3, powers, rows))


@pytest.mark.parametrize("engine", mostly("duckdb", "postgres"), indirect=True)
@pytest.mark.parametrize("kind", sorted(QUESTIONS))
def test_every_kind_of_question_gets_the_integers_of_rows_in_memory(engine: TestEngine, kind: str) -> None:
    rows = rows_for(BOX, 3)
    assert differences(engine.put("kinds", as_table(rows)), rows, BOX, *asked_of(kind, BOX, 6, 4)) == []


DOMAINS = {
    "ball": Ball((0.1, -0.2, 0.3), 0.8),
    "small ball far away": Ball((1e15, -1e300, 0.0), 1e-3),
    "tiny ball": Ball((5e-324, -1e-200), 1.1e-100),
    "wide box": Box((-1e99, 3.0), (1e99, 4.0)),
    "box far away": Box((1e15, -1e15), (1e15 + 1, -1e15 + 0.5)),
    "frame": Reframed((0.1, -0.2, 30.0), (0.4, 3.0, 1e-3)),
    "frame far away": Reframed((1e16, -1e300, 1e300), (0.5, 1e290, 1e-8)),
    "tiny and wide frame": Reframed((0.0, 5e-324, -1e308), (1e-300, 5e-324, 1.7e308)),
}


@pytest.mark.parametrize("engine", mostly("duckdb"), indirect=True)
@pytest.mark.parametrize("name", sorted(DOMAINS))
def test_rows_are_put_on_the_same_lattice_whatever_its_bounds(engine: TestEngine, name: str) -> None:
    domain = DOMAINS[name]
    rows = rows_for(domain, 5)
    assert differences(engine.put("domains", as_table(rows)), rows, domain, *asked_of("grid", domain, 3, 6)) == []


@pytest.mark.parametrize("engine", mostly("duckdb"), indirect=True)
def test_columns_of_unknown_range_are_graded_and_counted_in_bins(engine: TestEngine) -> None:
    box = Box((UNKNOWN[0], -1.0, UNKNOWN[0]), (UNKNOWN[1], 1.0, UNKNOWN[1]))
    domain = Graded(box, (0, 2))
    rows = rows_for(domain, 7)
    bins = Columns((2**15, 2**20, 2**15), 4)
    assert differences(engine.put("grades", as_table(rows)), rows, domain, (count, bins)) == []


@pytest.mark.parametrize("engine", mostly("duckdb"), indirect=True)
@pytest.mark.parametrize("name", ["ball", "wide box", "frame"])
def test_columns_that_are_only_described_are_left_out_of_a_lattice(engine: TestEngine, name: str) -> None:
    first = DOMAINS[name]
    rows = np.hstack([rows_for(first, 6), np.linspace(-1e300, 1e300, 800).reshape(400, 2)])
    asked = asked_of("centers", first, 3, 6)
    assert differences(engine.put("first", as_table(rows)), rows, Without(first, 2), *asked) == []


@pytest.mark.parametrize("engine", mostly("duckdb"), indirect=True)
@pytest.mark.parametrize(
    ("kind", "bound"),
    [
        ("centers", Bound(300_000, 3)),
        ("clipped", Bound(1, 3)),
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
    assert differences(engine.put("long", as_table(rows)), rows, BOX, *asked) == []


class Tighter:
    """Vectors with another bound than their own."""

    def __init__(self, vectors: Any, bound: Bound) -> None:
        self.cells, self.bound, self._vectors = vectors.cells, bound, vectors

    def values(self, rows: Any, buckets: Any) -> Any:
        return self._vectors.values(rows, buckets)

    def bundled(self, arrays: Any) -> Any:
        return {**self._vectors.bundled(arrays), **self.bound.bundled}


@pytest.mark.parametrize("engine", mostly("duckdb"), indirect=True)
@pytest.mark.parametrize("rows", [np.zeros((1, 2)), np.full((50, 2), 0.25), np.array([[0.1, 0.5], [0.1, -0.5]])])
def test_one_row_and_columns_of_one_value(engine: TestEngine, rows: Floats) -> None:
    domain = Box((-1.0, -1.0), (1.0, 1.0))
    asked = [one for kind in ("centers", "grid", "quadtree", "shells") for one in asked_of(kind, domain, 3, 10)]
    assert differences(engine.put("few", as_table(rows)), rows, domain, *asked) == []


def test_a_row_as_far_away_as_may_be_is_near(engine: TestEngine) -> None:
    domain = Box((-1.0,) * 2, (1.0,) * 2)
    near = NearestCenter(domain.snap(np.zeros((1, 2))), domain.max_norm, int(domain.snap(np.array([[0.5, 0.0]]))[0, 0]))
    table = engine.put("rows", pa.table({"x": [0.5, np.nextafter(0.5, 1), 0.51, 0.0], "y": [0.0, 0.0, 0.0, -0.5]}))
    with SqlTable(table, "*") as population:
        (found,) = answers(population, domain, (count, near))
    assert found.tolist() == [3]


@pytest.mark.parametrize("engine", ["duckdb"], indirect=True)
def test_of_what_would_be_a_slow_query_rows_are_located_in_python(
    engine: TestEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(DIALECTS, "duckdb", attrs.evolve(DIALECTS["duckdb"], terms=lambda backend: 1))
    rows = rows_for(BOX, 3)
    told = differences(engine.put("slow", as_table(rows)), rows, BOX, *asked_of("centers", BOX, 6, 4))
    assert told
    assert all("products is slower than reading the rows" in line for line in told)


@pytest.mark.parametrize("sets", [True, False])
@pytest.mark.parametrize("engine", ["duckdb", "postgres"], indirect=True)
def test_all_columns_are_counted_in_one_query_where_an_engine_can(
    engine: TestEngine, sets: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    box, rows, asked = Box((-1.0,) * 3, (1.0,) * 3), hostile(7, 900, [-1.0] * 3, [1.0] * 3, 2.0**-19), list[Any]()
    question, answer = (count, Columns(tuple(box.sides.tolist()), 2)), Database.answer
    if not sets:
        monkeypatch.setitem(DIALECTS, engine.name, attrs.evolve(DIALECTS[engine.name], sets=False))

    def answered(database: Database, query: Any) -> Any:
        asked.append(query)
        return answer(database, query)

    with SqlTable(engine.put("sets", as_table(rows)), "*", "drop", passes="query") as population:
        population.check()
        monkeypatch.setattr(Database, "answer", answered)
        found = answers(population, box, question)
    assert len(asked) == (1 if sets else 3)
    assert same(found, answers(Arrays(rows, missing="drop"), box, question))


HALF_KNOWN = Box((UNKNOWN[0], -1.0), (UNKNOWN[1], 1.0))
GRADED = Graded(HALF_KNOWN, (0,))


def hard_numbers() -> np.ndarray:
    """The ends of every octave and of some grades in it, and what is next to them, of both signs; zeros; numbers below
    the first octave and beyond the last one, up to the largest of all."""
    first = np.arange(2 * OCTAVES) * STEPS
    ends = least_of(np.concatenate([first, first + 1, first + 100, first + STEPS - 1, [GRADES]]))
    beyond = [5e-324, 2.0**-70, 2.0**65, 2.0**70, 1e300, sys.float_info.max]
    found = np.concatenate([ends, np.nextafter(ends, 0), np.nextafter(ends, np.inf), beyond])
    return np.unique(np.concatenate([found, -found]))


@pytest.mark.parametrize("engine", mostly("duckdb", "postgres"), indirect=True)
def test_every_number_has_the_grade_that_it_has_in_memory(engine: TestEngine) -> None:
    numbers = np.append(hard_numbers(), -0.0)
    table = engine.put("grades", pa.table({"i": np.arange(len(numbers)), "x": numbers, "y": np.zeros(len(numbers))}))
    database = Database(table)
    known = Described()
    stage = snapped(Stage(table, ("x", "y"), database.dialect.fence), known.of(GRADED))
    found = database.answer(stage.table.select("i", grade=stage[stage.row[0]]))
    wanted = GRADED.snap(np.column_stack([numbers, np.zeros(len(numbers))]))[:, 0]
    got = found["grade"].to_numpy()[np.argsort(found["i"].to_numpy())]
    assert [x.hex() for x in numbers[got != wanted].tolist()] == []
    assert (wanted.min(), wanted.max()) == (-GRADES, GRADES - 1)
    assert isinstance(stage.bound, Bound)
    assert stage.bound.l2 >= np.hypot(GRADES, HALF_KNOWN.max_norm) > stage.bound.l2 - 2
