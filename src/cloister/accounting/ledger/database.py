"""The SQLite file of a ledger: its tables, and transactions on it."""

from __future__ import annotations

import sqlite3
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal

from cloister.accounting.ledger.sqlite import Store
from cloister.core.errors import InvalidInput

NOW = "strftime('%Y-%m-%dT%H:%M:%SZ', 'now')"
"""SQL for the current time: UTC, ISO 8601."""

_TABLES = """
create table datasets (
    name text primary key, epsilon real not null, delta real not null,
    composition text not null check (composition in ('basic', 'zcdp')), declared text not null);
create table runs (
    id text primary key, dataset text not null references datasets (name), measure text not null,
    epsilon real not null check (epsilon >= 0), delta real not null check (delta >= 0),
    rho real not null check (rho >= 0), plan text not null, seed blob not null, owner text not null,
    state text not null check (state in ('open', 'done')), started text not null, finished text,
    note text not null default '', method text not null default '', k text not null default '',
    columns text not null default '[]');
create index runs_of_dataset on runs (dataset);
create table rounds (
    run text not null references runs (id), number integer not null, digest text not null,
    closed integer not null default 0, primary key (run, number));
create table looks (
    run text not null references runs (id), number integer not null, round integer not null, question integer not null,
    level integer not null, error integer not null, ids blob not null, shape text not null, answers blob not null,
    primary key (run, number));
create table marks (
    run text not null references runs (id), what text not null, digest blob not null, primary key (run, what));
create table of_users (dataset text primary key references datasets (name));
create table results (run text primary key references runs (id), result text not null);
"""
"""``of_users`` are the data sets whose lifetime is a user's, all others' is a row's. ``results`` is what finished runs
released, as text that can be printed again without the rows and the options."""

LEDGER = Store(
    "ledger",
    b"clst",
    tuple(_TABLES.split(";")[:-1]),
    patience=60.0,
    backup="its last run",
    pragmas=("pragma foreign_keys = on",),
)


def transaction(path: Path, kind: Literal["reading", "writing"]) -> AbstractContextManager[sqlite3.Connection]:
    """A transaction on an existing ledger, see ``Store``.

    Raises: InvalidInput: there is none.
    """
    if not path.is_file():
        raise InvalidInput(f"there is no ledger at {path}: check the path, or create one ('cloister ledger declare')")
    return LEDGER.transaction(path, kind)


def create(path: Path) -> None:
    """Make an empty ledger, or check the one that is there. Raises: Damaged: not a ledger, or a broken one."""
    with LEDGER.transaction(path, "making"):
        pass
    verify(path)


def verify(path: Path) -> None:
    """Read the whole file and check its structure. Raises: Damaged: it is not a ledger, or it is a broken one."""
    with transaction(path, "reading") as db:
        found = str(db.execute("pragma quick_check(1)").fetchone()[0])
        if found != "ok":
            raise LEDGER.damaged(path, found)
