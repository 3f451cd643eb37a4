"""The SQLite file of a ledger: its tables, transactions on it, and its data sets and runs."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, final

import attrs

from cloister.accounting.ledger import counter
from cloister.accounting.ledger.privacy_filter import Composition, Cost, Lifetime
from cloister.accounting.ledger.sqlite import Store
from cloister.accounting.privacy_target import PrivacyTarget, Unit
from cloister.core.budget import Measure
from cloister.core.errors import Damaged, InvalidInput, UnknownName
from cloister.core.plain_data import parsed

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
"""``of_users``: data sets whose unit of privacy is the user; all others' is the row. ``results``: what finished runs
released, as text that can be printed again without the rows and the options.
"""

_OWNERS = (
    "create table if not exists owners (dataset text primary key references datasets (name), owner text not null, "
    "note text not null)"
)
"""Owners of data sets and notes on them: made when there is first one to write."""

LEDGER = Store(
    "ledger",
    b"clst",
    tuple(_TABLES.split(";")[:-1]),
    patience=60.0,
    backup="its last run",
    pragmas=("pragma foreign_keys = on",),
)


@contextmanager
def transaction(path: Path, kind: Literal["reading", "writing", "making"]) -> Iterator[sqlite3.Connection]:
    """Open a transaction on a ledger (see ``Store``) that is counted when the block ends (see ``counter``).

    Raises:
        InvalidInput: there is no ledger.
        Damaged: it lacks what was counted.
    """
    if kind != "making" and not path.is_file():
        raise InvalidInput(f"there is no ledger at {path}: check the path, or create one ('cloister ledger declare')")
    beside = counter.counter_of(path)
    with LEDGER.transaction(path, kind) as db:
        counted, earlier = _counted(db, path, beside)
        yield db
        stored = counter.counts_in(db, counted) if kind == "writing" else earlier
        if stored.keys() != earlier.keys():
            counter.write(beside, counter.with_announced(earlier, stored), path)
    if kind == "writing" and stored != counted:
        with LEDGER.transaction(path, kind) as db:
            counter.write(beside, _counted(db, path, beside)[1], path)


def _counted(db: sqlite3.Connection, path: Path, beside: Path) -> tuple[counter.Counts, counter.Counts]:
    """Return the counts of the counter and those of the ledger, which are no less.

    Raises:
        Damaged: they are less.
    """
    counted = counter.read(beside)
    stored = counter.counts_in(db, counted)
    if lost := counter.runs_lacking_entries(stored, counted):
        others = f" and of {len(lost) - 1} more" if len(lost) > 1 else ""
        raise LEDGER.damaged(path, f"it lacks rounds or answers of run {lost[0]}{others}, which {beside.name} counted")
    return counted, stored


def create(path: Path) -> None:
    """Make an empty ledger, or check the one that is there.

    Raises:
        Damaged: it is not a ledger, or a broken one.
    """
    there = path.exists()
    try:
        with transaction(path, "making"):
            pass
    except Damaged:
        if not there:  # one that is made beside the counter of another is refused while it is empty
            path.unlink(missing_ok=True)
        raise
    verify(path)


def verify(path: Path) -> None:
    """Read the whole file and check its structure.

    Raises:
        Damaged: it is not a ledger, or a broken one.
    """
    with transaction(path, "reading") as db:
        verdict = str(db.execute("pragma quick_check(1)").fetchone()[0])
        if verdict != "ok":
            raise LEDGER.damaged(path, verdict)


MOST_NOTE = 200
"""Largest number of characters of a note."""


def check_line(field: str, text: str) -> None:
    """Check that a text is one line of at most ``MOST_NOTE`` printable characters.

    Raises:
        InvalidInput: it is not.
    """
    if not isinstance(text, str) or len(text) > MOST_NOTE or not text.isprintable():
        raise InvalidInput(
            f"the {field} is {str(text)[:MOST_NOTE]!r}: give one line of at most {MOST_NOTE} printable characters"
        )


@final
@attrs.frozen
class About:
    """Description of a run for whoever reads the ledger: public figures, and the holder's own words.

    Args:
        note: one line of at most ``MOST_NOTE`` printable characters.
        method: its name.
        k: a number, or a range as text.
        columns: names of the features.

    Raises:
        InvalidInput: the note is longer, or has other characters.
    """

    note: str = ""
    method: str = ""
    k: str = ""
    columns: tuple[str, ...] = ()

    def __attrs_post_init__(self) -> None:
        check_line("note", self.note)


NOTHING = About()


@final
@attrs.frozen
class RunStatus:
    """Status of a run. epsilon, delta and rho are reserved while it is open, and spent when it is done.

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
        """Run's share of the lifetime budget."""
        return Cost(self.epsilon, self.delta, self.rho)


