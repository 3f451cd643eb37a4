"""Seconds and megabytes beside what a user would pick instead, one fresh process each, one thread unless --threads.

    python benchmarks/speed.py                 n = 1M, d = 10, k = 10, epsilon = 1
    python benchmarks/speed.py --file          one fit from a Parquet file of 20M x 8 float32 rows (700 MB of disk)

diffprivlib and scikit-learn are measured if they are installed.
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
from collections.abc import Callable
from pathlib import Path
from typing import Any

LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "ARROW_NUM_THREADS")
WARM = 20_000


METHODS = ("auto", "hst-means", "tree-coreset", "fastlloyd", "gauss-lloyd", "su-lloyd")
PASSES = ("predict", "transform", "score")


def offered() -> set[str]:
    """The methods of this version."""
    from cloister.core.registry.registry import registry

    return {spec.name for spec in registry().specs("Method")}


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


def job(name: str, rows: Any, k: int, rounds: int) -> Callable[[], Any]:
    """What is timed, for rows of any length."""
    if name.startswith("scikit-learn"):
        from sklearn.cluster import KMeans

        if name.endswith(PASSES):
            return passed(name, KMeans(k, n_init=1, random_state=0), rows)
        return lambda: KMeans(k, n_init=1, max_iter=rounds if "rounds" in name else 300, random_state=0).fit(rows)
    if name == "diffprivlib":
        from diffprivlib.models import KMeans as Rival

        bounds = ([-1.0] * rows.shape[1], [1.0] * rows.shape[1])
        return lambda: Rival(k, epsilon=1.0, bounds=bounds, random_state=0).fit(rows)
    if name.endswith(PASSES):
        from cloister import KMeans as Ours

        return passed(name, Ours(k, method="fastlloyd", delta=1e-8, bounds=(-1.0, 1.0)), rows)
    from cloister.run.fit import fit, source
    from cloister.run.request import Request

    delta = 0.0 if name == "su-lloyd" else 1e-8
    request = Request(k=k, method=name, epsilon=1.0, delta=delta, bounds=(-1.0, 1.0), rows=len(rows))
    return lambda: fit(request, source(rows, None, "refuse"))


def passed(name: str, model: Any, rows: Any) -> Callable[[], Any]:
    """A pass over rows with centres that were fitted to few of them."""
    model.fit(rows[:WARM])
    return lambda: getattr(model, name.split()[-1])(rows)


def one(name: str, n: int, d: int, k: int, rounds: int, threads: int) -> None:
    """In a process of its own: warm up on few rows, then time all of them. One thread by its own time, which other
    programs on the machine change less."""
    rows = mixture(n, d, k)
    job(name, rows[:WARM], k, rounds)()
    before = resident()
    with Peak() as peak:
        work, clock = job(name, rows, k, rounds), time.process_time if threads == 1 else time.perf_counter
        start = clock()
        found = work()
        seconds = clock() - start
    done = (
        len({s.round for s in found.privacy.spends}) if hasattr(found, "privacy") else getattr(found, "n_iter_", None)
    )
    print(json.dumps({"name": name, "seconds": seconds, "megabytes": peak.most - before, "rounds": done or ""}))


def file(path: Path) -> None:
    """In a process of its own: one fit from a file."""
    from cloister.run.fit import fit, source
    from cloister.run.request import Request

    request = Request(k=8, epsilon=1.0, delta=1e-9, bounds=(-1.0, 1.0), rows=20_000_000)
    with Peak() as peak:
        start = time.perf_counter()
        result = fit(request, source(str(path), "*", "refuse"))
        seconds = time.perf_counter() - start
    rounds = len({s.round for s in result.privacy.spends})
    print(json.dumps({"name": "fastlloyd from Parquet", "seconds": seconds, "megabytes": peak.most, "rounds": rounds}))


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


def fresh(*arguments: str, threads: int = 1) -> dict[str, Any] | None:
    """Run this script again in a new process; None if what it measures is not installed."""
    done = subprocess.run(
        [sys.executable, __file__, *arguments],
        env={**os.environ, **dict.fromkeys(LIMITS, str(threads))},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        print(f"{' '.join(arguments)}: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        return None
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("-k", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=7, help="rounds that scikit-learn may take")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--file", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--path", type=Path, help=argparse.SUPPRESS)
    o = parser.parse_args()
    if o.path:
        file(o.path)
    elif o.one:
        one(o.one, o.rows, o.columns, o.k, o.rounds, o.threads)
    elif o.file:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows.parquet"
            write(path, 20_000_000, 8)
            print(fresh("--path", str(path)))
    else:
        names = (
            f"scikit-learn, 1 start, {o.rounds} rounds",
            "scikit-learn, 1 start",
            "diffprivlib",
            *(name for name in METHODS if name in offered()),
            *(f"{whose} {what}" for what in PASSES for whose in ("scikit-learn,", "cloister,")),
        )
        print("| method | seconds (median, all) | MB over the data | rounds |\n| --- | --- | --- | --- |")
        for name in names:
            size = ("--rows", str(o.rows), "--columns", str(o.columns), "-k", str(o.k), "--rounds", str(o.rounds))
            size += ("--threads", str(o.threads))
            found = [f for f in (fresh("--one", name, *size, threads=o.threads) for _ in range(o.repeats)) if f]
            if found:
                times = sorted(f["seconds"] for f in found)
                listed = ", ".join(f"{t:.3f}" for t in times)
                most = max(f["megabytes"] for f in found)
                print(
                    f"| {name} | {times[len(times) // 2]:.3f} ({listed}) | {most:.0f} | {found[0]['rounds']} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
