"""A run's view of the ledger that guards its data set: a new run in it, or the one to resume."""

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
    """Data set in a ledger that a run is charged to.

    Args:
        ledger: file.
        dataset: declared name.
        resume: id of an interrupted run, or of a finished one to recompute its result.
        same_rows: the caller vouches that the rows are those that the run began with.
        note: the holder's note on a new run, see ``About``.
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
        """Return the account that the options describe; None if no ledger was given.

        Raises:
            InvalidInput: a ledger without a data set or the reverse, or a run to resume without a ledger.
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

    def adjusted(self, request: Request) -> Request:
        """Return the request without Laplace noise if the data set's lifetime composes in rho, where it costs more."""
        with suppress(CloisterError):  # said when the run is reserved
            lifetimes = {status.dataset: status.composition for status in Ledger.open(self.ledger).status()}
            return attrs.evolve(request, laws=request.laws and lifetimes.get(self.dataset) != "zcdp")
        return request

    def admits(self, plan: PreparedRun) -> None:
        """Check that the data set's lifetime admits a new run. Raises as ``check`` and ``Ledger.reserve`` do."""
        self.check(plan)
        Ledger.open(self.ledger).admits(self.dataset, plan.total, plan.budget)

    @staticmethod
    def check(plan: PreparedRun) -> None:
        """Raise InvalidInput if no ledger can compose the plan's guarantee."""
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

    def finished_run(self, plan: PreparedRun) -> Run | None:
        """Return the run to resume if it is finished, so that its result is recomputed from its record."""
        return (
            None if self.resume is None else Ledger.open(self.ledger).replay(self.resume, self.dataset, plan.digest())
        )

    def plan_to_resume(
        self, plan: PreparedRun, request: Request, chosen_columns: Selection | None = None
    ) -> PreparedRun:
        """Return the plan of the run to resume, if a candidate of ``auto`` has it; else ``plan`` itself.

        ``auto`` may have picked another candidate if other plugins were installed when the run began.
        """
        recorded_digest = None if self.resume is None else Ledger.open(self.ledger).plan_of(self.resume)
        if recorded_digest is None or recorded_digest == plan.digest() or plan.choice is None:
            return plan
        for name in plan.choice.names:
            with suppress(CloisterError):
                other = prepare(request, plan.columns, name, chosen_columns)
                if other.digest() == recorded_digest:
                    return other
        return plan

    def reserve(self, plan: PreparedRun, seed: PublicRng, population: Population[Any]) -> Run:
        """Return the run with its whole budget reserved: a new one, or the one to resume."""
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


def resuming_payer(account: Account | None, population: Population[Any]) -> Account | None:
    """Return the account, resuming the run that already pays for the population's session, if one does.

    A session is one clustering, for which no second run is opened; unless the budget of the first was given back
    because nothing had been sent.

    Raises:
        Refused: all parties have joined the session, and the account would charge it elsewhere, or nowhere.
    """
    if not isinstance(population, Joining) or population.payer is None:
        return account
    dataset, run = population.payer
    runs = () if account is None else Ledger.open(account.ledger).runs()
    payer = next((status for status in runs if (status.dataset, status.id) == (dataset, run)), None)
    if account is not None and payer is not None and account.dataset == dataset and account.resume in (None, run):
        given_back = payer.state == "done" and not payer.rounds
        return account if given_back else attrs.evolve(account, resume=run)
    if population.opened:
        raise Refused(
            f"the session is paid for by run {run} of the data set '{dataset}': give the ledger that holds it, with "
            f"--dataset {shlex.quote(dataset)}, and no other run to resume; or begin a new session, with a new journal"
        )
    return account
