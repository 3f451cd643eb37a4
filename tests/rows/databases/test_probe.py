"""An engine is tried before it is used, and what it answers that no rows could give is refused, and quoted nowhere."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import ibis
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from cloister.core.errors import CloisterError, InvalidInput
from cloister.plugins.populations.sql_table import SqlTable
from cloister.rows.databases import database
from cloister.rows.databases.duckdb import DUCKDB
from cloister.rows.options import Reading
from tests.rows.databases.engines import DuckDB, TestEngine
from tests.rows.databases.hostile import as_table
from tests.rows.databases.rounds import agrees, in_square

EVEN = r"CAST\(6755399441055744 AS DOUBLE\)"

WRONG = {
    "single precision": (r"AS DOUBLE\b", "AS FLOAT", "sums of doubles"),
    "rounded sums": (r'"t0"\."a" \+ "t0"\."b"', 'round("t0"."a" + "t0"."b", 12)', "sums of doubles"),
    "single differences": (r'"t0"\."a" - "t0"\."b"', '("t0"."a" - "t0"."b"::FLOAT)', "differences of doubles"),
    "decimals": (r'"t0"\."a" \* "t0"\."b" AS', '"t0"."a" * round("t0"."b", 18) AS', "products of doubles"),
    "fused operations": (r'\("t0"\."a" \* "t0"\."b"\) \+', '("t0"."a" * "t0"."b") * (1 + 2e-16) +', "sums of products"),
    "products with a reciprocal": (r'"t0"\."a" / "t0"\."b"', '"t0"."a" * (1 / "t0"."b")', "quotients of doubles"),
    "square roots by logarithms": (r"SQRT\(ABS\((.*?)\)\)", r"exp(ln(abs(\1)) / 2)", "square roots"),
    "comparisons of magnitudes": (r'"t0"\."a" < "t0"\."b"', 'abs("t0"."a") < abs("t0"."b")', "comparisons of doubles"),
    "halves away from zero": (rf'\("t0"."tie" \+ {EVEN}\) - {EVEN}', 'round("t0"."tie")', "doubles rounded to int"),
    "associative sums": (EVEN, "0", "doubles rounded to integers"),
    "floor to zero": (r"FLOOR\(", "trunc(", "doubles rounded down"),
    "integers of 32 bits": (r"AS BIGINT\b", "AS INTEGER", None),
    "integers through doubles": (r'"t0"\."n" &', '"t0"."n"::DOUBLE::BIGINT &', "integers as doubles"),
    "doubles of 15 digits": (r'"t0"\."whole" AS', 'round("t0"."whole", -4) AS', "doubles as integers"),
    "the other greatest": (r"\bGREATEST\(", "LEAST(", "the greatest of doubles"),
    "the other least": (r"\bLEAST\(", "GREATEST(", "the least of doubles"),
    "negative cells are missing": (r"BETWEEN CAST.*? AND", "BETWEEN 0 AND", "missing and infinite cells"),
    "infinity is a number": (r"BETWEEN (CAST.*?) AND .*?\)", r"BETWEEN \1 AND 'Infinity'", "missing and infinite"),
    "nothing is a number": (r", FALSE\) THEN", ", TRUE) THEN", "missing and infinite cells"),
    "constants in single precision": (r"CAST\('0\.1' AS DOUBLE\)", "0.1::FLOAT", "choices"),
    "sums in doubles": (r"\bSUM\((.*?)\) AS", r"SUM(\1::DOUBLE)::HUGEINT AS", "sums of integers"),
    "sums that are doubles": (r"\bSUM\((.*?)\) AS", r"SUM(\1)::DOUBLE AS", "sums of integers"),
    "sums of 32 bits": (r"\bSUM\((.*?)\) AS", r"(SUM(\1) % 4294967296) AS", "sums of integers"),
    "sums of what is distinct": (r"\bSUM\(", "SUM(DISTINCT ", "sums of integers"),
    "groups without their sign": (r'SELECT "t0"\."id"', 'SELECT abs("t0"."id") AS "id"', "groups"),
    "one hash for all": (r"\bHASH\(HASH\((.*?)\)\)", "1", "hashes of rows"),
    "hashes of cells, added up": (
        r"\bHASH\(HASH\((.*?), (.*?), (.*?)\)\)",
        r"((HASH(\1) >> 2) + (HASH(\2) >> 1) % 999983 + (HASH(\3) >> 3))",
        "hashes of rows",
    ),
    "a last cell that is not mixed": (
        r"\bHASH\(HASH\((.*?), (.*?), (.*?)\)\)",
        r"(HASH(\1, \2) // 4 + (\3 * 1000)::BIGINT + 1000)",
        "hashes of rows",
    ),
}
"""For each thing to get wrong, what is asked instead of what, and what is then found."""


@pytest.fixture(scope="module")
def rows() -> Any:
    backend = ibis.duckdb.connect()
    backend.raw_sql("CREATE TABLE rows AS SELECT 1.0::DOUBLE AS x")
    return backend.table("rows")


@pytest.fixture(scope="module")
def trials(rows: Any) -> list[str]:
    """What an engine is asked before a row is read."""
    asked = list[str]()

    def stream(expression: Any, size: int) -> Any:
        asked.append(rows.get_backend().compile(expression))
        return DUCKDB.stream(expression, size)

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(database.DIALECTS, "duckdb", attrs.evolve(DUCKDB, stream=stream))
        population = SqlTable(rows, Reading(columns="*"))
        population.check()
        population.close()
    *before, of_rows = asked
    assert '"rows"' in of_rows
    assert not any('"rows"' in query for query in before)
    return before


@pytest.mark.parametrize("what", WRONG)
def test_an_engine_whose_arithmetic_is_wrong_is_refused_before_a_row_is_read(
    what: str, rows: Any, trials: list[str], dialect: Callable[..., None]
) -> None:
    asked, instead, found = WRONG[what]
    coming = iter(trials)

    def stream(expression: Any, size: int) -> Any:
        return rows.get_backend().con.sql(re.sub(asked, instead, next(coming))).to_arrow_reader(size)

    dialect(stream=stream)
    message = "could not answer" if found is None else f"because rounds must be exact.*: it gets {found}.* wrong"
    with pytest.raises(InvalidInput, match=message):
        SqlTable(rows, Reading(columns="*")).check()


def test_engines_are_as_they_should_be(engine: TestEngine) -> None:
    with SqlTable(engine.put("tried", pa.table({"x": [1.0, 2.0]})), Reading(columns="*")) as population:
        population.check()
        assert population.people == 2


def test_an_engine_that_cannot_answer_is_refused_with_what_to_do_instead(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "old.db") as con:
        con.execute("CREATE TABLE visits (age REAL)")
    backend = ibis.sqlite.connect(tmp_path / "old.db")
    with pytest.raises(InvalidInput, match=r"sqlite cannot be used.*; export the rows to Parquet"):
        SqlTable(backend.table("visits"), Reading(columns="*")).check()
    backend.disconnect()


def other(name: str, change: Callable[[list[Any]], list[Any]]) -> Callable[[pa.Table], pa.Table]:
    """An answer with another column of this name."""
    return lambda answer: answer.set_column(
        answer.column_names.index(name), name, pa.array(change(answer[name].to_pylist()))
    )


IMPOSSIBLE: dict[str, Callable[[pa.Table], pa.Table]] = {
    "a bucket is missing": lambda answer: answer.slice(1),
    "a bucket comes twice": other("id", lambda ids: [ids[0]] * len(ids)),
    "a bucket has no id": other("id", lambda ids: [None, *ids[1:]]),
    "an id is beyond all": other("id", lambda ids: [99, *ids[1:]]),
    "an id is below -1": other("id", lambda ids: [-5, *ids[1:]]),
    "fewer rows than none": other("rows", lambda rows: [rows[0] + 500, rows[1] - 500, *rows[2:]]),
    "no sum": other("s0", lambda sums: [None, *sums[1:]]),
    "a sum with a fraction": other("s0", lambda sums: [sums[0] + 0.5, *sums[1:]]),
    "a sum that is a text": other("s1", lambda sums: ["secret" for _ in sums]),
}


@pytest.mark.parametrize("what", IMPOSSIBLE)
def test_an_answer_that_no_rows_could_give_is_refused(what: str, dialect: Callable[..., None]) -> None:
    def answer(expression: Any) -> pa.Table:
        found = DUCKDB.stream(expression, 2**16).read_all()
        return IMPOSSIBLE[what](found) if "s1" in found.column_names else found

    rows = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    table = DuckDB().put("rows", as_table(rows))
    with SqlTable(table, Reading(columns="*")) as population:
        assert agrees(population, rows)
    dialect(answer=answer)
    with SqlTable(table, Reading(columns="*")) as population, pytest.raises(CloisterError) as caught:
        in_square(population)
    assert "secret" not in str(caught.value)


def test_the_kind_of_a_failure_is_told_but_not_the_engine_s_words(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pa.table({"x": np.linspace(-1, 1, 10**5)}), tmp_path / "rows.parquet")
    engine = ibis.duckdb.connect()
    view = engine.read_parquet(tmp_path / "rows.parquet")
    engine.raw_sql("SET memory_limit = '1KB'")
    told = pytest.raises(CloisterError, match=r"duckdb could not answer \(\w+\): nothing was answered")
    with SqlTable(view, Reading(columns="*")) as table, told:
        table.check()
