"""Runs of a comparison, one by one or in parallel. **NOT private**."""

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
from cloister.lab.comparing.conditions import READ, Conditions, is_read, population_of
from cloister.lab.comparing.contenders import Contender, contenders_of
from cloister.lab.comparing.rivals import Rival, rivals_of
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
    """Run to make. Args: contender (or a rival), epsilon, number (of the run, from 0)."""

    contender: Contender | Rival
    epsilon: float
    number: int

    @property
    def key(self) -> tuple[str, float, int]:
        """Key in a study: label, epsilon and number."""
        return self.contender.label, self.epsilon, self.number


@attrs.frozen(eq=False)
class Bench:
    """Rows that all runs of a comparison share.

    Args:
        rows: (n, d).
        scaled: (n, d) rows clipped to the bounds, in units of distance.
        conditions: of the study.
        population: of the rows, put on the lattice once.
    """

    rows: Floats
    scaled: Floats
    conditions: Conditions
    population: Any

    @classmethod
    def of(cls, rows: Floats, conditions: Conditions) -> Bench:
        """Return the bench of rows (n, d)."""
        scaled = conditions.clipped(rows) / conditions.units
        return cls(rows, scaled, conditions, population_of(rows, conditions.selection, conditions.users))

    def run(self, trial: Trial) -> Outcome:
        """Make a run with secret noise and fresh public choices, and return its cost. NOT private."""
        units = self.conditions.units
        try:
            centers, seconds = self._centers(trial)
            unclipped = nicv(self.rows / units, centers / units) if self.conditions.outside else None
            return Outcome(nicv(self.scaled, centers / units), seconds, unclipped=unclipped)
        except CloisterError as error:  # a rival's centres may be too far away for a cost
            return Outcome(refused=str(error))

    def _centers(self, trial: Trial) -> tuple[Floats, float]:
        """Return the centres of a run, and its seconds."""
        conditions, started = self.conditions, time.perf_counter()
        if isinstance(trial.contender, Rival):
            return trial.contender.centers(self.rows, conditions, trial.epsilon)
        request = conditions.request(trial.contender, trial.epsilon, self.population.columns)
        centers = fit(request, self.population).centers
        return centers, time.perf_counter() - started


def outcomes(
    rows: Floats, conditions: Conditions, trials: Sequence[Trial], workers: int
) -> Iterator[tuple[Trial, Outcome]]:
    """Make all runs, each on one core, and yield them as they end.

    Args:
        rows: (n, d).
        conditions: of the study.
        trials: runs to make.
        workers: number of processes; 1 makes the runs in this one.

    Raises: CloisterError: a process ended early.
    """
    if workers == 1 or len(trials) < 2:
        with threadpool_limits(1):
            bench = Bench.of(rows, conditions)
            yield from ((trial, bench.run(trial)) for trial in trials)
        return
    from concurrent.futures import BrokenExecutor, Future

    # not as_completed: an interrupt while it locks the futures leaves some locked, and the pool never ends
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
            f"a worker process ended early, perhaps for lack of memory: use fewer workers; and {GUARD}"
        ) from error
    finally:
        end(pool)


_bench: Bench | None = None
"""Bench of this worker process."""


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
    """Compare methods on rows that are not secret, such as generated or public ones. **NOT private**.

    Each run is a complete ``cloister.run.fit.fit`` with secret noise, fresh public choices and a budget of epsilon. No
    ledger is charged, and the comparison protects nobody's rows.

    Args:
        rows: (n, d) array or data frame, paths of files, or a database's address with its ``table``.
        k: number of centres, or a range for methods that can choose. Rivals and the reference use the largest.
        epsilons: budgets, in nats.
        methods: contenders, or their texts (``Contender.of``); None: ``auto`` and all its candidates.
        runs: runs per contender and budget.
        bounds: as in a fit (runs find unknown ones), or 'rows': each column's minimum and maximum in these rows. Costs
            are of rows clipped to the bounds, as in a run; unclipped ones are reported too if they differ.
        delta: 'auto': 1 / (n ln n) of the public number of rows.
        public_rows: number of rows stated to the runs; None: the true one.
        scale: units of distance, as in a fit and for all costs.
        rows_per_user: as in a fit, for rows with ``users``. Rivals read all rows, and costs are of all rows.
        zoom: as in a fit, for all contenders.
        trust: as in a fit, for all contenders without a trust model of their own.
        start: public centres, as in a fit. A result also gives bounds if none are stated.
        rivals: entrants of ``cloister bench``: names of those that come with cloister, or folders.
        workers: number of processes, each on one core; None: one per core. Results do not depend on it. A script needs
            ``if __name__ == '__main__'`` for more than one.
        out: .jsonl file for finished runs. An existing study is continued: it must have the same conditions, but
            methods, budgets and runs may differ.
        progress: called with the number of finished runs and of all runs.
        reading: how rows are read, as in ``run.fit.source``.
        options: further arguments of ``run.fit.source``.

    Raises:
        InvalidInput, UnknownName: before any run, if the conditions are invalid or no contender can run.
        Damaged: the file is not intact.
    """
    n_workers = _checked_number("workers", cores() if workers is None else workers, MAX_WORKERS)
    runs = _checked_number("runs", runs)
    target = None if out is None else checked_target(out, ENDINGS, "studies")
    contenders, entrants = contenders_of(methods), rivals_of(rivals)
    budgets = _checked_epsilons(epsilons)
    warm_start = None if start is None else Start.of(start)
    with source(rows, reading, bounds=None if is_read(bounds) else bounds, **options) as population:
        population.check()
        points, users = np.asarray(population.table(), np.float64), population.users_of_rows()
        if population.has_users and users is None:
            # users are stored by row, and a database's rows have no fixed order
            raise InvalidInput("users of a database's rows cannot be compared: give the rows as files")
    features = population.selection.features
    if warm_start is not None and warm_start.result is not None and is_read(bounds):
        bounds = warm_start.bounds(features, narrowed=False)
    run = {
        "rows_per_user": rows_per_user,
        "zoom": own_number(zoom),
        "trust": trust_named(trust),
        "start": None if warm_start is None else warm_start.centers,
    }
    conditions = Conditions.of(points, population.selection, k, bounds, scale, delta, public_rows, users, **run)
    contestants: list[Contender | Rival] = [*contenders, *entrants]
    cells = [_cell(conditions, one, epsilon, runs) for epsilon in budgets for one in contestants]
    if all(cell.refused for _, cell in cells):
        raise InvalidInput(f"no contender can run: {cells[0][1].label}: {cells[0][1].refused}")
    trials = [Trial(one, cell.epsilon, i) for i in range(runs) for one, cell in cells if cell.refused is None]
    file = StudyFile(target, conditions.as_dict())
    try:
        _measure_baselines(file, points, conditions)
        _measure(file, points, conditions, trials, n_workers, progress or (lambda done, total: None))
    finally:
        file.close()
    return Study(conditions, dict(file.costs), tuple(_filled(cell, file) for _, cell in cells))


