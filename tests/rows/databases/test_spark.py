"""What Spark alone can get wrong."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from cloister.core.errors import InvalidInput
from cloister.core.questions import Rows, count, vector_sum
from cloister.core.randomness import PublicRng
from cloister.plugins.populations.arrays import Arrays
from cloister.plugins.populations.sql_table import PASSES, SqlTable
from cloister.rows.databases import spark
from cloister.rows.databases.database import Database, EngineFailed
from cloister.rows.databases.spark import SPARK
from cloister.rows.options import Reading
from cloister.rows.workers import work
from tests.rows.databases.hostile import as_table
from tests.rows.databases.rounds import NEAR, SQUARE, agrees, answers, in_square, same
from tests.rows.databases.spark import Spark

pytestmark = [pytest.mark.thorough, pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")]

ROWS = np.random.default_rng(0).normal(0, 0.5, (5000, 2))
ROWS[::97, 1], ROWS[::101, 0], ROWS[::103, 0] = np.nan, np.inf, -0.0
MOVED = ROWS.copy()
MOVED[7, 1] += 0.25
"""The same but for a cell."""


def put(pyspark: Spark) -> Any:
    return pyspark.put("rows", as_table(ROWS))


def replace(pyspark: Spark) -> None:
    """The rows, where they are, by the others."""
    pa.parquet.write_table(as_table(MOVED), pyspark.files["rows"], row_group_size=2000)


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_errors_of_arithmetic_on_or_off_make_no_difference(pyspark: Spark, ansi: str) -> None:
    pyspark.session.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        with SqlTable(put(pyspark), Reading(columns="*", missing="drop")) as population:
            assert agrees(population, ROWS)
    finally:
        pyspark.session.conf.unset("spark.sql.ansi.enabled")


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


def test_rows_that_are_replaced_are_found_and_a_copy_is_not_touched(pyspark: Spark) -> None:
    table = put(pyspark)
    with (
        SqlTable(table, Reading(columns="*", missing="drop")) as population,
        SqlTable(table, Reading(columns="*", missing="drop", materialise=True)) as copied,
    ):
        population.check()
        copied.check()
        views = {view.name for view in pyspark.session.catalog.listTables()}
        replace(pyspark)
        with pytest.raises(InvalidInput):
            in_square(population)
        assert agrees(copied, ROWS)
    assert {view.name for view in pyspark.session.catalog.listTables()} < views


def test_a_session_that_stopped_is_one_line_and_another_one_goes_on(pyspark: Spark) -> None:
    with SqlTable(put(pyspark), Reading(columns="*", missing="drop")) as population:
        population.check()
        pyspark.session.stop()
        try:
            with pytest.raises(EngineFailed, match=r"^.*nothing was answered.*$"):
                in_square(population)
        finally:
            pyspark.start()
    with SqlTable(pyspark.again("rows"), Reading(columns="*", missing="drop")) as population:
        assert agrees(population, ROWS)


@attrs.frozen(eq=False)
class Ending:
    """Vectors of a round whose worker is killed: by the first that sees a file, which it takes away, or by all."""

    of: Any
    file: Path | None

    @property
    def cells(self) -> Any:
        return self.of.cells

    @property
    def bound(self) -> Any:
        return self.of.bound

    def values(self, rows: Any, buckets: Any) -> Any:
        try:
            if self.file is not None:
                self.file.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        except FileNotFoundError:
            pass
        return self.of.values(rows, buckets)


def test_a_worker_that_is_killed_in_the_middle_of_a_pass_counts_once(pyspark: Spark, tmp_path: Path) -> None:
    file = tmp_path / "there"
    file.touch()
    asked = (count, NEAR), (vector_sum, Ending(Rows.of(NEAR, SQUARE), file))
    with SqlTable(put(pyspark), Reading(columns="*", missing="drop", passes="workers")) as population:
        found = answers(population, SQUARE, *asked)
    assert not file.exists()
    assert same(found, in_square(Arrays(ROWS, Reading(missing="drop"))))


def test_workers_that_are_killed_every_time_are_one_line_and_the_next_round_goes_on(pyspark: Spark) -> None:
    with SqlTable(put(pyspark), Reading(columns="*", missing="drop", passes="workers")) as population:
        population.check()
        with pytest.raises(EngineFailed, match=r"^.*nothing was answered.*$"):
            answers(population, SQUARE, (vector_sum, Ending(Rows.of(NEAR, SQUARE), None)))
        assert agrees(population, ROWS)


@pytest.mark.parametrize("held", [True, False])
def test_workers_hold_the_rows_and_find_that_those_are_replaced_which_they_read_anew(
    pyspark: Spark, monkeypatch: pytest.MonkeyPatch, held: bool
) -> None:
    """What they hold is gone once the table is closed."""
    if not held:
        monkeypatch.setattr("pyspark.rdd.RDD.persist", lambda rows, level: rows)  # as where there is no room
        monkeypatch.setattr("pyspark.rdd.RDD.unpersist", lambda rows: rows)
    with SqlTable(put(pyspark), Reading(columns="*", missing="drop", passes="workers")) as population:
        population.check()
        assert len(pyspark.session.sparkContext._jsc.getPersistentRDDs()) == held
        replace(pyspark)
        if held:
            assert agrees(population, ROWS)
        else:
            with pytest.raises(InvalidInput, match="the rows are not what they were"):
                in_square(population)
    assert not len(pyspark.session.sparkContext._jsc.getPersistentRDDs())


def test_workers_read_the_rows_of_users_that_are_kept(pyspark: Spark) -> None:
    users = pa.array([None if i % 53 == 0 else f"u{i % 700}" for i in range(5000)])
    table, found = pyspark.put("owned", as_table(ROWS).append_column("u", users)), list[Any]()
    for passes in PASSES:
        with SqlTable(
            table, Reading(columns=["x0", "x1"], missing="drop", user_column="u", passes=passes)
        ) as population:
            population.check()
            population.keep(2, PublicRng.from_seed(4))
            found.append(in_square(population))
    assert all(same(each, found[0]) for each in found)


def test_a_table_without_rows_is_refused_by_workers_too(pyspark: Spark) -> None:
    with (
        SqlTable(pyspark.put("none", as_table(ROWS[:0])), Reading(columns="*", passes="workers")) as population,
        pytest.raises(InvalidInput, match="there are no rows to use"),
    ):
        population.check()


def test_workers_with_the_same_cloister_are_taken_by_default_and_otherwise_the_query(
    pyspark: Spark, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # a trial, as without tests

    def chosen() -> str:
        told = list[str]()
        with SqlTable(put(pyspark), Reading(columns="*", missing="drop", told=told.append)) as population:
            assert agrees(population, ROWS)
        return told[0]

    assert "passes are by workers" in chosen()
    monkeypatch.setattr(work, "own_version", lambda: "9.9")
    assert re.search("passes are by query.*a worker runs cloister .*this process 9.9", chosen())
    monkeypatch.setattr(spark, "apply_to_cells", Absent())
    assert "passes are by query" in chosen()


class Absent:
    """A function that no worker can load."""

    def __reduce__(self) -> Any:
        return Absent.gone, ()

    @staticmethod
    def gone() -> Any:
        raise ModuleNotFoundError("No module named 'cloister'")

    def __call__(self, *given: Any) -> Any: ...
