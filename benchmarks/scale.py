"""A tree's counts and the fit on them, from 20 Parquet files of 1M x 8 float32 rows each: one process, a pool, Dask;
and a killed worker.

    python benchmarks/scale.py                     writes 700 MB to a temporary folder
    python benchmarks/scale.py --folder rows       keeps the files there, and uses them if they are there

Every line is a fresh process with single-threaded numerical libraries. The bare pass is what has to be done in any
case: pyarrow reads batches of 16,384 rows, which are put on the lattice and located in the tree.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from cloister.rows.options import Reading

COLUMNS, LEVELS, K = 8, 12, 10
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "ARROW_NUM_THREADS": "1"}
JOBS = ("bare", "chunks", "serial", "processes", "dask", "dask-killed")
WORDS = {
    "bare": "bare pass: pyarrow, snap, locate",
    "chunks": "bare pass on the library's own chunks",
    "serial": "one process",
    "processes": "2 processes",
    "dask": "Dask, 2 workers",
    "dask-killed": "Dask, 2 workers, one killed",
}


def write(folder: Path, files: int, each: int) -> None:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    r = np.random.default_rng(0)
    centers = r.uniform(-0.8, 0.8, (30, COLUMNS))
    for i in range(files):
        rows = (centers[r.integers(0, 30, each)] + r.normal(0, 0.05, (each, COLUMNS))).astype(np.float32)
        table = pa.table({f"x{j}": rows[:, j] for j in range(COLUMNS)})
        pq.write_table(table, folder / f"part-{i:02}.parquet")


class Memory:
    """The largest resident sizes, in MB, of this process and of its largest descendant while the block runs."""

    def __enter__(self) -> Memory:
        self.own, self.worker, self._go = 0.0, 0.0, True
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._go = False
        self._thread.join()

    def _watch(self) -> None:
        while self._go:
            for pid in descendants(os.getpid()):
                if pid == os.getpid():
                    self.own = max(self.own, resident(pid))
                else:
                    self.worker = max(self.worker, resident(pid))
            time.sleep(0.02)


def resident(pid: int) -> float:
    """The largest resident size that a process ever had, in MB; 0 if it is gone."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    found = text.partition("VmHWM:")[2].split()
    return int(found[0]) / 1024 if found else 0.0


def descendants(pid: int) -> Iterator[int]:
    """This process and all below it."""
    yield pid
    try:
        below = "".join(task.read_text() for task in Path(f"/proc/{pid}/task").glob("*/children"))
    except OSError:
        return
    for child in below.split():
        yield from descendants(int(child))


def problem(rows: int) -> Any:
    from cloister.core.budget import Budget
    from cloister.core.clustering import Problem
    from cloister.core.domains import Box

    return Problem(K, Box((-1.0,) * COLUMNS, (1.0,) * COLUMNS), rows, Budget("zcdp", 0.05))


def opened(rows: int) -> tuple[Any, Any]:
    """The problem, and a tree of ``LEVELS`` levels below the root, on all columns."""
    from cloister.core.randomness import PublicRng
    from cloister.plugins.trees.quadtree import ShiftedQuadtree

    asked = problem(rows)
    return asked, ShiftedQuadtree(depth=LEVELS, top=0, dimensions=COLUMNS).open(asked, PublicRng.from_seed(1))


def bare(paths: list[Path], rows: int) -> dict[str, Any]:
    import numpy as np
    import pyarrow.parquet as pq

    asked, tree = opened(rows)
    start = time.perf_counter()
    for path in paths:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(16_384, use_threads=False):
                tree.locate(asked.domain.snap(np.column_stack([column.to_numpy() for column in batch.columns])))
    return {"seconds": time.perf_counter() - start}


def chunks(paths: list[Path], rows: int) -> dict[str, Any]:
    from cloister.plugins.populations.files import Files

    asked, tree = opened(rows)
    population = Files(paths, Reading(columns="*"))
    start = time.perf_counter()
    for chunk in population.chunks():
        tree.locate(asked.domain.snap(chunk.rows))
    return {"seconds": time.perf_counter() - start}


