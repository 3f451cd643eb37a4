"""Small honest mechanisms: what the kit must let pass, and what the zoo is bred from.

Guarantee (Central; add-or-remove one row): one row changes one count per level by 1 and one sum per level by a vector
within the bound. Laplace noise has the scale levels * L1 / eps, Gaussian noise sigma = sqrt(levels) * L2 / mu.

Guarantee of ``UnaryCounts`` (Local; replace one row): two rows differ in at most 2 bits per level, and every bit is
flipped so that its two values have probabilities of ratio e^(eps / (2 levels)).
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NoReturn

import attrs
import numpy as np

from cloister.core.buckets import BucketedVectors, QuestionContext, Space
from cloister.core.budget import Budget, Event, Measure
from cloister.core.clustering import Clustering, Coreset, Problem, Released
from cloister.core.encoding import absorb, encode_rows, merge_summaries
from cloister.core.errors import InvalidInput, Refused
from cloister.core.lattice import CAP, Bound
from cloister.core.nearest import NearestCenter
from cloister.core.questions import Round, Rows, count, vector_sum
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.registry.components import component, option, slot
from cloister.core.roles import FrequencyOracle, VectorSumOracle
from cloister.core.session import Session
from cloister.core.trust import Central, Local, T
from cloister.core.types import Bools, Floats, Ids, Ints
from cloister.testing.checks.spaces import OFFSET
from cloister.testing.probes import with_vectors


@attrs.frozen(eq=False)
class Totals:
    vector: Ints

    def merge(self, other: Totals) -> Totals:
        return Totals(self.vector + other.vector)


class Noised:
    """Values of all buckets, released."""

    def __init__(self, values: Floats, starts: Ints, error: float) -> None:
        self._values, self._starts, self._error = values, starts, error

    def at(self, ids: Ints, level: int = 0) -> Floats:
        return self._values[self._starts[level] + ids]

    def standard_error(self, ids: Ints, level: int = 0) -> Floats:
        return np.full(len(ids), self._error)

    def __reduce__(self) -> NoReturn:
        raise TypeError("tables do not travel")


@attrs.frozen
class Channel:
    """Exact totals, then noise. Args: scale (of the noise, in lattice integers), first (bucket of each level; there are
    no rows in those before, whatever the space is)."""

    budget: Budget
    space: Space
    bound: Bound | None
    scale: float
    gaussian: bool
    context: QuestionContext
    shift: int = 0
    first: int = 0

    tables: ClassVar[type[Any]] = Noised

    @property
    def width(self) -> int:
        return self.bound.dimension if self.bound else 1

    @property
    def unit(self) -> float:
        return self.context.unit if self.bound else 1.0

    @property
    def starts(self) -> Ints:
        """Where the values of each level begin."""
        return np.cumsum([0, *self.space.sizes])

    @property
    def events(self) -> tuple[Event, ...]:
        sigma = self.scale * 2.0**self.shift if self.gaussian else math.inf
        return (self.declared(Event("honest", self.budget, self.space.levels * self.width, sigma)),)

    def declared(self, event: Event) -> Event:
        """What is told of the one event that there is."""
        return event

    @property
    def error(self) -> float:
        return (self.scale if self.gaussian else math.sqrt(0.5) / math.sinh(0.5 / self.scale)) * self.unit

    def encode(self, items: Ints | BucketedVectors, users: Ids, rng: NoiseRng) -> Totals:
        totals, rows = [], with_vectors(self.taken(items))
        buckets = np.where(rows.buckets < 0, -1, rows.buckets - self.first)
        for level, size in enumerate(self.space.sizes):
            total = np.zeros((size + 1, self.width), np.int64)
            np.add.at(total, buckets[:, level], rows.values)
            totals.append(total[:-1])
        return Totals(np.concatenate(totals))

    def taken(self, items: Any) -> Any:
        """The rows that are added up: all, as they are."""
        return items

    def absorb(self, report: Totals) -> Totals:
        if report.vector.dtype != np.int64 or report.vector.shape != (sum(self.space.sizes), self.width):
            raise Refused("no encoder sends that")
        return report

    def noise(self, level: int, size: int, rng: NoiseRng) -> Ints:
        scale, mine = self.scale * 2.0**self.shift, rng.child("level", level)
        return self.drawn(mine.discrete_gaussian(scale, size) if self.gaussian else mine.discrete_laplace(scale, size))

    def drawn(self, noise: Ints) -> Ints:
        """What becomes of a level's noise: nothing."""
        return noise

    def noised(self, summary: Totals, rng: NoiseRng) -> Floats:
        """Values (all buckets, width)."""
        noise = [
            self.noise(level, size * self.width, rng).reshape(size, self.width)
            for level, size in enumerate(self.space.sizes)
        ]
        return ((summary.vector << self.shift) + np.concatenate(noise)) * (self.unit * 2.0**-self.shift)

    def decode(self, summary: Totals, rng: NoiseRng) -> Any:
        values = self.noised(summary, rng)
        return self.tables(values if self.bound else values[:, 0], self.starts - self.first, self.error)


