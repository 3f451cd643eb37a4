"""Methods by name on rows in memory, with noise of a stated seed; cubes, and rows in groups."""

from __future__ import annotations

from typing import Any

import numpy as np

from cloister.core.clustering import Clustering, Problem
from cloister.core.domains import Box
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.registry.compose import compose
from cloister.core.registry.registry import built_in
from cloister.core.session import Session
from cloister.core.types import Floats
from cloister.plugins.populations.arrays import Arrays
from cloister.run.fit import fit, source
from cloister.run.request import PreparedRun, Request, prepare
from tests.asking import asking

SEED = PublicRng.from_seed(80)
LOCAL = {"counts": "optimised-local-hashing", "sums": "hadamard-vector"}
EXACT = {"counts": "exact", "sums": "exact"}
GAUSSIAN = {"counts": "discrete-gaussian", "sums": "discrete-gaussian"}
LAPLACE = {"counts": "discrete-laplace", "sums": "discrete-laplace"}


def cube(d: int, half: float = 1.0) -> Box:
    return Box((-half,) * d, (half,) * d)


def made(name: str, components: dict[str, str] | None = None, **options: Any) -> Any:
    return compose(built_in(), "Method", name, components or {}, options).value


def run(method: Any, rows: Any, problem: Problem, seed: int = 0) -> tuple[Clustering, Any]:
    """What a method finds, and its session. Args: rows (n, d), or a population."""
    population = Arrays(rows) if isinstance(rows, np.ndarray) else rows
    session: Any = Session(problem, SEED.child(seed), population, noise=NoiseRng.for_tests(seed))
    return method.cluster(problem, session, SEED), session


def groups(n: int, k: int, d: int, spread: float = 0.03, ball: bool = False) -> tuple[Floats, Floats]:
    """Rows (n, d), as many around each of k places far apart in the cube (in the ball), and these places."""
    g = np.random.default_rng([n, k, d])
    some = g.standard_normal((200, d)) if ball else g.uniform(-0.8, 0.8, (200, d))
    if ball:
        some *= 0.8 / np.linalg.norm(some, axis=1, keepdims=True)
    apart, chosen = np.linalg.norm(some[:, None] - some, axis=2), [0]
    while len(chosen) < k:
        chosen.append(int(apart[chosen].min(axis=0).argmax()))
    places = some[chosen]
    rows = places[np.arange(n) % k] + spread * g.standard_normal((n, d))
    return rows if ball else np.clip(rows, -1, 1), places


def request_of(method: str, k: int, **given: Any) -> Request:
    return asking(**{"k": k, "method": method, "epsilon": 1.0, "bounds": "ball:1", "seed": 3, **given})


def planned(method: str, k: int, d: int, rows: int = 10**6, **given: Any) -> PreparedRun:
    return prepare(request_of(method, k, rows=rows, **given), [str(j) for j in range(d)])


def fitted(method: str, table: Floats, k: int, noise: int = 3, **given: Any) -> Any:
    """A result of ``fit``, in the unit ball if not said otherwise. Args: noise, its seed."""
    request = request_of(method, k, **{"rows": len(table), **given})
    return fit(request, source(table), noise=NoiseRng.for_tests(noise))
