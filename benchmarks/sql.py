"""Passes over 20 million rows of 8 columns: our own over Parquet, DuckDB's over its table, and Spark's over Parquet.

    python benchmarks/sql.py                            writes 1.4 GB to a temporary folder
    python benchmarks/sql.py --folder rows              keeps the files there, and uses them if they are there
    python benchmarks/sql.py --folder big --rows 200_000_000 --ways table --tasks fastlloyd,hst-means --repeats 1
    python benchmarks/sql.py --ways files,workers,query --tasks fastlloyd --spark 'local-cluster[2,1,4096]'

Every line is a fresh process; the ways take turns, so that other work on the machine meets all alike. A fit contains
the validation pass before it. The quadtrees are counted on all levels, by noise of nobody: a digest tells that all ways
found the same integers.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scale import K, Memory, opened, spent, write

WAYS = {
    "files": "our own pass over Parquet",
    "table": "a table of DuckDB",
    "workers": "Spark, by workers",
    "query": "Spark, by query",
}
SPARK = ("workers", "query")
TASKS = {
    "check": "validation",
    "fastlloyd": "`fastlloyd`, a fit",
    "hst-means": "the quadtree of `hst-means`",
    "quadtree": "a quadtree of 12 levels on 8 columns",
    "auto": "`auto`, a fit",
}


def population(way: str, folder: Path, master: str) -> Any:
    from cloister.core.registry.registry import registry
    from cloister.rows.options import Reading
    from cloister.run.fit import source

    if way == "files":
        return source([str(path) for path in sorted(folder.glob("part-*.parquet"))], columns=["*"])
    import ibis

    if way in SPARK:
        from pyspark.sql import SparkSession

        settings = {"spark.executor.memory": master.rstrip("]").rpartition(",")[2] + "m"} if "cluster" in master else {}
        session = SparkSession.builder.master(master).config(map=settings).getOrCreate()
        session.read.parquet(str(folder / "part-*.parquet")).createOrReplaceTempView("rows")
        return source(ibis.pyspark.connect(session).table("rows"), columns=["*"], passes=way)
    database = ibis.duckdb.connect(folder / "rows.duckdb", read_only=True, memory_limit="512MiB")
    return registry().load(registry().spec("Population", "sql"))(database.table("rows"), Reading(columns="*"))


def store(folder: Path) -> None:
    """The rows in a table of DuckDB."""
    import duckdb

    with duckdb.connect(folder / "rows.duckdb") as database:
        files = str(folder / "part-*.parquet").replace("'", "''")
        database.execute(f"CREATE TABLE rows AS FROM read_parquet('{files}')")


def fitted(method: str, rows: Any, n: int) -> dict[str, Any]:
    from cloister.run.fit import fit
    from cloister.run.request import Request

    fit(Request(k=K, method=method, epsilon=1.0, delta=1e-9, bounds=(-1.0, 1.0), rows=n, seed=1), rows)
    return {}


def counted(tree: Any, problem: Any, rows: Any) -> dict[str, Any]:
    """All levels' exact counts, and a digest of those levels of which all cells can be looked at."""
    import numpy as np

    from cloister.core.budget import Budget
    from cloister.core.questions import count
    from cloister.core.randomness import NoiseRng, PublicRng
    from cloister.core.session import Session
    from cloister.plugins.oracles.central.exact import Exact

    session: Any = Session(problem, PublicRng.from_seed(1), rows, noise=NoiseRng.secret())
    (counts,) = session.ask(count(tree, oracle=Exact(), budget=Budget("exact", 1.0)))
    few = [(np.arange(size), level) for level, size in enumerate(tree.space.sizes) if size <= 2**16]
    found = np.concatenate([counts.at(ids, level) for ids, level in few])
    return {"totals": hashlib.sha256(found.astype(np.int64).tobytes()).hexdigest()[:12]}


def tree_of(task: str, n: int) -> tuple[Any, Any]:
    """The tree that a task counts, and its problem."""
    from cloister.core.randomness import PublicRng
    from cloister.plugins.trees.quadtree import ShiftedQuadtree

    problem, tree = opened(n)
    return (tree if task == "quadtree" else ShiftedQuadtree().open(problem, PublicRng.from_seed(1))), problem


def one(way: str, task: str, folder: Path, n: int, master: str) -> None:
    """In a process of its own."""
    tasks: dict[str, Callable[[Any], Any]] = {
        "check": lambda rows: rows.check(),
        "fastlloyd": lambda rows: fitted("fastlloyd", rows, n),
        "hst-means": lambda rows: counted(*tree_of(task, n), rows),
        "quadtree": lambda rows: counted(*tree_of(task, n), rows),
        "auto": lambda rows: fitted("auto", rows, n),
    }
    with Memory() as memory, population(way, folder, master) as rows:
        start, before = time.perf_counter(), spent()
        found = tasks[task](rows) or {}
        seconds, cpu = time.perf_counter() - start, spent() - before
    print(json.dumps({"seconds": seconds, "cpu": cpu, "memory": memory.own, "workers": memory.worker, **found}))


def fresh(way: str, task: str, folder: Path, n: int, master: str) -> dict[str, Any]:
    command = [
        sys.executable,
        __file__,
        "--one",
        way,
        task,
        "--folder",
        str(folder),
        "--rows",
        str(n),
        "--spark",
        master,
    ]
    done = subprocess.run([*command, "--spark", master], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{way}, {task}: {done.stderr.strip().splitlines()[-1]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def table(ways: list[str], tasks: list[str], folder: Path, n: int, repeats: int, master: str) -> None:
    print("| | | seconds | of our own pass | CPU seconds | MB | MB of its largest process | exact totals |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for task in tasks:
        every: dict[str, list[dict[str, Any]]] = {way: [] for way in ways}
        for _ in range(repeats):
            for way in ways:
                every[way].append(fresh(way, task, folder, n, master))
        best = {way: min(found, key=lambda f: float(f["seconds"])) for way, found in every.items()}
        for way, f in best.items():
            ratio = f"{f['seconds'] / best['files']['seconds']:.2f}" if "files" in best else ""
            cpu, totals = min(g["cpu"] for g in every[way]), ", ".join({g.get("totals", "") for g in every[way]})
            memory = " | ".join(f"{max(g[name] for g in every[way]):.0f}" for name in ("memory", "workers"))
            print(
                f"| {TASKS[task]} | {WAYS[way]} | {f['seconds']:.1f} | {ratio} | {cpu:.1f} | {memory} | {totals} |",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000_000, help="in files of a million")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--ways", default="files,table", help=", ".join(WAYS))
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--spark", default="local[2]", help="the master")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    o = parser.parse_args()
    if o.one:
        one(*o.one, o.folder, o.rows, o.spark)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = o.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if not list(folder.glob("part-*.parquet")):
            write(folder, o.rows // 1_000_000, 1_000_000)
        ways = o.ways.split(",")
        if "table" in ways and not (folder / "rows.duckdb").exists():
            store(folder)
        table(ways, o.tasks.split(","), folder, o.rows, o.repeats, o.spark)


if __name__ == "__main__":
    main()
