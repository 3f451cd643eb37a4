"""Everything public that a plan and a run decide, as digests: ``python -m tests.processors.choices FOLDER CASE ...``.

A case is "method trust dimension k". What is printed is one JSON object: for each case the hash of its plan, of its
bundle, and of the rounds that are forecast, or the refusal. Two processors that print others do not come together.

The first that is given a folder writes the records of small runs there. The others replay them, as users, servers,
parties and resumed runs do: a round that is not the recorded one is refused, and so is printed.
"""

from __future__ import annotations

import hashlib
import json
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np

from cloister.collection.plan.bundle import bundle_of
from cloister.collection.plan.publish import publish
from cloister.core.errors import CloisterError
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.session import Session
from cloister.run.fit import parties, source
from cloister.run.request import PreparedRun, Request, prepare

ROWS, PLANNED = 600, 20_000
"""Of the small run, and of the plan, so that there is something to choose. A shuffler needs all of them."""


def rows_of(dimension: int, seed: int = 0, rows: int = ROWS) -> Any:
    """The same rows on every processor: three clusters, in eighths."""
    words = PublicRng.from_seed(seed).of_users(np.arange(rows * dimension, dtype=np.uint64))
    spread = (words.reshape(rows, dimension) % np.uint64(5)).astype(np.float64) / 64
    return spread + (np.arange(rows) % 3)[:, None] / 8 * (-1.0) ** np.arange(dimension) / max(1.0, dimension / 8)


def request_of(method: str, trust: str, dimension: int, k: int) -> Request:
    return Request(
        k=k,
        method=method,
        epsilon=2.0,
        delta=1e-6,
        rows=PLANNED,
        seed=5,
        trust=trust,
        parties=3 if trust == "aggregated" else 0,
        bounds="ball:1" if k % 2 == 0 else [(-1.0, 1.5)] * dimension,
    )


def short(value: Any) -> str:
    content = value if isinstance(value, bytes) else str(value).encode()
    return hashlib.sha256(content).hexdigest()[:12]


def plan_of(request: Request, dimension: int) -> dict[str, str]:
    """The hashes of a plan and its first bundle."""
    plan = publish(request, dimension=dimension)
    found = {"plan": short(plan.hash)}
    try:
        bundle = bundle_of(plan)
    except CloisterError as error:
        return {**found, "bundle": short(error)}
    return {**found, "bundle": short(bundle.content), "arrays": short(bundle.arrays)}


def replayed(prepared: PreparedRun, dimension: int, trust: str, file: Path) -> dict[str, str]:
    """The digests of the rounds of a small run, made here or replayed, and its centres."""
    record = pickle.loads(file.read_bytes()) if file.exists() else None
    population = None if record else rows_for(trust, dimension)
    session: Session[Any] = Session(
        prepared.problem, PublicRng.from_seed(5), population, record=record, noise=NoiseRng.for_tests(3)
    )
    found = prepared.composed.value.cluster(prepared.problem, session, session.seed.child("method"))
    if record is None:
        file.write_bytes(pickle.dumps(session.record))
    digests = {f"round {i}": short(round.digest()) for i, round in enumerate(session.rounds)}
    return {**digests, "centres": short(found.centers.tobytes())}


def rows_for(trust: str, dimension: int) -> Any:
    names = [str(j) for j in range(dimension)]
    if trust == "aggregated":
        return parties({f"p{i}": source(rows_of(dimension)[i::3], columns=names) for i in range(3)})
    return source(rows_of(dimension, rows=PLANNED if trust == "shuffled" else ROWS), columns=names)


def facts(folder: Path, case: str) -> dict[str, str]:
    """All digests of a case."""
    method, trust, *numbers = case.split()
    dimension, k = map(int, numbers)
    request, found = request_of(method, trust, dimension, k), dict[str, str]()
    try:
        prepared = prepare(request, [str(j) for j in range(dimension)])
        rounds = prepared.forecast(PublicRng.from_seed(5))
        found = {"prepared": short(prepared.digest()), "forecast": short([round.digest() for round in rounds])}
        if trust in ("local", "shuffled"):
            found |= plan_of(request, dimension)
        found |= replayed(prepared, dimension, trust, folder / case)
    except CloisterError as error:
        found["refused"] = str(error)[:200]
    return found


if __name__ == "__main__":
    print(json.dumps({case: facts(Path(sys.argv[1]), case) for case in sys.argv[2:]}))
