"""State: a user's reports and spending, in one SQLite file on her machine, so that no report is drawn twice.

For every plan and user, first the charge for all rounds of the plan is stored, durably and for all users of a call at
once; then, for every round, her report, durably; only then does the report leave. So a crash loses no spending, and
encoding again gives the same bytes. Concurrent processes agree: the first one draws a report under the write lock.

A round is named by everything published before it (``Transcript.heads``), and the file remembers the names it saw: a
plan whose answers changed is refused, so that nobody answers two versions of a round. A plan costs a user its total,
once, however many of its rounds she answers: the schedule that she checks adds up to no more.

A user's spending adds up over plans (basic composition: epsilons add, for any adaptive choice of later plans). A number
names a person: the same number in two plans is one person, who pays for both. The file keeps its lifetime: once a call
has set one, it holds for every later call, and it can only be lowered.

The file is readable by its owner only: under split-and-mix it holds rows with hardly any noise. It guards against
accidents, not against its owner, who can restore an old copy.
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
"""Default lifetime delta: with delta near 1, a plan of small epsilon could publish a user's row as it is."""

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
    """State file, created on first use.

    All methods raise Damaged if the file is no state, and CloisterError if it cannot be used now.

    Args:
        path: the file.
        lifetime: maximum epsilon that a user may ever spend. The first charge stores it in the file; a lower one can be
            given at any time. None: the file's, or no limit if it has none.
        lifetime_delta: the same for delta. None: the file's, or ``LIFETIME_DELTA`` with a new lifetime.
        durable: False for a scratch file.
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
            raise InvalidInput(f"the lifetime is {lifetime}: give the maximum epsilon that a person may spend, > 0")
        if lifetime_delta is not None and not 0 <= lifetime_delta < 1:
            raise InvalidInput(f"the lifetime's delta is {lifetime_delta}: give a probability in [0, 1)")
        self.path, self.lifetime, self.lifetime_delta, self._durable = Path(path), lifetime, lifetime_delta, durable

    def charge(self, transcript: Transcript, users: Iterable[Ids]) -> None:
        """Charge a plan's (epsilon, delta) to users who have not paid for it, and record that they answer its round.

        If one of them cannot pay, nobody is charged. ``users`` are pieces of ascending numbers (n,).

        Raises:
            BudgetExceeded: states how many cannot pay, and the least that any of them has left.
            Refused: the answers of earlier rounds changed; or the file's lifetime is lower than the requested one.
        """
        self._store_lifetime()
        cost, short_users = np.array([transcript.total.epsilon, transcript.total.delta]), np.zeros(2, int)
        with self._transaction() as db:
            lifetime, at = _lifetime(db), _register(db, transcript)
            limits = np.array([math.inf, math.inf] if lifetime is None else lifetime)
            least_left = limits.copy()
            for piece in _split(users):
                _list_users(db, piece)
                if lifetime is not None:
                    new = piece[~np.isin(piece, _paid(db, at[0]))]
                    _list_users(db, new)
                    room = limits - _spent(db, at[0], new)
                    short = ~(cost <= room + limits * (ROUNDING - 1))
                    short_users += short.sum(axis=0)
                    least_left = np.minimum(least_left, np.where(short, room, math.inf).min(axis=0, initial=math.inf))
                db.executemany(
                    "insert or ignore into reports (plan, user, round) values (?, ?, ?)",
                    ((at[0], user, at[1]) for user in piece.tolist()),
                )
            for i, name in enumerate(("epsilon", "delta")):
                if short_users[i]:
                    suffix = "" if short_users[i] == 1 else " (at least)"
                    place = f"the lifetime {name} of {limits[i]:g} of {short_users[i]:,} of these people"
                    raise BudgetExceeded(f"{cost[i]:g}", f"{max(least_left[i], 0.0):g}{suffix}", place)

    def fill(self, transcript: Transcript, users: Ids, width: int, draw: Callable[[Bools], Packed]) -> Packed:
        """Return answers of charged users: the stored ones, and for the other users new ones, which it stores durably.

        Args:
            transcript: the plan's transcript.
            users: (n,) ascending user numbers.
            width: bytes of an answer.
            draw: function that draws the answers of a mask (n,) of the users.

        Returns:
            (n, width) answers.
        """
        answers = np.zeros((len(users), width), np.uint8)
        with self._transaction() as db:
            at = _register(db, transcript)
            _list_users(db, users)
            answered, stored = _stored_answers(db, at, width)
            is_stored = np.isin(users, answered)
            answers[is_stored] = stored
            missing = ~is_stored
            if missing.any():
                answers[missing] = draw(missing)
                _remember(db, at, users[missing], answers[missing])
        return answers

    def answers(self, transcript: Transcript, users: Ids, width: int) -> Packed:
        """Return the stored answers (n, width) of ascending users (n,). Raises: Damaged: some user has none."""
        with self._transaction() as db:
            _list_users(db, users)
            answered, stored = _stored_answers(db, _register(db, transcript), width)
        if not np.array_equal(answered, users):
            raise STORE.damaged(self.path, "reports that were written are gone")
        return stored

    def spent(self, user: int) -> float:
        """Return the epsilon that a user has spent, over all plans."""
        return self._spent(user, "epsilon")

    def spent_delta(self, user: int) -> float:
        """Return the delta that a user has spent, over all plans."""
        return self._spent(user, "delta")

    def _spent(self, user: int, column: str) -> float:
        query = f"select {column} from plans where exists (select 1 from reports where plan = id and user = ?)"
        with self._transaction() as db:
            return math.fsum(amount for (amount,) in db.execute(query, [user]))

    def _store_lifetime(self) -> None:
        """Store the requested lifetime in its own transaction, so that it holds even if the charge is refused."""
        requested = self.lifetime, self.lifetime_delta
        if requested == (None, None):
            return
        with self._transaction() as db:
            stored = _lifetime(db)
            if stored is None and self.lifetime is None:
                raise InvalidInput(
                    f"the state {self.path} has no lifetime, so delta cannot be limited: give --lifetime too"
                )
            old = stored or (math.inf, LIFETIME_DELTA if self.lifetime_delta is None else self.lifetime_delta)
            new = tuple(was if now is None else now for was, now in zip(old, requested, strict=True))
            if any(now > was for was, now in zip(old, new, strict=True)):
                raise Refused(
                    f"the state {self.path} has a lifetime of epsilon = {old[0]:g} and delta = {old[1]:g}, which "
                    f"cannot be raised to {new[0]:g} and {new[1]:g}: give a lower one, or none"
                )
            if new != stored:
                db.execute("insert or replace into lifetime values (1, ?, ?)", new)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Open a write transaction: durable when the block ends, rolled back when it raises."""
        with STORE.transaction(self.path, "writing", self._durable) as db:
            try:
                yield db
            except (TypeError, ValueError) as error:  # SQLite allows cells of another type than their column's
                raise STORE.damaged(self.path, "an entry is of another kind") from error


