"""Milliseconds and bytes per round of pooled FastLloyd, beside table 3 of Diaa, Humphries and Kerschbaum (2024).

    python benchmarks/federated.py               table 3's shapes, two parties, in process and over gRPC with TLS
    python benchmarks/federated.py --parties     2, 4, 8, 16, 32 parties (k = 5, d = 5, 10,000 rows)
    python benchmarks/federated.py --oracle masked-gaussian --masks shared --journals

A round is measured from one call for answers to the next: assignment, sums, masks, messages, noise, unmasking, new
centres. The first round, which also puts the rows on the lattice, is left out. Masked words are those of all parties in
both directions; framing is what messages add to them (heads, tags), without TLS and HTTP/2. Over gRPC the coordinator
and, with two parties, each party have a process of their own; more parties share two.
"""

from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import argparse
import multiprocessing as mp
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.registry.making import drafted
from cloister.core.registry.registry import registry
from cloister.federated.population import Joined
from cloister.federated.protocol.agreement import Agreement, Member
from cloister.federated.protocol.coordinator import Coordinator
from cloister.federated.protocol.journal import FileJournal, Memory
from cloister.federated.protocol.masking import new_secret
from cloister.federated.protocol.party import Party
from cloister.federated.protocol.streams import new_private_key, public_key
from cloister.federated.protocol.vectors import PoolRounds, round_shape, shape_bytes
from cloister.federated.transport.certificates import Credentials, make_test_certificates
from cloister.federated.transport.service import CoordinatorService
from cloister.federated.transport.tls import Line, Server
from cloister.run.fit import fit
from cloister.run.request import Request, prepare

TABLE_3 = [
    ("TimeSynth 10K", 10_000, 2, 2, 3.03, 192),
    ("", 10_000, 2, 5, 3.24, 384),
    ("", 10_000, 5, 2, 4.32, 480),
    ("", 10_000, 5, 5, 4.95, 960),
    ("TimeSynth 100K", 100_000, 2, 2, 12.57, 192),
    ("", 100_000, 2, 5, 13.17, 384),
    ("", 100_000, 5, 2, 22.05, 480),
    ("", 100_000, 5, 5, 22.56, 960),
    ("LSun", 400, 3, 2, 2.6, 288),
    ("S1", 5_000, 15, 2, 5.81, 1440),
]
"""Name, rows, k, d, the paper's milliseconds and bytes per iteration for two clients."""

ROUNDS = 30


def rows_of(n: int, k: int, d: int) -> Any:
    """k clusters of equal size in [-1, 1]^d, as the paper's synthetic data."""
    g = np.random.default_rng(3)
    return np.clip(g.uniform(-0.8, 0.8, (k, d))[g.integers(0, k, n)] + g.normal(0, 0.08, (n, d)), -1, 1)


def request(n: int, k: int, parties: int, oracle: str) -> Request:
    options = {"rounds": ROUNDS, "counts.parties": parties, "sums.parties": parties}
    components = {"counts": oracle, "sums": oracle}
    method = drafted("fastlloyd", components, options)
    return Request(k=k, method=method, epsilon=1.0, delta=1e-6, bounds="-1:1", rows=n, seed=1)


class Timed:
    """A population that notes when each round begins."""

    def __init__(self, inner: Any, clock: Callable[[], float]) -> None:
        self.inner, self.clock, self.times = inner, clock, list[float]()
        self.trust, self.simulated, self.columns, self.dimension = (
            inner.trust,
            inner.simulated,
            inner.columns,
            inner.dimension,
        )
        self.check, self.join = inner.check, getattr(inner, "join", lambda: None)

    def gather(self, round: Any, rng: NoiseRng) -> Any:
        self.times.append(self.clock())
        return self.inner.gather(round, rng)

    @property
    def milliseconds(self) -> list[float]:
        return [1000 * (b - a) for a, b in zip(self.times[1:], self.times[2:], strict=False)]


def shown(milliseconds: list[float]) -> str:
    """Median and least."""
    return f"{statistics.median(milliseconds):.2f} ({min(milliseconds):.2f})"


def arrays(rows: Any) -> Any:
    return registry().load(registry().spec("Population", "arrays"))(rows)


def in_process(rows: Any, k: int, parties: int, o: argparse.Namespace) -> str:
    """Milliseconds per round, all parties one after the other."""
    clock = time.process_time if o.processor else time.perf_counter
    pool = registry().load(registry().spec("Population", "parties"))
    timed = Timed(pool([arrays(part) for part in np.array_split(rows, parties)], o.masks), clock)
    fit(request(len(rows), k, parties, o.oracle), timed)
    return shown(timed.milliseconds)


def script(task: dict[str, Any]) -> PoolRounds:
    """The session's rounds, of which this method settles nothing."""
    parties = task["agreement"].parties
    plan = prepare(request(task["n"], task["k"], parties, task["oracle"]), [str(i) for i in range(task["d"])])
    return PoolRounds(plan.forecast(PublicRng.from_seed(1)), (), parties)


