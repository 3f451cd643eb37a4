"""Databases' addresses, as people type them."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch

import duckdb
import ibis
import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

from cloister import KMeans
from cloister.core.errors import CloisterError, InvalidInput, MissingExtra, UnknownName
from cloister.rows.databases import connecting
from cloister.rows.databases.connecting import open_table
from cloister.rows.places import is_address
from cloister.run.fit import source

ADDRESS = "postgres://u:secret@db:5432/hospital?password=secret"


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A database in the working folder, with tables of awkward names."""
    path = tmp_path / "lake.db"
    with duckdb.connect(str(path)) as con:
        con.execute("CREATE TABLE visits AS SELECT 1.0 AS age")
        con.execute("CREATE SCHEMA ward")
        con.execute('CREATE TABLE ward."bay.1" AS SELECT 2.0 AS stay')
        con.execute("CREATE TABLE ward.beds AS SELECT 3.0 AS bed")
    monkeypatch.chdir(tmp_path)
    return path


def test_a_table_is_found_by_its_name_alone_or_with_its_schema_and_catalogue(lake: Path) -> None:
    for name, column in (
        ("lake.main.visits", "age"),
        ("ward.beds", "bed"),
        ("ward.bay.1", "stay"),
        ("lake.ward.bay.1", "stay"),
    ):
        assert open_table("duckdb:///lake.db", name).columns == (column,), name
    with duckdb.connect(str(lake)) as con:
        con.execute('CREATE TABLE "ward.beds" AS SELECT 1 AS other')
    assert open_table("duckdb:///lake.db", "ward.beds").columns == ("other",), (
        "a name with dots is first taken as it is"
    )


def test_three_slashes_are_an_absolute_path_or_else_a_relative_one_and_no_file_is_made(lake: Path) -> None:
    for address in ("duckdb:///lake.db", "duckdb://lake.db", f"duckdb://{lake}", f"duckdb:///{lake}"):
        assert open_table(address, "visits").columns == ("age",)
    with pytest.raises(InvalidInput, match=r"no database at '/pond.db' or 'pond.db'"):
        open_table("duckdb:///pond.db", "visits")
    assert [path.name for path in lake.parent.iterdir()] == ["lake.db"]


@pytest.mark.parametrize("settings", ["", "?read_only=false", "?access_mode=READ_WRITE", "sqlite"])
def test_an_embedded_database_cannot_be_written(lake: Path, settings: str) -> None:
    address = f"duckdb://{lake}{settings}"
    if settings == "sqlite":
        with sqlite3.connect(lake.parent / "other.db") as other:
            other.execute("CREATE TABLE visits AS SELECT 1.0 AS age")
        address = f"sqlite://{lake.parent / 'other.db'}"
    backend = open_table(address, "visits").get_backend()
    with pytest.raises((duckdb.InvalidInputException, sqlite3.OperationalError), match=r"read-?only"):
        backend.con.execute("DROP TABLE visits")
    backend.disconnect()


def test_a_table_of_another_schema_is_named_as_it_must_be_given(lake: Path) -> None:
    for written, meant in (("visit", "visits"), ("Beds", "ward.beds"), ("bay.1", "ward.bay.1")):
        with pytest.raises(UnknownName, match=f"no table '{written}': did you mean ") as caught:
            open_table("duckdb:///lake.db", written)
        assert meant in caught.value.near
        open_table("duckdb:///lake.db", meant).get_backend().disconnect()


def test_a_file_that_is_written_says_by_whom_and_what_to_do(lake: Path) -> None:
    held = f"import duckdb; held = duckdb.connect({str(lake)!r}); print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", held], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        with pytest.raises(InvalidInput, match="another program has it open for writing"):
            open_table("duckdb:///lake.db", "visits")
        other.kill()
    with duckdb.connect(str(lake)), pytest.raises(InvalidInput, match=r"ibis.duckdb.from_connection"):
        open_table("duckdb:///lake.db", "visits")  # which this process writes


@pytest.mark.parametrize(
    ("address", "error", "said"),
    [
        ("postgres://h/d", ImportError(), "postgres needs psycopg: pip install"),
        ("pyspark://", ImportError(), "pyspark needs PySpark: pip install"),
        ("trino://u@h/d", ImportError(), r"ibis-framework\[trino\]"),
        (ADDRESS, OSError("failed to resolve host 'u:secret@db': [Errno -2] not known"), "no such host"),
        (ADDRESS, OSError('FATAL:  role "secret" does not exist'), "user or the password"),
        (ADDRESS, OSError('FATAL:  database "secret" does not exist'), "no such database"),
        (ADDRESS, OSError('FATAL:  permission denied for database "secret"'), "permission denied"),
        (ADDRESS, OSError("something else: secret"), "postgres:// cannot be opened.* driver says OSError"),
        ("postgres://u@db:5432/hospital", OSError("secret"), "postgres://db cannot be opened"),
    ],
)
def test_a_driver_is_told_in_other_words_without_the_password(
    monkeypatch: pytest.MonkeyPatch, address: str, error: Exception, said: str
) -> None:
    """Also what brings one that is not installed."""
    monkeypatch.setattr(ibis, "connect", Mock(side_effect=error))
    with pytest.raises((InvalidInput, MissingExtra), match=said) as caught:
        open_table(address, "visits")
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    "address",
    [
        "postgres://u:secret@db:x/hospital",
        "nosuch://u:secret@db/x",
        "mysql://u:secret@db/x",
        "postgres://u:12/secret@127.0.0.1:1/hospital",
        "postgres://u:77#secret@127.0.0.1:1/hospital",
        "postgres://u:77?secret@127.0.0.1:1/hospital",
        "postgres://u:a@b/secret@127.0.0.1:1/hospital",
        "postgres:u:secret@127.0.0.1:1/hospital://",
    ],
)
def test_what_cannot_be_connected_to_never_shows_the_password(address: str) -> None:
    with pytest.raises((InvalidInput, MissingExtra)) as caught:
        open_table(address, "visits")
    assert "secret" not in str(caught.value)
    assert "77" not in str(caught.value)


