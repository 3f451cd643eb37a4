"""Decoding and shuffling many reports, on two workers: the tables in docs/howto/many_reports.md. In one process, with
the most memory that it took: docs/howto/shuffled.md.

    python benchmarks/decode_scale.py decode 1e6 1e7 1e8 --folder /tmp/scale
    python benchmarks/decode_scale.py shuffle 1e6 1e7 1e8 --folder /tmp/scale
    python benchmarks/decode_scale.py one 1.25e6 1e7 1e8 --folder /tmp/scale

Answers are drawn uniformly among those that an encoder could send: they cost a server and a shuffler what real ones do.
User numbers come in random order, in batches of 10,000 (``--batch``), in files of an eighth each.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import resource
import shutil
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.plan.publish import publish
from cloister.collection.server.aggregator import decode
from cloister.collection.shuffler.shuffler import shuffle
from cloister.collection.wire.answers import Body, layout_of
from cloister.collection.wire.batches import BatchForm
from cloister.core.registry.making import drafted
from cloister.run.request import Request

WIRES = {"counts": "amplified-counts", "sums": "amplified-vectors"}


def made(kind: str, people: int) -> CollectionPlan:
    """A one-round plan at d = 10, k = 8, epsilon = 1, of the default blocks."""
    given: dict[str, Any] = {
        "k": 8,
        "method": drafted("one-round", {} if kind == "decode" else WIRES),
        "epsilon": 1.0,
        "bounds": (-1, 1),
        "rows": people,
        "seed": 1,
    }
    more = {"trust": "local"} if kind == "decode" else {"delta": 1e-9}
    return publish(Request(**given, **more), dimension=10)


def write(plan: CollectionPlan, folder: Path, batch: int) -> int:
    """Reports of all users, in eight files. Returns: bytes."""
    round_, rng = plan.round(), np.random.default_rng(0)
    layout, form = layout_of(round_), BatchForm(plan.hash, 1, layout_of(round_).bytes)
    users = rng.permutation(plan.rows).astype(np.uint64)
    folder.mkdir(parents=True)
    for number, some in enumerate(np.array_split(users, 8)):
        with (folder / f"round-001-{number:06}.reports").open("wb") as file:
            for start in range(0, len(some), 2**20):
                mine = some[start : start + 2**20]
                answers = layout.empty(len(mine))
                drawn = rng.integers(0, 2**64, len(mine), np.uint64)
                asked = layout._questions_of(layout.slots[0], drawn if layout.numbered else mine)
                for j, (part, body) in enumerate(zip(round_.parts, layout.bodies, strict=True)):
                    rows = np.flatnonzero(asked == j)
                    layout.put(answers, j, rows, possible(part, body, drawn[rows], rng))
                for low in range(0, len(mine), batch):
                    file.write(form.batch(mine[low : low + batch], answers[low : low + batch]))
    return sum(path.stat().st_size for path in folder.iterdir())


def possible(part: Any, body: Body, drawn: Any, rng: np.random.Generator) -> Any:
    """Bodies that an encoder could send. Args: drawn (private numbers of the users who are asked)."""
    asked = getattr(part.channel, "inner", part.channel).asked
    symbols = asked.levels[0].response.symbols if hasattr(asked, "levels") else 2 * asked.randomiser.size
    answers = {
        c.name: rng.integers(0, symbols, (len(drawn), c.width), np.uint32) for c in body.kind.body.columns if c.width
    }
    return body.kind.body.pack({"users": drawn, **answers})


def spent() -> float:
    """CPU seconds of this process and of its children that have ended."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(use.ru_utime + use.ru_stime for use in both)


def in_one_process(step: str, folder: Path) -> tuple[int, float, int]:
    """Shuffle or decode what a folder holds. Returns: people, seconds, and MB at the most."""
    begun = time.perf_counter()
    if step == "shuffle":
        people = shuffle(folder / "plan", folder / "reports", folder / "out").people
    else:
        people = decode(folder / "plan", folder / "out").intake.accepted
    return people, time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def one(people: int, folder: Path, batch: int) -> None:
    """A line of the table of one process: shuffle, then decode what it released, each in a process of its own."""
    plan = made("shuffle", people)
    plan.write(folder / "plan", "for a benchmark")
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:  # a process begins with the most that its parent took
        pool.submit(write, plan, folder / "reports", batch).result()
    cells = [f"{people:,}"]
    for step in ("shuffle", "decode"):
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            count, seconds, most = pool.submit(in_one_process, step, folder).result()
        assert count == people
        cells += [f"{seconds:.1f} s", f"{most:,} MB"]
    print("| " + " | ".join(cells) + " |", flush=True)
    shutil.rmtree(folder)


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["decode", "shuffle", "one"])
    parser.add_argument("people", nargs="+", type=lambda text: int(float(text)))
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--batch", type=int, default=10_000)
    parser.add_argument("--engines", nargs="+", default=["processes"])
    given = parser.parse_args()
    if given.what == "one":
        for people in given.people:
            one(people, given.folder / f"one-{people}", given.batch)
        return
    heads = "reports", "engine", "batches of", "MB", "seconds", "CPU seconds"
    print("| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|")
    for people in given.people:
        plan, folder = made(given.what, people), given.folder / f"{given.what}-{people}"
        size = write(plan, folder / "reports", given.batch)
        for engine in given.engines:
            start, cpu = time.perf_counter(), spent()
            spread: dict[str, Any] = {"engine": engine, "workers": None if engine == "serial" else 2}
            if given.what == "decode":
                done = decode(plan, folder / "reports", **spread).intake.accepted
            else:
                done = shuffle(plan, folder / "reports", folder / f"out-{engine}", **spread).people
            assert done == people
            took, used = time.perf_counter() - start, spent() - cpu
            cells = f"{people:,}", engine, f"{given.batch:,}", f"{size / 1e6:,.0f}", f"{took:.1f}", f"{used:.1f}"
            print("| " + " | ".join(cells) + " |", flush=True)
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
