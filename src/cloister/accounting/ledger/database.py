"""The SQLite file behind a ledger: how it is opened, what is in it, and what its errors mean.

One connection per transaction, so that threads and forks share nothing. The rollback journal, not WAL: a ledger at rest
is one file that can be copied and backed up, and it works where WAL's shared memory does not (network mounts).
``synchronous = extra`` is ``full`` and a sync of the directory after the journal is removed: without it, in this mode,
a power cut right after a commit could undo it.

The file is never opened other than by SQLite: closing any descriptor of it would drop this process's locks.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Literal

from cloister.core.errors import CloisterError, Damaged, InvalidInput

APPLICATION = int.from_bytes(b"clst", "big")
VERSION = 2
"""1 had no marks. An older ledger is read as it is, and becomes of this version when it is next written to."""

PATIENCE = 60.0
"""Seconds to wait for other processes."""

NOW = "strftime('%Y-%m-%dT%H:%M:%SZ', 'now')"
"""The time in SQL: UTC, ISO 8601."""

_SCHEMA = """
create table datasets (
    name text primary key, epsilon real not null, delta real not null,
    composition text not null check (composition in ('basic', 'zcdp')), declared text not null);
create table runs (
    id text primary key, dataset text not null references datasets (name), measure text not null,
    epsilon real not null check (epsilon >= 0), delta real not null check (delta >= 0),
    rho real not null check (rho >= 0), plan text not null, seed blob not null, owner text not null,
    state text not null check (state in ('open', 'done')), started text not null, finished text);
create index runs_of_dataset on runs (dataset);
create table rounds (
    run text not null references runs (id), number integer not null, digest text not null,
    closed integer not null default 0, primary key (run, number));
create table looks (
    run text not null references runs (id), number integer not null, round integer not null, question integer not null,
    level integer not null, error integer not null, ids blob not null, shape text not null, answers blob not null,
    primary key (run, number));
"""

_MARKS = """
create table marks (
    run text not null references runs (id), what text not null, digest blob not null, primary key (run, what));
"""


@contextmanager
def transaction(path: Path, kind: Literal["reading", "writing"]) -> Iterator[sqlite3.Connection]:
    """A transaction on an existing ledger: committed and durable when the block ends, undone when it raises.

    A writing one takes the write lock at once (begin immediate), so that what it reads cannot change before it writes.

    Raises:
        Damaged: not a ledger of this version. CloisterError: the file cannot be used now, with the reason.
    """
    with _connection(path, "rw") as db:
        _check(db, path)
        with _within(db, "begin immediate" if kind == "writing" else "begin"):
            if kind == "writing":
                _update(db, _version(db))
            yield db


def create(path: Path) -> None:
    """Make an empty ledger, unless one is there. Processes that do so at the same time agree.

    Raises:
        Damaged: there is a file, and it is not a ledger.
    """
    with _connection(path, "rwc") as db, _within(db, "begin immediate"):
        if db.execute("select count(*) from sqlite_schema").fetchone() == (0,):
            for statement in _SCHEMA.split(";")[:-1]:
                db.execute(statement)
            db.execute(f"pragma application_id = {APPLICATION}")
            _update(db, 1)
    verify(path)


def verify(path: Path) -> None:
    """Read the whole file and check its structure.

    Raises:
        Damaged: it is not a ledger, or it is a broken one.
    """
    with _connection(path, "rw") as db:
        _check(db, path)
        found = [str(row[0]) for row in db.execute("pragma quick_check(1)")]
        if found != ["ok"]:
            raise _damaged(path, found[0])


@contextmanager
def _within(db: sqlite3.Connection, begin: str) -> Iterator[sqlite3.Connection]:
    """Commit when the block ends. When it raises, closing the connection undoes it."""
    db.execute(begin)
    yield db
    db.execute("commit")


@contextmanager
def _connection(path: Path, mode: Literal["rw", "rwc"]) -> Iterator[sqlite3.Connection]:
    if mode == "rw" and not path.is_file():
        raise InvalidInput(f"there is no ledger at {path}: check the path, or create one ('cloister ledger declare')")
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True, timeout=PATIENCE)) as db:
            db.isolation_level = None
            db.execute("pragma synchronous = extra")
            db.execute("pragma foreign_keys = on")
            yield db
    except sqlite3.Error as error:
        raise _translated(error, path) from error


def _check(db: sqlite3.Connection, path: Path) -> None:
    application, version = db.execute("pragma application_id").fetchone()[0], _version(db)
    if application != APPLICATION:
        raise _damaged(path, "it is not a cloister ledger")
    if not 1 <= version <= VERSION:
        raise _damaged(path, f"its format is version {version}, this cloister reads versions up to {VERSION}")


def _version(db: sqlite3.Connection) -> int:
    return int(db.execute("pragma user_version").fetchone()[0])


def _update(db: sqlite3.Connection, version: int) -> None:
    """Bring a ledger of an older version up to this one, within a transaction that holds the write lock."""
    if version < 2:
        db.execute(_MARKS)
        db.execute(f"pragma user_version = {VERSION}")


def _damaged(path: Path, reason: str) -> Damaged:
    return Damaged(
        f"the ledger {path} cannot be trusted ({reason}): restore a backup that is not older than its last run"
    )


def _translated(error: sqlite3.Error, path: Path) -> CloisterError:
    name = getattr(error, "sqlite_errorname", "") or ""
    if name.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
        return _damaged(path, str(error))
    reasons = {
        "SQLITE_BUSY": f"other processes held it for more than {PATIENCE:g} s: try again",
        "SQLITE_LOCKED": f"other processes held it for more than {PATIENCE:g} s: try again",
        "SQLITE_FULL": "the disk is full: make room, then resume",
        "SQLITE_READONLY": "it is read-only: make the file and its folder writable",
        "SQLITE_PERM": "access was denied: make the file and its folder writable",
        "SQLITE_CANTOPEN": "it or its folder cannot be opened: check that both exist and are writable",
    }
    reason = next((text for start, text in reasons.items() if name.startswith(start)), f"{error} ({name or 'SQLite'})")
    return CloisterError(f"the ledger {path} cannot be used: {reason}")