SECRETS = ("qzj", "Xkw", "7731", "j\u00fcq")
"""Parts of passwords, which no message has otherwise."""

PASSWORDS = st.lists(st.sampled_from([*SECRETS, *"/?#@:%[]\\&=;, \t\n+'\"", "%2F", "://"]), min_size=1, max_size=7)
KINDS = entry_points(group="ibis.backends")
SCHEMES = [
    *("postgres://", " postgres://", "postgresql://", "POSTGRES://", "jdbc:postgresql://", "postgres:", "postgres:/"),
    *("mysql://", "duckdb://", "duckdb:///", "sqlite://", "nosuch://", ""),
]
ENDS = [
    *("@db.example/hospital", "@db.example:5432/hospital", "@127.0.0.1", "@[::1]:1/x", "@db.example/x?sslmode=no"),
    *("@", "", "/hospital://", "@db/x#y", "@other@db/x"),
]


@given(
    st.sampled_from(SCHEMES),
    st.sampled_from(["u", "", "a@b", "a/b"]),
    PASSWORDS,
    st.sampled_from(ENDS),
    st.booleans(),
)
@example("postgres://", "u", ["77", "/", "a", "?", "qzj"], "@db.example/hospital", False)
@example("postgres://", "u", ["7731", "@", "qzj", "/", "Xkw", "?"], "@db.example/hospital", False)
@example("duckdb://", "u", ["qzj"], "@db.example/hospital", False)
@example("duckdb://", "u", ["7731", "qzj"], "", False)
@example("postgres://", "u", ["@", "qzj"], "", False)
@example("postgres://", "", ["7731", "@", "qzj", "/", "Xkw"], "", True)
@settings(max_examples=100, deadline=None)
def test_no_part_of_a_password_is_told_however_an_address_is_written(
    scheme: str, user: str, password: list[str], end: str, setting: bool
) -> None:
    """Only what is not a password's part at all: the kind of database, and a host that is certain."""

    def refuse(address: str) -> Any:
        raise OSError(f"cannot parse {address}")

    word = "".join(password)
    address = f"{scheme}{user}:{word}{end}" + (f"?password={word}" if setting else "")
    told, kinds = connecting.shown(address), lambda group: KINDS  # which takes long to look up
    with patch.object(connecting.ibis, "connect", refuse), patch.object(connecting, "entry_points", kinds):
        with pytest.raises(CloisterError) as caught:
            open_table(address, "visits")
        told += str(caught.value)
        if is_address(address):
            with pytest.raises(CloisterError) as caught:
                source(address, columns=["age"], table="visits")
            told += str(caught.value)
    assert not [secret for secret in SECRETS if secret.lower() in told.lower()]


def test_a_connection_ends_with_the_population_that_made_it_and_no_other_one_does(lake: Path) -> None:
    with source("duckdb:///lake.db", columns=["age"], table="visits") as named:
        assert named.columns == ("age",)
        named.check()
    with duckdb.connect(str(lake)) as con:  # which no reader holds any more
        con.execute("ALTER TABLE visits RENAME age TO years")
        with pytest.raises(InvalidInput, match=r"ibis.duckdb.from_connection\(con\).table"):
            source(con.sql("SELECT * FROM visits"), columns=["age"])
    table = ibis.duckdb.connect(str(lake), read_only=True).table("visits")
    with source(table, columns=["years"]) as given:
        given.check()
    assert table.get_backend().con.execute("SELECT * FROM visits").fetchall()
    table.get_backend().disconnect()
    with pytest.raises(UnknownName, match="column"):
        source("duckdb:///lake.db", columns=["age"], table="ward.beds")
    duckdb.connect(str(lake)).close()


def test_an_estimator_is_fitted_to_a_table_where_it_is() -> None:
    backend = ibis.duckdb.connect()
    backend.raw_sql("CREATE TABLE visits AS SELECT range % 3 / 2 AS x, 0.0 AS y, range AS n FROM range(900)")
    model = KMeans(3, epsilon=50, delta=1e-6, rows=900, bounds={"x": (0, 1), "y": (0, 1)})
    model.fit(backend.table("visits"))
    assert model.feature_names_in_.tolist() == ["x", "y"]
    assert np.sort(model.cluster_centers_[:, 0]) == pytest.approx([0, 0.5, 1], abs=0.1)
    with pytest.raises(ValueError, match="have no order"):
        model.predict(backend.table("visits"))
