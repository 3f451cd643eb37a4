"""All rounds of a run are of the same rows, or it is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import attrs
import duckdb
import ibis
import pytest

from cloister.accounting.ledger.database import transaction
from cloister.accounting.ledger.ledger import Ledger
from cloister.core.errors import InvalidInput, Refused
from cloister.core.questions import count
from cloister.core.randomness import PublicRng
from cloister.plugins.methods.described import Facet, Facets
from cloister.plugins.populations.sql_table import SqlTable
from cloister.rows.databases.database import Database
from cloister.rows.databases.dialect import Dialect
from cloister.rows.options import Reading
from cloister.run.fit import parties
from cloister.testing.stubs import ModuloBuckets
from tests.rows.databases.rounds import NEAR, SQUARE, answers, in_square, same
from tests.run.test_resuming import REQUEST, cut_off, run

pytestmark = pytest.mark.usefixtures("way")


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database with rows, a view of them, and one of a file of them."""
    connection = duckdb.connect(str(tmp_path / "lake.db"))
    connection.execute("CREATE TABLE rows AS SELECT range / 100.0 - 1 AS x, (range % 7) / 10.0 AS y FROM range(200)")
    connection.execute("CREATE VIEW seen AS SELECT x, y FROM rows")
    connection.execute(f"COPY rows TO '{tmp_path}/rows.csv'")
    connection.execute(f"CREATE VIEW read AS SELECT * FROM read_csv('{tmp_path}/rows.csv')")
    yield connection
    connection.close()


@pytest.fixture
def found_out(way: str) -> Any:
    """A round of other rows is refused, but where rows are held once they were read: of those it is."""
    said = r"not what they were when this run began.*--materialise"
    return nullcontext() if way == "stream" else pytest.raises(InvalidInput, match=said)


def population(lake: Any, name: str = "rows", columns: Any = "*", **more: Any) -> SqlTable:
    return SqlTable(ibis.duckdb.from_connection(lake).table(name), Reading(columns=columns, **more))


CHANGES = (
    "INSERT INTO rows VALUES (0.5, 0)",
    "DELETE FROM rows WHERE x > 0.9",
    "UPDATE rows SET x = x + 0.001 WHERE x BETWEEN 0.4 AND 0.405",
    "UPDATE rows SET y = 0.1, x = 0.1 WHERE x > 0.98",
)


@pytest.mark.parametrize("name", ["rows", "seen"])
@pytest.mark.parametrize("materialise", [False, True])
def test_who_writes_meanwhile_changes_no_round(lake: Any, name: str, materialise: bool) -> None:
    with population(lake, name, materialise=materialise) as some:
        some.check()
        before = in_square(some)
        for change in CHANGES:
            lake.cursor().execute(change)
            assert same(in_square(some), before), change
        assert some.people == 200
    assert lake.execute("SELECT count(*) FROM rows").fetchone() == (192,)


def test_her_own_transaction_is_the_snapshot_and_hers_to_end(lake: Any) -> None:
    lake.execute("BEGIN TRANSACTION")
    lake.execute("INSERT INTO rows VALUES (0.2, 0)")
    with population(lake) as some:
        some.check()
        assert some.people == 201
    lake.execute("ROLLBACK")
    assert lake.execute("SELECT count(*) FROM rows").fetchall() == [(200,)]


def test_a_connection_is_used_as_before_when_the_run_is_over(lake: Any) -> None:
    for materialise in (False, True):
        with population(lake, materialise=materialise) as some:
            some.check()
        lake.execute("INSERT INTO rows VALUES (0.2, 0)")
        assert lake.execute("SELECT count(*) FROM duckdb_tables() WHERE temporary").fetchall() == [(0,)]
    assert lake.execute("SELECT count(*) FROM rows").fetchall() == [(202,)]


@pytest.mark.parametrize("asked", [NEAR, ModuloBuckets((2,))], ids=["compiled", "streamed"])
@pytest.mark.parametrize("kept", [0, 1], ids=["as many rows", "fewer rows"])
def test_a_view_that_changes_in_spite_of_the_snapshot_is_found(
    lake: Any, tmp_path: Path, asked: Any, kept: int, found_out: Any
) -> None:
    file = tmp_path / "rows.csv"
    with population(lake, "read") as some:
        some.check()
        before = answers(some, SQUARE, (count, asked))
        lines = file.read_text().splitlines()
        file.write_text("\n".join([*lines[: len(lines) - 1 - kept], "0.25,0.25"]))
        with found_out:
            assert same(answers(some, SQUARE, (count, asked)), before)
    with population(lake, "read", materialise=True) as some:
        before = in_square(some)
        file.unlink()
        assert same(in_square(some), before)


def test_fewer_rows_are_found_without_hashes(
    lake: Any, tmp_path: Path, dialect: Callable[..., None], found_out: Any
) -> None:
    dialect(hashed=None)
    file = tmp_path / "rows.csv"
    with population(lake, "read") as some:
        before = in_square(some)
        file.write_text("\n".join(file.read_text().splitlines()[:-1]))
        with found_out:
            assert same(in_square(some), before)


