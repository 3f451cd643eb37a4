"""What Spark alone can get wrong."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from cloister.core.domains import Box
from cloister.core.errors import InvalidInput
from cloister.core.nearest import NearestCenter
from cloister.core.questions import Rows, count, vector_sum
from cloister.core.randomness import PublicRng
from cloister.plugins.populations.arrays import Arrays
from cloister.plugins.populations.sql_table import PASSES, SqlTable
from cloister.rows.databases import spark
from cloister.rows.databases.database import Database, EngineFailed
from cloister.rows.databases.spark import SPARK
from cloister.rows.workers import machine
from tests.rows.databases.rounds import answers, same
from tests.rows.databases.spark import Spark

pytestmark = [pytest.mark.thorough, pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")]

ROWS = np.random.default_rng(0).normal(0, 0.5, (5000, 2))
ROWS[::97, 1], ROWS[::101, 0], ROWS[::103, 0] = np.nan, np.inf, -0.0
TABLE = pa.table({"x": ROWS[:, 0], "y": ROWS[:, 1]})
DOMAIN = Box((-1.0,) * 2, (0.7,) * 2)
NEAR = NearestCenter(DOMAIN.snap(np.random.default_rng(1).uniform(-1, 0.7, (5, 2))), DOMAIN.max_norm, None)
ASKED = (count, NEAR), (vector_sum, Rows.of(NEAR, DOMAIN))


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_errors_of_arithmetic_on_or_off_make_no_difference(pyspark: Spark, ansi: str) -> None:
    wanted = answers(Arrays(ROWS, missing="drop"), DOMAIN, *ASKED)
    before = pyspark.session.conf.get("spark.sql.ansi.enabled")
    pyspark.session.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        with SqlTable(pyspark.put("rows", TABLE), "*", "drop") as population:
            assert same(answers(population, DOMAIN, *ASKED), wanted)
    finally:
        pyspark.session.conf.set("spark.sql.ansi.enabled", before)


def test_missing_cells_have_hashes_by_their_places(pyspark: Spark) -> None:
    table = pyspark.put("cells", pa.table({"a": [1.0, None, 0.0, -0.0], "b": [None, 1.0, 2.0, 2.0]}))
    first, second, zero, minus = SPARK.answer(table.select(h=SPARK.hashed([table.a, table.b])))["h"].to_pylist()
    assert first != second
    assert zero == minus
    assert 0 <= min(first, second, zero) <= max(first, second, zero) < 2**32


def test_an_error_quotes_no_cell(pyspark: Spark, capfd: pytest.CaptureFixture[str]) -> None:
    table = pyspark.put("secret", pa.table({"x": [123456789e300]}))
    with pytest.raises(EngineFailed) as told:
        Database(table).answer(table.select(y=table.x.cast("int64")))
    out, err = capfd.readouterr()
    assert "1.23456789" not in str(told.value) + out + err


@attrs.frozen(eq=False)
class Ending:
    """Vectors of a round whose worker is killed: by the first that sees a file, which it takes away."""

    of: Any
    file: Path

    @property
    def cells(self) -> Any:
        return self.of.cells

    @property
    def bound(self) -> Any:
        return self.of.bound

    def values(self, rows: Any, buckets: Any) -> Any:
        try:
            self.file.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        except FileNotFoundError:
            pass
        return self.of.values(rows, buckets)


def test_a_worker_that_is_killed_in_the_middle_of_a_pass_counts_once(pyspark: Spark, tmp_path: Path) -> None:
    file = tmp_path / "there"
    file.touch()
    asked = (count, NEAR), (vector_sum, Ending(Rows.of(NEAR, DOMAIN), file))
    with SqlTable(pyspark.put("rows", TABLE), "*", "drop", passes="workers") as population:
        found = answers(population, DOMAIN, *asked)
    assert not file.exists()
    assert same(found, answers(Arrays(ROWS, missing="drop"), DOMAIN, *ASKED))


@pytest.mark.parametrize("held", [True, False])
def test_workers_hold_the_rows_and_find_that_those_are_replaced_which_they_read_anew(
    pyspark: Spark, monkeypatch: pytest.MonkeyPatch, held: bool
) -> None:
    if not held:
        monkeypatch.setattr("pyspark.rdd.RDD.persist", lambda rows, level: rows)  # as where there is no room
        monkeypatch.setattr("pyspark.rdd.RDD.unpersist", lambda rows: rows)
    with SqlTable(pyspark.put("rows", TABLE), "*", "drop", passes="workers") as population:
        population.check()
        moved = ROWS[:, 1] + np.where(np.arange(5000) == 7, 0.25, 0.0)
        pa.parquet.write_table(pa.table({"x": ROWS[:, 0], "y": moved}), pyspark.files["rows"], row_group_size=2000)
        if held:
            assert same(answers(population, DOMAIN, *ASKED), answers(Arrays(ROWS, missing="drop"), DOMAIN, *ASKED))
        else:
            with pytest.raises(InvalidInput, match="the rows are not what they were"):
                answers(population, DOMAIN, *ASKED)


def test_workers_read_the_rows_of_users_that_are_kept(pyspark: Spark) -> None:
    users = pa.array([None if i % 53 == 0 else f"u{i % 700}" for i in range(5000)])
    table, found = pyspark.put("owned", TABLE.append_column("u", users)), list[Any]()
    for passes in PASSES:
        with SqlTable(table, ["x", "y"], "drop", users="u", passes=passes) as population:
            population.check()
            population.keep(2, PublicRng.from_seed(4))
            found.append(answers(population, DOMAIN, *ASKED))
    assert same(found[0], found[1])
    assert same(found[2], found[1])


@pytest.fixture
def chosen(pyspark: Spark, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], str]]:
    """What is told of the pass that is taken by default."""
    monkeypatch.undo()  # a trial, as without tests
    told = list[str]()

    def run() -> str:
        with SqlTable(pyspark.put("rows", TABLE), "*", "drop", told=told.append) as population:
            assert same(answers(population, DOMAIN, *ASKED), answers(Arrays(ROWS, missing="drop"), DOMAIN, *ASKED))
        return told[0]

    yield run
    monkeypatch.undo()


def test_workers_with_the_same_cloister_are_taken_by_default(chosen: Callable[[], str]) -> None:
    assert "passes are by workers" in chosen()


def test_workers_with_another_cloister_or_none_leave_the_query(
    chosen: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "own_version", lambda: "9.9")
    assert re.search("passes are by query.*a worker runs cloister .*this process 9.9", chosen())
    monkeypatch.setattr(spark, "worked", Absent())
    assert "passes are by query" in chosen()


class Absent:
    """A function that no worker can load."""

    def __reduce__(self) -> Any:
        return Absent.gone, ()

    @staticmethod
    def gone() -> Any:
        raise ModuleNotFoundError("No module named 'cloister'")

    def __call__(self, *given: Any) -> Any: ...