def party(task: dict[str, Any], me: int, out: Any) -> None:
    """One party's run."""
    agreement, folder = task["agreement"], Path(task["folder"])
    secret, private = task["secret"], task["private"][me]
    journal = FileJournal(folder / f"{me}.journal") if task["journals"] else Memory()
    state = Party(
        agreement,
        f"p{me}",
        secret=secret if agreement.masks == "shared" else None,
        private=private if agreement.masks == "pairwise" else None,
        journal=journal,
    )
    line = Line(f"127.0.0.1:{task['port']}", Credentials.read(folder / "certs" / f"p{me}.pem"), 120)
    rows = np.array_split(rows_of(task["n"], task["k"], task["d"]), agreement.parties)[me]
    timed = Timed(Joined(arrays(rows), state, line, script(task)), time.perf_counter)
    fit(request(task["n"], task["k"], agreement.parties, task["oracle"]), timed)
    line.close()
    out.put((timed.milliseconds, line.sent, line.received))


def several(task: dict[str, Any], members: list[int], out: Any) -> None:
    """Parties that share a process."""
    threads = [threading.Thread(target=party, args=(task, i, out)) for i in members]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def coordinate(task: dict[str, Any], port: Any) -> None:
    """The coordinator's process."""
    agreement, folder = task["agreement"], Path(task["folder"])
    journal = FileJournal(folder / "coordinator.journal") if task["journals"] else None
    coordinator = Coordinator(agreement, journal, private=task["coordinator"])
    rounds = script(task).expected(NoiseRng.secret())
    for shape, noise in rounds:
        coordinator.expect(shape, noise)
    service = CoordinatorService(coordinator, len(rounds))
    server = Server(
        service, "127.0.0.1:0", Credentials.read(folder / "certs" / "coordinator.pem"), agreement.parties, 2**20
    )
    server.start()
    port.put(server.port)
    service.finished(idle=120)
    server.stop()


def over_grpc(n: int, k: int, d: int, parties: int, oracle: str, masks: str, journals: bool) -> tuple[str, float]:
    """Milliseconds per round, and framing bytes per round and party, both directions."""
    context = mp.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        names = tuple(f"p{i}" for i in range(parties))
        make_test_certificates(Path(folder) / "certs", names)
        private, own = [new_private_key() for _ in names], new_private_key()
        members = tuple(
            Member(m, public_key(p) if masks == "pairwise" else b"") for m, p in zip(names, private, strict=True)
        )
        task: dict[str, Any] = {
            "agreement": Agreement("benchmark", members, masks, public_key(own)),
            "coordinator": own,
            "folder": folder,
            "secret": new_secret(),
            "private": private,  # type: ignore[arg-type]
            "n": n,
            "k": k,
            "d": d,
            "oracle": oracle,
            "journals": journals,
        }
        out, port = context.Queue(), context.Queue()
        processes = [context.Process(target=coordinate, args=(task, port))]
        processes[0].start()
        task["port"] = port.get(timeout=60)
        processes += [context.Process(target=several, args=(task, list(range(i, parties, 2)), out)) for i in range(2)]
        for process in processes[1:]:
            process.start()
        found = [out.get(timeout=300) for _ in names]
        for process in processes:
            process.join()
    words = words_of(n, k, d, parties, oracle) / parties
    framing = statistics.mean((sent + received) / ROUNDS for _, sent, received in found) - words
    return shown([x for times, _, _ in found for x in times]), framing


def words_of(n: int, k: int, d: int, parties: int, oracle: str) -> int:
    """Bytes of masked words per round, all parties, both directions."""
    plan = prepare(request(n, k, parties, oracle), [str(i) for i in range(d)])
    return 2 * parties * shape_bytes(round_shape(plan.forecast(PublicRng.from_seed(1))[1], parties))


def table_3(o: argparse.Namespace) -> None:
    print(f"Two parties, {o.oracle}, {o.masks} masks, median (least) of {ROUNDS - 2} rounds.\n")
    print(
        "| data | rows | k | d | paper ms | in process ms | gRPC + TLS ms | paper bytes | masked words | framing per "
        "party |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for name, n, k, d, ms, size in TABLE_3:
        here = in_process(rows_of(n, k, d), k, 2, o)
        there, framing = over_grpc(n, k, d, 2, o.oracle, o.masks, o.journals)
        words = words_of(n, k, d, 2, o.oracle)
        print(
            f"| {name} | {n:,} | {k} | {d} | {ms} | {here} | {there} | {size} | {words} | {framing:.0f} |",
            flush=True,
        )


def by_parties(o: argparse.Namespace) -> None:
    n, k, d = 10_000, 5, 5
    print(f"{n:,} rows, k = {k}, d = {d}, {o.oracle}, {o.masks} masks, median (least) of {ROUNDS - 2} rounds.\n")
    print("| parties | in process ms | gRPC + TLS ms | masked words per party | framing per party |")
    print("|---:|---:|---:|---:|---:|")
    for parties in (2, 4, 8, 16, 32):
        here = in_process(rows_of(n, k, d), k, parties, o)
        there, framing = over_grpc(n, k, d, parties, o.oracle, o.masks, o.journals)
        words = words_of(n, k, d, parties, o.oracle) // parties
        print(f"| {parties} | {here} | {there} | {words} | {framing:.0f} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parties", action="store_true", help="2 to 32 parties instead of table 3")
    parser.add_argument("--oracle", default="skellam", choices=("masked-gaussian", "skellam"))
    parser.add_argument("--masks", default="pairwise", choices=("shared", "pairwise"))
    parser.add_argument(
        "--processor", action="store_true", help="in process, processor time: on a machine that does other things"
    )
    parser.add_argument("--journals", action="store_true", help="journal every step to disk, as a real run does")
    chosen = parser.parse_args()
    (by_parties if chosen.parties else table_3)(chosen)
