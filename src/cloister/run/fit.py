"""A run from end to end: what Python and the command line both call.

Everything is ordered by law 2: check all that is public, then the output's place, then the rows (go or refuse); reserve
the whole budget; let a party join the others; only then ask the first question.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Sized
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import attrs

from cloister._version import __version__
from cloister.accounting.accountant import Accountant
from cloister.accounting.privacy_target import of_user
from cloister.core.aggregated import pools
from cloister.core.clustering import Clustering
from cloister.core.errors import InvalidInput, Refused
from cloister.core.population import Population
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.registry.making import unregistered
from cloister.core.registry.registry import registry
from cloister.core.session import Pending, Session, forecast
from cloister.core.shuffling import in_messages
from cloister.rows.words import Texts
from cloister.run.account import Account, going_on
from cloister.run.bounds import named_in
from cloister.run.layers.levels import notes, recorded
from cloister.run.method_selection import notes_on_k
from cloister.run.opening import opened, planned_run
from cloister.run.population import (
    in_database,
    join_others,
    keep_rows,
    refuse_foreign_address,
    refuse_lazy,
    refuse_relation,
    table_population,
)
from cloister.run.request import PreparedRun, Request
from cloister.run.result import Result
from cloister.run.row_count import SHARE, after_count, counted, doubts, shares
from cloister.run.statement import PrivacyStatement, state

V = TypeVar("V")

Started: TypeAlias = Callable[[PreparedRun, int, Sized], None]
"""Is told the plan, the number of its rounds, and those opened so far: a list that grows while they are asked."""

IN_MEMORY = (
    "{} is registered by no installed plugin: the run was in memory only, its guarantee is what that class declares, "
    "and nobody can compose it again from this record."
)
"""Said in the statement of a run with such a component."""


def source(
    rows: Any,
    columns: Sequence[Any] | None = None,
    missing: str = "refuse",
    progress: Callable[[int], None] | None = None,
    engine: str | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    threads: int | None = None,
    users: Any = None,
    categories: Mapping[str, Any] | None = None,
    bounds: Any = None,
    described: Sequence[str | Texts] | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    table: str | None = None,
    materialise: bool = False,
    passes: str | None = None,
    told: Callable[[str], None] | None = None,
) -> Any:
    """The population for rows in memory; for a path, several paths or a pattern of files; for a table of a database, by
    the address or as a table of Ibis. Reads column names only.

    Args: engine ('serial', 'processes' or 'dask', for files; ``workers`` and ``scheduler`` go with the second and
        third), threads (that work on a pass; by default one per core; no result depends on them), users
        (the column that names each row's user, or for rows in memory those names), categories (public values by
        column: ``rows.categories``), bounds (if they name columns, those are used where ``columns`` is None), described
        (columns that groups are described by: those that nothing else names are read beside the others; as ``Texts``,
        one whose words are counted: ``rows.words``), delimiter and encoding (of CSV files), table (its name, at an
        address), materialise (whether the engine works on a temporary copy of it), passes ('stream' of its
        rows, 'query' of its engine, or its own 'workers'; by default the fastest), told (told what the holder of rows
        in a database should know).
    """
    if missing not in {"refuse", "drop"}:
        raise InvalidInput(f"missing is '{missing}': choose refuse or drop")
    refuse_relation(rows)
    refuse_lazy(rows)
    refuse_foreign_address(rows)
    written = {"delimiter": delimiter, "encoding": encoding}
    given = {"engine": engine, "workers": workers, "scheduler": scheduler}
    common: dict[str, Any] = {
        "columns": columns,
        "missing": missing,
        "progress": progress,
        "users": users,
        "categories": categories,
        "bounded": named_in(bounds),
        "described": described,
    }
    if in_database(rows):
        common |= {"told": told} | ({"materialise": True} if materialise else {}) | {"passes": passes}
        return table_population(rows, table, threads, given | written, common)
    if table is not None or materialise or passes is not None:
        raise InvalidInput(
            "table, materialise and passes go with a database's address: give that, such as duckdb:///lake.db, or "
            "leave them out"
        )
    paths = [rows] if isinstance(rows, (str, Path)) else rows
    files = isinstance(paths, (list, tuple)) and bool(paths) and all(isinstance(p, (str, Path)) for p in paths)
    kind = registry().load(registry().spec("Population", "files" if files else "arrays"))
    spread: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if spread and not files:
        raise InvalidInput(f"engine, workers and scheduler apply to files only: leave out {', '.join(spread)}")
    if engine == "duckdb":
        raise InvalidInput(
            "there is no engine 'duckdb' for files: leave --engine out, or have DuckDB read them as a table: CREATE "
            "VIEW visits AS FROM 'rows/*.parquet' in lake.db, and give its address, duckdb:///lake.db --table visits"
        )
    if files:
        spread |= written
    elif any(value is not None for value in written.values()):
        raise InvalidInput("delimiter and encoding are for CSV files: leave them out")
    return kind(paths if files else rows, threads=threads, **common, **spread)


def parties(members: Mapping[str, Any]) -> Any:
    """The population of parties that pool masked sums in this one process. Args: members (population by party name).

    Raises: InvalidInput: fewer than two parties, or parties with different columns.
    """
    return registry().load(registry().spec("Population", "parties"))(members)


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
        population: from ``source``.
        account: the ledger that guards the data set, if any. A finished run that it resumes is computed again from its
            record: no row is read, nothing is charged, and the result is the same.
        noise: only for tests and benchmarks.
        started: called with the plan, the number of rounds and the list of those opened so far, which grows: before
            the first question, and once rows are counted.
        keep: saves the result before the ledger closes the run, so that a crash in between loses nothing.
        caution: told each warning that public figures give, before a row is read or budget reserved.
        checked: called once everything has been checked, before anything is asked: what is reserved is given back if
            the run ends there.
        reserved: called with the id of the ledger's run, if any, as soon as the run would count as spent if cut off.
        facts: public details that the caller adds to the result, such as a pool's table of who learns what.

    Raises: CloisterError: before any row is read or budget spent, unless a row cannot be read.
    """
    account = going_on(account, population)
    plan = planned_run(request, population, account)
    begun = opened(plan, request.seed, population, account, noise, caution)
    run = begun.run
    if checked is not None:
        checked()
    if not begun.finished:
        join_others(population, run)
        keep_rows(plan.total, population, begun.seed)
    if run is not None and reserved is not None:
        reserved(run.id)
    session = begun.session(plan, population, noise)
    if started is not None:
        started(plan, len(begun.asked), session.rounds)
    count_share = SHARE if plan.rows is None else 0.0
    if plan.rows is None:
        plan = _counted(plan, session, begun.accountant, begun.seed)
        if started is not None:
            started(plan, begun.accountant.rounds, session.rounds)
    clustering = _clustered(plan, session, begun.seed)
    privacy = _statement(plan, session, begun.accountant, population, count_share, clustering.details)
    result = _result(plan, session, clustering, privacy, population, facts or {})
    if keep is not None:
        keep(result)
    if run is not None and not begun.finished:
        paid = (of_user(event, plan.total.rows_per_user) for event in session.released)
        run.finish(None if count_share else paid, _text(result))
    return result


