"""One-round k-means under Shuffled trust, beside a curator and beside no trust at all: the tables of
docs/explanation/shuffled_accuracy.md.

    python benchmarks/shuffled.py cost     Gaussian mixtures, n = 1e4, 1e5, 1e6, d = 2, 10, 100, at (1, 1e-6)
    python benchmarks/shuffled.py local    what each person may spend, by n, epsilon and delta, and how tight that is
    python benchmarks/shuffled.py speed    both halves at d = 10, one thread

Rows are those of one_round.py (k = 8, centre radius 0.99, expected distance from the centre 0.01). Noise is seeded
here; every figure is cost / n on the true rows. Results are kept in a file of JSON lines, and what is there is not run
again.

Central is the same method with a curator's discrete Gaussian noise, for replace as the others: mu is half of what (1,
1e-6) buys for adding or removing a row, which is group privacy of two, exact in mu.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from kept import Kept
from one_round import SEEDS, columns

from cloister.accounting import epsilon_of_mu, epsilon_of_shuffled, local_of_shuffled, mu_of
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.registry.making import drafted
from cloister.core.shuffling import in_messages
from cloister.lab.papers.halves import halves
from cloister.lab.papers.mixtures import mixture
from cloister.metrics import nicv
from cloister.run.fit import fit, source
from cloister.run.request import PreparedRun, Request, prepare

EPSILON, DELTA, K, R = 1.0, 1e-6, 8, 100.0


@attrs.frozen
class Oracles:
    """One row of every block. Args: label, trust, wires and options as on the command line, epsilon."""

    label: str
    trust: str
    components: tuple[tuple[str, str], ...] = ()
    options: tuple[tuple[str, Any], ...] = ()
    epsilon: float = EPSILON


GAUSSIAN = (("counts", "discrete-gaussian"), ("sums", "discrete-gaussian"))
AMPLIFIED = (("counts", "amplified-counts"), ("sums", "amplified-vectors"))
MIXED = (("counts", "split-and-mix-counts"), ("sums", "split-and-mix"))
ROWS = (
    Oracles(
        "curator, replace",
        "Central",
        GAUSSIAN,
        (("tree.cells", 1024),),
        epsilon=epsilon_of_mu(mu_of(EPSILON, DELTA) / 2, DELTA),
    ),
    Oracles("split-and-mix", "Shuffled", MIXED, (("tree.cells", 1024), ("sums.most_messages", 2**21))),
    Oracles("split-and-mix, 256 cells", "Shuffled", MIXED, (("tree.cells", 256),)),
    Oracles("amplified, one byte", "Shuffled", AMPLIFIED),
    Oracles("amplified, privunit", "Shuffled", AMPLIFIED, (("sums.report.randomiser", "privunit"),)),
    Oracles("local", "Local"),
)
"""What is compared: another oracle is one more line."""

SIDES = {10**4: 32, 10**5: 64, 10**6: 128}
"""Cells along each of two columns, where noise is low enough for more than the grid's own 16 or 32."""

BARS = {(10**5, 100): 0.018, (10**6, 100): 0.0014}
"""What amplification is to reach: the study's shuffled bars, at (n, d)."""


@attrs.frozen
class Case:
    """One figure. Args: n (rows), d, label (of ROWS)."""

    n: int
    d: int
    label: str

    @property
    def key(self) -> str:
        return f"{self.label}, n={self.n}, d={self.d}"

    @property
    def oracles(self) -> Oracles:
        return next(row for row in ROWS if row.label == self.label)


SIZES = [(n, d) for d in (2, 10, 100) for n in (10**4, 10**5, 10**6)]


def request(case: Case, seed: int | None = None) -> Request:
    asked = case.oracles
    options = dict(asked.options)
    if case.d == 2:
        options = {} if asked.trust == "Local" else {"grid.side": SIDES[case.n]}
    return Request(
        k=K,
        method=drafted("one-round", dict(asked.components), options),
        epsilon=asked.epsilon,
        delta=0.0 if asked.trust == "Local" else DELTA,
        bounds="ball:1",
        rows=case.n,
        seed=seed,
    )


