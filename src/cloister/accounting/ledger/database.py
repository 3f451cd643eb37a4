"""The SQLite file of a ledger: its tables, transactions on it, and its data sets and runs, for people and for the
privacy filter.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal, final

import attrs

from cloister.accounting.ledger.privacy_filter import Composition, Cost, Lifetime
from cloister.accounting.ledger.sqlite import Store
from cloister.accounting.total import Total, Unit
from cloister.core.budget import Measure
from cloister.core.errors import Damaged, InvalidInput, UnknownName

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


MOST_NOTE = 200
"""Most characters of a note."""


@final
@attrs.frozen
class About:
    """Description of a run, for whoever reads the ledger: public figures, and the holder's own words.

    Args: note (one line of at most ``MOST_NOTE`` printable characters), method (its name), k (a number, or a range as
    text), columns (names of the features).

    Raises: InvalidInput: the note is longer, or has other characters.
    """

    note: str = ""
    method: str = ""
    k: str = ""
    columns: tuple[str, ...] = ()

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.note, str) or len(self.note) > MOST_NOTE or not self.note.isprintable():
            raise InvalidInput(
                f"the note is {str(self.note)[:MOST_NOTE]!r}: give one line of at most {MOST_NOTE} printable characters"
            )


NOTHING = About()


@final
@attrs.frozen
class RunStatus:
    """One run, for people. epsilon, delta and rho are reserved while it is open, and spent when it is done.

    ``started`` and ``finished`` are UTC, ISO 8601; ``rounds`` counts those opened, ``lookups`` those released.
    """

    id: str
    dataset: str
    state: Literal["open", "done"]
    measure: Measure
    epsilon: float
    delta: float
    rho: float
    plan: str
    started: str
    finished: str | None
    rounds: int
    lookups: int
    note: str = ""
    method: str = ""
    k: str = ""
    columns: tuple[str, ...] = ()

    @property
    def cost(self) -> Cost:
        """The run's share of the lifetime budget."""
        return Cost(self.epsilon, self.delta, self.rho)


@final
@attrs.frozen
class DatasetStatus:
    """One data set, for people. ``spent`` counts open runs in full; ``left`` is text in the composition's currency."""

    dataset: str
    lifetime: Total
    composition: Composition
    declared: str
    spent: Cost
    left: str
    runs: tuple[RunStatus, ...]
    unit: Unit = "rows"


def status_of(life: Lifetime, declared: str, runs: tuple[RunStatus, ...]) -> DatasetStatus:
    """The status of a data set with these runs."""
    spent = Cost.summed(r.cost for r in runs)
    return DatasetStatus(life.dataset, life.total, life.composition, declared, spent, life.left(spent), runs, life.unit)


def lifetimes(db: sqlite3.Connection) -> dict[str, Lifetime]:
    """All declared lifetimes, by name."""
    rows = db.execute("select name, epsilon, delta, composition from datasets order by name")
    users = {name for (name,) in db.execute("select dataset from of_users")}
    return {
        name: Lifetime(name, Total(epsilon, delta), how, "users" if name in users else "rows")
        for name, epsilon, delta, how in rows
    }


def lifetime_of(db: sqlite3.Connection, dataset: str) -> Lifetime:
    """One declared lifetime. Raises: UnknownName: no such data set."""
    known = lifetimes(db)
    if dataset not in known:
        raise UnknownName("data set", dataset, known, "(declare its lifetime budget first: 'cloister ledger declare')")
    return known[dataset]


def result_of(db: sqlite3.Connection, run: str) -> str | None:
    """The text of a finished run's result; None: it was finished without one."""
    row = db.execute("select result from results where run = ?", [run]).fetchone()
    return None if row is None else str(row[0])


def runs_of(db: sqlite3.Connection, dataset: str | None) -> tuple[RunStatus, ...]:
    """The runs on one data set, or on all, oldest first."""
    rows = db.execute(
        "select id, dataset, state, measure, epsilon, delta, rho, plan, started, finished, "
        "(select count(*) from rounds where run = id), (select count(*) from looks where run = id), "
        "note, method, k, columns from runs where ? is null or dataset = ? order by rowid",
        [dataset, dataset],
    )
    return tuple(RunStatus(*[*row[:-1], _listed(row[-1])]) for row in rows)


def _listed(text: str) -> tuple[str, ...]:
    """Names as the ledger keeps them. Raises: Damaged."""
    try:
        return tuple(map(str, json.loads(text)))
    except (ValueError, TypeError):
        raise Damaged("the ledger's names of a run's columns are damaged: restore a backup of it") from None
