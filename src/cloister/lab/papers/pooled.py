"""Milliseconds and bytes of a round of pooled FastLloyd: two parties in one process, with the coordinator's noise.

A round goes from one call for answers to the next: assignment, sums, masks, messages, noise, unmasking, new centres,
without a network. The first round, which also puts the rows on the lattice, is left out. Bytes are the masked words of
all parties in both directions, without what a transport adds (46 to 160 bytes a message, TLS).
"""

from __future__ import annotations

import statistics
import time
from typing import Any, Final, final

import numpy as np

from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.registry.making import drafted
from cloister.core.types import Floats
from cloister.federated.protocol.vectors import round_shape, shape_bytes
from cloister.run.fit import fit, parties, source
from cloister.run.request import Request, prepare

ROUNDS: Final = 30
NOISE: Final = "masked-gaussian"


def milliseconds(n: int, d: int, k: int) -> float:
    """Return the median milliseconds of a round for two parties with n rows of d columns in all."""
    halves = np.array_split(groups(n, d, k), 2)
    pool: Any = Timed(parties({f"client {i + 1}": source(rows, threads=1) for i, rows in enumerate(halves)}))
    fit(_request(n, k), pool)
    median: float = pool.milliseconds
    return median


def bytes_per_round(n: int, d: int, k: int) -> int:
    """Return the bytes of masked words of a round, of both parties in both directions."""
    plan = prepare(_request(n, k), [str(j) for j in range(d)])
    return 2 * 2 * shape_bytes(round_shape(plan.forecast(PublicRng.from_seed(1))[1], 2))


def groups(n: int, d: int, k: int) -> Floats:
    """Draw rows (n, d) of k groups of about one size, as the paper's TimeSynth."""
    g = np.random.default_rng(3)
    return np.clip(g.uniform(-0.8, 0.8, (k, d))[g.integers(0, k, n)] + g.normal(0, 0.08, (n, d)), -1, 1)


def _request(n: int, k: int) -> Request:
    return Request(
        k=k,
        method=drafted("fastlloyd", {"counts": NOISE, "sums": NOISE}, {"rounds": ROUNDS}),
        epsilon=1.0,
        delta=1e-6,
        bounds=(-1.0, 1.0),
        rows=n,
        zoom="off",
        trust="aggregated",
        parties=2,
    )


@final
class Timed:
    """Population that notes when each round begins, and is its inner one in all else."""

    def __init__(self, inner: Any) -> None:
        self._inner, self._begun = inner, list[float]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def gather(self, round: Any, rng: NoiseRng) -> Any:
        """Answer a round."""
        self._begun.append(time.perf_counter())
        return self._inner.gather(round, rng)

    @property
    def milliseconds(self) -> float:
        """Median time of a round; the first is left out."""
        steps = [after - before for before, after in zip(self._begun[1:], self._begun[2:], strict=False)]
        return 1000 * statistics.median(steps)
