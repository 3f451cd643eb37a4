"""The beginning of a run: check what is public, then the rows (go or refuse), and reserve the whole budget."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import attrs

from cloister.accounting.accountant import Accountant
from cloister.accounting.ledger.run import Run
from cloister.core.capabilities import Joining
from cloister.core.errors import InvalidInput
from cloister.core.population import Population
from cloister.core.questions import Round
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.session import Session
from cloister.rows.selection import SelectsColumns
from cloister.run.account import Account
from cloister.run.population import Admission, admit
from cloister.run.request import PreparedRun, Request, prepare, refuse_unregistered
from cloister.run.warnings import before


def planned_run(request: Request, population: Population[Any], account: Account | None) -> PreparedRun:
    """Return the plan of a new run, or of the run that the account resumes."""
    table = population.selection if isinstance(population, SelectsColumns) else None
    request = request if account is None else account.adjusted(request)
    plan = prepare(request, population.columns, chosen_columns=table)
    for feature, there in (
        ("a ledger", account is not None),
        ("a session of parties", isinstance(population, Joining)),
        ("an engine with workers", getattr(population, "apart", False)),
    ):
        if there:
            refuse_unregistered(plan.composed, feature)
    return plan if account is None else account.plan_to_resume(plan, request, table)


@final
@attrs.frozen(eq=False)
class OpenedRun:
    """Run that may ask its first question.

    Args:
        seed: public.
        forecast: the rounds that it will ask.
        accountant: knows the forecast.
        admission: the admitted population.
        run: of the ledger; None: there is no ledger.
        finished: True if the run has finished before, so that its result is computed again from its record.
    """

    seed: PublicRng
    forecast: list[Round[Any]]
    accountant: Accountant
    admission: Admission
    run: Run | None
    finished: bool

    def session(self, plan: PreparedRun, noise: NoiseRng | None) -> Session[Any]:
        """Return the session that asks the run's questions, or replays its record."""
        return Session(
            plan.problem,
            self.seed,
            None if self.finished else self.admission.population,
            accountant=self.accountant,
            noise=noise,
            record=None if self.run is None else self.run.record,
            journal=None if self.finished else self.run,
            agree=self.admission.agree,
        )


def open_run(
    plan: PreparedRun,
    seed: int | None,
    population: Population[Any],
    account: Account | None,
    noise: NoiseRng | None,
    caution: Callable[[UserWarning], None] | None,
) -> OpenedRun:
    """Check the plan, then the rows (go or refuse), and reserve the budget. Args and errors: as of ``fit``."""
    coins = PublicRng.fresh() if seed is None else PublicRng.from_seed(seed)
    forecast, accountant = _checked_forecast(plan, coins)
    admission = admit(population, plan.composed.trust or "Central", plan.total)
    run = None if account is None else account.finished_run(plan)
    finished = run is not None
    if not finished:
        if account is not None:
            account.check(plan)
            if noise is not None and noise.seeded:
                raise InvalidInput("a run with seeded noise protects nobody, and cannot be charged to a ledger")
        for warning in before(plan):
            if caution is not None:
                caution(warning)
        admission.check(forecast)
        run = None if account is None else account.reserve(plan, coins, population)
    if run is not None:
        coins = PublicRng(run.seed)
        forecast, accountant = _checked_forecast(plan, coins)
    return OpenedRun(coins, forecast, accountant, admission, run, finished)


def _checked_forecast(plan: PreparedRun, seed: PublicRng) -> tuple[list[Round[Any]], Accountant]:
    """Return the rounds of a forecast that the budget covers, and the run's accountant.

    If rows are still to be counted, the accountant has the first stage only; another one checks a likely second stage.
    """
    rounds, first = plan.forecast(seed), plan.first_stage(seed)
    accountant, likely = Accountant(plan.total, plan.budget), Accountant(plan.total, plan.budget)
    if not first:
        accountant.forecast([round.events for round in rounds])
        return rounds, accountant
    for budget in (accountant, likely):
        budget.forecast([round.events for round in first])
    likely.forecast_second([round.events for round in rounds[len(first) :]], plan.problem.budget)
    return rounds, accountant
