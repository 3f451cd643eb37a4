"""How fast a collector takes reports, on loopback, with its load generator on the same cores.

    python benchmarks/collector.py                 # single reports and batches: per second, p50, p99
    python benchmarks/collector.py --soak 600      # ten minutes of both: memory at every minute

The collector is `cloister serve` in a process of its own. A single report's time is that from the request's first byte
to the answer's last, on one of ``--connections`` connections that each wait for the answer before the next request.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from cloister.collection.plan.publish import publish
from cloister.collection.wire.answers import layout_of
from cloister.collection.wire.batches import BatchForm
from cloister.run.request import Request

USERS, D = 400_000_000, 100
IN_BATCH = 5000


class Connection(asyncio.Protocol):
    """One request at a time; the time and status of each answer."""

    def __init__(self, bodies: Iterator[bytes], until: float, times: list[float], statuses: list[int]) -> None:
        self._bodies, self._until, self._times, self._statuses = bodies, until, times, statuses
        self._answer, self._begun = b"", 0.0
        self.done = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._next()

    def data_received(self, data: bytes) -> None:
        self._answer += data
        head, found, body = self._answer.partition(b"\r\n\r\n")
        if not found or len(body) < int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]):
            return
        self._times.append(time.perf_counter() - self._begun)
        self._statuses.append(int(head[9:12]))
        self._next()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_result(None)

    def _next(self) -> None:
        body = next(self._bodies, None) if time.perf_counter() < self._until else None
        if body is None:
            self._transport.close()
            return
        kind = "host: x\r\ncontent-type: application/octet-stream"
        head = f"POST /reports HTTP/1.1\r\n{kind}\r\ncontent-length: {len(body)}"
        self._answer, self._begun = b"", time.perf_counter()
        self._transport.write(f"{head}\r\n\r\n".encode() + body)


async def load(port: int, bodies: Iterator[bytes], connections: int, seconds: float) -> tuple[list[float], list[int]]:
    """Times and statuses of all answers."""
    loop, times, statuses = asyncio.get_running_loop(), list[float](), list[int]()
    until = time.perf_counter() + seconds
    made = [
        await loop.create_connection(lambda: Connection(bodies, until, times, statuses), "127.0.0.1", port)
        for _ in range(connections)
    ]
    await asyncio.gather(*(protocol.done for _, protocol in made))
    return times, statuses


def singles(form: BatchForm, start: int) -> Iterator[bytes]:
    """Reports of consecutive users."""
    for user in range(start, USERS):
        yield form.report(user, bytes(form.width))


def batches(form: BatchForm, start: int, size: int = IN_BATCH) -> Iterator[bytes]:
    """Batches of consecutive users."""
    answers = np.zeros((size, form.width), np.uint8)
    for first in range(start, USERS - size, size):
        yield form.batch(np.arange(first, first + size, dtype=np.uint64), answers)


def measured(name: str, each: int, port: int, bodies: Iterator[bytes], connections: int, seconds: float) -> int:
    """Run and print one row. Returns: reports accepted."""
    begun = time.perf_counter()
    times, statuses = asyncio.run(load(port, bodies, connections, seconds))
    took, accepted = time.perf_counter() - begun, sum(status in (200, 201) for status in statuses)
    p50, p99 = np.quantile(times, [0.5, 0.99]) * 1e3
    print(
        f"| {name} | {connections} | {accepted * each / took:,.0f} | {p50:.1f} | {p99:.1f} | "
        f"{len(statuses) - accepted} |",
        flush=True,
    )
    return accepted * each


def memory(process: int) -> float:
    """Resident memory, MB."""
    with open(f"/proc/{process}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) / 1024


def soak(port: int, process: int, form: BatchForm, start: int, connections: int, seconds: float) -> int:
    """Half a minute of single reports and half a minute of batches, again and again, with the memory after each."""
    ones, many, accepted, begun = singles(form, start), batches(form, start + USERS // 4, 500), 0, time.perf_counter()
    while (past := time.perf_counter() - begun) < seconds:
        for bodies, each in ((ones, 1), (many, 500)):
            _, statuses = asyncio.run(load(port, bodies, connections, 30 if each == 1 else 5))
            accepted += each * sum(status in (200, 201) for status in statuses)
        print(f"{past / 60:4.1f} min: {accepted:,} reports, {memory(process):.0f} MB", flush=True)
    return accepted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10, help="of each measurement")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--soak", type=float, default=0, help="seconds of load instead")
    given = parser.parse_args()
    plan = publish(Request(k=8, method="one-round", epsilon=1.0, bounds="ball:1", rows=USERS, seed=1), dimension=D)
    round = plan.round()
    form = BatchForm(plan.hash, 1, layout_of(round).bytes)
    with tempfile.TemporaryDirectory() as folder:
        plan.write(Path(folder) / "plan", "")
        command = [sys.executable, "-m", "cloister", "serve", "plan", "--out", "reports", "--port", "0", "--json"]
        with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            port = int(json.loads(process.stdout.readline())["address"].rpartition(":")[2])
            print(f"{form.width} bytes an answer; memory at the start {memory(process.pid):.0f} MB")
            run: Callable[..., int] = soak if given.soak else rates
            accepted = run(port, process.pid, form, 0, given.connections, given.soak or given.seconds)
            print(f"memory at the end {memory(process.pid):.0f} MB")
            process.terminate()
            print(process.stdout.read().strip())
        kept = sum(len(form.parse(path.read_bytes()).users) for path in (Path(folder) / "reports").glob("*.reports"))
        print(f"acknowledged {accepted:,}, on the disk {kept:,}")


def rates(port: int, process: int, form: BatchForm, start: int, connections: int, seconds: float) -> int:
    """The table."""
    print("| what | connections | reports/s | p50 ms | p99 ms | failed |\n| --- | --- | --- | --- | --- | --- |")
    accepted = measured("one by one", 1, port, singles(form, start), connections, seconds)
    accepted += measured(f"batches of {IN_BATCH}", IN_BATCH, port, batches(form, USERS // 2), 8, seconds)
    return accepted


if __name__ == "__main__":
    main()
