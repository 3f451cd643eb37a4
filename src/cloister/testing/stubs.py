"""What stands around a component while it is checked: bucketings, vectors and rows that the kit knows all about."""

from __future__ import annotations

from typing import Any, final

import attrs
import numpy as np

from cloister.core.buckets import Space
from cloister.core.clustering import Problem
from cloister.core.domains import Box
from cloister.core.encoding import summarise_rows
from cloister.core.lattice import Bound
from cloister.core.questions import Question, Round, count, vector_sum
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.session import Session
from cloister.core.types import Floats, Ints
from cloister.testing.check import Broken
from cloister.testing.probes import PAYABLE, Shape, budget_of, noised
from cloister.testing.roles import role_of


@final
@attrs.frozen
class Dealt:
    """A row's first column says which bucket it is in: that number modulo the size, at every level."""

    sizes: tuple[int, ...]

    @property
    def space(self) -> Space:
        return Space(self.sizes)

    def locate(self, rows: Ints) -> Ints:
        return np.stack([np.mod(rows[:, 0], size) for size in self.sizes], axis=1)


@final
@attrs.frozen
class Carried:
    """A row's other columns are its vector."""

    cells: Dealt
    bound: Bound

    def values(self, rows: Ints, buckets: Ints) -> Ints:
        return rows[:, 1:]


def carrying(dimension: int) -> Box:
    """The domain of rows (bucket, vector)."""
    return Box((-1.0,) * (dimension + 1), (1.0,) * (dimension + 1))


@final
@attrs.frozen(eq=False)
class Handful:
    """Rows in memory, encoded all at once. Args: people (that it says they are, where trust Shuffled needs so many; a
    check may use fewer)."""

    rows: Floats
    people: int

    def gather(self, round: Round[Any], rng: NoiseRng) -> tuple[Any, ...]:
        users = np.arange(len(self.rows), dtype=np.uint64)
        summaries = summarise_rows(round, self.rows, users, rng)
        return tuple(
            noised(part.channel, summary, rng.child("decode", round.index, i))
            for i, (part, summary) in enumerate(zip(round.parts, summaries, strict=True))
        )


class Guarded:
    """A population that lets nothing be done to it but ``gather``, and counts that."""

    def __init__(self, inner: Any) -> None:
        self._guarded = (inner, list[int]())

    def __getattribute__(self, name: str) -> Any:
        inner, rounds = object.__getattribute__(self, "_guarded")
        if name == "_gathered":
            return rounds
        if name == "people":  # which the session asks before it gathers
            return inner.people
        if name != "gather":
            raise Broken(f"the population's '{name}' was read: a method reaches rows by session.ask only")

        def gather(round: Round[Any], rng: NoiseRng) -> Any:
            rounds.append(round.index)
            return inner.gather(round, rng)

        return gather


class Fenced:
    """A session that a method sees by its public names."""

    def __init__(self, inner: Any) -> None:
        self._fenced = inner

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("_"):
            raise Broken(f"the session's '{name}' was read: a method uses its public names only")
        inner = object.__getattribute__(self, "_fenced")
        if name == "framed":
            return lambda *frame: Fenced(inner.framed(*frame))
        return getattr(inner, name)


def tables_of(oracle: Any, shape: Shape, rounds: int, rows: int) -> list[Any]:
    """What a session answers in so many rounds of two questions about so many dealt rows, the same each time."""
    domain = carrying(0 if shape.bound is None else shape.bound.dimension)
    problem = Problem(2, domain, 200, budget_of(oracle.measure, 1.0))
    population = Handful(np.random.default_rng(40).uniform(-1, 1, (rows, domain.dimension)), problem.rows)
    session: Session[Any] = Session(problem, PublicRng.from_seed(41), population, noise=NoiseRng.for_tests(42))
    return [t for _ in range(rounds) for t in session.ask(_question(oracle, shape), _question(oracle, shape))]


def _question(oracle: Any, shape: Shape, epsilon: float = 0.2) -> Question[Any, Any]:
    cells = Dealt(shape.sizes)
    spend = budget_of(PAYABLE[oracle.measure][0], epsilon)
    if role_of(oracle) == "FrequencyOracle":
        return count(cells, oracle=oracle, budget=spend)
    assert shape.bound is not None
    return vector_sum(Carried(cells, shape.bound), oracle=oracle, budget=spend)
