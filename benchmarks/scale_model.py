"""What a pass costs by rows, columns, centres and workers: measured, fitted by a simple model, checked, extrapolated.

    python benchmarks/scale_model.py                      writes 1 GB to a temporary folder
    python benchmarks/scale_model.py --folder rows        keeps the files there, and uses them if they are there
    python benchmarks/scale_model.py --picture scale_model.svg   draws the picture of docs/howto/scale.md

Every line is two fresh processes that ask for counts and sums by the nearest of k centres, once and four times: what a
pass costs is a third of the difference, and what the first one costs beyond a pass is the start. All are seconds of
processor time (of all processes), which other work on the machine changes little; a quiet core gives one a second.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from scale import ONE_THREAD, Memory, resident, spent, write

from cloister.rows.options import Reading

EACH, ROUNDS = 1_000_000, 4

FITTED = [(10, 4, 8), (10, 8, 8), (10, 4, 64), (10, 8, 64)]
"""Millions of rows, columns and centres that the model is fitted to, by one thread."""

CHECKED = [("serial", 1, (30, 8, 8)), ("processes", 2, (10, 8, 8)), ("processes", 2, (30, 8, 8))]
CHECKED += [("dask", 2, (10, 8, 8)), ("dask", 2, (30, 8, 8))]

READINGS = 8
"""Of a fit by ``fastlloyd``: seven rounds, and the validation pass, which costs less."""

CAP = 2**31


def asked(folder: Path, rows: int, columns: int, k: int, engine: str, workers: int, rounds: int) -> dict[str, Any]:
    """Seconds and MB of so many rounds. In a process of its own."""
    from cloister.core.budget import Budget
    from cloister.core.clustering import Problem
    from cloister.core.domains import Box
    from cloister.core.nearest import NearestCenter
    from cloister.core.questions import count, vector_sum
    from cloister.core.randomness import NoiseRng, PublicRng
    from cloister.core.session import Session
    from cloister.plugins.oracles.central.exact import Exact
    from cloister.plugins.populations.files import Files
    from cloister.rows.workers.engine import engine_of

    paths = sorted(folder.glob("part-*.parquet"))[: rows // EACH]
    runner = engine_of(engine, None if engine == "serial" else workers)
    threads = workers if engine == "serial" else None
    box = Box((-1.0,) * columns, (1.0,) * columns)
    problem = Problem(k, box, rows, Budget("exact", 1.0))
    centers = box.snap(np.random.default_rng(1).uniform(-1, 1, (k, columns)))
    near = NearestCenter(centers, box.max_norm, box.max_norm)
    with Memory() as memory:
        population = Files(paths, Reading(columns=[f"x{j}" for j in range(columns)], threads=threads), engine=runner)
        for _ in range(rounds):
            session: Any = Session(problem, PublicRng.from_seed(1), population, noise=NoiseRng.for_tests(1))
            budget = problem.budget
            session.ask(
                count(near, oracle=Exact(), budget=budget), vector_sum(near.offsets(), oracle=Exact(), budget=budget)
            )
        runner.close()
    return {"all": spent(), "own": memory.own, "worker": memory.worker}


def parted(engine: str, parts: int) -> dict[str, float]:
    """Seconds and MB here of parts with nothing to do, by two workers. In a process of its own."""
    from cloister.rows.workers.engine import engine_of

    runner = engine_of(engine, 2)
    sum(runner.run(abs, range(10)))
    before, own = resident(os.getpid()), time.process_time()
    sum(runner.run(abs, range(parts)))
    found = {"driver": (time.process_time() - own) / parts, "own": resident(os.getpid()) - before}
    runner.close()
    return found


def alone(*job: Any) -> Any:
    """What a fresh process finds."""
    command = [sys.executable, __file__, "--one", json.dumps(job)]
    done = subprocess.run(command, env={**os.environ, **ONE_THREAD}, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{job}: {done.stderr.strip().splitlines()[-1]}")
    return json.loads(done.stdout.splitlines()[-1])


def fresh(folder: Path, rows: int, columns: int, k: int, engine: str, workers: int) -> dict[str, float]:
    """What a pass costs, and the start. Seconds of a core, and MB."""
    one, many = (alone(str(folder), rows, columns, k, engine, workers, rounds) for rounds in (1, ROUNDS))
    each = (many["all"] - one["all"]) / (ROUNDS - 1)
    return {"all": each, "start": one["all"] - each, "own": many["own"], "worker": many["worker"]}


def fitted(lines: dict[tuple[int, int, int], dict[str, float]]) -> Any:
    """Nanoseconds (a, b, c) of a row: a + b d + c d k."""
    design = np.array([[1, d, d * k] for _, d, k in lines])
    seconds = np.array([found["all"] / (n * 1e6) * 1e9 for (n, _, _), found in lines.items()])
    return np.linalg.lstsq(design, seconds, rcond=None)[0]


def predicted(model: Any, rows: float, columns: int, k: int) -> float:
    """Seconds of a core for a pass."""
    return float(rows * 1e-9 * (model @ [1, columns, columns * k]))


def fit_seconds(model: Any, part: float, start: float, rows: float, workers: int) -> float:
    """Seconds of a fit of 8 columns and centres by workers of one quiet core each. Args: part (the driver's seconds for
    one of a million rows), start (of all workers)."""
    passes = READINGS * max(predicted(model, rows, 8, 8) / workers, rows / EACH * part)
    return passes + start


def report(folder: Path, picture: Path | None) -> None:
    lines = {line: fresh(folder, line[0] * EACH, *line[1:], "serial", 1) for line in FITTED}
    model = fitted(lines)
    print("| engine | workers | rows | d | k | a pass, s | the model | start, s | MB here | MB of a worker |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    every = [("serial", 1, line) for line in FITTED] + CHECKED
    checked = dict[tuple[str, int], dict[str, float]]()
    for engine, workers, line in every:
        n, d, k = line
        found = lines[line] if line in lines and engine == "serial" else fresh(folder, n * EACH, d, k, engine, workers)
        checked[engine, n] = found
        cells = f"{found['all']:.2f} | {predicted(model, n * EACH, d, k):.2f} | {found['start']:.1f}"
        memory = f"{found['own']:.0f} | {found['worker']:.0f}" if found["worker"] else f"{found['own']:.0f} |"
        print(f"| {engine} | {workers} | {n}M | {d} | {k} | {cells} | {memory} |", flush=True)
    print("\nnanoseconds of a row: {:.1f} + {:.2f} d + {:.3f} d k\n".format(*model))
    parts = {engine: [alone("parts", engine, many) for many in (1000, 4000)] for engine in ("processes", "dask")}
    for engine, (few, many) in parts.items():
        print(f"{engine}: {1e3 * many['driver']:.2f} ms and {(many['own'] - few['own']) / 3:.1f} KB a part, here")
    part, start = parts["dask"][1]["driver"], checked["dask", 30]["start"] / 2
    print("| rows | core hours of a fit | 1 worker | 10 workers | 1,000 workers |\n| --- | --- | --- | --- | --- |")
    for rows in (1e9, CAP, 1e11):
        times = (fit_seconds(model, part, start, rows, workers) for workers in (1, 10, 1000))
        hours = READINGS * predicted(model, rows, 8, 8) / 3600
        print(f"| {rows:.3g} | {hours:.2g} | {' | '.join(f'{seconds:,.0f} s' for seconds in times)} |")
    if picture is not None:
        draw(picture, model, part, start)


def draw(path: Path, model: Any, part: float, start: float) -> None:
    """A fit's seconds against its rows, and where they were measured and are refused."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "cloister"
    from matplotlib import pyplot as plt

    figure, axis = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
    rows = np.geomspace(1e6, 1e11, 200)
    for workers in (1, 10, 1000):
        axis.loglog(rows, [fit_seconds(model, part, start, n, workers) for n in rows], label=f"{workers:,} workers")
    axis.axvspan(1e7, 3e7, color="0.85", label="measured")
    axis.axvline(CAP, color="0.4", linestyle="--", label="most rows of one run")
    axis.set(xlabel="rows (8 columns, 8 centres)", ylabel="seconds of a fit, by the model")
    axis.legend(frameon=False)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    o = parser.parse_args()
    if o.one:
        what, *rest = json.loads(o.one)
        print(json.dumps(parted(*rest) if what == "parts" else asked(Path(what), *rest)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = o.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if not list(folder.glob("part-*.parquet")):
            write(folder, 30, EACH)
        report(folder, o.picture)


if __name__ == "__main__":
    main()
