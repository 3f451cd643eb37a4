"""Runs whose groups are described: every round gets the integers of files, of columns that are clustered and others."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from cloister.core.frames import cube
from cloister.core.nearest import NearestCenter
from cloister.core.questions import Round, count, vector_sum
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.session import Session
from cloister.plugins.methods.described import Facet, Facets
from cloister.plugins.populations.files import Files
from cloister.plugins.populations.sql_table import SqlTable
from cloister.run.request import Request, prepare
from tests.rows.databases.engines import TestEngine, mostly
from tests.rows.databases.hostile import as_table
from tests.rows.databases.rounds import answers, differences, same

pytestmark = pytest.mark.usefixtures("way")

WARDS = ["A", "B", "C"]
BINS = 16


def hospital(n: int = 900) -> Any:
    """Rows with wards that are not listed, stays and ages beyond their bounds, at them and in their middle, and cells
    that are missing."""
    g = np.random.default_rng(21)
    group = g.integers(0, 3, n)
    stay = g.choice([-3.0, 0.0, 7.5, 30.0, 31.0, 1e300], n) * g.choice([1.0, 0.5, 0.25], n)
    return pa.table(
        {
            "age": g.normal(20 + 30 * group, 4.0) * g.choice([1.0, 1.0, 1.0, 9.0], n),
            "weight": pa.array(60 + 10 * group, mask=g.random(n) < 0.02),
            "ward": pa.array(np.array(["A", "B", "C", "D", "a", ""])[g.integers(0, 6, n)], mask=g.random(n) < 0.02),
            "stay": stay,
            "smoker": pa.array(g.random(n) < 0.3, mask=g.random(n) < 0.02),
        }
    )


@pytest.mark.parametrize("clustered", [["age", "weight"], ["age", "weight", "ward"]])
def test_a_run_whose_groups_are_described_gets_the_integers_of_files(
    engine: TestEngine, clustered: list[str], tmp_path: Path
) -> None:
    table, told = hospital(), list[str]()
    pyarrow.parquet.write_table(table, tmp_path / "rows.parquet")
    described = ["ward", "stay", "smoker", "age"]
    reading: dict[str, Any] = {"missing": "drop", "categories": {"ward": WARDS}, "described": described}
    files = Files(tmp_path / "rows.parquet", clustered, **reading)
    with SqlTable(engine.put("hospital", table), clustered, **reading, told=told.append) as population:
        found = list[Any]()
        for round in rounds_of(files, describe=described):
            found = answers(population, round.domain, *asked(round))
            assert same(found, answers(files, round.domain, *asked(round)))
    assert told == []
    there = [row for row in table.to_pylist() if None not in row.values()]
    wards, stays, smokers, _ = (level.reshape(3, -1).sum(axis=0).tolist() for level in found)
    assert wards == [sum(row["ward"] == ward for row in there) for ward in WARDS] + [
        sum(row["ward"] not in WARDS for row in there)
    ]
    assert smokers == [sum(row["smoker"] for row in there), sum(not row["smoker"] for row in there)]
    parts = Counter(max(0, min(BINS - 1, int(min(row["stay"], 30.0) * BINS / 30))) for row in there)
    assert stays == [parts[part] for part in range(BINS)]


@pytest.mark.parametrize("engine", mostly("duckdb"), indirect=True)
def test_of_a_category_of_many_values_rows_are_located_in_python(engine: TestEngine) -> None:
    """PostgreSQL's queries have no room for them."""
    rows, domain = np.random.default_rng(22).uniform(-1, 0.01, (60, 260)), cube(260)
    near = NearestCenter(domain.snap(rows[:3])[:, :2], domain.max_norm)
    cells = Facets(near, (Facet(0, 260),), tuple(domain.sides.tolist()), BINS)
    (told,) = differences(engine.put("values", as_table(rows)), rows, domain, (count, cells))
    assert "is too long: rows are located in Python" in told


def rounds_of(files: Files, **changes: Any) -> list[Round[Any]]:
    """The rounds of a run over files."""
    request = Request(
        k=3,
        method="fastlloyd",
        epsilon=8.0,
        delta=1e-6,
        bounds={"age": (0, 100), "weight": (50, 90), "stay": (0, 30), "smoker": (0, 1)},
        rows=1000,
        seed=3,
        **changes,
    )
    plan, seed = prepare(request, files.columns, chosen_columns=files.selection), PublicRng.from_seed(3)
    session: Session[Any] = Session(plan.problem, seed, files, noise=NoiseRng.for_tests(4))
    plan.composed.value.cluster(plan.problem, session, seed.child("method"))
    return session.rounds


def asked(round: Round[Any]) -> list[tuple[Any, Any]]:
    """The questions of a round."""
    return [(count, part.cells) if part.vectors is None else (vector_sum, part.vectors) for part in round.parts]
