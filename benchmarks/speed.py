"""Ratios of seconds to scikit-learn's own on the same rows, and which of the limits hold; memory; a fit from a file.

    python benchmarks/speed.py                 1M x 10, one thread: fits at k = 10, passes at k = 10 and 100
    python benchmarks/speed.py --markdown      the same as tables for docs/explanation/speed.md
    python benchmarks/speed.py --memory        megabytes of a fit over its rows, a fresh process each
    python benchmarks/speed.py --cores         what all cores are worth: 8M x 8 rows in memory, and a Parquet file of
                                               20M x 8 float32 rows (700 MB of disk); seconds by the clock

A ratio is of medians of seconds of processor time in one process, where both sides take turns, so that other programs
disturb both alike. It is run before each release (CONTRIBUTING.md), on a machine that does little else.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cloister.lab.machine import machine

LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "ARROW_NUM_THREADS")
WARM = 20_000

FITS = {"auto": 1.2, "fastlloyd": 0.8, "hst-means": 0.8, "tree-coreset": None, "gauss-lloyd": None}
"""The largest ratio that a fit may have to one start of scikit-learn's KMeans."""

PASSES = {"predict": 1.5, "transform": 1.5, "score": 2.0}
"""The largest ratio of each; ``score`` looks whether rows lie within the bounds too."""

ALONE = 1.1
"""The largest ratio of threads=1 to the default, of which 0.1 are for measuring."""

THEIRS = "scikit-learn, 1 start"


