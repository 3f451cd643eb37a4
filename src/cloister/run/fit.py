"""A run from end to end, for Python and the command line.

Order (law 2): check all that is public, then the output path, then the rows (go or refuse); reserve the whole budget;
let a party join the others; only then ask the first question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sized
from contextlib import contextmanager
from typing import Any, TypeAlias

import attrs

from cloister._version import __version__
from cloister.accounting.accountant import Accountant
from cloister.accounting.users import of_user
from cloister.core.clustering import Clustering
from cloister.core.errors import Refused
from cloister.core.population import Population
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.session import Pending, Session, forecast
from cloister.core.shuffling import in_messages
from cloister.rows.options import Reading
from cloister.rows.places import population_of, reader
from cloister.run.account import Account, resuming_payer
from cloister.run.bounds import named_in
from cloister.run.layers.levels import notes, recorded
from cloister.run.method_selection import notes_on_k
from cloister.run.opening import OpenedRun, open_run, planned_run
from cloister.run.request import PreparedRun, Request
from cloister.run.result import Result
from cloister.run.row_count import SHARE, after_count, count_warnings
from cloister.run.statement import PrivacyStatement, state

Started: TypeAlias = Callable[[PreparedRun, int, Sized], None]
"""Callback that receives the plan, the number of rounds, and the (growing) list of rounds opened so far."""

IN_MEMORY = (
    "{} is registered by no installed plugin: the run was in memory only, its guarantee is what that class declares, "
    "and nobody can compose it again from this record."
)
"""Note in the statement of a run with an unregistered component."""


def source(rows: Any, reading: Reading | None = None, *, bounds: Any = None, **options: Any) -> Any:
    """Return the population for rows in memory, in files or in a database. Reads names and types of columns only.

    Args:
        rows: an array (n, d), a data frame, a path, pattern or list of them, a database address (with ``table``), or
            an Ibis table.
        reading: how they are read.
        bounds: if they name columns, those are used where ``columns`` is None.
        **options: fields of ``rows.options.Reading`` that replace those in ``reading``: columns, missing, ...

    Raises:
        CloisterError: there are no such rows or columns, or an option does not apply to them.
    """
    reading = attrs.evolve(Reading() if reading is None else reading, **options)
    return population_of(rows, reading if bounds is None else attrs.evolve(reading, bounded=named_in(bounds)))


def parties(members: Mapping[str, Any]) -> Any:
    """Return the population of parties (by name) that pool masked sums in this one process.

    Raises:
        InvalidInput: fewer than two parties, or parties with different columns.
    """
    return reader("parties")(members)


def fit(
    request: Request,
    population: Population[Any],
    *,
    account: Account | None = None,
    noise: NoiseRng | None = None,
    started: Started | None = None,
    keep: Callable[[Result], None] | None = None,
    reserved: Callable[[str], None] | None = None,
    caution: Callable[[UserWarning], None] | None = None,
    checked: Callable[[], None] | None = None,
    facts: Mapping[str, Any] | None = None,
) -> Result:
    """Cluster a population's rows.

    Args:
        request: what to run.
        population: from ``source``.
        account: the ledger that guards the data set, if any. A finished run that it resumes is computed again from its
            record: no row is read, nothing is charged, and the result is the same.
        noise: only for tests and benchmarks.
        started: called before the first question, and again once rows are counted.
        keep: saves the result before the ledger closes the run, so that a crash in between loses nothing.
        caution: called with each warning from public figures, before a row is read or budget reserved.
        checked: called once all is checked, before the first question; if it raises, the reservation is given back.
        reserved: called with the id of the ledger's run, if any, once an interruption would count as spent.
        facts: public details that the caller adds to the result, such as a pool's table of who learns what.

    Raises:
        CloisterError: before any row is read or budget spent, unless a row cannot be read.
    """
    account = resuming_payer(account, population)
    plan = planned_run(request, population, account)
    opened = open_run(plan, request.seed, population, account, noise, caution)
    run = opened.run
    if checked is not None:
        checked()
    if not opened.finished:
        opened.admission.join(run)
        opened.admission.keep(opened.seed)
    if run is not None and reserved is not None:
        reserved(run.id)
    session = opened.session(plan, noise)
    if started is not None:
        started(plan, len(opened.forecast), session.rounds)
    count_share = SHARE if plan.rows is None else 0.0
    if plan.rows is None:
        plan = _counted(plan, session, opened.accountant, opened.seed)
        if started is not None:
            started(plan, opened.accountant.rounds, session.rounds)
    with _no_further_round():
        clustering: Clustering = plan.composed.value.cluster(plan.problem, session, opened.seed.child("method"))
    privacy = _statement(plan, session, opened, count_share, clustering.details)
    result = _result(plan, session, clustering, privacy, population, facts or {})
    if keep is not None:
        keep(result)
    if run is not None and not opened.finished:
        paid = (of_user(event, plan.total.rows_per_user) for event in session.released)
        run.finish(None if count_share else paid, _text(result))
    return result


def _statement(
    plan: PreparedRun,
    session: Session[Any],
    opened: OpenedRun,
    count_share: float,
    details: Mapping[str, Any],
) -> PrivacyStatement:
    """Return the statement of a run that has asked all its questions."""
    return state(
        session.rounds,
        plan.total.epsilon,
        plan.total.delta,
        trust=opened.admission.trust,
        rows=plan.problem.rows,
        seeded=session.seeded,
        private=plan.composed.private,
        simulated=opened.admission.simulated,
        epsilon_without_shuffler=opened.accountant.spent.epsilon_without_shuffler,
        count_share=count_share,
        rows_per_user=plan.total.rows_per_user,
        notes=(
            *([plan.choice.note] if plan.choice else []),
            *(count_warnings(plan.counter, plan.budget, plan.problem) if plan.counter else []),
            *notes(plan.levels, plan.names, details),
            *notes_on_k(plan.problem, details),
            *([IN_MEMORY.format(name)] if (name := plan.composed.unregistered) else []),
        ),
    )


def _result(
    plan: PreparedRun,
    session: Session[Any],
    clustering: Clustering,
    privacy: PrivacyStatement,
    population: Population[Any],
    facts: Mapping[str, Any],
) -> Result:
    chosen = {} if plan.choice is None else {"auto": plan.choice.as_dict()}
    return Result(
        clustering.centers,
        clustering.weights,
        plan.clustered,
        recorded(plan.composed),
        plan.describe() | {"k": len(clustering.centers)} | _dropped(population),
        privacy,
        {**clustering.details, **_ideal(session), **chosen, **facts},
        __version__,
    )


def _dropped(population: Any) -> dict[str, Any]:
    """Return the record that rows with missing or infinite cells were dropped, for whatever applies the result."""
    return {"missing": "drop"} if getattr(population, "missing", "refuse") == "drop" else {}


def _text(result: Result) -> str | None:
    """Return the result's text for the ledger, or None if a plugin's details are no plain data.

    The run is paid for and must end either way.
    """
    try:
        return result.text()
    except (TypeError, ValueError):
        return None


def _counted(plan: PreparedRun, session: Session[Any], accountant: Accountant, seed: PublicRng) -> PreparedRun:
    """Return the plan for the number of rows that the first stage released, and forecast its rounds."""
    with _no_further_round():
        rows = plan.count_rows(session)
    composed, problem, choice = after_count(plan.planned, (plan.composed, plan.problem, plan.choice), rows)
    session.problem = problem
    rounds = forecast(composed.value, problem, seed)
    accountant.forecast_second([round.events for round in rounds], problem.budget)
    return attrs.evolve(plan, composed=composed, problem=problem, choice=choice, rows=rows)


@contextmanager
def _no_further_round() -> Iterator[None]:
    """Raise Refused if a finished run asks beyond its record, since there are no rows."""
    try:
        yield
    except Pending as pending:
        raise Refused(
            f"the run is finished, and its record lacks round {pending.round.index + 1}: it was finished early, so "
            f"start a new run"
        ) from None


def _ideal(session: Session[Any]) -> dict[str, Any]:
    """Return details of a result whose messages were drawn from their distribution (``MultiMessageChannel.pooled``)."""
    mixed = any(in_messages(part.channel) is not None for round in session.rounds for part in round.parts)
    return {"simulated": "ideal functionality"} if mixed else {}