def _statement(
    plan: PreparedRun,
    session: Session[Any],
    accountant: Accountant,
    population: Population[Any],
    count_share: float,
    details: Mapping[str, Any],
) -> PrivacyStatement:
    """Return the statement of a run that has asked all its questions. Args: details (of the clustering)."""
    trust = plan.composed.trust or "Central"
    return state(
        session.rounds,
        plan.total.epsilon,
        plan.total.delta,
        trust=trust,
        rows=plan.problem.rows,
        seeded=session.seeded,
        private=plan.composed.private,
        simulated=trust in {"Local", "Shuffled"} or (pools(population) and getattr(population, "simulated", False)),
        epsilon_without_shuffler=accountant.spent.epsilon_without_shuffler,
        count_share=count_share,
        rows_per_user=plan.total.rows_per_user,
        notes=(
            *([plan.choice.note] if plan.choice else []),
            *(doubts(plan.budget, plan.problem) if count_share else []),
            *notes(plan.levels, plan.names, details),
            *notes_on_k(plan.problem, details),
            *([IN_MEMORY.format(name)] if (name := unregistered(plan.composed)) else []),
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
    """The record of a run that left out rows with missing or infinite cells: what follows it does so, too."""
    return {"missing": "drop"} if getattr(population, "missing", "refuse") == "drop" else {}


def _text(result: Result) -> str | None:
    """Text for the ledger; None where a stranger's method has details that are no plain data. The run is paid for
    and must end either way."""
    try:
        return result.text()
    except (TypeError, ValueError):
        return None


def _counted(plan: PreparedRun, session: Session[Any], accountant: Accountant, seed: PublicRng) -> PreparedRun:
    """The plan for the number of rows that the first stage released, with its rounds forecast."""
    rows = _replayed(lambda: counted(session, shares(plan.budget)[0], plan.problem.k))
    composed, problem, choice = after_count(plan.planned, (plan.composed, plan.problem, plan.choice), rows)
    session.problem = problem
    rounds = forecast(composed.value, problem, seed)
    accountant.forecast_second([round.events for round in rounds], problem.budget)
    return attrs.evolve(plan, composed=composed, problem=problem, choice=choice, rows=rows)


def _clustered(plan: PreparedRun, session: Session[Any], seed: PublicRng) -> Clustering:
    """The method's clustering."""
    found: Clustering = _replayed(lambda: plan.composed.value.cluster(plan.problem, session, seed.child("method")))
    return found


def _replayed(stage: Callable[[], V]) -> V:
    """Findings of a stage of the run. A finished run has no rows: everything it needs is in its record.

    Raises: Refused: it asks or looks beyond the record of a finished run.
    """
    try:
        return stage()
    except Pending as pending:
        raise Refused(
            f"the run is finished, and its record lacks round {pending.round.index + 1}: it was finished early, so "
            f"start a new run"
        ) from None


def _ideal(session: Session[Any]) -> dict[str, Any]:
    """Details of a result whose messages were not made, but drawn from their law (``MultiMessageChannel.pooled``)."""
    mixed = any(in_messages(part.channel) is not None for round in session.rounds for part in round.parts)
    return {"simulated": "ideal functionality"} if mixed else {}
