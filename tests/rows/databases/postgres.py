"""A PostgreSQL server that a test session starts for itself, in a folder that goes with it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import attrs
import ibis
import psycopg
import pyarrow as pa
import pyarrow.csv
import pytest
import sqlglot as sg

OWNER = "owner"
"""Superuser of the server."""

SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "max_wal_senders": "0",
    "wal_level": "minimal",
}


def quoted(name: str) -> str:
    return sg.to_identifier(name, quoted=True).sql("postgres")


@attrs.define
class Server:
    """PostgreSQL with its data in a folder. Args: binaries, home (data, and the socket that it listens on)."""

    binaries: Path
    home: Path
    process: subprocess.Popen[bytes] | None = None
    opened: list[Any] = attrs.field(factory=list)

    @property
    def as_somebody(self) -> dict[str, Any]:
        """PostgreSQL does not run as root."""
        return {} if os.getuid() else {"user": self.home.owner(), "group": self.home.group(), "extra_groups": ()}

    def start(self) -> None:
        settings = [f"--{name}={value}" for name, value in {**SETTINGS, "unix_socket_directories": self.home}.items()]
        command = [self.binaries / "postgres", "-D", self.home / "data", *settings]
        with (self.home / "log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.home, **self.as_somebody)
        while self.process.poll() is None:
            with suppress(psycopg.OperationalError):
                return self.connect().close()
            time.sleep(0.05)
        raise AssertionError(f"PostgreSQL does not start: {(self.home / 'log').read_text()}")

    def stop(self) -> None:
        """At once: all connections are cut."""
        assert self.process is not None
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait()
        for connection in self.opened:
            connection.close()

    def connect(self, user: str = OWNER, **settings: Any) -> psycopg.Connection[Any]:
        found = psycopg.connect(host=str(self.home), user=user, dbname="postgres", autocommit=True, **settings)
        self.opened.append(found)
        return found

    def ibis(self, user: str = OWNER, **settings: Any) -> Any:
        found = ibis.postgres.connect(host=str(self.home), user=user, database="postgres", **settings)
        self.opened.append(found.con)
        return found


@contextmanager
def server() -> Iterator[Server]:
    """A server of this block. Skips the test where none is installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb")) or [
        Path(path).resolve() for path in [shutil.which("initdb")] if path
    ]
    if not found:
        pytest.skip("no PostgreSQL server is installed (Debian package: postgresql)")
    home = Path(tempfile.mkdtemp(prefix="pg"))  # short: the path of a socket has at most 107 bytes
    try:
        if not os.getuid():
            _give_away(home)
        started = Server(found[-1].parent, home)
        make = [
            started.binaries / "initdb",
            "-D",
            home / "data",
            "-U",
            OWNER,
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C",
            "--no-sync",
        ]
        subprocess.run(make, check=True, capture_output=True, cwd=home, **started.as_somebody)
        started.start()
        try:
            yield started
        finally:
            started.stop()
    finally:
        shutil.rmtree(home)


def _give_away(folder: Path) -> None:
    for user in ("postgres", "nobody"):
        with suppress(LookupError):
            return shutil.chown(folder, user)
    pytest.skip("PostgreSQL does not run as root, and there is no user 'postgres' or 'nobody'")


WIDER = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): pa.decimal128(20, 0)}
"""What PostgreSQL has instead of integers without a sign."""


def _written(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """As COPY takes it: a list in braces."""
    if pa.types.is_list(column.type):
        return pa.chunked_array([[str(cell).translate(str.maketrans("[]", "{}")) for cell in column.to_pylist()]])
    return column


class Postgres:
    """An engine of tests, over a server."""

    name = "postgres"

    def __init__(self, server: Server) -> None:
        self.server = server
        self.backend = server.ibis()
        self._loader = server.connect(options="-c lock_timeout=5min -c client_min_messages=error")

    def put(self, name: str, table: pa.Table) -> Any:
        table = table.cast(pa.schema([field.with_type(WIDER.get(field.type, field.type)) for field in table.schema]))
        schema = ibis.Schema.from_pyarrow(table.schema).to_sqlglot_column_defs("postgres")
        columns = ", ".join(column.sql("postgres") for column in schema)
        self._loader.execute(f"DROP TABLE IF EXISTS {quoted(name)}")
        self._loader.execute(f"CREATE TABLE {quoted(name)} ({columns})")
        sink = pa.BufferOutputStream()
        cells = pa.table({field.name: _written(table[field.name]) for field in table.schema})
        pa.csv.write_csv(cells, sink, pa.csv.WriteOptions(include_header=False))
        with self._loader.cursor().copy(f"COPY {quoted(name)} FROM STDIN (FORMAT csv)") as copy:
            copy.write(memoryview(sink.getvalue()))
        return self.backend.table(name)

    def collated(self, name: str, table: pa.Table) -> Any:
        found = self.put(name, table)
        self.run(
            "CREATE COLLATION IF NOT EXISTS alike (provider = icu, locale = 'und-u-ks-level1', deterministic = false)",
            f"ALTER TABLE {name} ALTER c TYPE text COLLATE alike",
        )
        return found

    def run(self, *statements: str) -> None:
        """By another connection than the tables'."""
        for statement in statements:
            self._loader.execute(statement)

    def cut(self, table: Any) -> None:
        process = table.get_backend().con.info.backend_pid
        self._loader.execute("SELECT pg_terminate_backend(%s)", (process,))

    def cut_and_wait(self, table: Any) -> None:
        """Until the server has ended the connection, however long that takes."""
        process = table.get_backend().con.info.backend_pid
        self.cut(table)
        while self._loader.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", (process,)).fetchone():
            time.sleep(0.01)

    def again(self, name: str) -> Any:
        if self.backend.con.broken:
            self.backend = self.server.ibis()
        return self.backend.table(name)

    def apart(self) -> Postgres:
        return Postgres(self.server)


@contextmanager
def postgres() -> Iterator[Postgres]:
    with server() as running:
        yield Postgres(running)
