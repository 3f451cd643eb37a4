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
from cloister.core.clustering import Clustering, Coreset, Leaves, Problem, Released
from cloister.core.encoding import absorb, encode_rows, merge_summaries
from cloister.core.errors import InvalidInput, Refused
from cloister.core.lattice import CAP, Bound
from cloister.core.nearest import NearestCenter
from cloister.core.questions import Round, Rows, count, vector_sum
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.registry.components import component, option, slot
from cloister.core.roles import Counts, FrequencyOracle, VectorSumOracle
from cloister.core.session import Session
from cloister.core.trust import Central, Local, T
from cloister.core.types import Floats, Ids, Ints
from cloister.testing.probes import placed


@attrs.frozen(eq=False)
class Totals:
    vector: Ints

    def merge(self, other: Totals) -> Totals:
        return Totals(self.vector + other.vector)


class Noised:
    """Values (all buckets, width), released."""

    def __init__(self, values: Floats, flat: bool, starts: Ints, errors: tuple[float, ...]) -> None:
        self._values, self._flat, self._starts, self._errors = values, flat, starts, errors

    def at(self, ids: Ints, level: int = 0) -> Floats:
        values = self._values[self._starts[level] + ids]
        return values[:, 0] if self._flat else values

    def standard_error(self, ids: Ints, level: int = 0) -> Floats:
        return np.full(len(ids), self._errors[level])

    def __reduce__(self) -> NoReturn:
        raise TypeError("tables do not travel")


@attrs.frozen
class Channel:
    """Exact totals, then noise. Args: scales (of the noise, per level, in lattice integers)."""

    budget: Budget
    space: Space
    bound: Bound | None
    scales: tuple[float, ...]
    gaussian: bool
    context: QuestionContext
    shift: int = 0

    @property
    def width(self) -> int:
        return self.bound.dimension if self.bound else 1

    @property
    def unit(self) -> float:
        return self.context.unit if self.bound else 1.0

    @property
    def events(self) -> tuple[Event, ...]:
        sigma = min(self.scales) * 2.0**self.shift if self.gaussian else math.inf
        return (Event("honest", self.budget, self.space.levels * self.width, sigma),)

    @property
    def errors(self) -> tuple[float, ...]:
        if self.gaussian:
            return tuple(s * self.unit for s in self.scales)
        return tuple(math.sqrt(0.5) / math.sinh(0.5 / s) * self.unit for s in self.scales)

    def encode(self, items: Ints | BucketedVectors, users: Ids, rng: NoiseRng) -> Totals:
        totals, rows = [], placed(items)
        for level, size in enumerate(self.space.sizes):
            total = np.zeros((size + 1, self.width), np.int64)
            np.add.at(total, rows.buckets[:, level], rows.values)
            totals.append(total[:-1])
        return Totals(np.concatenate(totals))

    def absorb(self, report: Totals) -> Totals:
        if report.vector.dtype != np.int64 or report.vector.shape != (sum(self.space.sizes), self.width):
            raise Refused("no encoder sends that")
        return report

    def noise(self, level: int, size: int, rng: NoiseRng) -> Ints:
        scale = self.scales[level] * 2.0**self.shift
        mine = rng.child("level", level)
        return mine.discrete_gaussian(scale, size) if self.gaussian else mine.discrete_laplace(scale, size)

    def decode(self, summary: Totals, rng: NoiseRng) -> Any:
        starts = np.cumsum([0, *self.space.sizes])
        noise = [
            self.noise(level, size * self.width, rng).reshape(size, self.width)
            for level, size in enumerate(self.space.sizes)
        ]
        values = ((summary.vector << self.shift) + np.concatenate(noise)) * (self.unit * 2.0**-self.shift)
        return self.table(values, starts)

    def table(self, values: Floats, starts: Ints) -> Any:
        return Noised(values, self.bound is None, starts, self.errors)


class _Oracle:
    """What honest oracles share: subclasses say how wide the noise is."""

    trust = Central
    channel: ClassVar[type[Channel]] = Channel
    gaussian: ClassVar[bool] = False

    def scales(self, space: Space, bound: Bound | None, budget: Budget) -> tuple[float, ...]:
        if self.gaussian:
            return (math.sqrt(space.levels) * (bound.l2 if bound else 1) / budget.mu,) * space.levels
        return (space.levels * (bound.l1 if bound else 1) / budget.epsilon,) * space.levels

    def made(self, space: Space, bound: Bound | None, budget: Budget, context: QuestionContext) -> Channel:
        scales = self.scales(space, bound, budget)
        shift = max(0, math.ceil(math.log2(2.0**20 / min(scales)))) if self.gaussian else 0
        return self.channel(budget, space, bound, scales, self.gaussian, context, shift)


@component
class HonestCounts(_Oracle):
    """Counts with discrete Laplace noise."""

    measure: ClassVar[Measure] = "pure"

    def open(self, space: Space, budget: Budget, context: QuestionContext) -> Channel:
        return self.made(space, None, budget, context)

    def variance(self, space: Space, budget: Budget, context: QuestionContext) -> float:
        return self.open(space, budget, context).errors[0] ** 2


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
        return self.open(space, budget, context, bound).errors[0] ** 2


@component
class HonestGaussianSums(HonestSums):
    """Sums with discrete Gaussian noise."""

    gaussian = True
    measure: ClassVar[Measure] = "gaussian"


@attrs.frozen(eq=False)
class Bits:
    """Reports: users (n,), and a bit for each of them and every bucket (n, buckets)."""

    users: Ids
    bits: Any

    def columns(self) -> dict[str, Any]:
        return {"users": self.users, "bits": self.bits}

    @classmethod
    def load(cls, columns: dict[str, Any]) -> Bits:
        return cls(columns["users"], columns["bits"])


