"""Known surroundings for a component under test.

Bucketings, vectors and rows with known answers; sessions that answer from a script, since a method must behave alike
whatever it is answered; and a second process that digests public data under another hash seed.
"""

from __future__ import annotations

import atexit
import math
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, final

import attrs
import numpy as np

from cloister.core.questions import OpenedQuestion
from cloister.core.randomness import unit_floats
from cloister.plugin import (
    Bound,
    Box,
    Floats,
    Ints,
    InvalidInput,
    NoiseRng,
    Problem,
    PublicRng,
    Question,
    Round,
    Session,
    Space,
    count,
    summarise_rows,
    vector_sum,
)
from cloister.testing.check import Violation, role_of
from cloister.testing.probes import PAYABLE, Shape, budget_of, noised

_SCRIPT = """
import pickle, sys
from cloister.core.plain_data import digest
while size := sys.stdin.buffer.read(8):
    try:
        answer = digest(pickle.loads(sys.stdin.buffer.read(int.from_bytes(size, "big"))))
    except Exception as error:
        answer = f"! {type(error).__name__}: {error}"
    print(" ".join(answer.split()), flush=True)
"""


def digest_in_another_process(value: object) -> str:
    """Return the digest that another process, with another hash seed, computes for a public value."""
    sent, other = pickle.dumps(value), _digest_process(os.getpid(), os.pathsep.join(part for part in sys.path if part))
    assert other.stdin is not None
    assert other.stdout is not None
    other.stdin.write(len(sent).to_bytes(8, "big") + sent)
    other.stdin.flush()
    answer: str = other.stdout.readline().decode().strip() or "! the process ended"
    if answer.startswith("!"):
        _digest_process.cache_clear()  # the value may have broken the process for others
        raise RuntimeError(f"the value cannot be sent to another process: {answer[2:]}")
    return answer


