"""The ledger that guards a data set, as a run sees it: a new run of it, or the one to go on with."""

from __future__ import annotations

import shlex
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs

from cloister.accounting.ledger.database import About
from cloister.accounting.ledger.ledger import Ledger, new_run
from cloister.accounting.ledger.run import Run
from cloister.core.capabilities import Joining
from cloister.core.errors import CloisterError, InvalidInput, Refused
from cloister.core.fingerprints import fingerprinter
from cloister.core.population import Population
from cloister.core.randomness import PublicRng
from cloister.core.trust import TRUSTS
from cloister.rows.selection import Selection
from cloister.run.layers.levels import method_of
from cloister.run.request import PreparedRun, Request, prepare


@attrs.frozen(kw_only=True)
class Account:
    """A data set's lifetime budget. Args: ledger (file), dataset (declared name), resume (id of a run that was cut off,
    or of a finished one to see its result again), same_rows (the caller vouches that the rows are those it began with),
    note (the holder's words on a new run, see ``About``).
    """

    ledger: str | Path
    dataset: str
    resume: str | None = None
    same_rows: bool = False
    note: str = attrs.field(default="", validator=lambda self, field, note: About(note))

    @classmethod
    def of(
        cls,
        ledger: str | Path | None,
        dataset: str | None,
        resume: str | None = None,
        same_rows: bool = False,
        note: str | None = None,
    ) -> Account | None:
        """The account that the options describe; None if no ledger was given.

        Raises: InvalidInput: a ledger without a data set or the reverse, or a run to resume without a ledger.
        """
        if same_rows and resume is None:
            raise InvalidInput("--same-rows applies to a resumed run only: give --resume too")
        if resume is not None and ledger is None:
            raise InvalidInput("--resume needs the ledger that the run is in: give --ledger and --dataset")
        if note is not None and (ledger is None or resume is not None):
            raise InvalidInput(
                "a note is written into a ledger when a run begins: give --note with --ledger, and no run to resume"
            )
        if ledger is None and dataset is None:
            return None
        if ledger is None or dataset is None:
            raise InvalidInput(
                "a ledger goes with the declared name of the data set: give both --ledger and --dataset (ledger=, "
                "dataset=), or none"
            )
        return cls(ledger=ledger, dataset=dataset, resume=resume, same_rows=same_rows, note=note or "")

    def asked(self, request: Request) -> Request:
        """The request as the data set's lifetime has it: where runs add up in rho, no law of noise that costs more."""
        with suppress(CloisterError):  # said when the run is reserved
            lifetimes = {found.dataset: found.composition for found in Ledger.open(self.ledger).status()}
            return attrs.evolve(request, laws=request.laws and lifetimes.get(self.dataset) != "zcdp")
        return request

    def admits(self, plan: PreparedRun) -> None:
        """Check whether the data set could pay for a new run. Raises: as ``check``, and as ``Ledger.reserve``."""
        self.check(plan)
        Ledger.open(self.ledger).admits(self.dataset, plan.total, plan.budget)

    @staticmethod
    def check(plan: PreparedRun) -> None:
        """Raises: InvalidInput: no ledger adds up what such a plan promises."""
        if not plan.composed.private:
            raise InvalidInput(
                f"'{method_of(plan.composed).spec.name}' as composed is NOT private, and cannot be charged to a "
                f"ledger: leave out --ledger and --dataset (ledger=, dataset=)"
            )
        trust = plan.composed.trust or "Central"
        if TRUSTS[trust].relation != "add-or-remove one row":
            raise InvalidInput(
                f"a ledger adds up guarantees for adding or removing a row; '{plan.composed.spec.name}' as composed "
                f"is {trust}"
            )

    def finished(self, plan: PreparedRun) -> Run | None:
        """The run to resume, if it is finished: its result is recomputed from its record."""
        return (
            None if self.resume is None else Ledger.open(self.ledger).replay(self.resume, self.dataset, plan.digest())
        )

    def begun(self, plan: PreparedRun, request: Request, chosen_columns: Selection | None = None) -> PreparedRun:
        """The plan of the run to resume, if ``request`` means it: that of another candidate of ``auto`` (other plugins
        were installed when the run began). Else ``plan`` itself."""
        known = None if self.resume is None else Ledger.open(self.ledger).plan_of(self.resume)
        if known is None or known == plan.digest() or plan.choice is None:
            return plan
        for name in plan.choice.names:
            with suppress(CloisterError):
                other = prepare(request, plan.columns, name, chosen_columns)
                if other.digest() == known:
                    return other
        return plan

    def held(self, plan: PreparedRun, seed: PublicRng, population: Population[Any]) -> Run:
        """The run with its whole budget reserved: a new one, or the one to resume."""
        ledger, rows, name = Ledger.open(self.ledger), fingerprinter(population), plan.digest()
        run = self.resume or new_run()
        if isinstance(population, Joining) and population.payer != (self.dataset, run):
            population.paid_by(self.dataset, run)
        if self.resume is None:
            p = plan.problem
            k = str(p.k) if p.fewest is None else f"{p.fewest}..{p.k}"
            method = method_of(plan.composed).spec.name
            if plan.rows is None and plan.choice is not None:  # picked once they are counted
                method = plan.choice.method
            about = About(self.note, method, k, plan.columns)
            return ledger.reserve(self.dataset, plan.total, plan.budget, name, seed.key, rows, run, about)
        return ledger.resume(run, self.dataset, name, rows, self.same_rows)


def going_on(account: Account | None, population: Population[Any]) -> Account | None:
    """The account with the run that pays for the population's session already, if one does: a session that goes on is
    one clustering, and no second run is opened for it.

    A run whose budget was given back, because nothing had been sent, pays for nothing: there a new one is opened.

    Raises: Refused: all have joined the session, and what is given would charge it elsewhere, or nowhere.
    """
    if not isinstance(population, Joining) or population.payer is None:
        return account
    dataset, run = population.payer
    known = () if account is None else Ledger.open(account.ledger).runs()
    found = next((status for status in known if (status.dataset, status.id) == (dataset, run)), None)
    if account is not None and found is not None and account.dataset == dataset and account.resume in (None, run):
        given_back = found.state == "done" and not found.rounds
        return account if given_back else attrs.evolve(account, resume=run)
    if population.opened:
        raise Refused(
            f"the session is paid for by run {run} of the data set '{dataset}': give the ledger that holds it, with "
            f"--dataset {shlex.quote(dataset)}, and no other run to resume; or begin a new session, with a new journal"
        )
    return account
