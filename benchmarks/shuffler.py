"""How long shuffling takes, and how much memory: messages of people who were encoded before, as many as asked for, in
Parquet files.

    python benchmarks/shuffler.py --messages 10000000

A few thousand people are encoded; what they say is repeated under fresh private numbers. The shuffler runs in a process
of its own, whose peak resident memory is printed; the same for an eighth of the messages shows what grows with them.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

FILE, PIECE, ENCODED = 1_000_000, 100_000, 20_000
"""People in a file, people who are written together, and how many are encoded."""


def write(folder: Path, people: int, dimension: int, components: dict[str, str]) -> None:
    """A plan and its messages."""
    import pyarrow.parquet as pq

    from cloister.collection.client.encoder import PlanEncoder
    from cloister.collection.plan.publish import publish
    from cloister.collection.wire import messages
    from cloister.collection.wire.messages import Messages
    from cloister.run.request import Request

    request = Request(
        k=8, method="one-round", epsilon=1.0, delta=1e-8, bounds="ball:1", rows=people, seed=1, components=components
    )
    plan = publish(request, dimension=dimension)
    plan.write(folder / "plan", "for a benchmark")
    (folder / "reports").mkdir()
    some = min(ENCODED, people)
    begun = time.perf_counter()
    encoder = PlanEncoder(plan)
    real = encoder.encode(np.random.default_rng(0).normal(0, 0.1, (some, dimension)), np.arange(some)).messages
    print(f"  encoded {some:,} people in {time.perf_counter() - begun:.1f} s")
    schema, rng, round = (
        messages.schema(encoder.round, plan.hash, senders=True),
        np.random.default_rng(0),
        encoder.round,
    )
    for start in range(0, people, FILE):
        with pq.ParquetWriter(
            folder / "reports" / f"part-{start:012}.parquet", schema, compression="zstd", write_page_checksum=True
        ) as file:
            for first in range(start, min(start + FILE, people), PIECE):
                senders = np.arange(first, min(first + PIECE, start + FILE, people), dtype=np.uint64)
                numbers = rng.integers(0, 2**64, len(senders), dtype=np.uint64)
                questions, bodies = (
                    np.zeros(len(senders), np.uint16),
                    np.zeros((len(senders), real.bodies.shape[1]), np.uint8),
                )
                for j, part in enumerate(round.parts):
                    who = np.flatnonzero(
                        np.ones(len(senders), bool) if part.user_share is None else part.user_share.holds(numbers)
                    )
                    questions[who] = j
                    bodies[who] = real.bodies[rng.choice(np.flatnonzero(real.questions == j), len(who))]
                bodies[:, :8] = numbers.view(np.uint8).reshape(-1, 8)
                file.write_batch(messages.to_batch(Messages(questions, bodies, senders), round, schema))


def measured(folder: Path) -> None:
    """Shuffle, then say how it went."""
    from cloister.collection.shuffler.shuffler import shuffle

    begun = time.perf_counter()
    done = shuffle(folder / "plan", folder / "reports", folder / "shuffled")
    seconds = time.perf_counter() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"messages": done.messages, "people": done.people, "seconds": seconds, "peak MB": peak}))


def decoded(folder: Path) -> None:
    """Decode, then say how it went."""
    from cloister.collection.server.aggregator import decode

    begun = time.perf_counter()
    done = decode(folder / "plan", folder / "shuffled")
    seconds = time.perf_counter() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"people": done.intake.accepted, "seconds": seconds, "peak MB": peak}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=10_000_000, help="people, one message each")
    parser.add_argument("--dimension", type=int, default=10)
    parser.add_argument("--run", choices=["measured", "decoded"], help="for the process that is measured")
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    if given.run:
        globals()[given.run](given.folder)
        return
    components = {"counts": "amplified-counts", "sums": "amplified-vectors"}
    for people in (given.messages // 8, given.messages):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            print(f"{people:,} people, one message each, d = {given.dimension}", flush=True)
            write(folder, people, given.dimension, components)
            size = sum(path.stat().st_size for path in (folder / "reports").iterdir())
            print(f"  {size / 1e6:,.0f} MB of messages", flush=True)
            for run in ("measured", "decoded"):
                command = [sys.executable, __file__, "--run", run, "--folder", name]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                print(f"  {'shuffled' if run == 'measured' else 'decoded'}: {done.stdout.strip()}", flush=True)


if __name__ == "__main__":
    main()
