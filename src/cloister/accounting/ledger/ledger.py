"""A ledger: lifetime budgets of data sets and their runs, in one SQLite file that many processes share."""

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
from cloister.accounting.ledger.counter import counter_of, never_asked
from cloister.accounting.ledger.database import (
    NOTHING,
    NOW,
    About,
    DatasetStatus,
    RunStatus,
    check_line,
    lifetime_of,
    lifetimes,
    owners,
    result_of,
    runs_of,
    status_of,
    store_owner,
    transaction,
)
from cloister.accounting.ledger.privacy_filter import Composition, Cost, Lifetime
from cloister.accounting.ledger.run import (
    Run,
    check_options,
    check_rows,
    mark_done,
    record_of,
    row_fingerprints,
    store_fingerprints,
)
from cloister.accounting.privacy_target import PrivacyTarget, Unit
from cloister.core.budget import Budget
from cloister.core.defaults import DELTA
from cloister.core.errors import InvalidInput, Refused, UnknownName
from cloister.core.fingerprints import Fingerprinter
from cloister.core.record import Record

MAX_NAMED_RUNS = 8
"""Largest number of finished runs that an error names where none is open."""


@final
@attrs.frozen
class Ledger:
    """Ledger that reserves a run's whole budget before it starts, and takes back what is left when it ends.

    A crash at any point leaves at least what was spent recorded as spent: a reservation counts until ``finish``.
    Processes that reserve runs at the same time are admitted one after the other. The ledger guards against accidents:
    an old copy is refused by the ``counter`` beside it, and whoever can write both can write anything.

    All methods raise CloisterError if the file cannot be used now (locked, full disk, read-only), with what to do,
    Damaged if it is no ledger or a broken one, and InvalidInput if it does not exist.

    Args:
        path: the file; ``Ledger.open`` checks it first.
    """

    path: Path = attrs.field(converter=Path)

    @classmethod
    def open(cls, path: str | PathLike[str], create: bool = False) -> Self:
        """Check a ledger's file, and return the ledger.

        Args:
            path: the file.
            create: make an empty ledger if there is none.
        """
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
            epsilon: what all runs together may cost.
            delta: as epsilon.
            composition: how runs add up, see ``privacy_filter``.
            unit: the unit of privacy: a row, or a user with all of their rows. A user is then always the same person:
                two columns that identify users are two data sets.
            owner: who answers for it, in place of an earlier declaration's.
            note: a line on it, likewise.

        Raises:
            InvalidInput: figures out of range, an empty name, ``zcdp`` with delta = 0, or an owner or note of several
                lines.
            Refused: the data set was declared with other figures.
        """
        lifetime = checked_lifetime(dataset, epsilon, delta, composition, unit, owner, note)
        with transaction(self.path, "writing") as db:
            declared = lifetimes(db).get(dataset)
            if declared is None:
                row = [dataset, lifetime.total.epsilon, lifetime.total.delta, composition]
                db.execute(f"insert into datasets values (?, ?, ?, ?, {NOW})", row)
                if unit == "users":
                    db.execute("insert into of_users values (?)", [dataset])
            elif declared != lifetime:
                raise Refused(
                    f"data set '{dataset}' was declared with epsilon {declared.total.epsilon}, delta "
                    f"{declared.total.delta}, composition {declared.composition}, for {declared.unit}: a lifetime "
                    f"budget cannot be changed"
                )
            if owner is not None or note is not None:
                store_owner(db, dataset, owner, note)

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
        """Reserve a run's whole budget in the data set's lifetime, before any row is read.

        Args:
            dataset: a declared name.
            total: what the run may cost.
            budget: what that buys each row, from ``total.measured``.
            plan: digest of the public plan; whoever resumes must bring the same.
            seed: the run's public seed, kept for ``resume``.
            rows: fingerprints of the rows, kept for ``resume``.
            run: its id, from ``new_run``, if somebody must know it beforehand.
            about: description of the run, for whoever reads the ledger.

        Raises:
            BudgetExceeded: not enough is left; says how much is.
            UnknownName: no such data set.
            Refused: the run spends delta on thresholds, and runs on this data set add up in zCDP, where all of delta
                pays for the conversion; or its unit of privacy is not the data set's.
        """
        cost = Cost.reserved(total, budget)
        run, owner = run or new_run(), secrets.token_hex(16)
        if rows is not None:  # admit first: a refused run leaves no key, and none of its rows is read
            self.admits(dataset, total, budget)
        fingerprints = row_fingerprints(self.path, run, rows)
        with transaction(self.path, "writing") as db:
            _admit(db, dataset, budget, cost, total.unit)
            row = [run, dataset, budget.measure, cost.epsilon, cost.delta, cost.rho, plan, seed, owner]
            row += [about.note, about.method, about.k, json.dumps(about.columns)]
            db.execute(f"insert into runs values (?, ?, ?, ?, ?, ?, ?, ?, ?, 'open', {NOW}, null, ?, ?, ?, ?)", row)
            store_fingerprints(db, run, fingerprints)
        return Run(run, dataset, seed, Record(), self.path, owner)

    def admits(self, dataset: str, total: PrivacyTarget, budget: Budget) -> None:
        """Check that a run could be reserved now. It raises as ``reserve`` does."""
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
            rows: fingerprints of the rows that it goes on with, which must equal those that it was reserved with.
            same_rows: accept other fingerprints, or none: the caller vouches that the rows are the same (in files that
                were copied, say). They must be read with the same options all the same.

        Raises:
            UnknownName: no such run.
            Refused: it is finished, on another data set or of another plan, its rows are read with other options or
                seem to differ, or nobody can tell.
        """
        with transaction(self.path, "reading") as db:
            _checked_run(db, run, dataset, state="open")
        fingerprints, owner = row_fingerprints(self.path, run, rows), secrets.token_hex(16)
        with transaction(self.path, "writing") as db:
            _checked_run(db, run, dataset, state="open")
            check_options(db, run, fingerprints)  # first: a plan has features for names, this has options
            seed = _checked_run(db, run, dataset, plan).seed
            if not same_rows:
                check_rows(db, run, fingerprints)
            store_fingerprints(db, run, fingerprints)
            db.execute("update runs set owner = ? where id = ?", [owner, run])
            return Run(run, dataset, seed, record_of(db, run), self.path, owner)

    def replay(self, run: str, dataset: str, plan: str) -> Run | None:
        """Return a finished run with its journal, to compute its result again at no cost; None if it is open.

        Raises:
            UnknownName: no such run.
            Refused: it is on another data set, or finished and of another plan, or was given back.
        """
        with transaction(self.path, "reading") as db:
            if _checked_run(db, run, dataset).state == "open":
                return None
            row = _checked_run(db, run, dataset, plan)
            _check_not_given_back(db, run)
            return Run(run, dataset, row.seed, record_of(db, run), self.path, row.owner)

    def give_back(self, run: str) -> RunStatus:
        """End a run that never opened a round, and return all that it reserved to its data set.

        A process that still holds the run can ask nothing more. That it opened no round is proved by the ledger and its
        ``counter``; not if both were restored together.

        Returns:
            The run as it was.

        Raises:
            UnknownName: no such run.
            Refused: it is finished, it opened a round, or nobody can tell, since no counter saw its reservation.
        """
        with transaction(self.path, "writing") as db:
            _checked_run(db, run, None, state="open")
            counter, reserved = counter_of(self.path), next(status for status in runs_of(db, None) if status.id == run)
            if reserved.rounds:
                raise Refused(
                    f"run {run} opened {reserved.rounds} rounds, whose answers may be known: its reservation stays. "
                    f"Resume it with --resume {run}, which pays nothing twice"
                )
            if not never_asked(counter, run):
                raise Refused(
                    f"run {run} may have asked something ({counter.name} has not counted it since it was reserved): "
                    f"its reservation stays. Resume it with --resume {run}, which pays nothing twice"
                )
            mark_done(db, run, Cost())
            return reserved

    def plan_of(self, run: str) -> str | None:
        """Return the digest of the plan that a run was reserved for; None if there is no such run."""
        with transaction(self.path, "reading") as db:
            row = db.execute("select plan from runs where id = ?", [run]).fetchone()
            return None if row is None else str(row[0])

    def result(self, run: str) -> str:
        """Return the result of a finished run, as the text that it was finished with.

        Raises:
            UnknownName: no such run.
            Refused: it is not finished, or was finished without one.
        """
        with transaction(self.path, "reading") as db:
            row = db.execute("select dataset, state from runs where id = ?", [run]).fetchone()
            if row is None:
                raise UnknownName("run", run, (str(r[0]) for r in db.execute("select id from runs")))
            dataset, state = row
            text = result_of(db, run)
            if state != "open":
                _check_not_given_back(db, run)
        again = shlex.join(["--ledger", str(self.path), "--dataset", dataset, "--resume", run])
        if state == "open":
            raise Refused(f"run {run} is not finished: repeat its command with {again}, which pays nothing twice")
        if text is None:
            raise Refused(
                f"the ledger does not hold the result of run {run}: repeat its command with {again}, which computes it "
                f"again at no cost"
            )
        return text

    def status(self) -> tuple[DatasetStatus, ...]:
        """Return the status of all data sets, by name."""
        with transaction(self.path, "reading") as db:
            declared = dict(db.execute("select name, declared from datasets"))
            curators = owners(db)
            return tuple(
                status_of(life, declared[name], runs_of(db, name), *curators.get(name, ()))
                for name, life in lifetimes(db).items()
            )

    def runs(self, dataset: str | None = None) -> tuple[RunStatus, ...]:
        """Return the runs on one data set, or on all, oldest first.

        Raises:
            UnknownName: no such data set.
        """
        with transaction(self.path, "reading") as db:
            return runs_of(db, dataset if dataset is None else lifetime_of(db, dataset).dataset)


