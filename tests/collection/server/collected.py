"""What the tests of reports share: plans, what is asked of answers, and files of reports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cloister.collection.client.encoder import Encoded, PlanEncoder
from cloister.collection.intake.validator import Intake
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.server.reports import CollectedReports
from cloister.core.questions import Round
from cloister.core.randomness import NoiseRng
from cloister.core.types import AnyArray
from tests.collection.plans import local_plan

NOISE = NoiseRng.for_tests(0)
D = 4
KINDS = {
    "tallied": {"sums": "hadamard-vector", "counts": "optimised-local-hashing"},
    "kept": {"sums": "explicit-histogram-vector", "counts": "explicit-histogram"},
}


def small_plan(kind: str, people: int) -> CollectionPlan:
    return local_plan(D, k=2, rows=people, components=KINDS[kind])


class Apart:
    """Parts in this process, as if it were others: backwards, since any order will do."""

    apart, elsewhere = True, False

    def close(self) -> None:
        """Nothing to end."""

    def run(self, fn: Any, some: Any) -> Iterator[Any]:
        return map(fn, reversed(list(some)))


def encoded(plan: CollectionPlan, users: Any, seed: int = 0) -> Encoded:
    """What people with these numbers send, from rows and noise that can be repeated."""
    rows = np.random.default_rng(seed).normal(0, 0.3, (len(users), plan.dimension))
    return PlanEncoder(plan, noise=NoiseRng.for_tests(seed)).encode(rows, users)


def written(path: Path, some: Encoded, who: Any = slice(None), answers: AnyArray | None = None) -> Path:
    """A file of some people's reports. Args: answers (everybody's, in place of their own)."""
    said = some.answers if answers is None else answers
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"".join(some.form.batches(some.users[who], said[who])))
    return path


def gathered(plan: CollectionPlan, given: Any, **more: Any) -> tuple[list[Any], Intake]:
    """Answers to everything that could be asked, and the intake."""
    round_, population = plan.round(), CollectedReports(given, plan.hash, plan.rows, **more)
    return tables(round_, population.gather(round_, NOISE)), population.intake


def tables(round: Round[Any], summaries: Sequence[Any]) -> list[Any]:
    found = []
    for part, summary in zip(round.parts, summaries, strict=True):
        table = part.channel.decode(summary, NOISE)
        found += [table.at(np.arange(min(size, 50)), level) for level, size in enumerate(part.cells.space.sizes)]
    return found


def same(one: Sequence[Any], other: Sequence[Any]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