@attrs.frozen(eq=False)
class Ones:
    """How many users sent a one for each bucket, and how many sent anything."""

    digest_tag = "tests.honest.Ones"

    ones: Ints
    users: int

    def merge(self, other: Ones) -> Ones:
        return Ones(self.ones + other.ones, self.users + other.users)


@attrs.frozen
class UnaryChannel:
    """Every user sends one bit per bucket, each flipped with probability 1 - keep."""

    space: Space
    budget: Budget
    rows: int
    per_bit: float

    @property
    def events(self) -> tuple[Event, ...]:
        return (Event("unary", self.budget),)

    @property
    def keep(self) -> float:
        return 1 / (1 + math.exp(-self.per_bit))

    def encode(self, items: Ints, users: Ids, rng: NoiseRng) -> Bits:
        bits = np.concatenate([items[:, [i]] == np.arange(n) for i, n in enumerate(self.space.sizes)], axis=1)
        flip = rng.words(users, bits.shape[1]) >= np.uint64(int(self.keep * 2.0**64))
        return Bits(users, (bits ^ flip).astype(np.uint8))

    def absorb(self, report: Bits) -> Ones:
        bits, users = report.bits, report.users
        if users.dtype != np.uint64 or users.ndim != 1 or bits.dtype != np.uint8:
            raise Refused("no encoder sends that")
        if bits.shape != (len(users), sum(self.space.sizes)) or (bits > 1).any():
            raise Refused("no encoder sends that")
        return Ones(bits.sum(axis=0, dtype=np.int64), len(users))

    def decode(self, summary: Ones, rng: NoiseRng) -> Noised:
        values = (summary.ones - summary.users * (1 - self.keep)) / (2 * self.keep - 1)
        error = math.sqrt(self.rows * self.keep * (1 - self.keep)) / (2 * self.keep - 1)
        starts = np.cumsum([0, *self.space.sizes])
        return Noised(values[:, None], True, starts, (error,) * self.space.levels)


@component
class UnaryCounts:
    """Counts by unary encoding, with symmetric flips."""

    trust = Local
    measure: ClassVar[Measure] = "pure"

    def per_bit(self, space: Space, budget: Budget) -> float:
        return budget.epsilon / (2 * space.levels)

    def open(self, space: Space, budget: Budget, context: QuestionContext) -> UnaryChannel:
        return UnaryChannel(space, budget, context.rows, self.per_bit(space, budget))

    def variance(self, space: Space, budget: Budget, context: QuestionContext) -> float:
        made = self.open(space, budget, context)
        return context.rows * made.keep * (1 - made.keep) / (2 * made.keep - 1) ** 2


@attrs.frozen(eq=False)
class HalvingTree:
    """Every level halves every cell along the next column of the lattice."""

    sides: Ints
    unit: float
    middle: Floats
    depth: int

    nested = True

    @property
    def space(self) -> Space:
        return Space(tuple(2**level for level in range(self.depth)), nested=True)

    def locate(self, rows: Ints) -> Ints:
        low, high = np.tile(-self.sides, (len(rows), 1)), np.tile(self.sides, (len(rows), 1))
        ids = [np.zeros(len(rows), np.int64)]
        for level in range(self.depth - 1):
            j = level % len(self.sides)
            half = (low[:, j] + high[:, j]) // 2
            right = rows[:, j] > half
            low[right, j], high[~right, j] = half[right], half[~right]
            ids.append(2 * ids[-1] + right)
        return np.stack(ids, axis=1)

    def grow(self, counts: Counts) -> Coreset:
        leaves = np.arange(2 ** (self.depth - 1))
        weights = counts.at(leaves, self.depth - 1)
        return Coreset(
            np.tile(self.middle, (len(leaves), 1)), weights, leaves=Leaves(np.full(len(leaves), self.depth - 1), leaves)
        )


@component
class Halving:
    """A tree of halvings."""

    depth: int = option(default=4, low=1, help="levels, the root included")

    def open(self, problem: Problem, seed: PublicRng) -> HalvingTree:
        domain = problem.domain
        return HalvingTree(domain.sides, domain.unit, domain.middle, self.depth)


@component
class Plain:
    """k-means by rounds of absolute updates from public starts."""

    counts: FrequencyOracle[T] = slot("discrete-laplace", help="how many rows are nearest to each centre")
    sums: VectorSumOracle[T] = slot("discrete-laplace", help="what they add up to")
    rounds: int = option(default=3, low=1, help="number of rounds")

    def cluster(self, problem: Problem, session: Session[Any], rng: PublicRng) -> Clustering:
        centers = self.start(problem, session, rng)
        for i in range(self.rounds):
            centers = self.step(problem, session, centers, problem.budget.over(self.rounds), i)
        return Clustering(centers)

    def start(self, problem: Problem, session: Session[Any], rng: PublicRng) -> Floats:
        return problem.domain.sample(rng.child("start").generator(), problem.k, 0.0)

    def step(self, problem: Problem, session: Session[Any], centers: Floats, budget: Budget, index: int) -> Floats:
        domain, every = problem.domain, np.arange(problem.k)
        near = NearestCenter(domain.snap(centers), domain.max_norm)
        per_count, per_sum = budget.split(1, 3)
        counts, sums = session.ask(
            count(near, oracle=self.counts, budget=per_count),
            vector_sum(Rows(near, Bound(domain.max_norm, domain.dimension)), oracle=self.sums, budget=per_sum),
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