@final
@attrs.frozen
class DatasetStatus:
    """Status of a data set. ``spent`` counts open runs in full.

    ``left`` is text in what its composition adds up; ``owner`` and ``note`` are the curator's own words.
    """

    dataset: str
    lifetime: PrivacyTarget
    composition: Composition
    declared: str
    spent: Cost
    left: str
    runs: tuple[RunStatus, ...]
    unit: Unit = "rows"
    owner: str = ""
    note: str = ""


def status_of(
    life: Lifetime, declared: str, runs: tuple[RunStatus, ...], owner: str = "", note: str = ""
) -> DatasetStatus:
    """Return the status of a data set with these runs."""
    spent = Cost.summed(r.cost for r in runs)
    left = life.left(spent)
    return DatasetStatus(
        life.dataset, life.total, life.composition, declared, spent, left, runs, life.unit, owner, note
    )


def owners(db: sqlite3.Connection) -> dict[str, tuple[str, str]]:
    """Return owner and note of the data sets that have any, by name."""
    if db.execute("select 1 from sqlite_schema where name = 'owners'").fetchone() is None:
        return {}
    return {name: (owner, note) for name, owner, note in db.execute("select dataset, owner, note from owners")}


def store_owner(db: sqlite3.Connection, dataset: str, owner: str | None, note: str | None) -> None:
    """Write a data set's owner and its note; None leaves what is there."""
    db.execute(_OWNERS)
    stored = owners(db).get(dataset, ("", ""))
    now = [old if new is None else new for old, new in zip(stored, (owner, note), strict=True)]
    db.execute("insert or replace into owners values (?, ?, ?)", [dataset, *now])


def lifetimes(db: sqlite3.Connection) -> dict[str, Lifetime]:
    """Return all declared lifetimes, by name."""
    rows = db.execute("select name, epsilon, delta, composition from datasets order by name")
    users = {name for (name,) in db.execute("select dataset from of_users")}
    return {
        name: Lifetime(name, PrivacyTarget(epsilon, delta), how, "users" if name in users else "rows")
        for name, epsilon, delta, how in rows
    }


def lifetime_of(db: sqlite3.Connection, dataset: str) -> Lifetime:
    """Return one declared lifetime.

    Raises:
        UnknownName: no such data set.
    """
    declared = lifetimes(db)
    if dataset not in declared:
        raise UnknownName(
            "data set", dataset, declared, "(declare its lifetime budget first: 'cloister ledger declare')"
        )
    return declared[dataset]


def result_of(db: sqlite3.Connection, run: str) -> str | None:
    """Return the text of a finished run's result; None if it was finished without one."""
    row = db.execute("select result from results where run = ?", [run]).fetchone()
    return None if row is None else str(row[0])


def runs_of(db: sqlite3.Connection, dataset: str | None) -> tuple[RunStatus, ...]:
    """Return the runs on one data set, or on all, oldest first."""
    rows = db.execute(
        "select id, dataset, state, measure, epsilon, delta, rho, plan, started, finished, "
        "(select count(*) from rounds where run = id), (select count(*) from looks where run = id), "
        "note, method, k, columns from runs where ? is null or dataset = ? order by rowid",
        [dataset, dataset],
    )
    return tuple(RunStatus(*[*row[:-1], _listed(row[-1])]) for row in rows)


def _listed(text: str) -> tuple[str, ...]:
    """Return the names in a stored list.

    Raises:
        Damaged: it is no list of names.
    """
    try:
        names = parsed(text.encode())
        if not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
            raise TypeError
        return tuple(names)
    except (ValueError, TypeError, AttributeError):
        raise Damaged("the ledger's names of a run's columns are damaged: restore a backup of it") from None
