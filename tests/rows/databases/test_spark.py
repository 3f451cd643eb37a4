"""What Spark alone can get wrong."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from cloister.core.domains import Box
from cloister.core.errors import InvalidInput
from cloister.core.nearest import NearestCenter
from cloister.core.questions import Rows, count, vector_sum
from cloister.plugins.populations.arrays import Arrays
from cloister.plugins.populations.sql_table import SqlTable
from cloister.rows.databases.database import Database, EngineFailed
from cloister.rows.databases.spark import SPARK
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


def test_rows_that_are_replaced_are_found_and_a_copy_is_not_touched(pyspark: Spark) -> None:
    table = pyspark.put("rows", TABLE)
    wanted = answers(Arrays(ROWS, missing="drop"), DOMAIN, *ASKED)
    with SqlTable(table, "*", "drop") as population, SqlTable(table, "*", "drop", materialise=True) as copied:
        population.check()
        copied.check()
        views = {view.name for view in pyspark.session.catalog.listTables()}
        moved = ROWS[:, 1] + np.where(np.arange(5000) == 7, 0.25, 0.0)
        pa.parquet.write_table(pa.table({"x": ROWS[:, 0], "y": moved}), pyspark.files["rows"], row_group_size=2000)
        with pytest.raises(InvalidInput):
            answers(population, DOMAIN, *ASKED)
        assert same(answers(copied, DOMAIN, *ASKED), wanted)
    assert {view.name for view in pyspark.session.catalog.listTables()} < views


def test_a_session_that_stopped_is_one_line_and_another_one_goes_on(pyspark: Spark) -> None:
    with SqlTable(pyspark.put("rows", TABLE), "*", "drop") as population:
        population.check()
        pyspark.session.stop()
        try:
            with pytest.raises(EngineFailed, match="nothing was answered") as told:
                answers(population, DOMAIN, *ASKED)
        finally:
            pyspark.start()
    assert "\n" not in str(told.value)
    with SqlTable(pyspark.again("rows"), "*", "drop") as population:
        found = answers(population, DOMAIN, *ASKED)
    assert same(found, answers(Arrays(ROWS, missing="drop"), DOMAIN, *ASKED))
