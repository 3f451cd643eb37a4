"""What a person has said and spent, in one SQLite file on her side: no answer is ever drawn twice.

For every (plan, user): first the charge, durably and for all users of a call at once, then her report, durably, and only then does
it leave. So a crash anywhere loses no spending, and encoding again gives the same bytes. Processes agree: a report is drawn under
the write lock, by whoever comes first.

A user's spending adds up over plans (basic composition: epsilons add, for any choice of later plans). Numbers name people: the same
number in two plans is one person, whose ledger pays for both. Whoever can write the file can restore an old copy: it guards against
accidents.
"""

from __future__ import annotations

import math
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Protocol, final

import numpy as np

from cloister.accounting.accountant import ROUNDING
from cloister.accounting.total import Total
from cloister.core.errors import BudgetExceeded, CloisterError, Damaged, InvalidInput
from cloister.core.types import AnyArray, Bools, Floats, Ids
from cloister.records import Records

APPLICATION = int.from_bytes(b"clsu", "big")
VERSION = 1
PATIENCE = 300.0
"""Seconds to wait for other processes."""

BATCH = 2**14
"""Users per look into the file."""

_SCHEMA = (
    "create table plans (id integer primary key, hash text not null unique, epsilon real not null check (epsilon > 0), delta real not null)",
    "create table reports (plan integer not null references plans (id), user integer not null, report blob, primary key (plan, user)) without rowid",
    f"pragma application_id = {APPLICATION}",
    f"pragma user_version = {VERSION}",
)

_OF_LISTED = "from listed cross join reports on reports.plan = ? and reports.user = listed.user"


class Charged(Protocol):
    """What a plan is to a state."""

    @property
    def hash(self) -> str: ...

    @property
    def total(self) -> Total: ...


@final
class State:
    """A state file. It is made when it is first used.

    Args:
        path: the file.
        lifetime: the most epsilon that a user may ever spend; None: no limit.
        durable: False for a scratch file that nothing depends on.

    Raises (all methods):
        Damaged: the file is something else. CloisterError: it cannot be used now.
    """

    def __init__(self, path: str | os.PathLike[str], lifetime: float | None = None, *, durable: bool = True) -> None:
        if lifetime is not None and not 0 < lifetime < math.inf:
            raise InvalidInput(f"the lifetime is {lifetime}: give the most epsilon that a person may ever spend, > 0")
        self.path, self.lifetime, self._durable = Path(path), lifetime, durable

    def charge(self, plan: Charged, users: Iterable[Ids]) -> None:
        """Charge a plan's epsilon to all these users who have not paid for it: to all, or, if one cannot pay, to nobody.

        Args:
            users: ascending numbers (n,), in one or more pieces.

        Raises:
            BudgetExceeded: says how many cannot pay, and what the poorest has left.
        """
        with self._transaction() as db:
            number, poor, left = _plan(db, plan), 0, math.inf
            for some in _cut(users):
                _list(db, some)
                new = some[~np.isin(some, _paid(db, number))]
                if self.lifetime is not None:
                    _list(db, new)
                    room = self.lifetime - _spent(db, number, new)
                    short = ~(plan.total.epsilon <= room + self.lifetime * (ROUNDING - 1))
                    poor, left = poor + int(short.sum()), min(left, room[short].min(initial=math.inf))
                db.executemany("insert into reports values (?, ?, null)", ((number, user) for user in new.tolist()))
            if poor:
                where = f"the lifetime epsilon of {self.lifetime:g} of {poor:,} of these people"
                raise BudgetExceeded(
                    f"{plan.total.epsilon:g}",
                    f"{max(left, 0.0):g} (at least)" if poor > 1 else f"{max(left, 0.0):g}",
                    where,
                )

    def fill(self, plan: Charged, users: Ids, width: int, draw: Callable[[Bools], Records]) -> Records:
        """The records (n, width) of charged users: those that are remembered, and fresh ones for the others, remembered from now on.

        Args:
            users: (n,) ascending.
            width: bytes of a record.
            draw: fresh records for some of the users, given who (n,).
        """
        records = np.zeros((len(users), width), np.uint8)
        with self._transaction() as db:
            number = _plan(db, plan)
            _list(db, users)
            who, found = _known(db, number, width)
            known = np.isin(users, who)
            records[known] = found
            missing = ~known
            if missing.any():
                records[missing] = draw(missing)
                _remember(db, number, users[missing], records[missing])
        return records

    def records(self, plan: Charged, users: Ids, width: int) -> Records:
        """The remembered records (n, width) of users (n,), ascending.

        Raises:
            Damaged: some user has none.
        """
        with self._transaction() as db:
            _list(db, users)
            who, found = _known(db, _plan(db, plan), width)
        if not np.array_equal(who, users):
            raise _damaged(self.path, "reports that were written are gone")
        return found

    def spent(self, user: int) -> float:
        """The epsilon that a user has spent, over all plans."""
        with self._transaction() as db:
            return math.fsum(
                e for (e,) in db.execute("select epsilon from plans join reports on plan = id where user = ?", [user])
            )

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """One writing transaction: durable when the block ends, undone when it raises."""
        try:
            with closing(sqlite3.connect(self.path, timeout=PATIENCE, isolation_level=None)) as db:
                db.execute(f"pragma synchronous = {'extra' if self._durable else 'off'}")
                db.execute("pragma cache_size = -65536")
                db.execute("pragma temp_store = memory")
                db.execute("begin immediate")
                _opened(db, self.path)
                yield db
                db.execute("commit")
        except sqlite3.Error as error:
            raise _translated(error, self.path) from error


