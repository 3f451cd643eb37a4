"""A user's reports and spending, in one SQLite file on her side: no report is ever drawn twice.

For every (plan, user), first the charge for all rounds of the plan is stored, durably and for all users of a call at
once; then, for every round, her report, durably; only then does the report leave. So a crash anywhere loses no
spending, and encoding again gives the same bytes. Processes agree: the first one draws a report under the write lock.

A round is named by everything published before it (``Transcript.heads``), and the file remembers the names it saw: a
plan that shows other answers than before is refused, so that nobody answers two versions of a round. A plan costs a
user its total, once, however many of its rounds she answers: the schedule that she checks adds up to no more.

A user's spending adds up over plans (basic composition: epsilons add, for any choice of later plans). A number names a
person: the same number in two plans is one person, who pays for both. A lifetime is a promise of the file: once a call
has given one, every later call keeps it, whether it names one or not, and it can only be lowered.

The file is readable by its owner only: under split-and-mix it holds rows with hardly any noise. It guards against
accidents, not against its owner: whoever can write the file can restore an old copy.
"""

from __future__ import annotations

import math
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import final

import numpy as np

from cloister.accounting.accountant import ROUNDING
from cloister.accounting.ledger.sqlite import Store
from cloister.collection.plan.transcript import Transcript
from cloister.collection.wire.answers import Packed
from cloister.core.errors import BudgetExceeded, Damaged, InvalidInput, Refused
from cloister.core.types import AnyArray, Bools, Floats, Ids

LIFETIME_DELTA = 1e-3
"""Default limit on a user's total delta once there is a lifetime: with delta near 1, a plan of small epsilon could
publish her row as it is."""

BATCH = 2**14
"""Users per database query."""

_PLANS = (
    "create table plans (id integer primary key, hash text not null unique, epsilon real not null check (epsilon > 0), "
    "delta real not null)"
)
_ROUNDS = (
    "create table rounds (plan integer not null references plans (id), number integer not null, head text not null, "
    "primary key (plan, number)) without rowid",
    "create table reports (plan integer not null references plans (id), user integer not null, round integer not null, "
    "report blob, primary key (plan, user, round)) without rowid",
)
_LIFETIME = (
    "create table lifetime (one integer primary key check (one = 1), epsilon real not null check (epsilon > 0), "
    "delta real not null)"
)

STORE = Store(
    "state",
    b"clsu",
    (_PLANS, *_ROUNDS, _LIFETIME),
    patience=300.0,
    backup="the last reports",
    pragmas=("pragma cache_size = -65536", "pragma temp_store = memory"),
    personal=True,
    undone=". No report was written",
)

_OF_LISTED = "from listed cross join reports on reports.plan = ? and reports.user = listed.user and reports.round = ?"


