"""Local methods on real sets, repeated up to a million rows, beside what a user would pick instead.

``naive-noise`` needs ``pip install examples/cloister-baselines``.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import datasets
import numpy as np

from cloister.core.randomness import NoiseRng
from cloister.core.registry.making import drafted
from cloister.core.types import Floats
from cloister.metrics import nicv, reference_centers
from cloister.run.fit import fit, source
from cloister.run.request import Request

M = 10**6
JITTER = 0.01
REAL = ("s1", "birch2", "skin", "shuttle")
REAL_METHODS: dict[str, dict[str, Any]] = {
    "one-round": {},
    "one-round-lsh": {},
    "naive-noise": {"solver.starts": 1, "solver.rounds": 50},
    "fastlloyd": {},
}


@lru_cache(maxsize=1)
def replicated(name: str) -> tuple[Floats, int]:
    """A stored set, scaled to [-1, 1], each row repeated until there are a million, with normal jitter of deviation
    0.01."""
    data = datasets.load(name)
    times = -(-M // len(data.rows))
    g = np.random.default_rng(7)
    rows = np.repeat(data.rows, times, axis=0)
    rows = rows[g.permutation(len(rows))[:M]]
    return np.clip(rows + JITTER * g.standard_normal(rows.shape), -1.0, 1.0), data.k


def real(name: str, method: str, eps: float, seed: int) -> dict[str, float]:
    """One run on a real set: local methods at eps, the central one at (eps, 1 / (n ln n))."""
    rows, k = replicated(name)
    if method == "non-private":
        sample = rows[np.random.default_rng(seed).permutation(len(rows))[:100_000]]
        return {"cost": nicv(rows, reference_centers(sample, k, seed=seed))}
    if method == "one centre":
        return {"cost": nicv(rows, rows.mean(axis=0, keepdims=True))}
    asked = Request(
        k=k,
        method=drafted(method, options=REAL_METHODS[method]),
        epsilon=eps,
        delta=datasets.delta(M) if method == "fastlloyd" else 0.0,
        bounds=(-1.0, 1.0),
        rows=M,
        seed=seed,
    )
    start = time.perf_counter()
    result = fit(asked, source(rows), noise=NoiseRng.for_tests(seed))
    return {"cost": nicv(rows, result.centers), "seconds": time.perf_counter() - start}


def real_cases() -> list[tuple[str, str, float]]:
    private = [(name, method, eps) for name in REAL for method in REAL_METHODS for eps in (1.0, 4.0)]
    return [*private, *((name, method, 0.0) for name in REAL for method in ("non-private", "one centre"))]


def table_real(kept: Any, spread: Callable[[Floats], str]) -> Iterator[str]:
    methods = ["one centre", *REAL_METHODS, "non-private"]
    yield "| set | k | d | eps | " + " | ".join(methods) + " |"
    yield "|" + "---|" * (len(methods) + 4)
    for name in REAL:
        rows, k = replicated(name)
        for eps in (1.0, 4.0):
            found = [kept.named("real", json.dumps([name, m, eps if m in REAL_METHODS else 0.0])) for m in methods]
            yield f"| {name} | {k} | {rows.shape[1]} | {eps:g} | " + " | ".join(map(spread, found)) + " |"
