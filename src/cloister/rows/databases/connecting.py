"""Database addresses, and the table that a name refers to; no message contains a password."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

import ibis
from ibis.common.exceptions import TableNotFound

from cloister.core.errors import CloisterError, InvalidInput, MissingExtra, UnknownName
from cloister.rows.databases import duckdb
from cloister.rows.databases.database import dialect_of

CONNECTION_FAILURES = {
    "there is no such host": ("resolve host", "translate host name", "name or service not known", "getaddrinfo"),
    "nobody answers there: is the server running?": ("connection refused", "timed out", "timeout", "unreachable"),
    "it asks for a password: give it as PGPASSWORD, or in ~/.pgpass": ("no password supplied",),
    "the user or the password is wrong": ("authentication failed", "access denied", "role ", "login failed"),
    "another program has it open for writing: close it there, or give a copy": (
        "could not set lock",
        "database is locked",
    ),
    "this process has it open already, in another way: give a table of that connection, as in "
    "ibis.duckdb.from_connection(con).table('NAME')": ("different configuration",),
    "it is no database of that kind": ("not a valid duckdb", "not a database", "in-memory database"),
    "it was written by another version of the engine": ("version number", "newer version"),
    "there is a table or view of that name already": ("already exists",),
    "permission denied": ("permission denied", "insufficient privilege", "forbidden"),
    "there is no such database": ("does not exist", "unknown database", "not found"),
    "one of the settings after '?' is not known, or its value cannot be used": (
        "configuration",
        "not recognized",
        "parser error",
        "unexpected keyword",
        "invalid connection",
        "invalid uri",
        "could not parse",
    ),
}
"""Message for a failed connection, by fragments of drivers' messages (which may quote secrets)."""


def shown(address: str) -> str:
    """Return the safe part of an address: kind of database, and host or file; never credentials or settings.

    The host is left out if the address may hold an unescaped password, whose end cannot be determined.
    """
    try:
        parts = urlsplit(address)
        host = parts.hostname
    except ValueError:
        return "the database"
    if not parts.scheme or not address.lstrip().lower().startswith(f"{parts.scheme}://"):
        return "the database"
    if parts.scheme in EMBEDDED:
        return f"{parts.scheme}://{parts.netloc}{parts.path}" if _is_plain(parts) else f"{parts.scheme}://"
    beside = ":" in parts.netloc.rpartition("@")[0]
    certain = not beside and "@" not in parts.path + parts.query + parts.fragment and ":" not in parts.path
    return f"{parts.scheme}://{host}" if host and certain else f"{parts.scheme}://"


def _is_plain(parts: SplitResult) -> bool:
    """Return True if a file's address cannot be that of a server, with a user and a password."""
    return not set("@:") & set(parts.netloc + parts.path + parts.query + parts.fragment)


def open_table(address: str, table: str, threads: int | None = None) -> Any:
    """Connect to a database and return one of its tables; embedded engines are opened read-only.

    Args:
        address: in Ibis' form, such as postgres://user@host/database or duckdb:///lake.db.
        table: its name; if no table is called that, schema.table or catalog.schema.table.
        threads: of an embedded engine.

    Raises:
        UnknownName: there is no such engine or table.
        InvalidInput: the database or table cannot be opened; the message says why.
        MissingExtra: the driver is not installed.
    """
    backend = connect(address, threads)
    try:
        return table_of(backend, table, shown(address))
    except BaseException:
        backend.disconnect()
        raise


def connect(address: str, threads: int | None = None, writable: bool = False) -> Any:
    """Return Ibis' backend for an address; raises as ``open_table``."""
    parts = _parts(address)
    scheme = {"postgresql": "postgres"}.get(parts.scheme, parts.scheme)
    schemes = sorted(entry.name for entry in entry_points(group="ibis.backends"))
    if scheme not in schemes:
        if not address.lstrip().lower().startswith(f"{scheme}://"):
            raise InvalidInput(UNREADABLE)
        raise UnknownName("kind of database", parts.scheme, schemes, "(files are given by their paths)")
    if threads is not None and scheme != "duckdb":
        raise InvalidInput(f"threads are {scheme}'s own affair: leave them out, or set them there")
    try:
        if scheme in EMBEDDED:
            return EMBEDDED[scheme](parts, threads, writable)
        return ibis.connect(address)
    except CloisterError:
        raise
    except ImportError as error:
        raise missing_driver(scheme, "reading") from error
    except Exception as error:  # a driver's message may hold a password
        raise InvalidInput(f"{shown(address)} cannot be opened: {_why(error)}") from None


EXTRAS = {"duckdb": ("duckdb", "sql"), "postgres": ("psycopg", "postgres"), "pyspark": ("PySpark", "spark")}
"""Driver and extra, by Ibis' name of an engine."""


