"""A lifetime budget per data set, kept over many runs and processes in one SQLite file."""

from __future__ import annotations

import json
import secrets
import shlex
import sqlite3
from os import PathLike
from pathlib import Path
from typing import Self, final

import attrs

from cloister.accounting.ledger import database
from cloister.accounting.ledger.counter import counter_of, unused
from cloister.accounting.ledger.database import (
    NOTHING,
    NOW,
    About,
    DatasetStatus,
    RunStatus,
    check_line,
    keep_owner,
    lifetime_of,
    lifetimes,
    owners,
    result_of,
    runs_of,
    status_of,
    transaction,
)
from cloister.accounting.ledger.privacy_filter import Composition, Cost, Lifetime
from cloister.accounting.ledger.run import Run, compare_reading, compare_rows, end, keep_marks, marked_rows, recorded
from cloister.accounting.privacy_target import PrivacyTarget, Unit
from cloister.core.budget import Budget
from cloister.core.defaults import DELTA
from cloister.core.errors import InvalidInput, Refused, UnknownName
from cloister.core.fingerprints import Fingerprinter
from cloister.core.record import Record

LATEST = 8
"""Most finished runs that are named where none is open."""


@final
@attrs.frozen
class Ledger:
    """Reserves a run's whole budget before it starts, and takes back what is left only when it ends.

    A crash at any point leaves at least what was spent recorded as spent: a reservation counts until ``finish``.
    Processes that reserve runs at the same time are admitted one after the other. The ledger guards against accidents:
    an old copy is refused by the ``counter`` beside it, and whoever can write both can write anything.

    Args: path (the file; ``Ledger.open`` checks it first).

    Raises (all methods):
        CloisterError: the file cannot be used now (locked, full disk, read-only), with what to do. Damaged: it is no
        ledger, or a broken one. InvalidInput: it is not there.
    """

    path: Path = attrs.field(converter=Path)

    @classmethod
    def open(cls, path: str | PathLike[str], create: bool = False) -> Self:
        """Read and check a ledger's file. Args: path, create (make an empty ledger if there is none)."""
        ledger = cls(Path(path))
        if create:
            database.create(ledger.path)
        else:
            database.verify(ledger.path)
        return ledger

    def declare(
        self,
        dataset: str,
        epsilon: float,
        delta: float = DELTA,
        composition: Composition = "basic",
        unit: Unit = "rows",
        owner: str | None = None,
        note: str | None = None,
    ) -> None:
        """Give a data set its lifetime budget. Repeating the same declaration is fine; figures never change.

        Args:
            dataset: a name for the data, whatever file it is in: two names for one data set are two budgets.
            epsilon, delta: what all runs together may cost.
            composition: how runs add up, see ``privacy_filter``.
            unit: whom it protects: every row, or every user with all her rows. A user is then always the same person:
                two columns that tell users apart are two data sets.
            owner, note: who answers for it, and a line on it, in place of what a declaration before said.

        Raises:
            InvalidInput: figures out of range, an empty name, ``zcdp`` with delta = 0, or more than a line.
            Refused: the data set was declared with other figures.
        """
        asked = checked(dataset, epsilon, delta, composition, unit, owner, note)
        with transaction(self.path, "writing") as db:
            known = lifetimes(db).get(dataset)
            if known is None:
                row = [dataset, asked.total.epsilon, asked.total.delta, composition]
                db.execute(f"insert into datasets values (?, ?, ?, ?, {NOW})", row)
                if unit == "users":
                    db.execute("insert into of_users values (?)", [dataset])
            elif known != asked:
                raise Refused(
                    f"data set '{dataset}' was declared with epsilon {known.total.epsilon}, delta {known.total.delta}, "
                    f"composition {known.composition}, for {known.unit}: a lifetime budget cannot be changed"
                )
            if owner is not None or note is not None:
                keep_owner(db, dataset, owner, note)

    def reserve(
        self,
        dataset: str,
        total: PrivacyTarget,
        budget: Budget,
        plan: str,
        seed: bytes,
        rows: Fingerprinter | None = None,
        run: str | None = None,
        about: About = NOTHING,
    ) -> Run:
        """Take a run's whole budget out of the data set's lifetime, before any row is read.

        Args:
            dataset: a declared name.
            total, budget: what the run may cost (``budget`` from ``total.measured``).
            plan: digest of the public plan; whoever resumes must bring the same.
            seed: the run's public seed, kept for ``resume``.
            rows: marks of the rows, kept for ``resume`` too.
            run: its id, from ``new_run``, where somebody must know it beforehand.
            about: what the run is, for whoever reads the ledger.

        Raises:
            BudgetExceeded: not enough is left; says how much is.
            UnknownName: no such data set.
            Refused: the run spends delta on thresholds, and runs on this data set add up in zCDP, where all of delta
                pays for the conversion; or its guarantee is for users and the data set counts rows, or the reverse.
        """
        cost = Cost.reserved(total, budget)
        run, owner = run or new_run(), secrets.token_hex(16)
        if rows is not None:  # admit first: a refused run leaves no key, and none of its rows is read
            self.admits(dataset, total, budget)
        marks = marked_rows(self.path, run, rows)
        with transaction(self.path, "writing") as db:
            _admit(db, dataset, budget, cost, total.unit)
            row = [run, dataset, budget.measure, cost.epsilon, cost.delta, cost.rho, plan, seed, owner]
            row += [about.note, about.method, about.k, json.dumps(about.columns)]
            db.execute(f"insert into runs values (?, ?, ?, ?, ?, ?, ?, ?, ?, 'open', {NOW}, null, ?, ?, ?, ?)", row)
            keep_marks(db, run, marks)
        return Run(run, dataset, seed, Record(), self.path, owner)

    def admits(self, dataset: str, total: PrivacyTarget, budget: Budget) -> None:
        """Check whether a run could be reserved now. Raises: as ``reserve``."""
        with transaction(self.path, "reading") as db:
            _admit(db, dataset, budget, Cost.reserved(total, budget), total.unit)

    def resume(
        self, run: str, dataset: str, plan: str, rows: Fingerprinter | None = None, same_rows: bool = False
    ) -> Run:
        """Take over a run that did not finish, with its journal. The process that held it can write no more.

        Args:
            run: its id.
            dataset: the declared name of the data that it goes on with.
            plan: digest of the public plan.
            rows: marks of the rows that it goes on with, which must equal those that it was reserved with; without
                any, somebody has to say that the rows are the same.
            same_rows: accept other marks of rows: the caller says that they are the same (in files that were copied,
                say). How rows are read is the same, whoever says so.

        Raises:
            UnknownName: no such run.
            Refused: it is finished, on another data set or of another plan, its rows are read otherwise or seem to be
                others, or nobody can tell.
        """
        with transaction(self.path, "reading") as db:
            _found(db, run, dataset, state="open")
        marks, owner = marked_rows(self.path, run, rows), secrets.token_hex(16)
        with transaction(self.path, "writing") as db:
            _found(db, run, dataset, state="open")
            compare_reading(db, run, marks)  # first: a plan has features for names, this has options
            seed = _found(db, run, dataset, plan).seed
            if not same_rows:
                compare_rows(db, run, marks)
            keep_marks(db, run, marks)
            db.execute("update runs set owner = ? where id = ?", [owner, run])
            return Run(run, dataset, seed, recorded(db, run), self.path, owner)

    def replay(self, run: str, dataset: str, plan: str) -> Run | None:
        """A finished run with its journal, from which its result can be computed again at no cost; None: it is open.

        Raises: UnknownName: no such run. Refused: it is on another data set, or finished and of another plan, or was
            given back.
        """
        with transaction(self.path, "reading") as db:
            if _found(db, run, dataset).state == "open":
                return None
            found = _found(db, run, dataset, plan)
            _kept(db, run)
            return Run(run, dataset, found.seed, recorded(db, run), self.path, found.owner)

    def give_back(self, run: str) -> RunStatus:
        """End a run that never opened a round, and return to its data set all that it reserved. A process that still
        holds it can ask nothing more.

        That it opened none is proved by the ledger and its ``counter``; not if both were restored together.

        Returns: the run as it was.

        Raises:
            UnknownName: no such run.
            Refused: it is finished, it opened a round, or nobody can tell, since no counter saw its reservation.
        """
        with transaction(self.path, "writing") as db:
            _found(db, run, None, state="open")
            beside, found = counter_of(self.path), next(status for status in runs_of(db, None) if status.id == run)
            if found.rounds:
                raise Refused(
                    f"run {run} opened {found.rounds} rounds, and what they answered may be known: its reservation "
                    f"stays; go on with --resume {run}, which pays nothing twice"
                )
            if not unused(beside, run):
                raise Refused(
                    f"nobody can tell whether run {run} asked anything ({beside.name} has not counted it since it was "
                    f"reserved): its reservation stays; go on with --resume {run}, which pays nothing twice"
                )
            end(db, run, Cost())
            return found

    def plan_of(self, run: str) -> str | None:
        """The digest of the plan that a run was reserved for; None: there is no such run."""
        with transaction(self.path, "reading") as db:
            row = db.execute("select plan from runs where id = ?", [run]).fetchone()
            return None if row is None else str(row[0])

    def result(self, run: str) -> str:
        """Result of a finished run, as the text that it was finished with.

        Raises: UnknownName: no such run. Refused: it is not finished, or was finished without one.
        """
        with transaction(self.path, "reading") as db:
            row = db.execute("select dataset, state from runs where id = ?", [run]).fetchone()
            if row is None:
                raise UnknownName("run", run, (str(r[0]) for r in db.execute("select id from runs")))
            dataset, state = row
            text = result_of(db, run)
            if state != "open":
                _kept(db, run)
        again = shlex.join(["--ledger", str(self.path), "--dataset", dataset, "--resume", run])
        if state == "open":
            raise Refused(f"run {run} is not finished: repeat its command with {again}, which pays nothing twice")
        if text is None:
            raise Refused(
                f"the ledger does not hold the result of run {run}: repeat its command with {again}, which computes it "
                f"again for nothing"
            )
        return text

    def status(self) -> tuple[DatasetStatus, ...]:
        """All data sets, by name."""
        with transaction(self.path, "reading") as db:
            declared = dict(db.execute("select name, declared from datasets"))
            said = owners(db)
            return tuple(
                status_of(life, declared[name], runs_of(db, name), *said.get(name, ()))
                for name, life in lifetimes(db).items()
            )

    def runs(self, dataset: str | None = None) -> tuple[RunStatus, ...]:
        """The runs on one data set, or on all, oldest first. Raises: UnknownName: no such data set."""
        with transaction(self.path, "reading") as db:
            return runs_of(db, dataset if dataset is None else lifetime_of(db, dataset).dataset)