def resident() -> float:
    """Megabytes of this process now."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("this system does not say how much memory a process has")


class Peak:
    """The largest resident size while the block runs, sampled every millisecond."""

    def __enter__(self) -> Peak:
        self.most, self._go = resident(), True
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._go = False
        self._thread.join()

    def _watch(self) -> None:
        while self._go:
            self.most = max(self.most, resident())
            time.sleep(0.001)


def mixture(n: int, d: int, k: int) -> Any:
    """A Gaussian mixture in [-1, 1]^d as float64, with overlap, so that no method is done after two rounds."""
    import numpy as np

    r = np.random.default_rng(12)
    centers = r.uniform(-0.75, 0.75, (k, d))
    rows = centers[r.integers(0, k, n)]
    for start in range(0, n, 100_000):
        rows[start : start + 100_000] += r.normal(0, 0.25, rows[start : start + 100_000].shape)
    return np.clip(rows, -1, 1, out=rows)


def fit_of(method: str, k: int) -> Callable[[Any], Any]:
    """A fit of rows of any length."""
    if method == THEIRS:
        from sklearn.cluster import KMeans

        return lambda rows: KMeans(k, n_init=1, random_state=0).fit(rows)
    from cloister.run.fit import fit, source
    from cloister.run.request import Request

    def ours(rows: Any) -> Any:
        request = Request(k=k, method=method, epsilon=1.0, delta=1e-8, bounds=(-1.0, 1.0), rows=len(rows))
        return fit(request, source(rows))

    return ours


def in_turns(jobs: Mapping[str, Callable[[Any], Any]], rows: Any, repeats: int) -> dict[str, float]:
    """Median seconds of processor time of each job, all of them one after the other so many times."""
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for work in jobs.values():
        work(rows[:WARM])
    for _ in range(repeats):
        for name, work in jobs.items():
            start = time.process_time()
            work(rows)
            times[name].append(time.process_time() - start)
    return {name: sorted(found)[len(found) // 2] for name, found in times.items()}


def found_ratios(n: int, d: int, repeats: int) -> list[dict[str, Any]]:
    """One line per comparison: name, k, seconds of theirs and ours, limit."""
    from sklearn.cluster import KMeans

    from cloister import KMeans as Ours

    rows, lines = mixture(n, d, 10), list[dict[str, Any]]()
    seconds = in_turns({name: fit_of(name, 10) for name in (THEIRS, *FITS)}, rows, max(3, repeats // 3))
    for name, limit in FITS.items():
        lines.append(line(name, 10, seconds[THEIRS], seconds[name], limit))
    for k in (10, 100):
        theirs = KMeans(k, n_init=1, random_state=0).fit(rows[:WARM])
        ours = Ours(k, method="fastlloyd", delta=1e-8, bounds=(-1.0, 1.0)).fit(rows[:WARM])
        for what, limit in PASSES.items():
            seconds = in_turns({"theirs": getattr(theirs, what), "ours": getattr(ours, what)}, rows, repeats)
            lines.append(line(what, k, seconds["theirs"], seconds["ours"], limit))
    return lines


def threads_ratios(n: int, d: int, repeats: int) -> list[dict[str, Any]]:
    """threads=1 beside the default, where BLAS may take all cores."""
    from cloister import KMeans as Ours

    rows, lines = mixture(n, d, 10), list[dict[str, Any]]()
    models = {
        name: Ours(10, method="fastlloyd", delta=1e-8, bounds=(-1.0, 1.0), threads=many).fit(rows[:WARM])
        for name, many in (("default", None), ("threads=1", 1))
    }
    for what in ("fit", *PASSES):
        turns = max(3, repeats // 3) if what == "fit" else repeats
        seconds = in_turns({name: getattr(model, what) for name, model in models.items()}, rows, turns)
        lines.append(line(f"{what}, threads=1 over default", 10, seconds["default"], seconds["threads=1"], ALONE))
    return lines


def line(name: str, k: int, theirs: float, ours: float, limit: float | None) -> dict[str, Any]:
    return {"name": name, "k": k, "theirs": theirs, "ours": ours, "limit": limit}


def shown(lines: list[dict[str, Any]], markdown: bool) -> None:
    """The lines of one table, and whether each limit holds."""
    if markdown:
        print("| what | k | scikit-learn or default, s | cloister, s | ratio | limit |")
        print("| --- | --- | --- | --- | --- | --- |")
    for at in lines:
        ratio, limit = at["ours"] / at["theirs"], at["limit"]
        if markdown:
            print(f"| {at['name']} | {at['k']} | {at['theirs']:.3f} | {at['ours']:.3f} | {ratio:.2f} | {limit or ''} |")
        else:
            verdict = "" if limit is None else f"at most {limit}: {'holds' if ratio <= limit else 'DOES NOT HOLD'}"
            print(
                f"{at['name']:34s} k={at['k']:<4d} {at['theirs']:8.3f} s {at['ours']:8.3f} s  {ratio:5.2f}  {verdict}"
            )


def memory(name: str, n: int, d: int) -> None:
    """In a process of its own: megabytes over the rows at the most."""
    rows, work = mixture(n, d, 10), fit_of(name, 10)
    work(rows[:WARM])
    before = resident()
    with Peak() as peak:
        work(rows)
    print(json.dumps({"name": name, "megabytes": peak.most - before}))


WAYS: dict[str, dict[str, str]] = {
    "one core": {},
    "threads (the default)": {},
    "processes": {"engine": "processes"},
    "Dask": {"engine": "dask"},
}
"""Who works on a file, and the options of ``source`` that say so."""


def on_cores(path: str | None, way: str) -> None:
    """In a process of its own: seconds of a fit from a file (None: rows in memory), and until workers had started."""
    from cloister.plugins.populations.files import Files
    from cloister.rows.options import Reading
    from cloister.rows.workers.engine import open_engine
    from cloister.run.fit import fit, source
    from cloister.run.request import Request

    if way == "one core":
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    n = 20_000_000 if path else 8_000_000
    rows: Any = path or mixture(n, 8, 8)
    request = Request(k=8, method="fastlloyd", epsilon=1.0, delta=1e-9, bounds=(-1.0, 1.0), rows=n)
    begun = time.perf_counter()
    with open_engine(WAYS[way].get("engine", "serial")) as engine, Peak() as peak:
        if engine.apart:
            list(engine.run(abs, range(2 * (os.cpu_count() or 1))))
        started = time.perf_counter()
        with Files(path, Reading(columns="*"), engine=engine) if path else source(rows) as population:
            fit(request, population)
        ended = time.perf_counter()
    print(json.dumps({"start": started - begun, "fit": ended - started, "megabytes": peak.most}))


def cores(repeats: int) -> None:
    """A table of them, each the median of so many, in turns."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        write(path, 20_000_000, 8)
        cases: list[tuple[str, str, tuple[str, ...]]] = [("rows in memory", way, ()) for way in list(WAYS)[:2]]
        cases += [("a file", way, ("--path", str(path))) for way in WAYS]
        found: dict[tuple[str, str], list[Any]] = {}
        for _ in range(repeats):
            for where, way, more in cases:
                arguments = ("--only", "cores", "--name", way, *more)
                found.setdefault((where, way), []).append(fresh(*arguments, threads=None))
    print(
        "| rows | who works | start, s | fit, s | one core over it | MB here |\n| --- | --- | --- | --- | --- | --- |"
    )
    for (where, way), times in found.items():
        start, fit, one, mb = (
            sorted(each[what] for each in group)[repeats // 2]
            for what, group in (
                ("start", times),
                ("fit", times),
                ("fit", found[where, "one core"]),
                ("megabytes", times),
            )
        )
        print(f"| {where} | {way} | {start:.1f} | {fit:.1f} | {one / fit:.2f} | {mb:.0f} |")


def write(path: Path, n: int, d: int) -> None:
    """Write n rows of float32 without ever holding them all."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(f"x{j}", pa.float32()) for j in range(d)])
    r = np.random.default_rng(7)
    centers = r.uniform(-0.75, 0.75, (8, d))
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, n, 1_000_000):
            m = min(1_000_000, n - start)
            rows = (centers[r.integers(0, 8, m)] + r.normal(0, 0.1, (m, d))).astype(np.float32)
            writer.write_table(pa.table([rows[:, j].copy() for j in range(d)], schema=schema))


def fresh(*arguments: str, threads: int | None = 1) -> Any:
    """What this script finds in a new process, on so many threads (None: as many as there are)."""
    limits = {} if threads is None else dict.fromkeys(LIMITS, str(threads))
    environment = {name: value for name, value in os.environ.items() if name not in LIMITS} | limits
    done = subprocess.run(
        [sys.executable, __file__, *arguments], env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=9, help="of each pass; a third as many of each fit")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--cores", action="store_true")
    parser.add_argument("--only", choices=("ratios", "threads", "memory", "cores"), help=argparse.SUPPRESS)
    parser.add_argument("--name", help=argparse.SUPPRESS)
    parser.add_argument("--path", help=argparse.SUPPRESS)
    o = parser.parse_args()
    warnings.simplefilter("ignore")
    size = ("--rows", str(o.rows), "--columns", str(o.columns), "--repeats", str(o.repeats))
    if o.only == "cores":
        on_cores(o.path, o.name)
    elif o.only == "memory":
        memory(o.name, o.rows, o.columns)
    elif o.only:
        ratios = found_ratios if o.only == "ratios" else threads_ratios
        print(json.dumps(ratios(o.rows, o.columns, o.repeats)))
    elif o.cores:
        print(f"{machine()}; load {os.getloadavg()[0]:.1f}\n")
        cores(max(1, o.repeats // 3))
    elif o.memory:
        print("| fit | MB over the rows |\n| --- | --- |")
        for name in (THEIRS, *FITS):
            print(f"| {name} | {fresh('--only', 'memory', '--name', name, *size)['megabytes']:.0f} |", flush=True)
    else:
        print(f"{machine()}\n{o.rows:,} x {o.columns}, one thread, processor time; load {os.getloadavg()[0]:.1f}\n")
        lines = fresh("--only", "ratios", *size)
        lines += fresh("--only", "threads", *size, threads=None)
        shown(lines, o.markdown)
        beyond = [at["name"] for at in lines if at["limit"] and at["ours"] > at["limit"] * at["theirs"]]
        print("\nAll limits hold." if not beyond else f"\nBeyond their limits: {', '.join(beyond)}.")


if __name__ == "__main__":
    main()
