"""Small parts that the tests of the session share: a bucketing with levels, rows in memory, a method that looks
around."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np

from cloister.core.buckets import Space
from cloister.core.budget import Budget, Event
from cloister.core.clustering import Clustering, Problem
from cloister.core.domains import Box
from cloister.core.encoding import absorb, encode_rows
from cloister.core.lattice import Bound
from cloister.core.questions import Question, Round, Rows, count, vector_sum
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.record import Lookup, Record
from cloister.core.session import Session
from cloister.core.trust import Local
from cloister.noise.channel import TensorChannel
from cloister.plugins.oracles.central.discrete_gaussian import DiscreteGaussian

BOX = Box((-1.0, -1.0), (1.0, 1.0))
SEED = PublicRng(b"s" * 32)
LOOKS = 8
"""Looks per round of ``Explorer``."""


@attrs.frozen(eq=False)
class Strips:
    """The first coordinate, shifted, in 4 strips at level 0 and in 8 at level 1."""

    reach: int
    shift: int = 0

    @property
    def space(self) -> Space:
        return Space((4, 8))

    def locate(self, rows: np.ndarray) -> np.ndarray:
        fine = np.clip((rows[:, 0] + self.shift + self.reach) * 8 // (2 * self.reach + 1), 0, 7)
        return np.stack([fine >> 1, fine], axis=1)


@attrs.frozen
class InMemory:
    """Rows in one piece. Notes every time that they are read."""

    rows: np.ndarray
    log: list[str] = attrs.field(factory=list)
    users: np.ndarray | None = None

    def gather(self, round: Round[Any], rng: NoiseRng) -> tuple[Any, ...]:
        self.log.append(f"gather {round.index}")
        users = np.arange(len(self.rows), dtype=np.uint64) if self.users is None else self.users
        return absorb(round, encode_rows(round, self.rows, users, rng))


@attrs.frozen
class Explorer:
    """Two rounds of the same two questions; the second round's strips depend on what the first round showed.

    Looks at some buckets twice, at two levels, at errors and at nothing. Tells ``seen`` of every answer as it gets it.
    """

    seen: Callable[[np.ndarray], None] = lambda values: None
    spoil: bool = False
    rounds: int = 2

    def cluster(self, problem: Problem, session: Session[Any], rng: PublicRng) -> Clustering:
        shift, kept = 0, []
        for _ in range(self.rounds):
            counts, sums = session.ask(*self.questions(problem, shift))
            for answer in self.look(counts, sums):
                self.seen(answer)
                kept.append(answer.copy())
                if self.spoil:
                    np.add(answer, 1, out=answer)
            shift = int(abs(kept[-LOOKS][0])) % 1000
        return Clustering(np.concatenate([np.ravel(answer) for answer in kept])[None])

    def questions(self, problem: Problem, shift: int) -> tuple[Question[Any, Any], ...]:
        cells = Strips(problem.domain.max_norm, shift)
        per_count, per_sum = problem.budget.over(self.rounds).split(1, 3)
        return (
            count(cells, oracle=DiscreteGaussian(), budget=per_count),
            vector_sum(Rows(cells, Bound(problem.domain.max_norm, 2)), oracle=DiscreteGaussian(), budget=per_sum),
        )

    def look(self, counts: Any, sums: Any) -> Any:
        yield counts.at(np.array([0, 1, 2]), 0)
        yield sums.at(np.array([3, 1]), 0)
        yield counts.at(np.array([2, 3, 1]), 0)
        yield counts.standard_error(np.array([1, 2]), 0)
        yield counts.at(np.array([], np.int64), 1)
        yield counts.at(np.arange(8), 1)
        yield sums.at(np.array([0, 1, 1, 2]), 0)
        yield counts.at(np.array([2, 1, 3]), 0)


@attrs.frozen
class LocalCounts:
    """Exact counts that claim to be local, to test how users are shared."""

    trust = Local
    measure = "pure"
    uses_delta = asks_all_users = biased = False

    def open(self, space: Space, budget: Budget, context: Any) -> TensorChannel:
        return TensorChannel(f"local-{context.rows}", budget, space, None, None, 0, 1.0)

    def variance(self, space: Space, budget: Budget, context: Any) -> float:
        return 1.0


@attrs.frozen
class Charges:
    """An accountant that notes what it is asked, and may refuse."""

    log: list[str] = attrs.field(factory=list)
    error: Exception | None = None

    def charge(self, index: int, events: tuple[Event, ...]) -> None:
        if self.error is not None:
            raise self.error
        self.log.append(f"charge {index}")


class Crash(Exception):
    """The process dies here."""


@attrs.define
class Durable:
    """A journal on a disk of its own. Dies at entry ``fail``, before that entry is written or just after."""

    kept: Record = attrs.field(factory=Record)
    log: list[str] = attrs.field(factory=list)
    fail: int | None = None
    after: bool = False
    entries: int = 0

    def open_round(self, index: int, digest: str) -> None:
        self._enter(f"open {index}", lambda: self.kept.open_round(index, digest))

    def close_round(self, index: int) -> None:
        self._enter(f"close {index}", lambda: self.kept.close_round(index))

    def write(self, look: Lookup) -> None:
        copy = attrs.evolve(look, ids=look.ids.copy(), values=look.values.copy())
        self._enter("look", lambda: self.kept.write(copy))

    def _enter(self, what: str, keep: Callable[[], None]) -> None:
        self.entries += 1
        if self.entries == self.fail and not self.after:
            raise Crash
        keep()
        self.log.append(what)
        if self.entries == self.fail:
            raise Crash


def copied(record: Record) -> Record:
    """What another process reads of it."""
    looks = [attrs.evolve(look, ids=look.ids.copy(), values=look.values.copy()) for look in record.lookups]
    return Record(list(record.digests), record.closed, looks)


def same(one: Sequence[Lookup], other: Sequence[Lookup]) -> bool:
    """Bit by bit."""
    return len(one) == len(other) and all(
        (a.round, a.question, a.level, a.error) == (b.round, b.question, b.level, b.error)
        and np.array_equal(a.ids, b.ids)
        and a.values.shape == b.values.shape
        and a.values.tobytes() == b.values.tobytes()
        for a, b in zip(one, other, strict=True)
    )