def new_run() -> str:
    """The id of a run that nobody has reserved yet."""
    return secrets.token_hex(6)


def checked(
    dataset: str,
    epsilon: float,
    delta: float,
    composition: Composition,
    unit: Unit,
    owner: str | None = None,
    note: str | None = None,
) -> Lifetime:
    """A lifetime that may be declared. Args, and Raises: InvalidInput: as ``Ledger.declare``."""
    total = PrivacyTarget(epsilon, delta)
    check_line("owner", owner or "")
    check_line("note", note or "")
    if not dataset:
        raise InvalidInput("a data set needs a name")
    if composition not in ("basic", "zcdp"):
        raise InvalidInput(f"composition is '{composition}', expected 'basic' or 'zcdp'")
    if unit not in ("rows", "users"):
        raise InvalidInput(f"unit is '{unit}', expected 'rows' or 'users'")
    if composition == "zcdp" and total.delta == 0:
        raise InvalidInput(
            "a lifetime in zCDP needs delta > 0: delta is what is missing. Give --delta 1e-6 (delta=1e-6), or "
            "--composition basic (composition='basic')"
        )
    return Lifetime(dataset, total, composition, unit)


def _admit(db: sqlite3.Connection, dataset: str, budget: Budget, cost: Cost, unit: Unit) -> None:
    """Check that the lifetime covers a run and all admitted before, finished or not. Raises: as ``Ledger.reserve``."""
    lifetime = lifetime_of(db, dataset)
    lifetime.refuse_other(unit, budget)
    lifetime.admit(Cost.summed(r.cost for r in runs_of(db, dataset)), cost)