def missing_driver(name: str, purpose: str) -> CloisterError:
    """Return the error for an engine whose driver is not installed."""
    if name in EXTRAS:
        return MissingExtra(*EXTRAS[name], f"{purpose} {name}")
    return InvalidInput(f"{purpose} {name} needs more of Ibis: pip install 'ibis-framework[{name}]'")


def execute(backend: Any, statement: str, failed: str) -> None:
    """Execute a statement; on failure raise InvalidInput whose message starts with ``failed``."""
    try:
        backend.raw_sql(statement)
    except Exception as error:  # as above
        raise InvalidInput(f"{failed}: {_why(error)}") from None


def table_of(backend: Any, name: str, shown_address: str) -> Any:
    """Return the table of this name.

    Raises:
        UnknownName: there is none.
        InvalidInput: it cannot be read.
    """
    first, second, *remaining = [*name.split("."), ""]
    places: list[tuple[str, Any]] = [(name, None), (name.partition(".")[2], first)]
    if len(remaining) > 1:
        places.append((".".join(remaining[:-1]), (first, second)))
    for last, place in places:
        if not last:
            continue
        try:
            load_table = dialect_of(backend).table
            ibis_table = backend.table(last, database=place) if load_table is None else load_table(backend, last, place)
            ibis_table.schema()
        except TableNotFound:
            continue
        except Exception as error:  # as above; some engines raise their own error for a missing table
            if _missing(error):
                continue
            raise InvalidInput(f"the table '{name}' of {shown_address} cannot be read: {_why(error)}") from None
        return ibis_table
    raise UnknownName("table", name, _tables(backend), f"(in {shown_address})")


UNREADABLE = "the database's address cannot be read: write it as in postgres://user@host:5432/database"
"""Message for an invalid address; it quotes nothing of the address."""


def _parts(address: str) -> SplitResult:
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError:
        raise InvalidInput(UNREADABLE) from None
    if parts.scheme not in EMBEDDED and "@" in parts.path + parts.fragment + ("" if parts.path else parts.query):
        raise InvalidInput(
            "the database's address cannot be read, since it has an @ after the host: write @ / ? and # of a user's "
            "name, password or database as %40 %2F %3F and %23"
        )
    return parts


def _duckdb(parts: SplitResult, threads: int | None, writable: bool) -> Any:
    options = {
        name: value for name, value in parse_qsl(parts.query) if name.lower() not in ("read_only", "access_mode")
    }
    return ibis.duckdb.connect(_file(parts), read_only=not writable, **{**duckdb.settings(threads), **options})


def _sqlite(parts: SplitResult, threads: int | None, writable: bool) -> Any:
    backend = ibis.sqlite.connect(_file(parts))
    if not writable:
        backend.con.execute("PRAGMA query_only = ON")
    return backend


EMBEDDED: dict[str, Callable[[SplitResult, int | None, bool], Any]] = {"duckdb": _duckdb, "sqlite": _sqlite}
"""Openers of databases that are files."""


def _file(parts: SplitResult) -> str:
    """Return the file of an address: duckdb:///lake.db is absolute for Ibis, and relative for SQLAlchemy.

    Raises:
        InvalidInput: the file does not exist (an embedded engine would create it).
    """
    written = unquote(parts.netloc + parts.path)
    absolute = f"/{written.lstrip('/')}" if written.startswith("/") else written
    if not absolute.strip("/"):
        raise InvalidInput(
            f"{parts.scheme}:// names no file, and an in-memory database cannot be shared: give a file, as "
            f"in {parts.scheme}:///lake.db, or in Python a table of Ibis"
        )
    paths = list(dict.fromkeys([absolute, absolute.lstrip("/")]))
    for path in paths:
        if os.path.isfile(path):
            return path
    if not _is_plain(parts):
        raise InvalidInput(
            f"there is no such database: {parts.scheme}:// names a file, as in {parts.scheme}:///lake.db, and has no "
            f"user, password or host; nothing was made"
        )
    if any(os.path.isdir(path) for path in paths):
        raise InvalidInput(f"'{absolute}' is a folder: give the database's file")
    raise InvalidInput(f"there is no database at {' or '.join(repr(path) for path in paths)}: nothing was made there")


def _why(error: Exception) -> str:
    message = str(error).lower()
    for meaning, parts in CONNECTION_FAILURES.items():
        if any(part in message for part in parts):
            return meaning
    return f"its driver says {type(error).__name__}"


def _missing(error: Exception) -> bool:
    """Return True if a driver's error means that a table, schema or catalog does not exist."""
    message = str(error).lower()
    return any(part in message for part in ("does not exist", "not found", "cannot be found", "no such table"))


def _tables(backend: Any) -> list[str]:
    """Return table names for an error message; empty if the engine cannot list them."""
    try:
        return list(dialect_of(backend).tables(backend))
    except Exception:
        return []