def _lifetime(db: sqlite3.Connection) -> tuple[float, float] | None:
    """Return the file's lifetime (epsilon, delta), or None."""
    lifetime: tuple[float, float] | None = db.execute("select epsilon, delta from lifetime").fetchone()
    return lifetime


def _register(db: sqlite3.Connection, transcript: Transcript) -> tuple[int, int]:
    """Store a new plan or round; return the plan's id and open round. Raises: Refused: published answers changed."""
    row = [transcript.hash, transcript.total.epsilon, transcript.total.delta]
    db.execute("insert or ignore into plans (hash, epsilon, delta) values (?, ?, ?)", row)
    plan = int(db.execute("select id from plans where hash = ?", [transcript.hash]).fetchone()[0])
    for number, head in enumerate(transcript.heads):
        db.execute("insert or ignore into rounds values (?, ?, ?)", [plan, number, head])
    stored = db.execute("select number, head from rounds where plan = ?", [plan])
    if any(number < len(transcript.heads) and head != transcript.heads[number] for number, head in stored):
        raise Refused("the publisher of this plan has changed answers that were published before: no report was made")
    return plan, len(transcript.heads) - 1


def _list_users(db: sqlite3.Connection, users: Ids) -> None:
    """Fill the temporary table for the next query with users (n,)."""
    db.execute("create temp table if not exists listed (user integer primary key)")
    db.execute("delete from listed")
    db.executemany("insert into listed values (?)", ((user,) for user in users.tolist()))


def _spent(db: sqlite3.Connection, plan: int, users: Ids) -> Floats:
    """Return epsilon and delta (n, 2) that each listed user (n,), ascending, has spent on other plans."""
    query = (
        "select listed.user, sum(plans.epsilon), sum(plans.delta) from listed cross join plans where plans.id != ? and "
        "exists (select 1 from reports where plan = plans.id and user = listed.user) group by listed.user"
    )
    spent = np.zeros((len(users), 2))
    for user, *both in db.execute(query, [plan]):
        spent[np.searchsorted(users, np.uint64(user))] = both
    return spent


def _paid(db: sqlite3.Connection, plan: int) -> Ids:
    """Return the listed users who have been charged for a plan, in any round."""
    query = "select user from listed where exists (select 1 from reports where plan = ? and user = listed.user)"
    return np.fromiter((user for (user,) in db.execute(query, [plan])), np.uint64)


def _stored_answers(db: sqlite3.Connection, at: tuple[int, int], width: int) -> tuple[Ids, Packed]:
    """Return the listed users with a stored answer, ascending, and their answers (m, width)."""
    query = f"select listed.user, report {_OF_LISTED} where report is not null order by listed.user"
    rows = db.execute(query, at).fetchall()
    if any(len(report) != width for _, report in rows):
        raise Damaged("the state file holds a report that its plan does not allow: restore a backup of the file")
    users = np.fromiter((user for user, _ in rows), np.uint64, len(rows))
    return users, np.frombuffer(b"".join(report for _, report in rows), np.uint8).reshape(len(rows), width)


def _remember(db: sqlite3.Connection, at: tuple[int, int], users: Ids, answers: Packed) -> None:
    data, width = answers.tobytes(), answers.shape[1]
    rows = ((data[i * width : (i + 1) * width], at[0], user, at[1]) for i, user in enumerate(users.tolist()))
    changed = db.executemany(
        "update reports set report = ? where plan = ? and user = ? and round = ? and report is null", rows
    ).rowcount
    if changed != len(users):
        raise InvalidInput("a user who was not charged cannot report: nothing was written")


def _split(pieces: Iterable[AnyArray]) -> Iterator[Ids]:
    for users in pieces:
        for start in range(0, len(users), BATCH):
            yield users[start : start + BATCH]