@attrs.frozen
class _Found:
    """Columns of a run's row in the database."""

    seed: bytes
    state: str
    owner: str


def _kept(db: sqlite3.Connection, run: str) -> None:
    """Raises: Refused: a finished run was given back."""
    asked = db.execute("select count(*) from rounds where run = ?", [run]).fetchone()[0]
    if not asked and result_of(db, run) is None:
        raise Refused(f"run {run} was given back before it asked anything: start a new one")


def _found(
    db: sqlite3.Connection, run: str, dataset: str | None, plan: str | None = None, state: str | None = None
) -> _Found:
    """The run, checked to be on this data set, of this plan and in this state if one is given.

    Raises: UnknownName: no such run. Refused: a check fails.
    """
    row = db.execute("select dataset, plan, state, seed, owner from runs where id = ?", [run]).fetchone()
    if row is None:
        there = db.execute("select id, state from runs order by rowid desc").fetchall()
        left = [name for name, now in there if now == "open"]
        raise UnknownName("run", run, left or [name for name, _ in there[:LATEST]])
    owned, known, now, seed, owner = row
    if dataset not in (None, owned):
        raise Refused(f"run {run} is on data set '{owned}', not '{dataset}': it cannot go on with other data")
    if state not in (None, now):
        raise Refused(f"run {run} is finished: its result is final, start a new run")
    if plan not in (None, known):
        raise Refused(f"run {run} was reserved for plan {known}, this plan is {plan}: give it the same options")
    return _Found(bytes(seed), now, owner)
