"""Small plans of trust Shuffled, and people's messages under them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from cloister.collection.client.encoder import Encoded, PlanEncoder
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.wire.messages import Messages, ReleaseForm, messages_of, well_formed
from cloister.core.randomness import NoiseRng
from cloister.core.types import AnyArray
from tests.collection.plans import local_plan

N, D = 1000, 5
FEW = 200
"""People where their number is not the point: a plan of more of them takes seconds to price."""

WIRES = {"counts": "amplified-counts", "sums": "amplified-vectors"}
MIXED = {"components": {"counts": "blanket-histogram", "sums": "split-and-mix"}, "options": {"tree.cells": 16}}
"""A plan of several messages per person."""

PARTS = 4
"""Files that people's messages are in."""


def small_plan(**changes: Any) -> CollectionPlan:
    return local_plan(D, **{"k": 2, "epsilon": 1.0, "delta": 1e-6, "rows": N, "components": WIRES, **changes})


def sent(plan: CollectionPlan, seed: int = 0, people: int | None = None, users: Any = None) -> Encoded:
    """What people send, from noise that can be repeated. Args: people (None: all of a plan's), users (numbers)."""
    who = range(people or plan.rows) if users is None else users
    rows = np.random.default_rng(seed).normal(0, 0.3, (len(who), plan.dimension))
    return PlanEncoder(plan, noise=NoiseRng.for_tests(seed)).encode(rows, who)


def write(path: Path, some: Encoded, who: Any = slice(None), answers: AnyArray | None = None) -> Path:
    """A file of what some people send. Args: answers (everybody's, in place of their own)."""
    path.parent.mkdir(exist_ok=True)
    said = some.answers if answers is None else answers
    path.write_bytes(some.form.batch(some.users[who], said[who]))
    return path


def folder_of(path: Path, some: Encoded, answers: AnyArray | None = None) -> Path:
    """What they send in ``PARTS`` files."""
    for i in range(PARTS):
        write(path / f"{i}.reports", some, some.users % np.uint64(PARTS) == i, answers)
    return path


def multiset(some: Messages) -> Counter[bytes]:
    """How often every message stands there."""
    return Counter(q.tobytes() + body.tobytes() for q, body in zip(some.questions, some.bodies, strict=True))


def released(folder: Path, plan: CollectionPlan) -> Messages:
    """What a shuffler wrote, in its order."""
    opened, found = plan.round(), list[Messages]()
    for path in sorted(folder.iterdir()):
        with path.open("rb") as file:
            for records in ReleaseForm(plan.hash, opened).batches(file):
                found.append(messages_of(records))
                assert well_formed(found[-1], opened).all()
    return Messages.joined(found)
