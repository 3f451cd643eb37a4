"""Comparing contenders on rows that one holds: one run, and many on all cores. **NOT private**."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Literal, final

import attrs
import numpy as np
from threadpoolctl import threadpool_limits

from cloister.core.doubles import as_float
from cloister.core.errors import CloisterError, Damaged, InvalidInput, UnknownName
from cloister.core.randomness import PublicRng
from cloister.core.registry.components import own_number
from cloister.core.trust import trust_named
from cloister.core.types import Floats
from cloister.lab.comparing.conditions import (
    FLAWS,
    READ,
    Conditions,
    Contender,
    check_rival,
    contenders_of,
    is_read,
    population_of,
    rival_centers,
)
from cloister.lab.comparing.study import BASELINES, MEAN, MIDPOINT, REFERENCE, Cell, Study
from cloister.lab.comparing.study_file import ENDINGS, Outcome, StudyFile
from cloister.metrics import nicv, reference_centers
from cloister.rows.options import Reading
from cloister.rows.workers.processes import GUARD, end, pool_of, starting
from cloister.rows.workers.threads import cores
from cloister.run.fit import fit, source
from cloister.run.layers.levels import method_of
from cloister.run.layers.warm_start import Start
from cloister.run.request import prepare
from cloister.run.saving import checked_target


@final
@attrs.frozen
class Trial:
    """A run to make. Args: contender (a rival by its name), epsilon, number (which of the runs, from 0)."""

    contender: Contender | str
    epsilon: float
    number: int

    @property
    def key(self) -> tuple[str, float, int]:
        """Name in a study."""
        label = self.contender if isinstance(self.contender, str) else self.contender.label
        return label, self.epsilon, self.number


@attrs.frozen(eq=False)
class Bench:
    """Rows, put on the lattice once for all runs. Args: rows (n, d), own (the same, clipped to the bounds, in units of
    distance), conditions, population."""

    rows: Floats
    own: Floats
    conditions: Conditions
    population: Any

    @classmethod
    def of(cls, rows: Floats, conditions: Conditions) -> Bench:
        own = conditions.clipped(rows) / conditions.units
        return cls(rows, own, conditions, population_of(rows, conditions.chosen, conditions.users))

    def run(self, trial: Trial) -> Outcome:
        """Make a run with secret noise and fresh public choices, and measure it. NOT private."""
        begun = time.perf_counter()
        try:
            centers = self._centers(trial)
        except CloisterError as error:
            return Outcome(refused=str(error))
        spent = time.perf_counter() - begun
        units = self.conditions.units
        other = nicv(self.rows / units, centers / units) if self.conditions.outside else None
        return Outcome(nicv(self.own, centers / units), spent, unclipped=other)

    def _centers(self, trial: Trial) -> Floats:
        told = self.conditions
        if isinstance(trial.contender, str):
            return rival_centers(trial.contender, self.rows, told.k, trial.epsilon, told.domain, told.units)
        return fit(told.request(trial.contender, trial.epsilon, self.population.columns), self.population).centers


def outcomes(
    rows: Floats, conditions: Conditions, trials: Sequence[Trial], workers: int
) -> Iterator[tuple[Trial, Outcome]]:
    """Make all runs, each on one core, and yield them as they end.

    Args: workers (processes; 1: this one). Raises: CloisterError: a process ended early.
    """
    if workers == 1 or len(trials) < 2:
        with threadpool_limits(1):
            bench = Bench.of(rows, conditions)
            yield from ((trial, bench.run(trial)) for trial in trials)
        return
    from concurrent.futures import BrokenExecutor, Future

    # not as_completed: interrupted while it locks the futures, it leaves some locked, and the pool never ends
    done = SimpleQueue[Future[Outcome]]()
    pool = pool_of(min(workers, len(trials)), _hold, rows, conditions)
    try:
        with starting():
            futures = {pool.submit(_run, trial): trial for trial in trials}
        for future in futures:
            future.add_done_callback(done.put)
        while futures:
            future = done.get()
            yield futures.pop(future), future.result()
    except BrokenExecutor as error:
        raise CloisterError(
            f"a worker process ended before its run did: perhaps memory ran out (take fewer workers); and {GUARD}"
        ) from error
    finally:
        end(pool)


_bench: Bench | None = None
"""In a worker: its bench."""


def _hold(rows: Floats, conditions: Conditions) -> None:
    global _bench
    threadpool_limits(1)
    _bench = Bench.of(rows, conditions)


def _run(trial: Trial) -> Outcome:
    assert _bench is not None
    return _bench.run(trial)


MAX_WORKERS = 1024


def compare(
    rows: Any,
    *,
    k: int | tuple[int, int] | str,
    epsilons: float | Sequence[float],
    methods: Iterable[str | Contender] | None = None,
    runs: int = 10,
    bounds: Any = READ,
    delta: float | Literal["auto"] = "auto",
    public_rows: int | None = None,
    scale: Any = None,
    rows_per_user: int | None = None,
    zoom: str | float = "auto",
    trust: str | None = None,
    start: Any = None,
    rivals: Iterable[str] = (),
    workers: int | None = 1,
    out: str | Path | None = None,
    progress: Callable[[int, int], None] | None = None,
    reading: Reading | None = None,
    **options: Any,
) -> Study:
    """Compare methods on rows that are not secret: generated ones, or public stand-ins. **NOT private.**

    Every run is a whole private run with secret noise (``cloister.run.fit.fit``), fresh public choices and its own
    budget of epsilon. Nothing is charged anywhere: what is compared protects nobody's rows.

    Args:
        rows: (n, d) array or data frame, paths of files, or a database's address with its ``table``.
        k: number of centres; or a range, of which methods that can choose one. Rivals, and the reference, have the
            largest.
        epsilons: budgets, in nats.
        methods: contenders, or their texts (``Contender.of``); None: ``auto`` and all it picks from.
        runs: runs per contender and budget.
        bounds: as in a fit; 'rows': each column's least and largest value in these rows. Costs are of rows clipped to
            them, as runs clip; the unclipped ones stand beside where they differ. Runs find what is unknown.
        delta: 'auto': 1 / (n ln n) of the public number of rows.
        public_rows: the number of rows that runs are told; None: how many there are.
        scale: units of distances, as in a fit; all costs are taken in them.
        rows_per_user: as in a fit, of rows that name their users (``users``). Costs are of all rows, which rivals
            read, too.
        zoom, trust: as in a fit, for all contenders; one may have another trust of its own.
        start: public centres, as in a fit. Of a result it gives bounds, too, where none are stated.
        rivals: 'sklearn' and 'diffprivlib', if installed.
        workers: processes, each on one core; None: one per core. No figure depends on it. A script that takes more than
            one does so under ``if __name__ == '__main__'``.
        out: a .jsonl file that keeps every finished run. If it exists, its study goes on: it must be of the same
            conditions; methods, budgets and runs may be others.
        progress: called with the number of finished and of all runs.
        reading, options: how rows are read, as ``run.fit.source`` takes them. A database's rows come in no order of
            their own, which a study's file keeps.

    Raises:
        InvalidInput, UnknownName: before any run, if the conditions make no sense or no contender can run.
        Damaged: the file cannot be trusted.
    """
    many = _checked_number("workers", cores() if workers is None else workers, MAX_WORKERS)
    runs = _checked_number("runs", runs)
    target = None if out is None else checked_target(out, ENDINGS, "studies")
    contenders, named = contenders_of(methods), _rivals(rivals)
    budgets = _checked_epsilons(epsilons)
    begun = None if start is None else Start.of(start)
    with source(rows, reading, bounds=None if is_read(bounds) else bounds, **options) as population:
        population.check()
        held, users = np.asarray(population.table(), np.float64), population.users_of_rows()
        if population.has_users and users is None:
            raise InvalidInput("the users of rows in a database have no order that is kept: give the rows as files")
    features = population.selection.features
    if begun is not None and begun.result is not None and is_read(bounds):
        bounds = begun.bounds(features, narrowed=False)
    run = {
        "rows_per_user": rows_per_user,
        "zoom": own_number(zoom),
        "trust": trust_named(trust),
        "start": None if begun is None else begun.centers,
    }
    told = Conditions.of(held, population.selection, k, bounds, scale, delta, public_rows, users, **run)
    everyone: list[Contender | str] = [*contenders, *named]
    cells = [_cell(told, one, epsilon, runs) for epsilon in budgets for one in everyone]
    if all(cell.refused for _, cell in cells):
        raise InvalidInput(f"nothing can be compared: {cells[0][1].label}: {cells[0][1].refused}")
    wanted = [Trial(one, cell.epsilon, i) for i in range(runs) for one, cell in cells if cell.refused is None]
    file = StudyFile(target, told.as_dict())
    try:
        _measure_baselines(file, held, told)
        _measure(file, held, told, wanted, many, progress or (lambda done, total: None))
    finally:
        file.close()
    return Study(told, dict(file.costs), tuple(_filled(cell, file) for _, cell in cells))


def _checked_number(name: str, value: Any, most: int = 10**6) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not 1 <= value <= most:
        raise InvalidInput(f"{name} is {value!r}: give a whole number between 1 and {most}")
    return int(value)


def _checked_epsilons(epsilons: float | Sequence[float]) -> list[float]:
    try:
        found = list(dict.fromkeys(as_float(epsilon) for epsilon in np.atleast_1d(epsilons).tolist()))
    except (TypeError, ValueError):
        found = []
    if not found or not all(0 < epsilon < np.inf for epsilon in found):
        raise InvalidInput(f"epsilons are {epsilons!r}: give one or more positive numbers, such as 0.1, 1")
    return found


def _rivals(names: Iterable[str]) -> list[str]:
    for name in (found := list(dict.fromkeys(names))):
        if name not in FLAWS:
            raise UnknownName("rival", name, FLAWS)
    return found


def _cell(told: Conditions, one: Contender | str, epsilon: float, runs: int) -> tuple[Contender | str, Cell]:
    """The empty cell of a contender or rival, with the reason if it cannot run: found out before any run.

    Raises: UnknownName: it has no such option or slot.
    """
    try:
        if isinstance(one, str):
            check_rival(one, told.domain)
            return one, Cell(one, epsilon, None, False, None, runs)
        plan = prepare(told.request(one, epsilon), told.columns, chosen_columns=told.chosen)
        plan.forecast(PublicRng.fresh())
    except UnknownName:
        raise
    except CloisterError as error:
        label = one if isinstance(one, str) else one.label
        return one, Cell(label, epsilon, None, not isinstance(one, str), None, runs, refused=str(error))
    picked = None if plan.choice is None else method_of(plan.composed).spec.name
    return one, Cell(one.label, epsilon, plan.composed.trust, plan.composed.private, picked, runs)


def _measure_baselines(file: StudyFile, rows: Floats, told: Conditions) -> None:
    """The costs of what needs no run, unless the study has them. Raises: Damaged: it has others."""
    if others := file.costs.keys() - BASELINES.keys():
        raise Damaged(f"the study {file.path} has a cost of {min(others)!r}, which is none: restore it")
    own, units = told.clipped(rows) / told.units, told.units
    if REFERENCE not in file.costs:
        file.keep_cost(REFERENCE, nicv(own, reference_centers(own, told.k, seed=0)))
    if MIDPOINT not in file.costs:
        file.keep_cost(MIDPOINT, nicv(own, told.middle / units))
    if MEAN not in file.costs:
        file.keep_cost(MEAN, nicv(own, own.mean(axis=0, keepdims=True)))


def _measure(
    file: StudyFile,
    rows: Floats,
    told: Conditions,
    wanted: Sequence[Trial],
    workers: int,
    progress: Callable[[int, int], None],
) -> None:
    """Make the runs that the study lacks, and write each down as it ends."""
    todo = [trial for trial in wanted if trial.key not in file.outcomes]
    done = len(wanted) - len(todo)
    progress(done, len(wanted))
    for trial, outcome in outcomes(rows, told, todo, workers):
        file.keep(trial.key, outcome)
        done += 1
        progress(done, len(wanted))


def _filled(cell: Cell, file: StudyFile) -> Cell:
    """The cell with its runs."""
    mine = [file.outcomes.get((cell.label, cell.epsilon, i)) for i in range(cell.asked)]
    ended = [one for one in mine if one is not None and one.refused is None]
    why = next((one.refused for one in mine if one is not None and one.refused is not None), cell.refused)
    return attrs.evolve(
        cell,
        nicv=tuple(one.nicv for one in ended),
        seconds=tuple(one.seconds for one in ended),
        refused=why,
        unclipped=tuple(one.unclipped for one in ended if one.unclipped is not None),
    )