def test_rows_that_change_between_two_queries_of_one_round_are_found(
    lake: Any, tmp_path: Path, dialect: Callable[..., None], monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """A query for each level: every one of them is compared with the rows that were checked."""
    if way != "query":
        pytest.skip("a stream is one query")
    dialect(sets=False)
    file, answer, asked = tmp_path / "rows.csv", Database.answer, list[Any]()

    def later(database: Database, expression: Any) -> Any:
        found = answer(database, expression)
        asked.append(expression)
        if len(asked) == 1:
            lines = file.read_text().splitlines()
            file.write_text("\n".join([*lines[:-1], "0.25,0.25"]))
        return found

    with population(lake, "read") as some:
        some.check()
        facets = Facets(NEAR, (Facet(0), Facet(1)), tuple(int(side) for side in SQUARE.sides), 8)
        assert len(facets.space.sizes) == 2
        monkeypatch.setattr(Database, "answer", later)
        with pytest.raises(InvalidInput, match="not what they were when this run began"):
            answers(some, SQUARE, (count, facets))
    assert len(asked) == 2


def test_rows_made_at_random_are_found_and_copied_or_held_once(lake: Any, found_out: Any) -> None:
    lake.execute("CREATE VIEW dice AS SELECT random() AS x, 0.5 AS y FROM range(500)")
    for materialise in (False, True):
        with population(lake, "dice", materialise=materialise) as some:
            some.check()
            with nullcontext() if materialise else found_out:
                assert same(in_square(some), in_square(some))


@pytest.mark.parametrize("materialise", [False, True])
@pytest.mark.parametrize("column", ["x", "y"])
def test_a_cell_that_changes_is_found_in_every_column(lake: Any, column: str, materialise: bool) -> None:
    """After the snapshot ended, and with it what was held of the rows."""
    some = population(lake, materialise=materialise)
    some.check()
    in_square(some)
    some.close()
    lake.execute(f"UPDATE rows SET {column} = {column} + 1e-9 WHERE x = 0.5")
    with some, pytest.raises(InvalidInput, match="not what they were"):
        in_square(some)


@pytest.mark.parametrize("lacking", [["begin"], ["hashed"], ["begin", "hashed"]])
def test_an_engine_with_neither_snapshot_nor_hashes_is_refused_before_a_row_is_read(
    lake: Any, lacking: list[str], dialect: Callable[..., None]
) -> None:
    dialect(**{name: getattr(Dialect(), name) for name in lacking})
    if len(lacking) == 2:
        lake.execute("CREATE VIEW broken AS SELECT error('a row was read')::DOUBLE AS x, 1.0 AS y FROM rows")
        with pytest.raises(InvalidInput, match=r"no snapshot or row hash of.*--materialise"):
            population(lake, "broken").check()
    with population(lake, materialise=len(lacking) == 2) as some:
        some.check()
        assert some.people == 200


def test_an_error_of_a_view_names_it(lake: Any) -> None:
    lake.execute("CREATE VIEW broken AS SELECT (CASE WHEN x > 0 THEN 'secret' ELSE '1' END)::DOUBLE AS x FROM rows")
    told = r"duckdb could not answer \(ConversionException\): .*; it was raised in 'broken'"
    with population(lake, "broken") as some, pytest.raises(InvalidInput, match=told) as caught:
        some.check()
    assert "secret" not in str(caught.value)


def test_a_database_that_may_only_be_read_is_copied_too(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "a.db")) as writer:
        writer.execute("CREATE TABLE rows AS SELECT 0.5 AS x, 0.1 AS y")
    with duckdb.connect(str(tmp_path / "a.db"), read_only=True) as reader:
        for materialise in (False, True):
            with population(reader, materialise=materialise) as some:
                in_square(some)
                assert some.people == 1


def test_equal_rows_have_one_hash(lake: Any) -> None:
    def fingerprint(value: float) -> bytes:
        lake.execute(f"CREATE OR REPLACE TABLE one AS SELECT '{value!r}'::DOUBLE AS x, 0.5 AS y")
        with population(lake, "one") as some:
            return some.fingerprints(KEY)["the rows"]

    assert fingerprint(-0.0) == fingerprint(0.0) != fingerprint(0.7)


def test_a_pass_that_was_cut_short_is_made_again(lake: Any) -> None:
    lake.execute("INSERT INTO rows SELECT x / 2, y FROM rows, range(400)")
    with population(lake) as some:
        some.check()
        some._held = None
        chunks = some.chunks()
        next(chunks)
        chunks.close()
        assert in_square(some)[0].sum() == 200 * 401


# runs that go on


KEY = bytes(range(32))