@final
class State:
    """A state file, created on first use.

    Args:
        path: the file.
        lifetime: the most epsilon that a user may ever spend. The first charge writes it into the file, and all later
            ones keep it; a lower one can be given at any time. None: the file's, or no limit if it has none.
        lifetime_delta: the same for delta. None: the file's, or ``LIFETIME_DELTA`` with a new lifetime.
        durable: False for a scratch file.

    Raises (all methods):
        Damaged: the file is something else. CloisterError: it cannot be used now.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        lifetime: float | None = None,
        *,
        lifetime_delta: float | None = None,
        durable: bool = True,
    ) -> None:
        if lifetime is not None and not 0 < lifetime < math.inf:
            raise InvalidInput(f"the lifetime is {lifetime}: give the most epsilon that a person may ever spend, > 0")
        if lifetime_delta is not None and not 0 <= lifetime_delta < 1:
            raise InvalidInput(f"the lifetime's delta is {lifetime_delta}: give a probability in [0, 1)")
        self.path, self.lifetime, self.lifetime_delta, self._durable = Path(path), lifetime, lifetime_delta, durable

    def charge(self, asking: Transcript, users: Iterable[Ids]) -> None:
        """Charge a plan's (epsilon, delta) to those of these users who have not paid for it yet (all of them or, if one
        cannot pay, none), and record that they are about to answer its open round. Args: users (pieces of ascending
        numbers (n,)).

        Raises:
            BudgetExceeded: says how many cannot pay, and the least that any of them has left.
            Refused: earlier rounds now show other answers than before; or the file's lifetime is lower than the given.
        """
        self._promise()
        asked, poor = np.array([asking.total.epsilon, asking.total.delta]), np.zeros(2, int)
        with self._transaction() as db:
            promised, at = _promised(db), _place(db, asking)
            limits = np.array([math.inf, math.inf] if promised is None else promised)
            left = limits.copy()
            for some in _cut(users):
                _list(db, some)
                if promised is not None:
                    new = some[~np.isin(some, _paid(db, at[0]))]
                    _list(db, new)
                    room = limits - _spent(db, at[0], new)
                    short = ~(asked <= room + limits * (ROUNDING - 1))
                    poor += short.sum(axis=0)
                    left = np.minimum(left, np.where(short, room, math.inf).min(axis=0, initial=math.inf))
                db.executemany(
                    "insert or ignore into reports (plan, user, round) values (?, ?, ?)",
                    ((at[0], user, at[1]) for user in some.tolist()),
                )
            for i, name in enumerate(("epsilon", "delta")):
                if poor[i]:
                    few = "" if poor[i] == 1 else " (at least)"
                    where = f"the lifetime {name} of {limits[i]:g} of {poor[i]:,} of these people"
                    raise BudgetExceeded(f"{asked[i]:g}", f"{max(left[i], 0.0):g}{few}", where)

    def fill(self, asking: Transcript, users: Ids, width: int, draw: Callable[[Bools], Packed]) -> Packed:
        """Answers (n, width) of charged users: the remembered ones, and for the other users new ones, stored durably.
        Args: users ((n,) ascending), width (bytes of an answer), draw (given a mask (n,), draws these users' answers).
        """
        answers = np.zeros((len(users), width), np.uint8)
        with self._transaction() as db:
            at = _place(db, asking)
            _list(db, users)
            who, found = _known(db, at, width)
            known = np.isin(users, who)
            answers[known] = found
            missing = ~known
            if missing.any():
                answers[missing] = draw(missing)
                _remember(db, at, users[missing], answers[missing])
        return answers

    def answers(self, asking: Transcript, users: Ids, width: int) -> Packed:
        """The remembered answers (n, width) of ascending users (n,). Raises: Damaged: some user has none."""
        with self._transaction() as db:
            _list(db, users)
            who, found = _known(db, _place(db, asking), width)
        if not np.array_equal(who, users):
            raise STORE.damaged(self.path, "reports that were written are gone")
        return found

    def spent(self, user: int) -> float:
        """Epsilon that a user has spent, over all plans."""
        return self._spent(user, "epsilon")

    def spent_delta(self, user: int) -> float:
        """Delta that a user has spent, over all plans."""
        return self._spent(user, "delta")

    def _spent(self, user: int, what: str) -> float:
        query = f"select {what} from plans where exists (select 1 from reports where plan = id and user = ?)"
        with self._transaction() as db:
            return math.fsum(amount for (amount,) in db.execute(query, [user]))

    def _promise(self) -> None:
        """Store the given lifetime in its own transaction: it then holds even if the charge that follows is refused."""
        given = self.lifetime, self.lifetime_delta
        if given == (None, None):
            return
        with self._transaction() as db:
            before = _promised(db)
            if before is None and self.lifetime is None:
                raise InvalidInput(
                    f"the state {self.path} has no lifetime, so no delta can be limited: give the most epsilon too "
                    "(--lifetime)"
                )
            old = before or (math.inf, LIFETIME_DELTA if self.lifetime_delta is None else self.lifetime_delta)
            new = tuple(was if now is None else now for was, now in zip(old, given, strict=True))
            if any(now > was for was, now in zip(old, new, strict=True)):
                raise Refused(
                    f"the state {self.path} promises a lifetime of at most epsilon = {old[0]:g} and delta = "
                    f"{old[1]:g}, and {new[0]:g} and {new[1]:g} were given: it can be lowered, never raised: give a "
                    "lower one, or none"
                )
            if new != before:
                db.execute("insert or replace into lifetime values (1, ?, ?)", new)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """A write transaction: durable when the block ends, rolled back when it raises. Raises: Damaged: a cell is of
        another kind than its column, which SQLite allows."""
        with STORE.transaction(self.path, "writing", self._durable) as db:
            try:
                yield db
            except (TypeError, ValueError) as error:
                raise STORE.damaged(self.path, "an entry is of another kind") from error


def _promised(db: sqlite3.Connection) -> tuple[float, float] | None:
    """The file's lifetime (epsilon, delta), or None."""
    found: tuple[float, float] | None = db.execute("select epsilon, delta from lifetime").fetchone()
    return found


def _place(db: sqlite3.Connection, asking: Transcript) -> tuple[int, int]:
    """Store a plan and its rounds if new; its id and open round. Raises: Refused: the published answers changed."""
    row = [asking.hash, asking.total.epsilon, asking.total.delta]
    db.execute("insert or ignore into plans (hash, epsilon, delta) values (?, ?, ?)", row)
    plan = int(db.execute("select id from plans where hash = ?", [asking.hash]).fetchone()[0])
    for number, head in enumerate(asking.heads):
        db.execute("insert or ignore into rounds values (?, ?, ?)", [plan, number, head])
    seen = db.execute("select number, head from rounds where plan = ?", [plan])
    if any(number < len(asking.heads) and head != asking.heads[number] for number, head in seen):
        raise Refused(
            "the published answers are not those that were published before: the publisher of this plan has changed "
            "them. No report was made"
        )
    return plan, len(asking.heads) - 1


def _list(db: sqlite3.Connection, users: Ids) -> None:
    """Fill the temporary table that the next query joins with users (n,)."""
    db.execute("create temp table if not exists listed (user integer primary key)")
    db.execute("delete from listed")
    db.executemany("insert into listed values (?)", ((user,) for user in users.tolist()))


def _spent(db: sqlite3.Connection, plan: int, users: Ids) -> Floats:
    """Epsilon and delta (n, 2) that each listed user (n,), ascending, has spent on other plans."""
    query = (
        "select listed.user, sum(plans.epsilon), sum(plans.delta) from listed cross join plans where plans.id != ? and "
        "exists (select 1 from reports where plan = plans.id and user = listed.user) group by listed.user"
    )
    spent = np.zeros((len(users), 2))
    for user, *both in db.execute(query, [plan]):
        spent[np.searchsorted(users, np.uint64(user))] = both
    return spent


def _paid(db: sqlite3.Connection, plan: int) -> Ids:
    """The listed users who have been charged for a plan, in any round."""
    query = "select user from listed where exists (select 1 from reports where plan = ? and user = listed.user)"
    return np.fromiter((user for (user,) in db.execute(query, [plan])), np.uint64)


def _known(db: sqlite3.Connection, at: tuple[int, int], width: int) -> tuple[Ids, Packed]:
    """The listed users with a remembered answer, ascending, and their answers (m, width)."""
    query = f"select listed.user, report {_OF_LISTED} where report is not null order by listed.user"
    found = db.execute(query, at).fetchall()
    if any(len(report) != width for _, report in found):
        raise Damaged("the state file holds a report that is no report of its plan: restore a backup of the file")
    who = np.fromiter((user for user, _ in found), np.uint64, len(found))
    return who, np.frombuffer(b"".join(report for _, report in found), np.uint8).reshape(len(found), width)


def _remember(db: sqlite3.Connection, at: tuple[int, int], users: Ids, answers: Packed) -> None:
    data, width = answers.tobytes(), answers.shape[1]
    rows = ((data[i * width : (i + 1) * width], at[0], user, at[1]) for i, user in enumerate(users.tolist()))
    changed = db.executemany(
        "update reports set report = ? where plan = ? and user = ? and round = ? and report is null", rows
    ).rowcount
    if changed != len(users):
        raise InvalidInput("a user who was not charged cannot report: nothing was written")


def _cut(pieces: Iterable[AnyArray]) -> Iterator[Ids]:
    for users in pieces:
        for start in range(0, len(users), BATCH):
            yield users[start : start + BATCH]
