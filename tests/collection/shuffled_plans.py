"""A small plan of trust Shuffled, people's messages under it, and a question of several messages per person."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

import attrs
import numpy as np

from cloister.collection.client.encoder import Encoded, PlanEncoder
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.plan.publish import publish
from cloister.collection.wire.messages import Messages, ReleaseForm, messages_of, well_formed
from cloister.core.buckets import BucketedVectors, Space
from cloister.core.budget import Budget, Event
from cloister.core.domains import Ball
from cloister.core.errors import Refused
from cloister.core.questions import OpenedQuestion, Round
from cloister.core.randomness import NoiseRng
from cloister.core.trust import Shuffled
from cloister.core.types import AnyArray, Bools, Ids, Ints
from cloister.run.request import Request

N, D = 1000, 5
WIRES = {"counts": "amplified-counts", "sums": "amplified-vectors"}
PARTS = 4
"""Files that people's messages are in."""


def small_plan(**changes: Any) -> CollectionPlan:
    given = {
        "k": 2,
        "method": "one-round",
        "epsilon": 1.0,
        "delta": 1e-6,
        "bounds": "ball:1",
        "rows": N,
        "seed": 1,
        "components": WIRES,
    }
    return publish(Request(**{**given, **changes}), dimension=D)


def sent(plan: CollectionPlan, seed: int = 0, people: int = N) -> Encoded:
    """What people send, from noise that can be repeated."""
    rows = np.random.default_rng(seed).normal(0, 0.3, (people, plan.dimension))
    return PlanEncoder(plan, noise=NoiseRng.for_tests(seed)).encode(rows, np.arange(people))


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


def released(folder: Path, plan: CollectionPlan, round: Round[Any] | None = None) -> Messages:
    """What a shuffler wrote, in its order."""
    opened, found = plan.round() if round is None else round, list[Messages]()
    for path in sorted(folder.iterdir()):
        with path.open("rb") as file:
            for records in ReleaseForm(plan.hash, opened).batches(file):
                found.append(messages_of(records))
                assert well_formed(found[-1], opened).all()
    return Messages.joined(found)


EACH = 3


@final
@attrs.frozen(eq=False)
class Thirds:
    """Toy messages. Args: slots (m,), values (m,)."""

    slots: AnyArray
    values: AnyArray

    def columns(self) -> dict[str, AnyArray]:
        return {"slot": self.slots, "value": self.values}

    @classmethod
    def load(cls, columns: Mapping[str, AnyArray]) -> Thirds:
        return cls(columns["slot"], columns["value"])


@final
@attrs.frozen(eq=False)
class ToyMixing:
    """Bucket ids in three shares modulo 2^32, in slots 0, 1, 2: a toy without noise."""

    min_honest_users: int = 2
    messages: int = EACH

    @property
    def events(self) -> tuple[Event, ...]:
        return (Event("toy", Budget("pure", 1.0, delta=1e-6), delta=1e-6),)

    def encode(self, items: Ints | BucketedVectors, users: Ids, rng: NoiseRng) -> Thirds:
        assert not isinstance(items, BucketedVectors)
        values = rng.child("toy").words(users, EACH).astype(np.uint32)
        values[:, 2] = items[:, 0].astype(np.uint32) - values[:, 0] - values[:, 1]
        return Thirds(np.tile(np.arange(EACH, dtype=np.uint8), len(users)), values.reshape(-1))

    def pooled(self, items: Any, users: Ids, rng: NoiseRng) -> Any:
        return self.absorb(self.encode(items, users, rng))

    def absorb(self, report: Thirds) -> Added:
        if (report.slots >= EACH).any():
            raise Refused("no such slot")
        return Added(int(report.values.astype(np.uint64).sum()) % 2**32)

    def whole(self, report: Thirds) -> Bools:
        return np.asarray((np.sort(report.slots.reshape(-1, EACH), axis=1) == np.arange(EACH)).all(axis=1))

    def decode(self, summary: Added, rng: NoiseRng) -> Any:
        return summary


@final
@attrs.frozen
class Added:
    total: int

    def merge(self, other: Added) -> Added:
        return Added((self.total + other.total) % 2**32)


@final
@attrs.frozen
class Ones:
    """A bucketing into buckets by the first coordinate's sign."""

    space: Space = attrs.field(factory=lambda: Space((2,)))

    def locate(self, rows: Ints) -> Ints:
        return (rows[:, :1] > 0).astype(np.int64)


def toy_round() -> Round[Shuffled]:
    """One question of three messages, of everybody."""
    return Round(0, Shuffled, Ball((0.0,) * D, 1.0), (OpenedQuestion(Ones(), None, None, ToyMixing()),))
