"""A small plan of three rounds, its people and its server, for the tests of rounds over files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import numpy as np

from cloister.collection.client.encode_files import RowTable, collect
from cloister.collection.client.encoder import PlanEncoder, State, transcript_of
from cloister.collection.plan import bundle_folder
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.plan.publish import publish
from cloister.collection.plan.transcript import Transcript
from cloister.collection.server.aggregator import Advanced, advance
from cloister.core.randomness import NoiseRng
from cloister.core.session import next_round
from tests.asking import asking

N, D, ROUNDS = 900, 2, 3
EPSILON = 9.0
CENTERS = np.array([[0.6, 0.6], [-0.6, -0.6], [0.6, -0.6]])
ROWS = CENTERS[np.arange(N) % 3] + np.random.default_rng(0).normal(0, 0.05, (N, D))
USERS = np.arange(N, dtype=np.uint64)
ASKED: dict[str, Any] = {
    "k": 3,
    "method": "su-lloyd",
    "epsilon": EPSILON,
    "bounds": "-1:1",
    "rows": N,
    "seed": 1,
    "options": {"rounds": ROUNDS},
    "components": {"counts": "optimised-local-hashing", "sums": "hadamard-vector"},
}


def planned(**changes: Any) -> CollectionPlan:
    return publish(asking(**ASKED | changes), dimension=D)


def prepared(folder: Path, plan: CollectionPlan) -> Path:
    """A folder with a plan and everybody's rows."""
    folder.mkdir(exist_ok=True)
    bundle_folder.write(plan, folder / "plan", "in words")
    np.save(folder / "mine.npy", ROWS)
    return folder


def answered(folder: Path, noise: NoiseRng | None = None) -> tuple[Path | None, int]:
    """Everybody answers the open round: what ``cloister answer`` does."""
    encoder = PlanEncoder(transcript_of(folder / "plan"), noise=noise)
    table = RowTable(encoder, [str(folder / "mine.npy")])
    return collect(encoder, table, folder / "reports", None if noise else State(folder / "mine.state"))


def advanced(folder: Path, **options: Any) -> Advanced:
    return advance(folder / "plan", folder / "reports", **options)


def up_to(folder: Path, plan: CollectionPlan, closed: int, noise: NoiseRng | None = None) -> Path:
    """A folder whose first rounds are closed."""
    prepared(folder, plan)
    for _ in range(closed):
        answered(folder, noise)
        advanced(folder)
    return folder


def lied(folder: Path, number: int, add: float) -> Transcript:
    """Publish other answers of a closed round (from 1) than the true ones, with everything that makes them look
    right."""
    place = folder / "plan"
    whole = Transcript.read(place)
    before, true = Transcript(whole.plan, whole.closed[: number - 1]), whole.closed[number - 1]
    looks = tuple(attrs.evolve(look, values=look.values + add) for look in true.lookups)
    false = attrs.evolve(true, lookups=looks, following="00" * 32)
    record = before.extended(false).record()
    record.digests.pop()
    following = next_round(whole.plan.compose().value, whole.plan.problem, whole.plan.seed, record).digest()
    for path in place.glob("round-*.json"):
        if int(path.stem[6:]) >= number:
            path.unlink()
    return before.publish(place, attrs.evolve(false, following=following))
