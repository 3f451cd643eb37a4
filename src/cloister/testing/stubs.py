"""Surroundings of a component while it is checked: bucketings, vectors and rows that the kit knows all about.

Another process, with another hash seed: where public data must have the same digest.

A session whose answers are invented: what a method does must not depend on there being rows.
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

from cloister.core.buckets import Space
from cloister.core.clustering import Problem
from cloister.core.domains import Box
from cloister.core.encoding import summarise_rows
from cloister.core.errors import InvalidInput
from cloister.core.lattice import Bound
from cloister.core.questions import OpenedQuestion, Question, Round, count, vector_sum
from cloister.core.randomness import NoiseRng, PublicRng, unit_floats
from cloister.core.session import Session
from cloister.core.types import Floats, Ints
from cloister.testing.check import Broken, role_of
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


def digest_elsewhere(value: object) -> str:
    """The digest of a public value after it has travelled to another process, with another hash seed."""
    sent, other = pickle.dumps(value), _elsewhere(os.getpid(), os.pathsep.join(part for part in sys.path if part))
    assert other.stdin is not None
    assert other.stdout is not None
    other.stdin.write(len(sent).to_bytes(8, "big") + sent)
    other.stdin.flush()
    answer: str = other.stdout.readline().decode().strip() or "! the process ended"
    if answer.startswith("!"):
        _elsewhere.cache_clear()  # what did not travel may have spoilt it for others
        raise RuntimeError(f"the value does not travel to another process: {answer[2:]}")
    return answer


@cache
def _elsewhere(process: int, path: str) -> subprocess.Popen[bytes]:
    """A process that answers with digests, one for all checks of this process: to start one takes longer than most
    checks do."""
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
    """Ends it with the process that it answers, not with a fork of that."""
    if process == os.getpid():
        other.communicate()


@final
@attrs.frozen
class Script:
    """Invented answers. Args: name, value (from chances in [0, 1), the largest answer and the number of buckets)."""

    name: str
    value: Callable[[Floats, float, int], Floats]


@contextmanager
def other_coins() -> Iterator[None]:
    """NumPy's global generator starts elsewhere meanwhile: what must not depend on it is computed once within."""
    state = np.random.get_state()
    try:
        np.random.seed(12345)
        yield
    finally:
        np.random.set_state(state)


SCRIPTS = (
    Script("zero everywhere", lambda u, most, size: 0.0 * u),
    Script("plausible", lambda u, most, size: u * most / math.sqrt(16 * size)),
    Script("all negative", lambda u, most, size: -u * most - 1.0),
    Script("noise a million times the answer", lambda u, most, size: (2 * u - 1) * most * 1e6),
    Script("tiny", lambda u, most, size: (u - 0.5) * 1e-6),
    Script("one bucket has everything", lambda u, most, size: np.where(u == u.max(initial=0.0), most, 0.0)),
)


@final
@attrs.frozen
class Told:
    """A table of invented answers: the same id answers the same."""

    part: OpenedQuestion
    script: Script
    rng: PublicRng
    most: float

    def at(self, ids: Ints, level: int = 0) -> Floats:
        asked, size = self._asked(ids, level), self.part.cells.space.sizes[level]
        width = 0 if self.part.vectors is None else self.part.vectors.bound.dimension
        columns = [
            self.script.value(unit_floats(self.rng.child(level, j).of_users(asked.astype(np.uint64))), self.most, size)
            for j in range(max(1, width))
        ]
        return np.stack(columns, axis=1) if width else columns[0]

    def standard_error(self, ids: Ints, level: int = 0) -> Floats:
        return np.full(len(self._asked(ids, level)), 1e-3 * self.most)

    def _asked(self, ids: Ints, level: int) -> Ints:
        asked, sizes = np.asarray(ids, np.int64), self.part.cells.space.sizes
        if (
            not 0 <= level < len(sizes)
            or asked.ndim != 1
            or (len(asked) and not (asked.min() >= 0 and asked.max() < sizes[level]))
        ):
            raise InvalidInput(f"bucket {ids} of level {level} was looked at; there are {sizes}")
        return asked


class Invented:
    """A session that opens every round as a forecast does, and answers it from a script. There is no population."""

    def __init__(self, problem: Problem, seed: PublicRng, script: Script) -> None:
        self._session: Session[Any] = Session(problem, seed, forecasting=True)
        self._script, self._seed = script, seed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def framed(self, lattice: Any, domain: Any) -> Invented:
        """As ``Session.framed``: its answers are invented too."""
        view = Invented(self._session.problem, self._seed, self._script)
        view._session = self._session.framed(lattice, domain)
        return view

    def ask(self, *questions: Any) -> tuple[Told, ...]:
        self._session.ask(*questions)
        return tables_told(self._session.rounds[-1], self._session.problem, self._seed, self._script)


def tables_told(round: Round[Any], problem: Problem, seed: PublicRng, script: Script) -> tuple[Told, ...]:
    """A script's answers to a round, which may be in other units than the problem's own."""
    rows, unit = float(problem.rows), problem.domain.unit
    return tuple(
        Told(
            part,
            script,
            seed.child("script", round.index, i),
            rows if part.vectors is None else rows * part.vectors.bound.l2 * unit,
        )
        for i, part in enumerate(round.parts)
    )


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
        object.__setattr__(self, "_fenced", inner)

    def __setattr__(self, name: str, value: Any) -> None:
        raise Broken(f"the session's '{name}' was set: a method asks, and changes nothing")

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("_"):
            raise Broken(f"the session's '{name}' was read: a method uses its public names only")
        inner = object.__getattribute__(self, "_fenced")
        if name == "framed":
            return lambda *frame: Fenced(inner.framed(*frame))
        return getattr(inner, name)


def tables_of(oracle: Any, shape: Shape, rounds: int, rows: int) -> list[Any]:
    """A session's answers in so many rounds of two questions about so many dealt rows, the same each time."""
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