class _Oracle:
    """What honest oracles share: subclasses say how wide the noise is."""

    trust = Central
    channel: ClassVar[type[Channel]] = Channel
    gaussian: ClassVar[bool] = False

    def scale(self, levels: int, bound: Bound | None, budget: Budget) -> float:
        if self.gaussian:
            return math.sqrt(levels) * (bound.l2 if bound else 1) / budget.mu
        return levels * (bound.l1 if bound else 1) / budget.epsilon

    def made(self, space: Space, bound: Bound | None, budget: Budget, context: QuestionContext) -> Channel:
        scale = self.scale(space.levels, bound, budget)
        shift = max(0, math.ceil(math.log2(2.0**20 / scale))) if self.gaussian else 0
        first = OFFSET if min(space.sizes) > OFFSET else 0  # in a large space the kit asks about what lies there
        near = Space(tuple(size - first for size in space.sizes), space.nested)
        return self.channel(budget, near, bound, scale, self.gaussian, context, shift, first)


@component
class HonestCounts(_Oracle):
    """Counts with discrete Laplace noise."""

    measure: ClassVar[Measure] = "pure"

    def open(self, space: Space, budget: Budget, context: QuestionContext) -> Channel:
        return self.made(space, None, budget, context)

    def variance(self, space: Space, budget: Budget, context: QuestionContext) -> float:
        return self.open(space, budget, context).error ** 2


@component
class HonestGaussianCounts(HonestCounts):
    """Counts with discrete Gaussian noise."""

    gaussian = True
    measure: ClassVar[Measure] = "gaussian"


@component
class HonestSums(_Oracle):
    """Sums with discrete Laplace noise."""

    measure: ClassVar[Measure] = "pure"

    def open(self, space: Space, budget: Budget, context: QuestionContext, bound: Bound) -> Channel:
        return self.made(space, bound, budget, context)

    def variance(self, space: Space, budget: Budget, context: QuestionContext, bound: Bound) -> float:
        return self.open(space, budget, context, bound).error ** 2


@component
class HonestGaussianSums(HonestSums):
    """Sums with discrete Gaussian noise."""

    gaussian = True
    measure: ClassVar[Measure] = "gaussian"


@attrs.frozen(eq=False)
class Reports:
    """Users (n,), and a number of each of them for every bucket (n, buckets)."""

    users: Ids
    numbers: Any

    def columns(self) -> dict[str, Any]:
        return {"users": self.users, "numbers": self.numbers}

    @classmethod
    def load(cls, columns: dict[str, Any]) -> Reports:
        return cls(columns["users"], columns["numbers"])


@attrs.frozen
class UnaryChannel:
    """Every user sends one bit per bucket, each flipped with probability 1 - keep."""

    space: Space
    budget: Budget
    rows: int

    dtype: ClassVar[type[Any]] = np.uint8

    @property
    def events(self) -> tuple[Event, ...]:
        return (Event("unary", self.budget),)

    @property
    def per_bit(self) -> float:
        """Epsilon of one number, of which a row changes two per level."""
        return self.budget.epsilon / (2 * self.space.levels)

    @property
    def keep(self) -> float:
        return 1 / (1 + math.exp(-self.per_bit))

    @property
    def most(self) -> float:
        """What no number is beyond."""
        return 1

    @property
    def error(self) -> float:
        return math.sqrt(self.rows * self.keep * (1 - self.keep)) / (2 * self.keep - 1)

    def ones(self, items: Ints) -> Bools:
        """For every bucket whether a row is in it."""
        return np.concatenate([items[:, [i]] == np.arange(n) for i, n in enumerate(self.space.sizes)], axis=1)

    def encode(self, items: Ints, users: Ids, rng: NoiseRng) -> Reports:
        ones = self.ones(items)
        flip = rng.words(users, ones.shape[1]) >= np.uint64(int(self.keep * 2.0**64))
        return Reports(users, (ones ^ flip).astype(np.uint8))

    def absorb(self, report: Reports) -> Totals:
        """For each bucket the total of its numbers, and then how many users sent any."""
        numbers, users = report.numbers, report.users
        if users.dtype != np.uint64 or users.ndim != 1 or numbers.dtype != self.dtype:
            raise Refused("no encoder sends that")
        if numbers.shape != (len(users), sum(self.space.sizes)) or (np.abs(numbers) > self.most).any():
            raise Refused("no encoder sends that")
        return Totals(np.append(numbers.sum(axis=0, dtype=np.int64), len(users)))

    def counts(self, totals: Ints, users: int) -> Floats:
        return (totals - users * (1 - self.keep)) / (2 * self.keep - 1)

    def decode(self, summary: Totals, rng: NoiseRng) -> Noised:
        values = self.counts(summary.vector[:-1], summary.vector[-1])
        return Noised(values, np.cumsum([0, *self.space.sizes]), self.error)