def _checked_number(name: str, value: Any, maximum: int = 10**6) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not 1 <= value <= maximum:
        raise InvalidInput(f"{name} is {value!r}: give a whole number between 1 and {maximum}")
    return int(value)


def _checked_epsilons(epsilons: float | Sequence[float]) -> list[float]:
    try:
        budgets = list(dict.fromkeys(as_float(epsilon) for epsilon in np.atleast_1d(epsilons).tolist()))
    except (TypeError, ValueError):
        budgets = []
    if not budgets or not all(0 < epsilon < np.inf for epsilon in budgets):
        raise InvalidInput(f"epsilons are {epsilons!r}: give positive numbers, such as 0.1, 1")
    return budgets


def _cell(
    conditions: Conditions, contender: Contender | Rival, epsilon: float, runs: int
) -> tuple[Contender | Rival, Cell]:
    """Return the empty cell of a contender or rival, with the reason if it cannot run.

    Raises: UnknownName: it has no such option or slot.
    """
    label, rival = contender.label, contender if isinstance(contender, Rival) else None
    try:
        if isinstance(contender, Rival):
            contender.check(conditions)
            return contender, Cell(label, epsilon, None, False, None, runs, rival=rival)
        plan = prepare(conditions.request(contender, epsilon), conditions.columns, chosen_columns=conditions.selection)
        plan.forecast(PublicRng.fresh())
    except UnknownName:
        raise
    except CloisterError as error:
        return contender, Cell(label, epsilon, None, rival is None, None, runs, refused=str(error), rival=rival)
    picked = None if plan.choice is None else method_of(plan.composed).spec.name
    return contender, Cell(label, epsilon, plan.composed.trust, plan.composed.private, picked, runs)


def _measure_baselines(file: StudyFile, rows: Floats, conditions: Conditions) -> None:
    """Add the baseline costs that the study lacks. Raises: Damaged: it has unknown ones."""
    if unknown_costs := file.costs.keys() - BASELINES.keys():
        raise Damaged(f"the study {file.path} has a cost of {min(unknown_costs)!r}, which is no baseline: restore it")
    clipped, units = conditions.clipped(rows) / conditions.units, conditions.units
    if REFERENCE not in file.costs:
        file.keep_cost(REFERENCE, nicv(clipped, reference_centers(clipped, conditions.k, seed=0)))
    if MIDPOINT not in file.costs:
        file.keep_cost(MIDPOINT, nicv(clipped, conditions.middle / units))
    if MEAN not in file.costs:
        file.keep_cost(MEAN, nicv(clipped, clipped.mean(axis=0, keepdims=True)))


def _measure(
    file: StudyFile,
    rows: Floats,
    conditions: Conditions,
    trials: Sequence[Trial],
    workers: int,
    progress: Callable[[int, int], None],
) -> None:
    """Make the runs that the study lacks, and store each as it ends."""
    todo = [trial for trial in trials if trial.key not in file.outcomes]
    done = len(trials) - len(todo)
    progress(done, len(trials))
    for trial, outcome in outcomes(rows, conditions, todo, workers):
        file.keep(trial.key, outcome)
        done += 1
        progress(done, len(trials))


def _filled(cell: Cell, file: StudyFile) -> Cell:
    """Return the cell with its runs."""
    outcomes_or_none = [file.outcomes.get((cell.label, cell.epsilon, i)) for i in range(cell.requested)]
    ended = [one for one in outcomes_or_none if one is not None and one.refused is None]
    why = next((one.refused for one in outcomes_or_none if one is not None and one.refused is not None), cell.refused)
    return attrs.evolve(
        cell,
        nicv=tuple(one.nicv for one in ended),
        seconds=tuple(one.seconds for one in ended),
        refused=why,
        unclipped=tuple(one.unclipped for one in ended if one.unclipped is not None),
    )