def work(item: tuple[str, Case, int]) -> dict[str, float]:
    """A run in which every report is drawn, or, where users send many messages each, what they add up to in law
    (``MultiMessageChannel.pooled``)."""
    _, case, seed = item
    rows, centers = mixture(case.n, K, case.d, R, seed)
    start = time.perf_counter()
    result = fit(request(case, seed), source(rows), noise=NoiseRng.for_tests(seed))
    return {
        "cost": nicv(rows, result.centers),
        "best": nicv(rows, centers),
        "trivial": nicv(rows, np.zeros((1, case.d))),
        "seconds": time.perf_counter() - start,
    }


def planned(case: Case) -> PreparedRun:
    return prepare(request(case), columns(case))


def sent(case: Case) -> tuple[float, float, float]:
    """What a person's report alone spends (the most; infinite: it may say everything), and how many messages and bytes
    she sends on average: her private number (8 bytes) with each answer, or a slot with each share."""
    if case.oracles.trust == "Central":
        return math.inf, 0.0, 0.0
    (asked,) = planned(case).forecast(PublicRng.from_seed(1))
    alone, messages, size = 0.0, 0.0, 0.0
    for part in asked.parts:
        if in_messages(part.channel) is not None:
            each: Any = part.channel
            alone, messages, size = math.inf, messages + each.messages, size + each.messages * each.message_bytes
            continue
        share = 1.0 if part.user_share is None else part.user_share.fraction
        events = part.channel.events
        alone = max(
            alone,
            sum(
                e.epsilon_without_shuffler if math.isfinite(e.epsilon_without_shuffler) else e.spent.amount
                for e in events
            ),
        )
        inner: Any = getattr(part.channel, "inner", part.channel)
        report = inner.encode(_nobody(part), np.arange(1, dtype=np.uint64), NoiseRng.secret())
        messages, size = messages + share, size + share * (8 + report.answers[0].nbytes)
    return alone, messages, size


def _nobody(part: Any) -> Any:
    from cloister.core.buckets import BucketedVectors

    buckets = np.full((1, part.cells.space.levels), -1)
    return (
        buckets
        if part.vectors is None
        else BucketedVectors(buckets, np.zeros((1, part.vectors.bound.dimension), np.int64))
    )


