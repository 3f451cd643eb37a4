"""Small plans of trust Shuffled, and people's messages under them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from cloister.collection.client.encoder import Encoded
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.wire.messages import Messages, ReleaseForm, messages_of, well_formed
from cloister.core.types import AnyArray
from tests.collection.plans import local_plan
from tests.collection.server.collected import encoded, written

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
    return encoded(plan, range(people or plan.rows) if users is None else users, seed)


def folder_of(path: Path, some: Encoded, answers: AnyArray | None = None) -> Path:
    """What they send in ``PARTS`` files."""
    for i in range(PARTS):
        written(path / f"{i}.reports", some, some.users % np.uint64(PARTS) == i, answers)
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
    return Messages.concatenate(found)