@pytest.mark.parametrize(
    ("change", "name", "differs"),
    [
        ("UPDATE rows SET x = x + 0.001 WHERE x = (SELECT max(x) FROM rows)", "rows", "the rows differ"),
        ("DELETE FROM rows WHERE x = (SELECT max(x) FROM rows)", "rows", "the number of rows, the rows differ"),
        ("ALTER TABLE rows ALTER x TYPE DECIMAL(38, 18)", "rows", "the columns, or their types"),
        ("CREATE TABLE others AS SELECT * FROM rows", "others", "the table differ"),
        ("ALTER TABLE rows ADD COLUMN z DOUBLE", "rows", None),
    ],
)
def test_a_run_does_not_go_on_with_a_table_that_changed(
    ledger: Ledger, lake: Any, change: str, name: str, differs: str | None
) -> None:
    columns = ["x", "y"]
    with population(lake, columns=columns) as before:
        cut = cut_off(ledger, before)
    lake.execute(change)
    with population(lake, name, columns) as changed:
        if differs is not None:
            with pytest.raises(Refused, match=f"they have moved: {differs}"):
                run(ledger, changed, resume=cut)
        run(ledger, changed, resume=cut, same_rows=differs is not None)
    assert ledger.runs()[-1].state == "done"


@pytest.mark.parametrize("pooled", [False, True])
def test_a_run_that_began_under_weaker_hashes_goes_on_if_somebody_vouches_for_its_rows(
    ledger: Ledger, lake: Any, pooled: bool
) -> None:
    """Of versions whose hashes of rows were not mixed after the last cell there is no mark of how they hash."""
    lake.execute("CREATE TABLE others AS SELECT y AS x, x AS y FROM rows")

    def some() -> Any:
        tables = [population(lake, name) for name in ("rows", "others")]
        return parties(dict(zip("ab", tables, strict=True))) if pooled else tables[0]

    request = attrs.evolve(REQUEST, trust="aggregated", delta=1e-6) if pooled else REQUEST
    cut = cut_off(ledger, some(), 3, request)
    with transaction(ledger.path, "writing") as db:
        db.execute("delete from marks where what like 'how rows are hashed%'")
    told = "began under an earlier version of cloister, .* resume with --same-rows"
    with pytest.raises(Refused, match=told):
        run(ledger, some(), request, resume=cut)
    run(ledger, some(), request, resume=cut, same_rows=True)
    assert ledger.runs()[-1].state == "done"


def test_marks_say_how_a_table_is_read(lake: Any) -> None:
    """By which a run does not go on with one that is read otherwise."""
    lake.execute("ALTER TABLE rows ADD COLUMN ward VARCHAR DEFAULT 'A'")
    one, other, dropped = (
        population(lake, categories={"ward": list(values)}, missing=missing).fingerprints(KEY)
        for values, missing in (["AB", "refuse"], ["BA", "refuse"], ["AB", "drop"])
    )
    assert "--category (categories=)" in [name for name in one if one[name] != other[name]]
    assert [name for name in one if one[name] != dropped[name]] == ["--missing (missing=)"]


def test_rows_are_known_again_in_any_order_and_in_a_copy(ledger: Ledger, lake: Any) -> None:
    with population(lake) as some:
        fingerprints, cut = some.fingerprints(KEY), cut_off(ledger, some)
        assert some.fingerprints(bytes(32))["the rows"] != fingerprints["the rows"]
    lake.execute("CREATE OR REPLACE TABLE rows AS SELECT * FROM rows ORDER BY y")
    with population(lake) as ordered:
        assert ordered.fingerprints(KEY) == fingerprints
    with population(lake, materialise=True) as copied:
        run(ledger, copied, resume=cut)
    assert ledger.runs()[-1].state == "done"


def test_the_same_rows_of_other_users_are_other_rows(lake: Any) -> None:
    """A run would keep others of them."""
    lake.execute("CREATE TABLE named AS SELECT x, y, row_number() OVER (ORDER BY x) % 700 AS who FROM rows")
    with population(lake, "named", user_column="who") as some:
        before = some.fingerprints(KEY)
    lake.execute("UPDATE named SET who = 699 - who")
    with population(lake, "named", user_column="who") as some:
        after = some.fingerprints(KEY)
    assert [what for what in before if before[what] != after[what]] == ["the rows"]


def test_rows_that_are_others_while_users_are_counted_are_refused(
    lake: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file in which nobody has two rows, for as long as that is looked at."""
    kept, file = Database.copy_in_snapshot, tmp_path / "visits.csv"

    def put(users: int) -> None:
        file.write_text("x,who\n" + "".join(f"{i / 100},{i % users}\n" for i in range(100)))

    def later(database: Database, rows: Any) -> Any:
        put(users=10)
        return kept(database, rows)

    put(users=10)
    lake.execute(f"CREATE VIEW visits AS SELECT * FROM read_csv('{file}')")
    monkeypatch.setattr(Database, "copy_in_snapshot", later)
    with population(lake, "visits", ["x"], user_column="who") as some:
        some.check()
        put(users=100)
        with pytest.raises(InvalidInput, match="not what they were when this run began"):
            some.keep(1, PublicRng.from_seed(1))