def table_cost(kept: Kept) -> Iterator[str]:
    yield (
        "| d | n | oracles | trust | epsilon alone | messages | bytes | runs | cost / n | excess, of the curator's | "
        "bar |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    for n, d in SIZES:
        base = Case(n, d, ROWS[0].label)
        floor = kept.of("exact", base, "cost") - kept.of("exact", base, "best")
        for row in ROWS:
            case = Case(n, d, row.label)
            cost, best = kept.of("exact", case), kept.of("exact", case, "best")
            if len(cost) < 2:
                continue
            alone, messages, size = sent(case)
            bar = BARS.get((n, d)) if row.trust == "Shuffled" else None
            line = [
                d,
                f"{n:.0e}",
                row.label,
                row.trust,
                f"{alone:.2f}" if math.isfinite(alone) else "-",
                f"{messages:.0f}",
                f"{size:.0f}",
                len(cost),
                f"{cost.mean():.5f} +- {cost.std(ddof=1):.5f}",
                f"{(cost - best).mean() / floor.mean():.1f}" if len(floor) else "-",
                "" if bar is None else f"{bar}: {'met' if cost.mean() <= bar else 'MISSED'}",
            ]
            yield "| " + " | ".join(map(str, line)) + " |"
        best, trivial = kept.of("exact", base, "best"), kept.of("exact", base, "trivial")
        if len(best):
            yield (
                f"| {d} | {n:.0e} | true centres; one centre | | | | | | {best.mean():.5f}; {trivial.mean():.2f} | | |"
            )


def table_local() -> Iterator[str]:
    """What each may spend."""
    yield "| n | epsilon 0.1 | 0.5 | 1 | 2 | 1, delta 1e-9 | 1, response on 257 | 1, response on e^eps0 |"
    yield "|---|---|---|---|---|---|---|---|"
    for n in (10**3, 10**4, 10**5, 10**6, 10**7, 10**8):
        may = [local_of_shuffled(e, DELTA, n) for e in (0.1, 0.5, 1.0, 2.0)]
        may += [local_of_shuffled(1.0, 1e-9, n), local_of_shuffled(1.0, DELTA, n, 257)]
        may.append(local_of_shuffled(1.0, DELTA, n, round(math.exp(may[2] + 0.5))))
        yield f"| {n:.0e} | " + " | ".join(f"{x:.2f}" for x in may) + " |"


def table_tight() -> Iterator[str]:
    """What an eps0 costs when shuffled: the bound, and what binary response really costs if all others are known to
    have one input. The truth for the worst randomiser lies between."""
    yield "| n | eps0 1: bound | at least | 2: bound | at least | 4: bound | at least | 6: bound | at least |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for n in (10**3, 10**4, 10**5, 10**6):
        pairs = [(epsilon_of_shuffled(e, DELTA, n), least_epsilon(e, n)) for e in (1.0, 2.0, 4.0, 6.0)]
        yield f"| {n:.0e} | " + " | ".join(f"{bound:.4f} | {least:.4f}" for bound, least in pairs) + " |"


def least_epsilon(local: float, users: int) -> float:
    """The epsilon at DELTA of shuffled binary response, everybody else having input 0: exact sums."""
    from scipy.stats import binom

    p = math.exp(local)
    mean, room = users / (p + 1), 12 * math.sqrt(users / (p + 1)) + 40
    ones = np.arange(max(0, int(mean - room)), min(users, int(mean + room)) + 1)
    rest, more = binom.pmf(ones, users - 1, 1 / (p + 1)), binom.pmf(ones - 1, users - 1, 1 / (p + 1))
    zero, one = (p * rest + more) / (p + 1), (rest + p * more) / (p + 1)

    def delta(epsilon: float) -> float:
        return float(max(np.maximum(a - math.exp(epsilon) * b, 0).sum() for a, b in ((zero, one), (one, zero))))

    low, high = 0.0, local
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if delta(middle) > DELTA else (low, middle)
    return low


def table_speed(d: int = 10) -> Iterator[str]:
    """Users per CPU second of one thread, in chunks, with secret noise: the best of three after a warm-up."""
    yield "| oracles | n | encode, M users / s | decode 1e6 users, s |"
    yield "|---|---|---|---|"
    for row in ROWS:
        if (
            row.trust != "Shuffled" or row.components == MIXED
        ):  # a hundred thousand messages a person: not for so many people
            continue
        n = 200_000
        case = Case(10**6, d, row.label)
        rows, _ = mixture(n, K, d, R, 0)
        plan = planned(case)
        encoding, decoding = halves(plan, rows)
        yield f"| {row.label} | {n} | {n / encoding / 1e6:.2f} | {decoding * 1e6 / n:.1f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("cost", "local", "speed"))
    parser.add_argument(
        "--out", type=Path, default=Path("shuffled.jsonl"), help="results so far; what is there is not run again"
    )
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--most", type=int, default=10**6, help="no more rows than this")
    parser.add_argument("--only-print", action="store_true")
    given = parser.parse_args()
    if given.what == "cost":
        kept = Kept(given.out, work)
        if not given.only_print:
            kept.run(
                "exact",
                [Case(n, d, row.label) for n, d in SIZES if n <= given.most for row in ROWS],
                given.seeds,
                given.workers,
            )
        print("\n".join(table_cost(kept)))
    else:
        tables = {"local": (table_local, table_tight), "speed": (table_speed,)}[given.what]
        print("\n\n".join("\n".join(table()) for table in tables))


if __name__ == "__main__":
    main()