def _opened(db: sqlite3.Connection, path: Path) -> None:
    """Make the tables in an empty file; refuse any other file that is not a state."""
    if db.execute("select count(*) from sqlite_schema").fetchone() == (0,):
        for statement in _SCHEMA:
            db.execute(statement)
    found = db.execute("pragma application_id").fetchone()[0], db.execute("pragma user_version").fetchone()[0]
    if found != (APPLICATION, VERSION):
        raise _damaged(path, "it is not a state file of this version of cloister")


def _plan(db: sqlite3.Connection, plan: Charged) -> int:
    row = [plan.hash, plan.total.epsilon, plan.total.delta]
    db.execute("insert or ignore into plans (hash, epsilon, delta) values (?, ?, ?)", row)
    return int(db.execute("select id from plans where hash = ?", [plan.hash]).fetchone()[0])


def _list(db: sqlite3.Connection, users: Ids) -> None:
    """Say whom the next look is for: users (n,), however far apart their numbers are."""
    db.execute("create temp table if not exists listed (user integer primary key)")
    db.execute("delete from listed")
    db.executemany("insert into listed values (?)", ((user,) for user in users.tolist()))


def _spent(db: sqlite3.Connection, plan: int, users: Ids) -> Floats:
    """What each of the users (n,), ascending, who are listed has spent on other plans."""
    query = (
        "select listed.user, sum(plans.epsilon) from listed cross join plans cross join reports "
        "on reports.plan = plans.id and reports.user = listed.user where plans.id != ? group by listed.user"
    )
    spent = np.zeros(len(users))
    for user, epsilon in db.execute(query, [plan]):
        spent[np.searchsorted(users, np.uint64(user))] = epsilon
    return spent


def _paid(db: sqlite3.Connection, plan: int) -> Ids:
    """The listed users who are charged for a plan."""
    query = f"select listed.user {_OF_LISTED}"
    return np.fromiter((user for (user,) in db.execute(query, [plan])), np.uint64)


def _known(db: sqlite3.Connection, plan: int, width: int) -> tuple[Ids, Records]:
    """The listed users whose records are remembered, ascending, and these (m, width)."""
    query = f"select listed.user, report {_OF_LISTED} where report is not null order by listed.user"
    found = db.execute(query, [plan]).fetchall()
    if any(len(report) != width for _, report in found):
        raise Damaged("the state file holds a report that is no report of its plan: restore a backup")
    who = np.fromiter((user for user, _ in found), np.uint64, len(found))
    return who, np.frombuffer(b"".join(report for _, report in found), np.uint8).reshape(len(found), width)


def _remember(db: sqlite3.Connection, plan: int, users: Ids, records: Records) -> None:
    data, width = records.tobytes(), records.shape[1]
    rows = ((data[i * width : (i + 1) * width], plan, user) for i, user in enumerate(users.tolist()))
    changed = db.executemany(
        "update reports set report = ? where plan = ? and user = ? and report is null", rows
    ).rowcount
    if changed != len(users):
        raise InvalidInput("a user who was not charged cannot report: nothing was written")


def _cut(pieces: Iterable[AnyArray]) -> Iterator[Ids]:
    for users in pieces:
        for start in range(0, len(users), BATCH):
            yield users[start : start + BATCH]


def _damaged(path: Path, reason: str) -> Damaged:
    return Damaged(
        f"the state {path} cannot be trusted ({reason}): restore a backup that is not older than the last reports"
    )


def _translated(error: sqlite3.Error, path: Path) -> CloisterError:
    name = getattr(error, "sqlite_errorname", "") or ""
    if name.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
        return _damaged(path, str(error))
    reason = {
        "SQLITE_BUSY": f"other processes held it for more than {PATIENCE:g} s: try again",
        "SQLITE_FULL": "the disk is full: make room, then encode again",
        "SQLITE_READONLY": "it is read-only: make the file and its folder writable",
        "SQLITE_CANTOPEN": "it or its folder cannot be opened: check that the folder exists and is writable",
    }.get("_".join(name.split("_")[:2]), f"{error} ({name or 'SQLite'})")
    return CloisterError(f"the state {path} cannot be used: {reason}. No report was written")