def fitted(paths: list[Path], rows: int, engine: str, kill: bool) -> dict[str, Any]:
    """The validation pass, noisy counts of all levels, the tree grown on them, and the dynamic program on the tree."""
    from cloister.core.questions import count
    from cloister.core.randomness import NoiseRng, PublicRng
    from cloister.core.session import Session
    from cloister.plugins.oracles.central.discrete_gaussian import DiscreteGaussian
    from cloister.plugins.populations.files import Files
    from cloister.plugins.solvers.tree_program import TreeProgram
    from cloister.rows.workers.engine import engine_of

    asked, tree = opened(rows)
    runner, done, killed = engine_of(engine, None if engine == "serial" else 2), [0], list[int]()

    def tell(more: int) -> None:
        done[0] += more
        if kill and not killed and 4 * done[0] >= rows:
            killed.extend(runner.client().run(os.getpid).values())  # type: ignore[attr-defined]
            os.kill(killed[0], signal.SIGKILL)

    population = Recorded(Files(paths, Reading(columns="*", progress=tell), engine=runner))
    times = [time.perf_counter()]
    population.files.check()
    times.append(time.perf_counter())
    session: Any = Session(asked, PublicRng.from_seed(1), population, noise=NoiseRng.secret())
    (counts,) = session.ask(count(tree, oracle=DiscreteGaussian(), budget=asked.budget))
    times.append(time.perf_counter())
    TreeProgram().solve(session.release(tree.grow(counts)), K, PublicRng.from_seed(2))
    times.append(time.perf_counter())
    runner.close()
    return {
        "seconds": times[-1] - times[0],
        "check": times[1] - times[0],
        "count": times[2] - times[1],
        "solve": times[3] - times[2],
        "totals": population.digest,
        "killed": len(killed) > 0,
    }


class Recorded:
    """A population, and a hash of the exact totals that it gave."""

    def __init__(self, files: Any) -> None:
        self.files, self.digest = files, ""

    def gather(self, round: Any, rng: Any) -> tuple[Any, ...]:
        (summary,) = self.files.gather(round, rng)
        self.digest = hashlib.sha256(summary.vector.tobytes()).hexdigest()[:12]
        return (summary,)


def one(job: str, folder: Path, rows: int) -> None:
    """In a process of its own."""
    paths = sorted(folder.glob("part-*.parquet"))
    jobs: dict[str, Callable[[], dict[str, Any]]] = {
        "bare": lambda: bare(paths, rows),
        "chunks": lambda: chunks(paths, rows),
    }
    with Memory() as memory:
        before = spent()
        found = jobs[job]() if job in jobs else fitted(paths, rows, job.partition("-")[0], job.endswith("killed"))
    print(json.dumps({**found, "cpu": spent() - before, "own": memory.own, "worker": memory.worker}))


def spent() -> float:
    """Seconds of processor time, of this process and of those below it that have ended."""
    return sum(os.times()[:4])


def fresh(job: str, folder: Path, rows: int) -> dict[str, Any]:
    command = [sys.executable, __file__, "--one", job, "--folder", str(folder), "--rows", str(rows)]
    done = subprocess.run(command, env={**os.environ, **ONE_THREAD}, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{job}: {done.stderr.strip().splitlines()[-1]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def table(folder: Path, rows: int, repeats: int) -> None:
    every: dict[str, list[dict[str, Any]]] = {job: [] for job in JOBS}
    for _ in range(repeats):  # in turns, so that other work on the machine meets all alike
        for job in JOBS:
            every[job].append(fresh(job, folder, rows))
    best = {job: min(found, key=lambda f: float(f["seconds"])) for job, found in every.items()}
    print(
        "| | seconds | of the bare pass | validation, counting, solving | CPU seconds | MB here | MB of a worker | "
        "exact totals |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for job, f in best.items():
        steps = ", ".join(f"{f[step]:.1f}" for step in ("check", "count", "solve")) if "check" in f else ""
        totals = ", ".join(sorted({g["totals"] for g in every[job]})) if "totals" in f else ""
        ratio, worker = f["seconds"] / best["bare"]["seconds"], f"{f['worker']:.0f}" if f["worker"] else ""
        cells = (
            f"{f['seconds']:.1f}",
            f"{ratio:.2f}",
            steps,
            f"{min(g['cpu'] for g in every[job]):.1f}",
            f"{f['own']:.0f}",
            worker,
        )
        print(f"| {WORDS[job]} | {' | '.join(cells)} | {totals} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000_000, help="in all files together")
    parser.add_argument("--files", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--one", choices=JOBS, help=argparse.SUPPRESS)
    o = parser.parse_args()
    if o.one:
        one(o.one, o.folder, o.rows)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = o.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if not list(folder.glob("part-*.parquet")):
            write(folder, o.files, o.rows // o.files)
        table(folder, o.rows, o.repeats)


if __name__ == "__main__":
    main()
