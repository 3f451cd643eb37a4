"""Runs of a benchmark: every entrant on every set, with every budget, one after the other. **NOT private**."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, final

import attrs
import numpy as np

from cloister.core.errors import CloisterError, InvalidInput
from cloister.lab.bench.audit.auditing import STEPS, audit
from cloister.lab.bench.benchmark import Benchmark
from cloister.lab.bench.entrants import Entrant, entrant_of
from cloister.lab.bench.installing import NotInstallable, install
from cloister.lab.bench.machine import machine_facts
from cloister.lab.bench.results import Record, Results, ResultsFile, key_of
from cloister.lab.bench.running import Answer, RowsFile, RunFailure, Task, run_entrant
from cloister.lab.bench.tables import BenchTable, MissingTable
from cloister.metrics import nicv, reference_centers

Progress = Callable[[int, int, str], None]

REFERENCE, MIDPOINT, MEAN = "reference", "midpoint", "mean"
"""Keys of the baselines: k-means++ without privacy (best of 10 starts), the middle of the bounds, the mean of the rows.
"""


@final
@attrs.frozen(eq=False)
class Contestant:
    """Installed entrant. Args: entrant, environment (the folder that it is installed in)."""

    entrant: Entrant
    environment: Path


def entrants_of(benchmark: Benchmark, given: Sequence[str]) -> list[Entrant]:
    """Return the entrants of a benchmark.

    Args:
        benchmark: whose own entrants are taken if none are given.
        given: arguments of ``--entrant``.

    Raises:
        InvalidInput: there is none, two have one name, or a folder is no entrant.
        UnknownName: there is no such entrant.
    """
    base = None if given else benchmark.base
    entrants = [entrant_of(text, base) for text in (given or benchmark.entrants)]
    if not entrants:
        raise InvalidInput("no entrant: give --entrant DIR or NAME, or name some in the benchmark")
    names = [entrant.name for entrant in entrants]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InvalidInput(f"two entrants are named {twice}: change the name in one's entry.toml")
    return entrants


def run_benchmark(
    benchmark: Benchmark,
    entrants: Sequence[Entrant],
    out: Path | None,
    *,
    resume: bool = False,
    audits: bool = True,
    progress: Progress | None = None,
) -> Results:
    """Run a benchmark, and return all results, those of earlier runs among them.

    What an entrant does wrong is recorded, and stops nothing.

    Args:
        benchmark: what to run.
        entrants: who takes part.
        out: .jsonl file for the results; None: none.
        resume: go on with an existing file.
        audits: audit entrants that the file has no audit of.
        progress: called with the numbers of steps done and in total, and what is done next.

    Raises:
        InvalidInput: the file cannot be used, or a set does not fit.
        Damaged: the file cannot be read.
    """
    counter = _Counter(benchmark, entrants, progress or (lambda done, total, text: None))
    file = ResultsFile(out, benchmark, resume)
    try:
        machine = machine_facts()
        if machine["id"] not in {record["id"] for record in file.results.of_kind("machine")}:
            file.append({"kind": "machine", **machine})
        contestants = list(_prepared(file, entrants, benchmark.quick, audits, counter))
        for source in benchmark.sets:
            counter.text = source.name
            try:
                table = source.load(benchmark.base, benchmark.quick)
            except MissingTable as error:
                _once(file, {"kind": "set", "name": source.name, "skipped": str(error)})
                counter.step(benchmark.runs * len(benchmark.epsilons) * len(source.ks) * len(entrants))
                continue
            _once(file, _described(table, source.ks))
            with RowsFile.of(table.rows, table.bounds) as rows:
                for k in source.ks:
                    _run_table(file, benchmark, table, rows, k, contestants, machine["id"], counter)
    finally:
        file.close()
    return file.results


@final
class _Counter:
    """Steps of a benchmark: runs, and the steps of audits."""

    def __init__(self, benchmark: Benchmark, entrants: Sequence[Entrant], progress: Progress) -> None:
        runs = sum(len(source.ks) for source in benchmark.sets) * len(benchmark.epsilons) * benchmark.runs
        self.done, self.total, self.text = 0, len(entrants) * (runs + STEPS), ""
        self._progress = progress

    def step(self, steps: int = 1) -> None:
        self.at(self.done + steps)

    def audited(self, before: int, done: int, total: int) -> None:
        self.at(before + done)

    def at(self, done: int) -> None:
        self.done = done
        self._progress(self.done, self.total, self.text)


def _prepared(
    file: ResultsFile, entrants: Sequence[Entrant], quick: bool, audits: bool, counter: _Counter
) -> Iterator[Contestant]:
    """Install and audit entrants, and yield those that can run."""
    known = {(record["name"], record["digest"]): record for record in file.results.of_kind("entrant")}
    for entrant in entrants:
        counter.text = entrant.name
        record: Record = {"kind": "entrant", "name": entrant.name, "facts": entrant.facts.as_dict()}
        record["digest"] = entrant.digest
        before = counter.done
        try:
            environment = install(entrant)
        except NotInstallable as error:
            _once(file, {**record, "not_installed": str(error)})
            counter.at(before + STEPS)
            continue
        stored = known.get((entrant.name, entrant.digest), {})
        if audits and "audit" not in stored:
            counter.text = f"audit: {entrant.name}"
            audited = audit(entrant, environment, quick=quick, progress=partial(counter.audited, before))
            record["audit"] = audited.as_dict()
        if stored == {} or "not_installed" in stored or "audit" in record:
            file.append(record)
        counter.at(before + STEPS)
        yield Contestant(entrant, environment)


def _run_table(
    file: ResultsFile,
    benchmark: Benchmark,
    table: BenchTable,
    rows: RowsFile,
    k: int,
    contestants: Sequence[Contestant],
    machine: str,
    counter: _Counter,
) -> None:
    """Make all runs on a table that the file lacks."""
    done = {key_of(record) for record in file.results.of_kind("run")}
    clipped = table.clipped
    for run in range(benchmark.runs):
        for epsilon in benchmark.epsilons:
            for contestant in contestants:
                entrant = contestant.entrant
                counter.text = f"{table.name}: {entrant.name}"
                if (entrant.name, entrant.digest, table.name, k, epsilon, run) not in done:
                    task = Task(
                        file=rows,
                        k=k,
                        epsilon=epsilon,
                        delta=benchmark.delta_of(len(table.rows)) if entrant.facts.guarantee != "pure" else 0.0,
                        seed=benchmark.seed_of(table.name, k, epsilon, run),
                        n=len(table.rows),
                    )
                    outcome = run_entrant(entrant, contestant.environment, task, benchmark.timeout)
                    facts: Record = {"kind": "run", "entrant": entrant.name, "digest": entrant.digest}
                    facts |= {"set": table.name, "k": k, "epsilon": epsilon, "delta": task.delta, "run": run}
                    file.append({**facts, "seed": task.seed, "machine": machine, **_measured(outcome, table, clipped)})
                counter.step()


def _measured(outcome: Answer | RunFailure, table: BenchTable, clipped: Any) -> Record:
    """Return the figures of a run."""
    if isinstance(outcome, RunFailure):
        return {"failure": attrs.asdict(outcome)}
    try:
        cost = nicv(clipped, table.units(outcome.centers[0]))
    except CloisterError as error:  # centres that are too far away
        return {"failure": attrs.asdict(RunFailure("bad output", str(error)))}
    return {"cost": cost, "seconds": round(outcome.seconds, 4), "peak_mb": round(outcome.peak_mb, 1)}


def _described(table: BenchTable, ks: Sequence[int]) -> Record:
    """Return the record of a set, with its baselines. NOT private."""
    clipped = table.clipped
    single = {MIDPOINT: nicv(clipped, np.zeros((1, clipped.shape[1]))), MEAN: nicv(clipped, clipped.mean(0)[None])}
    baselines = {str(k): {REFERENCE: nicv(clipped, reference_centers(clipped, k, seed=0)), **single} for k in ks}
    n, d = table.rows.shape
    facts: Record = {"kind": "set", "name": table.name, "rows": n, "columns": d, "sha256": table.digest}
    return {**facts, "bounds_read": table.read, "baselines": baselines}


def _once(file: ResultsFile, record: Record) -> None:
    """Store a record unless the file's last one of this kind and name is the same.

    Raises: InvalidInput: the set has other rows than in the file.
    """
    same = [old for old in file.results.of_kind(record["kind"]) if old["name"] == record["name"]]
    digests = {old["sha256"] for old in same if "sha256" in old}
    if digests and record.get("sha256") not in {None, *digests}:
        raise InvalidInput(f"the set {record['name']} has other rows than in this file of results: choose another file")
    if not same or same[-1] != record:
        file.append(record)
