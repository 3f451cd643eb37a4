"""Millions of noise numbers per second of one core's time, beside OpenDP's samplers in the same run.

    python benchmarks/noise.py

OpenDP draws fewer numbers, since it takes so much longer. ``entropy`` is the share of the time that the system needs
for secret words: no faster arithmetic could save it.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from cloister.core.exact_noise import CHUNK, WORDS, Law

SCALES = {"0.3": 0.3, "1": 1.0, "10": 10.0, "1000.5": 1000.5, "2^20": 2.0**20, "2^40": 2.0**40}
MANY, FEW = 2**20, 2**12


def speed(draw: Callable[[int], Any], many: int) -> float:
    """Millions per second: the best of three, after one that is not counted."""
    best = 0.0
    draw(many // 16)
    for _ in range(5):
        start = time.process_time()
        draw(many)
        best = max(best, many / (time.process_time() - start) / 1e6)
    return best


def opendp(law: str, scale: float) -> Callable[[int], Any]:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    metric = dp.l1_distance(T="i64") if law == "laplace" else dp.l2_distance(T=float)
    space = dp.vector_domain(dp.atom_domain(T="i64")), metric
    measurement = (dp.m.make_laplace if law == "laplace" else dp.m.make_gaussian)(*space, scale=scale)
    return lambda many: measurement([0] * many)


def candidates(law: str, scale: float) -> float:
    """Candidates per number."""
    from cloister.core.randomness import NoiseRng

    words = NoiseRng.secret().words(np.arange(MANY, dtype=np.uint64), WORDS)
    _, accepted, _ = Law(scale, law == "gaussian").filtered(words)
    return float(len(words) / accepted.sum())


def main() -> None:
    from cloister.core.randomness import NoiseRng

    secret, seeded = NoiseRng.secret(), NoiseRng.for_tests(1)
    words = speed(lambda many: [secrets.token_bytes(8 * WORDS * CHUNK) for _ in range(many // WORDS // CHUNK)], MANY)
    print(f"words from the system: {words:.1f} M/s")
    print(f"{'law':<10}{'scale':>8}{'secret':>10}{'seeded':>10}{'OpenDP':>10}   M/s   entropy")
    for law in ("laplace", "gaussian"):
        for name, scale in SCALES.items():
            draws = [getattr(rng, f"discrete_{law}") for rng in (secret, seeded)]
            mine = [speed(lambda many, draw=draw, scale=scale: draw(scale, many), MANY) for draw in draws]
            theirs, share = speed(opendp(law, scale), FEW), WORDS * candidates(law, scale) * mine[0] / words
            print(f"{law:<10}{name:>8}{mine[0]:>10.2f}{mine[1]:>10.2f}{theirs:>10.3f}{share:>14.0%}")


if __name__ == "__main__":
    main()
