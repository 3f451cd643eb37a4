"""How much memory decoding takes, and how long: reports of random valid bytes, as many as asked for, in Parquet files.

    python benchmarks/reports_memory.py --reports 10000000

Nothing is encoded: an answer of the one-byte vector oracle is any byte below its number of outcomes. The decoder runs
in a process of its own, whose peak resident memory is what is printed; the same for an eighth of the reports shows what
grows with them.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

FILE = 1_000_000
"""Reports in a file."""


def write(folder: Path, reports: int, k: int, dimension: int, buckets: str) -> None:
    """A plan and its reports."""
    import pyarrow.parquet as pq

    from cloister.collection.plan.publish import publish
    from cloister.collection.wire import reports as wire
    from cloister.core.encoding import encode_lattice
    from cloister.core.randomness import NoiseRng
    from cloister.run.request import Request

    options = {"tree.cells": buckets} if buckets else {}
    request = Request(k=k, method="one-round", epsilon=2.0, bounds="ball:1", rows=reports, seed=1, options=options)
    plan = publish(request, dimension=dimension)
    plan.write(folder / "plan", "for a benchmark")
    (folder / "reports").mkdir()
    round, rng = plan.round(), np.random.default_rng(0)
    schema = wire.schema(round, plan.hash)
    some = np.arange(10_000, dtype=np.uint64)
    real = encode_lattice(round, np.zeros((len(some), dimension), np.int64), some, NoiseRng.for_tests(1))
    for start in range(0, reports, FILE):
        users = np.arange(start, min(start + FILE, reports), dtype=np.uint64)
        with pq.ParquetWriter(
            folder / "reports" / f"part-{start:012}.parquet", schema, compression="zstd", write_page_checksum=True
        ) as file:
            for piece in np.array_split(users, -(-len(users) // 2**18)):
                made = []
                for report, who in zip(real, wire.asked(round, piece), strict=True):
                    columns, count = dict(report.columns()), int(who.sum())
                    drawn = rng.integers(0, len(columns["users"]), count)
                    made.append(type(report).load({**{n: v[drawn] for n, v in columns.items()}, "users": piece[who]}))
                file.write_batch(wire.to_batch(tuple(made), piece, schema))


def measured(folder: Path) -> None:
    """Decode, then say how it went."""
    from cloister.collection.server.aggregator import decode

    started = time.perf_counter()
    done = decode(folder / "plan", folder / "reports")
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    n = done.intake.accepted
    size = sum(p.stat().st_size for p in (folder / "reports").iterdir()) / n
    print(
        f"{n:>12,} reports of {size:.1f} bytes in files: {seconds:7.1f} s, {n / seconds / 1e6:.2f}M reports/s, "
        f"peak {peak / 1e6:,.0f} MB"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--reports", type=int, default=5_000_000)
    parser.add_argument("-k", type=int, default=8)
    parser.add_argument("--dimension", type=int, default=100)
    parser.add_argument("--cells", default="", help="the tree's number of cells")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.folder is not None:
        measured(given.folder)
        return
    for reports in (given.reports // 8, given.reports):
        with tempfile.TemporaryDirectory() as name:
            write(Path(name), reports, given.k, given.dimension, given.cells)
            subprocess.run([sys.executable, __file__, "--folder", name], check=True)


if __name__ == "__main__":
    main()