def new_run() -> str:
    """Return a new id for a run."""
    return secrets.token_hex(6)


def checked_lifetime(
    dataset: str,
    epsilon: float,
    delta: float,
    composition: Composition,
    unit: Unit,
    owner: str | None = None,
    note: str | None = None,
) -> Lifetime:
    """Return a lifetime that may be declared; arguments and InvalidInput as in ``Ledger.declare``."""
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
    """Check that the lifetime covers a run and all admitted before, finished or not; raise as ``Ledger.reserve``."""
    lifetime = lifetime_of(db, dataset)
    lifetime.check_run(unit, budget)
    lifetime.admit(Cost.summed(r.cost for r in runs_of(db, dataset)), cost)


@attrs.frozen
class _RunRow:
    """Columns of a run's row in the database."""

    seed: bytes
    state: str
    owner: str


def _check_not_given_back(db: sqlite3.Connection, run: str) -> None:
    """Check that a finished run was not given back.

    Raises:
        Refused: it was.
    """
    rounds = db.execute("select count(*) from rounds where run = ?", [run]).fetchone()[0]
    if not rounds and result_of(db, run) is None:
        raise Refused(f"run {run} was given back before it asked anything: start a new one")


def _checked_run(
    db: sqlite3.Connection, run: str, dataset: str | None, plan: str | None = None, state: str | None = None
) -> _RunRow:
    """Return the run, checked to be on this data set, of this plan and in this state if one is given.

    Raises:
        UnknownName: no such run.
        Refused: a check fails.
    """
    row = db.execute("select dataset, plan, state, seed, owner from runs where id = ?", [run]).fetchone()
    if row is None:
        stored = db.execute("select id, state from runs order by rowid desc").fetchall()
        open_runs = [name for name, now in stored if now == "open"]
        raise UnknownName("run", run, open_runs or [name for name, _ in stored[:MAX_NAMED_RUNS]])
    owned, reserved_plan, now, seed, owner = row
    if dataset not in (None, owned):
        raise Refused(f"run {run} is on data set '{owned}', not '{dataset}': it cannot go on with other data")
    if state not in (None, now):
        raise Refused(f"run {run} is finished: its result is final, start a new run")
    if plan not in (None, reserved_plan):
        raise Refused(f"run {run} was reserved for plan {reserved_plan}, this plan is {plan}: give it the same options")
    return _RunRow(bytes(seed), now, owner)