@cache
def _digest_process(process: int, path: str) -> subprocess.Popen[bytes]:
    """Start the process that computes digests; one serves all checks, since starting it outlasts most of them."""
    seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": seed}
    other = subprocess.Popen(
        [sys.executable, "-c", _SCRIPT],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    atexit.register(_end, process, other)
    return other


def _end(process: int, other: subprocess.Popen[bytes]) -> None:
    """End the digest process with the process that started it, but not with a fork of that."""
    if process == os.getpid():
        other.communicate()


@final
@attrs.frozen
class Script:
    """Recipe for invented answers.

    Args:
        name: what the answers look like.
        value: computes answers from uniform draws in [0, 1), the largest answer and the number of buckets.
    """

    name: str
    value: Callable[[Floats, float, int], Floats]


@contextmanager
def reseeded_numpy() -> Iterator[None]:
    """Reseed NumPy's global generator inside the block, so that results which depend on it differ."""
    state = np.random.get_state()
    try:
        np.random.seed(12345)
        yield
    finally:
        np.random.set_state(state)


SCRIPTS = (
    Script("zero everywhere", lambda u, largest, size: 0.0 * u),
    Script("plausible", lambda u, largest, size: u * largest / math.sqrt(16 * size)),
    Script("all negative", lambda u, largest, size: -u * largest - 1.0),
    Script("noise a million times the answer", lambda u, largest, size: (2 * u - 1) * largest * 1e6),
    Script("tiny", lambda u, largest, size: (u - 0.5) * 1e-6),
    Script("one bucket has everything", lambda u, largest, size: np.where(u == u.max(initial=0.0), largest, 0.0)),
)


@final
@attrs.frozen
class InventedTable:
    """Table of invented answers, the same for the same id."""

    part: OpenedQuestion
    script: Script
    rng: PublicRng
    largest: float

    def at(self, ids: Ints, level: int = 0) -> Floats:
        checked_ids, size = self._checked(ids, level), self.part.cells.space.sizes[level]
        width = 0 if self.part.vectors is None else self.part.vectors.bound.dimension
        columns = [
            self.script.value(
                unit_floats(self.rng.child(level, j).of_users(checked_ids.astype(np.uint64))), self.largest, size
            )
            for j in range(max(1, width))
        ]
        return np.stack(columns, axis=1) if width else columns[0]

    def standard_error(self, ids: Ints, level: int = 0) -> Floats:
        return np.full(len(self._checked(ids, level)), 1e-3 * self.largest)

    def _checked(self, ids: Ints, level: int) -> Ints:
        checked_ids, sizes = np.asarray(ids, np.int64), self.part.cells.space.sizes
        if (
            not 0 <= level < len(sizes)
            or checked_ids.ndim != 1
            or (len(checked_ids) and not (checked_ids.min() >= 0 and checked_ids.max() < sizes[level]))
        ):
            raise InvalidInput(f"bucket {ids} of level {level} does not exist; sizes are {sizes}")
        return checked_ids


class InventedSession:
    """Session without a population: opens every round as a forecast does and answers it from a script."""

    def __init__(self, problem: Problem, seed: PublicRng, script: Script) -> None:
        self._session: Session[Any] = Session(problem, seed, forecasting=True)
        self._script, self._seed = script, seed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def framed(self, lattice: Any, domain: Any) -> InventedSession:
        """Return a view as ``Session.framed`` does, with invented answers."""
        view = InventedSession(self._session.problem, self._seed, self._script)
        view._session = self._session.framed(lattice, domain)
        return view

    def ask(self, *questions: Any) -> tuple[InventedTable, ...]:
        self._session.ask(*questions)
        return invented_tables(self._session.rounds[-1], self._session.problem, self._seed, self._script)


def invented_tables(round: Round[Any], problem: Problem, seed: PublicRng, script: Script) -> tuple[InventedTable, ...]:
    """Return a script's answers to a round, which may be in other units than the problem's own."""
    rows, unit = float(problem.rows), problem.domain.unit
    return tuple(
        InventedTable(
            part,
            script,
            seed.child("script", round.index, i),
            rows if part.vectors is None else rows * part.vectors.bound.l2 * unit,
        )
        for i, part in enumerate(round.parts)
    )


@final
@attrs.frozen
class ModuloBuckets:
    """Bucketing by a row's first column modulo the number of buckets, at every level."""

    sizes: tuple[int, ...]

    @property
    def space(self) -> Space:
        return Space(self.sizes)

    def locate(self, rows: Ints) -> Ints:
        return np.stack([np.mod(rows[:, 0], size) for size in self.sizes], axis=1)


@final
@attrs.frozen
class CarriedVectors:
    """Vectors that are the row's other columns."""

    cells: ModuloBuckets
    bound: Bound

    def values(self, rows: Ints, buckets: Ints) -> Ints:
        return rows[:, 1:]


def carrying_domain(dimension: int) -> Box:
    """Return the domain of rows (bucket, vector)."""
    return Box((-1.0,) * (dimension + 1), (1.0,) * (dimension + 1))


@final
@attrs.frozen(eq=False)
class InMemoryRows:
    """Population in memory, encoded all at once.

    Args:
        rows: real rows (n, d).
        people: number of people that it claims, since trust Shuffled needs many and a check may use few rows.
    """

    rows: Floats
    people: int

    def gather(self, round: Round[Any], rng: NoiseRng) -> tuple[Any, ...]:
        users = np.arange(len(self.rows), dtype=np.uint64)
        summaries = summarise_rows(round, self.rows, users, rng)
        return tuple(
            noised(part.channel, summary, rng.child("decode", round.index, i))
            for i, (part, summary) in enumerate(zip(round.parts, summaries, strict=True))
        )


class GatherOnly:
    """Population that allows nothing but ``gather``, and records the rounds gathered."""

    def __init__(self, inner: Any) -> None:
        self._guarded = (inner, list[int]())

    def __getattribute__(self, name: str) -> Any:
        inner, rounds = object.__getattribute__(self, "_guarded")
        if name == "_gathered":
            return rounds
        if name == "people":  # read by the session before it gathers
            return inner.people
        if name != "gather":
            raise Violation(f"the population's '{name}' was read: a method reaches rows by session.ask only")

        def gather(round: Round[Any], rng: NoiseRng) -> Any:
            rounds.append(round.index)
            return inner.gather(round, rng)

        return gather


class PublicNamesOnly:
    """Session whose private names and attributes are out of a method's reach."""

    def __init__(self, inner: Any) -> None:
        object.__setattr__(self, "_fenced", inner)

    def __setattr__(self, name: str, value: Any) -> None:
        raise Violation(f"the session's '{name}' was set: a method asks, and changes nothing")

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("_"):
            raise Violation(f"the session's '{name}' was read: a method uses its public names only")
        inner = object.__getattribute__(self, "_fenced")
        if name == "framed":
            return lambda *frame: PublicNamesOnly(inner.framed(*frame))
        return getattr(inner, name)


def session_tables(oracle: Any, shape: Shape, rounds: int, rows: int) -> list[Any]:
    """Return a session's answers to rounds of two equal questions about random rows."""
    domain = carrying_domain(0 if shape.bound is None else shape.bound.dimension)
    problem = Problem(2, domain, 200, budget_of(oracle.measure, 1.0))
    population = InMemoryRows(np.random.default_rng(40).uniform(-1, 1, (rows, domain.dimension)), problem.rows)
    session: Session[Any] = Session(problem, PublicRng.from_seed(41), population, noise=NoiseRng.for_tests(42))
    return [t for _ in range(rounds) for t in session.ask(_question(oracle, shape), _question(oracle, shape))]


def _question(oracle: Any, shape: Shape, epsilon: float = 0.2) -> Question[Any, Any]:
    cells = ModuloBuckets(shape.sizes)
    spend = budget_of(PAYABLE[oracle.measure][0], epsilon)
    if role_of(oracle) == "FrequencyOracle":
        return count(cells, oracle=oracle, budget=spend)
    assert shape.bound is not None
    return vector_sum(CarriedVectors(cells, shape.bound), oracle=oracle, budget=spend)
