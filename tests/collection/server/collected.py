"""What the tests of reports share: plans, what is asked of answers, and reports in every form."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cloister.collection.client.encoder import Encoded, PlanEncoder
from cloister.collection.intake.refusals import Intake
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.plan.publish import publish
from cloister.collection.server.reports import Collected
from cloister.collection.wire import reports as wire
from cloister.core.questions import Round
from cloister.core.randomness import NoiseRng
from cloister.run.request import Request

NOISE = NoiseRng.for_tests(0)
D = 4
KINDS = {
    "tallied": {"sums": "hadamard-vector", "counts": "optimised-local-hashing"},
    "kept": {"sums": "explicit-histogram-vector", "counts": "explicit-histogram"},
}


def small_plan(kind: str, people: int) -> CollectionPlan:
    given = {"k": 2, "method": "one-round", "epsilon": 2.0, "bounds": "ball:1", "rows": people, "seed": 1}
    return publish(Request(**given, components=KINDS[kind]), dimension=D)  # type: ignore[arg-type]


def encoded(plan: CollectionPlan, users: Any, seed: int = 0) -> Encoded:
    rows = np.random.default_rng(seed).normal(0, 0.3, (len(users), D))
    return PlanEncoder(plan, noise=NoiseRng.for_tests(seed)).encode(rows, users)


def parquet(path: Path, plan: CollectionPlan, some: Encoded) -> Path:
    batch = wire.to_batch(some.reports, some.users, wire.schema(plan.round(), plan.hash))
    pq.write_table(pa.Table.from_batches([batch]), path, write_page_checksum=True)
    return path


def gathered(plan: CollectionPlan, given: Any, **more: Any) -> tuple[list[Any], Intake]:
    """Answers to everything that could be asked, and the intake."""
    round_, population = plan.round(), Collected(given, plan.hash, plan.rows, **more)
    return tables(round_, population.gather(round_, NOISE)), population.intake


def tables(round: Round[Any], summaries: Sequence[Any]) -> list[Any]:
    found = []
    for part, summary in zip(round.parts, summaries, strict=True):
        table = part.channel.decode(summary, NOISE)
        found += [table.at(np.arange(min(size, 50)), level) for level, size in enumerate(part.cells.space.sizes)]
    return found


def same(one: Sequence[Any], other: Sequence[Any]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