@component
class UnaryCounts:
    """Counts by unary encoding, with symmetric flips."""

    trust = Local
    measure: ClassVar[Measure] = "pure"
    channel: ClassVar[type[UnaryChannel]] = UnaryChannel

    def open(self, space: Space, budget: Budget, context: QuestionContext) -> UnaryChannel:
        made = self.channel(space, budget, context.rows)
        assert made.error > 0  # which a budget in another measure has none of: it is refused
        return made

    def variance(self, space: Space, budget: Budget, context: QuestionContext) -> float:
        return self.open(space, budget, context).error ** 2


class Same:
    """An honest one, but for what a subclass changes."""

    def __init__(self, honest: Any) -> None:
        self.honest = honest

    def __getattr__(self, name: str) -> Any:
        return getattr(self.honest, name)


def cells_of(problem: Problem, centers: Floats) -> NearestCenter:
    """Rows by the centre that they are nearest to."""
    return NearestCenter(problem.domain.snap(centers), problem.domain.max_norm)


@component
class Plain:
    """k-means by rounds of absolute updates from public starts."""

    counts: FrequencyOracle[T] = slot("discrete-laplace", help="how many rows are nearest to each centre")
    sums: VectorSumOracle[T] = slot("discrete-laplace", help="what they add up to")
    rounds: int = option(default=3, low=1, help="number of rounds")

    def cluster(self, problem: Problem, session: Session[Any], rng: PublicRng) -> Clustering:
        return self.clustered(problem, session, self.start(problem, session, rng))

    def clustered(self, problem: Problem, session: Session[Any], centers: Floats) -> Clustering:
        for _ in range(self.rounds):
            centers = self.step(problem, session, centers, problem.budget.over(self.rounds))
        return Clustering(centers)

    def start(self, problem: Problem, session: Session[Any], rng: PublicRng) -> Floats:
        return problem.domain.sample(rng.child("start").generator(), problem.k, 0.0)

    def step(self, problem: Problem, session: Session[Any], centers: Floats, budget: Budget) -> Floats:
        near, every = cells_of(problem, centers), np.arange(problem.k)
        per_count, per_sum = budget.split(1, 3)
        vectors = Rows(near, Bound(near.reach, problem.domain.dimension))
        counts, sums = session.ask(
            count(near, oracle=self.counts, budget=per_count),
            vector_sum(vectors, oracle=self.sums, budget=per_sum),
        )
        return self.moved(problem, sums.at(every), counts.at(every))

    def moved(self, problem: Problem, total: Floats, size: Floats) -> Floats:
        return problem.domain.truncate(total / np.maximum(size, 1.0)[:, None] + problem.domain.middle)


@component
class FirstPoints:
    """The first k points, over and over."""

    def solve(self, coreset: Released[Coreset], k: int, rng: PublicRng) -> Floats:
        return self.chosen(coreset.value.points, coreset.value.weights, k, rng)

    def chosen(self, points: Floats, weights: Floats, k: int, rng: PublicRng) -> Floats:
        return points[np.arange(k) % len(points)]


class Chunks:
    """Rows in memory, encoded in chunks of a thousand."""

    def __init__(self, rows: Floats) -> None:
        self.rows = rows
        self.columns = [str(j) for j in range(rows.shape[1])]

    def check(self, most_rows: int = CAP) -> None:
        if len(self.rows) > most_rows:
            raise InvalidInput("too many rows")

    def gather(self, round: Round[Any], rng: NoiseRng) -> tuple[Any, ...]:
        merged = self.encoded(round, 0, rng)
        for start in range(1000, len(self.rows), 1000):
            merged = merge_summaries(merged, self.encoded(round, start, rng))
        return merged

    def encoded(self, round: Round[Any], start: int, rng: NoiseRng) -> tuple[Any, ...]:
        some = self.rows[start : start + 1000]
        return absorb(round, encode_rows(round, some, self.users(start, len(some)), rng))

    def users(self, start: int, n: int) -> Ids:
        return np.arange(start, start + n, dtype=np.uint64)


def nearest(domain: Any, rng: PublicRng) -> NearestCenter:
    """Centres on a coarse grid, so that ties are many."""
    g = rng.generator()
    centers = domain.snap(domain.real(g.integers(-4, 4, (6, domain.dimension), endpoint=True) * (domain.sides // 8)))
    return NearestCenter(centers, domain.max_norm)
