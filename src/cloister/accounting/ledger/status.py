"""A ledger's data sets and runs, for people and for the filter."""

from __future__ import annotations

import json
import sqlite3
from typing import Literal, final

import attrs

from cloister.accounting.ledger.privacy_filter import Composition, Cost, Lifetime
from cloister.accounting.total import Total, Unit
from cloister.core.budget import Measure
from cloister.core.errors import Damaged, InvalidInput, UnknownName

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
