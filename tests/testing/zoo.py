"""Mechanisms that are broken on purpose, each in one way that was seen in living code or that a component can commit.

All of them claim the guarantee of the honest ones (Central; add-or-remove one row, or Local; replace one row). ``SPECIMENS`` says
which check must catch which.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import attrs
import numpy as np
from honest import (
    Bits,
    Channel,
    Chunks,
    FirstPoints,
    Halving,
    HalvingTree,
    HonestCounts,
    HonestGaussianCounts,
    HonestGaussianSums,
    HonestSums,
    Noised,
    Plain,
    Totals,
    UnaryChannel,
    UnaryCounts,
    _Oracle,
    nearest,
)
from undocumented import Undocumented

from cloister.core.budget import Budget, Event, Measure
from cloister.core.clustering import Clustering, Coreset, Problem
from cloister.core.components import Option, component, option
from cloister.core.encoding import absorb, encode_rows
from cloister.core.lattice import Bound
from cloister.core.nearest import NearestCenter, Rows
from cloister.core.questions import Placed, Round, Setting, Space, add_up, count
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.roles import Counts
from cloister.core.session import Session
from cloister.core.types import Floats, Ids, Ints

# ---- noise that is too small -----------------------------------------------------------------------------------------


class _Quieter(Channel):
    """Noise too small by 1.2, and the standard error that it should have."""

    def noise(self, level: int, size: int, rng: NoiseRng) -> Ints:
        return attrs.evolve(self, scales=tuple(s / 1.2 for s in self.scales)).plain(level, size, rng)

    def plain(self, level: int, size: int, rng: NoiseRng) -> Ints:
        return Channel.noise(self, level, size, rng)


class QuieterThanItSays(HonestCounts):
    channel = _Quieter


class QuieterSums(HonestGaussianSums):
    channel = _Quieter


class QuieterAndAdmitsIt(HonestCounts):
    """Noise too small by 1.2, with the standard error that it has."""

    def scales(self, space: Space, bound: Bound | None, budget: Budget) -> tuple[float, ...]:
        return tuple(s / 1.2 for s in super().scales(space, bound, budget))


class QuieterGaussianAndAdmitsIt(HonestGaussianSums):
    """Noise too small by 1.2, with the standard error that it has."""

    def scales(self, space: Space, bound: Bound | None, budget: Budget) -> tuple[float, ...]:
        return tuple(s / 1.2 for s in super().scales(space, bound, budget))


class _QuieterInSecret(Channel):
    def noise(self, level: int, size: int, rng: NoiseRng) -> Ints:
        return super().noise(level, size, rng) if rng.seeded else _Quieter.noise(self, level, size, rng)  # type: ignore[arg-type]

    plain = _Quieter.plain


class QuieterInSecret(HonestCounts):
    """The noise of tests is right, that of real runs too small by 1.2."""

    channel = _QuieterInSecret


class LevelsWithoutTheRoot(HonestCounts):
    """A tree's levels are counted without its root."""

    def scales(self, space: Space, bound: Bound | None, budget: Budget) -> tuple[float, ...]:
        return (max(1, space.levels - 1) / budget.epsilon,) * space.levels


class LevelsNotCounted(HonestGaussianCounts):
    """Every level gets the whole budget."""

    def scales(self, space: Space, bound: Bound | None, budget: Budget) -> tuple[float, ...]:
        return (1 / budget.mu,) * space.levels


class EpsilonPerCoordinate(HonestSums):
    """Every coordinate gets the whole epsilon: the L2 bound where the L1 bound belongs."""

    def scales(self, space: Space, bound: Bound | None, budget: Budget) -> tuple[float, ...]:
        assert bound is not None
        return (space.levels * bound.l2 / budget.epsilon,) * space.levels


class BoundPerCoordinate(HonestGaussianSums):
    """The L2 bound is taken for that of a typical coordinate."""

    def scales(self, space: Space, bound: Bound | None, budget: Budget) -> tuple[float, ...]:
        assert bound is not None
        return tuple(s / math.sqrt(bound.dimension) for s in super().scales(space, bound, budget))


class HalfTheSensitivity(HonestSums):
    """upper - lower mistaken for max(|lower|, |upper|), after shifting rows to [0, bound]: half of what a row can change."""

    def scales(self, space: Space, bound: Bound | None, budget: Budget) -> tuple[float, ...]:
        return tuple(s / 2 for s in super().scales(space, bound, budget))


def _shares(levels: int) -> tuple[float, float]:
    """(of each lower level, of the root): a quarter of the budget is the root's."""
    return 0.75 / max(1, levels - 1), 0.25


class SwappedShares(HonestCounts):
    """A budget split that is returned in one order and unpacked in another."""

    def scales(self, space: Space, bound: Bound | None, budget: Budget) -> tuple[float, ...]:
        of_root, of_others = _shares(space.levels + 3)
        return (1 / (of_root * budget.epsilon), *(1 / (of_others * budget.epsilon * 2) for _ in space.sizes[1:]))


class RhoForEpsilon(HonestCounts):
    """Reads the amount of any budget as epsilon."""

    def scales(self, space: Space, bound: Bound | None, budget: Budget) -> tuple[float, ...]:
        return (space.levels / budget.amount,) * space.levels


class _ShortTails(Channel):
    """Outliers are cut off."""

    def noise(self, level: int, size: int, rng: NoiseRng) -> Ints:
        most = int(3 * self.scales[level] * 2.0**self.shift)
        return np.clip(super().noise(level, size, rng), -most, most)


class ShortTails(HonestGaussianCounts):
    """Noise beyond three standard deviations is cut off: values beyond are certain to come from one of two neighbours."""

    channel = _ShortTails


class _Silent(Channel):
    """No noise at all, and it says so."""

    def noise(self, level: int, size: int, rng: NoiseRng) -> Ints:
        return np.zeros(size, np.int64)

    @property
    def errors(self) -> tuple[float, ...]:
        return (0.0,) * self.space.levels


class ExactUnderAPrivateName(HonestCounts):
    channel = _Silent


# ---- noise that depends on the data, on other noise, or on nothing ---------------------------------------------------


class _EmptySkipped(Channel):
    """An empty bucket is released as it is."""

    def decode(self, summary: Totals, rng: NoiseRng) -> Any:
        table: Any = super().decode(summary, rng)
        table._values[summary.vector[:, 0] == 0] = 0.0
        return table


class EmptyBucketsSkipped(HonestCounts):
    channel = _EmptySkipped


class _OccupiedOnly(Channel):
    """Buckets without a row are not released: their value is below any that is."""

    def decode(self, summary: Totals, rng: NoiseRng) -> Any:
        table: Any = super().decode(summary, rng)
        occupied = summary.vector.any(axis=1)
        table._values[~occupied] = table._values[occupied].min(initial=0.0)
        return table


class OccupiedOnly(HonestSums):
    channel = _OccupiedOnly


class _OneSeed(Channel):
    """Every level draws from the same seed."""

    def noise(self, level: int, size: int, rng: NoiseRng) -> Ints:
        return super().noise(0, size, rng)


class OneSeedForAllLevels(HonestCounts):
    channel = _OneSeed


class _Cancelling(Channel):
    """The second half of the noise takes back the first."""

    def noise(self, level: int, size: int, rng: NoiseRng) -> Ints:
        half = super().noise(level, (size + 1) // 2, rng)
        return np.concatenate([half, -half])[:size]


class CancellingNoise(HonestSums):
    channel = _Cancelling


class _Reusing(Channel):
    """Draws once, and keeps it for the next question of that size."""

    kept: ClassVar[dict[Any, Ints]] = {}

    def noise(self, level: int, size: int, rng: NoiseRng) -> Ints:
        key = (self.scales, level, size)
        if key not in self.kept:
            self.kept[key] = super().noise(level, size, rng)
        return self.kept[key]


class ReusesNoise(HonestCounts):
    channel = _Reusing


class _PublicNoise(Channel):
    """One seed for noise and for public choices."""

    def noise(self, level: int, size: int, rng: NoiseRng) -> Ints:
        return super().noise(level, size, NoiseRng(self.setting.seed))


class PublicNoise(HonestCounts):
    channel = _PublicNoise


class _OwnNoise(Channel):
    """NumPy's generator instead of the one that was handed in."""

    def noise(self, level: int, size: int, rng: NoiseRng) -> Ints:
        p = -math.expm1(-1 / self.scales[level])
        g = np.random.default_rng()
        return np.asarray(g.geometric(p, size) - g.geometric(p, size))


class OwnNoise(HonestCounts):
    channel = _OwnNoise


class _FloatNoise(Channel):
    """Real Laplace noise."""

    def decode(self, summary: Totals, rng: NoiseRng) -> Any:
        table: Any = super().decode(summary, rng)
        words = rng.child("fraction").words(np.arange(len(table._values), dtype=np.uint64), table._values.shape[1])
        table._values += (words / 2.0**64 - 0.5) * self.unit
        return table


class FloatNoise(HonestCounts):
    channel = _FloatNoise


# ---- what is declared ------------------------------------------------------------------------------------------------


class _Cheaper(Channel):
    """Declares half of what its noise costs."""

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(attrs.evolve(e, spent=self.budget.over(2)) for e in super().events)


class CheaperOnPaper(HonestCounts):
    channel = _Cheaper


class _Dearer(Channel):
    @property
    def events(self) -> tuple[Event, ...]:
        return (*super().events, *super().events)


class DearerThanItsBudget(HonestCounts):
    channel = _Dearer


class _Foreign(Channel):
    @property
    def events(self) -> tuple[Event, ...]:
        return (Event("foreign", Budget("zcdp", self.budget.amount / 100)),)


class ForeignMeasure(HonestCounts):
    """Declares rho when it is paid in epsilon."""

    channel = _Foreign


class _Undiscrete(Channel):
    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(attrs.evolve(e, touched=1) for e in super().events)


class TouchesMoreThanItSays(HonestGaussianSums):
    channel = _Undiscrete


class CoarserThanItSays(HonestGaussianSums):
    """Declares the sigma that it would have with 2^10 times finer steps."""

    def made(self, space: Space, bound: Bound | None, budget: Budget, setting: Setting) -> Channel:
        return _Coarser(**attrs.asdict(super().made(space, bound, budget, setting), recurse=False))


class _Coarser(Channel):
    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(attrs.evolve(e, sigma=e.sigma * 2**10) for e in super().events)


@attrs.frozen
class _Remembering(Channel):
    """Its digest tells how many rows it has seen."""

    seen: list[int] = attrs.field(factory=list)

    def encode(self, items: Ints | Placed, users: Ids, rng: NoiseRng) -> Totals:
        self.seen.append(len(users))
        return super().encode(items, users, rng)


class RemembersRows(HonestCounts):
    channel = _Remembering


class _Boastful(Channel):
    @property
    def errors(self) -> tuple[float, ...]:
        return tuple(e / 1.2 for e in super().errors)


class BetterOnPaper(HonestSums):
    """Its standard errors are too small by 1.2: methods would trust its answers too much."""

    channel = _Boastful


class WrongVariance(HonestCounts):
    """Forgets that two geometric variables make one two-sided one."""

    def variance(self, space: Space, budget: Budget, setting: Setting) -> float:
        return super().variance(space, budget, setting) / 2


@component
class NanPasses(HonestCounts):
    """A bound that is written ``value <= low``, which NaN passes."""

    step: float = attrs.field(default=1.0, metadata={"cloister": Option("a step", low=0.0, above=True)})

    def __attrs_post_init__(self) -> None:
        from cloister.core.errors import InvalidInput

        if self.step <= 0:
            raise InvalidInput("step must be positive")


@component
class Unexplained(HonestCounts):
    """An option without help."""

    step: int = attrs.field(default=1, metadata={"cloister": Option(" ")})


@component
class NotPlain(HonestCounts):
    """An option that no configuration file can say."""

    steps: tuple[int, ...] = option(default=(1, 2), help="steps")


@attrs.define(kw_only=True, eq=False)
class NotFrozen(_Oracle):
    """Its options can be changed behind a plan's back, and equal ones differ."""

    measure: ClassVar[Measure] = "pure"
    step: int = option(default=1, low=1, help="a step")

    def open(self, space: Space, budget: Budget, setting: Setting) -> Channel:
        return self.made(space, None, budget, setting)


class _Exactly(Channel):
    """Says exact, adds noise."""

    @property
    def errors(self) -> tuple[float, ...]:
        return (0.0,) * self.space.levels


@component
class NoisyExact(HonestCounts):
    """Exact counts, NOT private, and not exact."""

    channel = _Exactly
    measure: ClassVar[Measure] = "exact"

    def scales(self, space: Space, bound: Bound | None, budget: Budget) -> tuple[float, ...]:
        return (1.0,) * space.levels


# ---- rows, reports, tables -------------------------------------------------------------------------------------------


class _Centred(Channel):
    """Sums relative to the batch's own mean, which is added back."""

    def encode(self, items: Any, users: Ids, rng: NoiseRng) -> Totals:
        middle = items.values.mean(axis=0).astype(np.int64) if len(items.values) else np.zeros(self.width, np.int64)
        return super().encode(Placed(items.buckets, items.values - middle), users, rng)


class CentredOnTheBatch(HonestSums):
    """Centring read off the data."""

    channel = _Centred


class _Dropping(Channel):
    """Every tenth user is left out."""

    def encode(self, items: Any, users: Ids, rng: NoiseRng) -> Totals:
        kept = users % 10 != 0
        return super().encode(items[kept], users[kept], rng)


class DropsUsers(HonestCounts):
    channel = _Dropping


class _FirstLevel(Channel):
    """Leaves a row out of all levels if it is in no bucket of the first."""

    def encode(self, items: Any, users: Ids, rng: NoiseRng) -> Totals:
        return super().encode(items[items[:, 0] >= 0], users, rng)


class DropsRowsThatSkipALevel(HonestCounts):
    channel = _FirstLevel


@attrs.frozen(eq=False)
class _InPlace(Totals):
    def merge(self, other: Totals) -> Totals:
        self.vector[...] += other.vector
        return self


class _MergingInPlace(Channel):
    def encode(self, items: Ints | Placed, users: Ids, rng: NoiseRng) -> Totals:
        return _InPlace(super().encode(items, users, rng).vector)


class MergesInPlace(HonestCounts):
    """A merge that changes its input."""

    channel = _MergingInPlace


class _Decaying(Channel):
    """Decoding adds the noise to the summary itself."""

    def decode(self, summary: Totals, rng: NoiseRng) -> Any:
        table = super().decode(summary, rng)
        summary.vector[...] += 1
        return table


class DecodesInPlace(HonestCounts):
    channel = _Decaying


class _Anything(Channel):
    def absorb(self, report: Totals) -> Totals:
        return report


class AbsorbsAnything(HonestCounts):
    channel = _Anything


class _NoEmpty(Channel):
    def encode(self, items: Any, users: Ids, rng: NoiseRng) -> Totals:
        items.max()
        return super().encode(items, users, rng)


class FailsOnNoRows(HonestCounts):
    channel = _NoEmpty


class _Blinking(Noised):
    """Adds a little more noise at every look."""

    def at(self, ids: Ints, level: int = 0) -> Floats:
        return super().at(ids, level) + np.arange(len(ids))


class _BlinkingChannel(Channel):
    def table(self, values: Floats, starts: Ints) -> Any:
        return _Blinking(values, self.bound is None, starts, self.errors)


class AnswersAnew(HonestCounts):
    channel = _BlinkingChannel


class _Flat(Noised):
    """Knows one level."""

    def at(self, ids: Ints, level: int = 0) -> Floats:
        return super().at(ids, (0,)[level])


class _FlatChannel(Channel):
    def table(self, values: Floats, starts: Ints) -> Any:
        return _Flat(values, self.bound is None, starts, self.errors)


class FirstLevelOnly(HonestCounts):
    channel = _FlatChannel


class _Doubling(Channel):
    def encode(self, items: Any, users: Ids, rng: NoiseRng) -> Totals:
        return super().encode(Placed(items.buckets, items.values * 2), users, rng)


class DoublesVectors(HonestSums):
    """Adds every vector twice, after it was clipped."""

    channel = _Doubling


@attrs.frozen
class _Printing:
    """A table that is plain data: it pickles and prints."""

    values: Floats
    starts: Ints
    errors: tuple[float, ...]

    def at(self, ids: Ints, level: int = 0) -> Floats:
        return np.asarray(self.values[self.starts[level] + ids, 0])

    def standard_error(self, ids: Ints, level: int = 0) -> Floats:
        return np.full(len(ids), self.errors[level])


class _PrintingChannel(Channel):
    def table(self, values: Floats, starts: Ints) -> Any:
        return _Printing(values, starts, self.errors)


class TablesTravel(HonestCounts):
    channel = _PrintingChannel


class _Reading(Noised):
    """Refuses to pickle, but prints."""

    def __repr__(self) -> str:
        return f"table({self._values[:3]})"


class _ReadingChannel(Channel):
    def table(self, values: Floats, starts: Ints) -> Any:
        return _Reading(values, self.bound is None, starts, self.errors)


class TablesPrint(HonestCounts):
    channel = _ReadingChannel


# ---- local -----------------------------------------------------------------------------------------------------------


class WrongFlip(UnaryCounts):
    """Unary encoding that flips with the whole epsilon per bit, though two bits differ."""

    def per_bit(self, space: Space, budget: Budget) -> float:
        return budget.epsilon / space.levels


class _SilentUsers(UnaryChannel):
    """Users in no bucket send nothing."""

    def encode(self, items: Ints, users: Ids, rng: NoiseRng) -> Bits:
        here = (items >= 0).any(axis=1)
        return super().encode(items[here], users[here], rng)


class SilentUsers(UnaryCounts):
    def open(self, space: Space, budget: Budget, setting: Setting) -> UnaryChannel:
        return _SilentUsers(space, budget, setting.rows, self.per_bit(space, budget))


class _InRowOrder(UnaryChannel):
    """Draws belong to a row's position in its chunk."""

    def encode(self, items: Ints, users: Ids, rng: NoiseRng) -> Bits:
        return super().encode(items, np.arange(len(users), dtype=np.uint64), rng)


class DrawsInRowOrder(UnaryCounts):
    def open(self, space: Space, budget: Budget, setting: Setting) -> UnaryChannel:
        return _InRowOrder(space, budget, setting.rows, self.per_bit(space, budget))


# ---- bucketings, vectors, trees --------------------------------------------------------------------------------------


@attrs.frozen(eq=False)
class _Cells:
    centers: Ints
    reach: int

    @property
    def space(self) -> Space:
        return Space((len(self.centers),))


def _products(rows: Any, places: Any) -> Any:
    """rows @ places.T, added up in an order that depends on the batch's size, as BLAS does (written out, so that this specimen is
    broken on every machine)."""
    columns = range(rows.shape[1]) if len(rows) == 1 else reversed(range(rows.shape[1]))
    total = np.zeros((len(rows), len(places)), rows.dtype)
    for j in columns:
        total += rows[:, j, None] * places[:, j]
    return total


class _Float32(_Cells):
    """A matrix product in single precision."""

    def locate(self, rows: Ints) -> Ints:
        points, places = rows.astype(np.float32), self.centers.astype(np.float32)
        return ((places**2).sum(axis=1) - 2 * _products(points, places)).argmin(axis=1)[:, None]


class _Float64(_Cells):
    """A matrix product with centres that are not on the lattice."""

    def locate(self, rows: Ints) -> Ints:
        points, places = rows.astype(np.float64), self.centers / 3.0
        return ((places**2).sum(axis=1) - 2 * _products(points, places)).argmin(axis=1)[:, None]


class _MeanCentred(_Cells):
    """Bounds read off the data: cells are laid around the batch's own mean."""

    def locate(self, rows: Ints) -> Ints:
        middle = rows.mean(axis=0).astype(np.int64) if len(rows) else 0
        return NearestCenter(self.centers, self.reach).locate(rows - middle)


class _LastTie(_Cells):
    def locate(self, rows: Ints) -> Ints:
        turned = NearestCenter(self.centers[::-1].copy(), self.reach).locate(rows)
        return len(self.centers) - 1 - turned


class _OneTooMany(_Cells):
    @property
    def space(self) -> Space:
        return Space((len(self.centers) - 1,))

    def locate(self, rows: Ints) -> Ints:
        return NearestCenter(self.centers, self.reach).locate(rows)


@attrs.frozen(eq=False)
class _Addressed(_Cells):
    """A digest that depends on the process."""

    @property
    def space(self) -> Space:
        return Space((len(self.centers),))

    name: int = attrs.field(factory=lambda: hash("cells"))

    def locate(self, rows: Ints) -> Ints:
        return NearestCenter(self.centers, self.reach).locate(rows)

    def __reduce__(self) -> Any:
        return type(self), (self.centers, self.reach)


def _cells(kind: type[_Cells]) -> Any:
    def make(domain: Any, rng: PublicRng) -> _Cells:
        g = rng.generator()
        centers = domain.sample(g, 6, 0.0) if kind is _Float32 else domain.real(nearest(domain, rng).centers)
        return kind(domain.snap(centers), domain.reach)

    make.__name__ = kind.__name__.strip("_")
    return make


def long_vectors(domain: Any, rng: PublicRng) -> Rows:
    """The bound of one column for vectors of all of them."""
    return Rows(nearest(domain, rng), Bound(int(domain.sides.min()) // 2 + 1, domain.dimension))


@attrs.frozen(eq=False)
class _BatchVectors:
    cells: NearestCenter
    bound: Bound

    def values(self, rows: Ints, buckets: Ints) -> Ints:
        return rows - rows.max(axis=0, initial=0)


def batch_vectors(domain: Any, rng: PublicRng) -> _BatchVectors:
    """Vectors relative to the batch's own maximum."""
    return _BatchVectors(nearest(domain, rng), Bound(4 * domain.reach, domain.dimension))


class _EmptyTree(HalvingTree):
    def grow(self, counts: Counts) -> Coreset:
        grown = super().grow(counts)
        return Coreset(grown.points[grown.weights > 0], grown.weights[grown.weights > 0])


@component
class GrowsNothing(Halving):
    """No point at all where no count is positive."""

    def open(self, problem: Problem, seed: PublicRng) -> HalvingTree:
        tree = super().open(problem, seed)
        return _EmptyTree(tree.sides, tree.unit, tree.middle, tree.depth)


class _Unnested(HalvingTree):
    def locate(self, rows: Ints) -> Ints:
        ids = super().locate(rows)
        ids[:, 1] = 1 - ids[:, 1]
        return ids


@component
class ChildrenElsewhere(Halving):
    """Says that it is nested, and is not."""

    def open(self, problem: Problem, seed: PublicRng) -> HalvingTree:
        tree = super().open(problem, seed)
        return _Unnested(tree.sides, tree.unit, tree.middle, tree.depth)


# ---- methods ---------------------------------------------------------------------------------------------------------


class TriesAgain(Plain):
    """Keeps the best of several tries without paying for the choice: asks once more when a cluster came out small."""

    def step(self, problem: Problem, session: Session[Any], centers: Floats, budget: Budget, index: int) -> Floats:
        near = NearestCenter(problem.domain.snap(centers), problem.domain.reach)
        (counts,) = session.ask(count(near, via=self.counts, spend=budget.over(2)))
        if counts.at(np.arange(problem.k)).min() < 0:
            session.ask(count(near, via=self.counts, spend=budget.over(2)))
        return centers


class StopsEarly(Plain):
    """A round less where centres no longer move."""

    def cluster(self, problem: Problem, session: Session[Any], rng: PublicRng) -> Clustering:
        centers = self.start(problem, session, rng)
        for i in range(self.rounds):
            moved = self.step(problem, session, centers, problem.budget.over(self.rounds), i)
            if np.abs(moved - centers).max() > problem.domain.diameter / 4:
                break
            centers = moved
        return Clustering(centers)


def _shares_of(budget: Budget, columns: int) -> tuple[Budget, Budget]:
    """(of the counts, of one column's sums)."""
    per_count, per_sums = budget.split(9, 1)
    return per_count, per_sums.over(columns)


class SwappedSplit(Plain):
    """Asks a sum per column, and unpacks the split of the budget in the wrong order."""

    def step(self, problem: Problem, session: Session[Any], centers: Floats, budget: Budget, index: int) -> Floats:
        domain = problem.domain
        near = NearestCenter(domain.snap(centers), domain.reach)
        per_sum, per_count = _shares_of(budget, domain.dimension)
        vectors = Rows(near, Bound(domain.reach, domain.dimension))
        sums = [add_up(vectors, via=self.sums, spend=per_sum) for _ in range(domain.dimension)]
        session.ask(count(near, via=self.counts, spend=per_count), *sums)
        return centers


@component
class _Bare(HonestCounts):
    """Exact counts. NOT private."""

    channel = _Silent
    measure: ClassVar[Measure] = "exact"

    def scales(self, space: Space, bound: Bound | None, budget: Budget) -> tuple[float, ...]:
        return (1.0,) * space.levels


class LastRoundUnnoised(Plain):
    """The last round's counts are exact."""

    def step(self, problem: Problem, session: Session[Any], centers: Floats, budget: Budget, index: int) -> Floats:
        if index < self.rounds - 1:
            return super().step(problem, session, centers, budget, index)
        near = NearestCenter(problem.domain.snap(centers), problem.domain.reach)
        session.ask(count(near, via=_Bare(), spend=Budget("exact", math.inf)))
        return centers


class StartsAtARow(Plain):
    """The first centres are rows."""

    def start(self, problem: Problem, session: Session[Any], rng: PublicRng) -> Floats:
        population: Any = session._population
        if population is None:
            return super().start(problem, session, rng)
        return problem.domain.truncate(population.rows[: problem.k])


class AsksLocally(Plain):
    """Brings an oracle of another trust model along."""

    def start(self, problem: Problem, session: Session[Any], rng: PublicRng) -> Floats:
        centers = super().start(problem, session, rng)
        near = NearestCenter(problem.domain.snap(centers), problem.domain.reach)
        session.ask(count(near, via=UnaryCounts(), spend=Budget("pure", 0.01)))
        return centers


class GathersAgain(Plain):
    """Goes to the population behind the session's back."""

    def moved(self, problem: Problem, total: Floats, size: Floats) -> Floats:
        return super().moved(problem, total, size)

    def step(self, problem: Problem, session: Session[Any], centers: Floats, budget: Budget, index: int) -> Floats:
        moved = super().step(problem, session, centers, budget, index)
        if session._population is not None:
            session._population.gather(session.rounds[-1], NoiseRng.secret())
        return moved


class GlobalCoins(Plain):
    """Starts from NumPy's global generator."""

    def start(self, problem: Problem, session: Session[Any], rng: PublicRng) -> Floats:
        g = np.random.default_rng(np.random.randint(2**31))
        return problem.domain.sample(g, problem.k, 0.0)


class Remembers(Plain):
    """Starts where the last run ended."""

    last: ClassVar[dict[Any, Floats]] = {}

    def start(self, problem: Problem, session: Session[Any], rng: PublicRng) -> Floats:
        return self.last.get(problem, super().start(problem, session, rng))

    def cluster(self, problem: Problem, session: Session[Any], rng: PublicRng) -> Clustering:
        found = super().cluster(problem, session, rng)
        self.last[problem] = found.centers
        return found


class DividesByCounts(Plain):
    """Divides by whatever the counts are."""

    def moved(self, problem: Problem, total: Floats, size: Floats) -> Floats:
        with np.errstate(all="ignore"):
            return total / size[:, None] + problem.domain.middle


class LeavesTheDomain(Plain):
    """Negative and tiny counts carry centres anywhere."""

    def moved(self, problem: Problem, total: Floats, size: Floats) -> Floats:
        return total / np.where(size == 0, 1.0, size)[:, None] + problem.domain.middle


class HandsOutTables(Plain):
    """A table among the details of the result."""

    def cluster(self, problem: Problem, session: Session[Any], rng: PublicRng) -> Clustering:
        near = NearestCenter(problem.domain.snap(self.start(problem, session, rng)), problem.domain.reach)
        (counts,) = session.ask(count(near, via=self.counts, spend=problem.budget))
        return Clustering(self.start(problem, session, rng), None, {"counts": counts})


# ---- solvers, populations --------------------------------------------------------------------------------------------


class PositiveOnly(FirstPoints):
    """Fails where no weight is positive."""

    def chosen(self, points: Floats, weights: Floats, k: int, rng: PublicRng) -> Floats:
        heavy = points[weights > 0]
        return heavy[np.arange(k) % len(heavy)]


class TooFew(FirstPoints):
    """No more centres than points."""

    def chosen(self, points: Floats, weights: Floats, k: int, rng: PublicRng) -> Floats:
        return points[:k]


class GlobalStarts(FirstPoints):
    def chosen(self, points: Floats, weights: Floats, k: int, rng: PublicRng) -> Floats:
        return points[np.random.randint(0, len(points), k)]


class ClipsWeights(FirstPoints):
    """Makes weights positive in the caller's array."""

    def chosen(self, points: Floats, weights: Floats, k: int, rng: PublicRng) -> Floats:
        np.maximum(weights, 0.0, out=weights)
        return super().chosen(points, weights, k, rng)


class LosesTheLastChunk(Chunks):
    """Only whole chunks are read."""

    def __init__(self, rows: Floats) -> None:
        super().__init__(rows[: max(1000, len(rows) // 1000 * 1000 - 1000)] if len(rows) > 1 else rows)


class NanIsZero(Chunks):
    """Missing cells become zero."""

    def encoded(self, round: Round[Any], start: int, rng: NoiseRng) -> tuple[Any, ...]:
        some = np.nan_to_num(self.rows[start : start + 1000], posinf=0.0, neginf=0.0)
        return absorb(round, encode_rows(round, some, self.users(start, len(some)), rng))


class NumbersPerChunk(Chunks):
    """Users are numbered anew in every chunk."""

    def users(self, start: int, n: int) -> Ids:
        return np.arange(n, dtype=np.uint64)


class NewNumbers(Chunks):
    """Users get other numbers in every round."""

    def users(self, start: int, n: int) -> Ids:
        self.first = getattr(self, "first", 0) + 10**6
        return np.arange(self.first + start, self.first + start + n, dtype=np.uint64)


class NeedsRows(Chunks):
    def __init__(self, rows: Floats) -> None:
        super().__init__(rows - rows.min(axis=0) * 0.0)


class ReadsOnce(Chunks):
    """An iterator that is empty the second time."""

    def gather(self, round: Round[Any], rng: NoiseRng) -> tuple[Any, ...]:
        found = super().gather(round, rng)
        self.rows = self.rows[:0]
        return found


def _method(kind: type[Any]) -> Any:
    return kind(counts=HonestCounts(), sums=HonestSums())


# (specimen, role for makers, the check that catches it)
SPECIMENS: tuple[tuple[Any, str | None, str], ...] = (
    (QuieterThanItSays(), None, "variance_is_as_declared"),
    (QuieterThanItSays(), None, "empty_buckets_get_the_same_noise"),
    (QuieterThanItSays(), None, "neighbours_are_hard_to_tell_apart"),
    (QuieterSums(), None, "variance_is_as_declared"),
    (QuieterAndAdmitsIt(), None, "neighbours_are_hard_to_tell_apart"),
    (QuieterGaussianAndAdmitsIt(), None, "neighbours_are_hard_to_tell_apart"),
    (QuieterGaussianAndAdmitsIt(), None, "one_row_moves_no_mean_too_far"),
    (QuieterInSecret(), None, "secret_noise_has_the_declared_law"),
    (LevelsWithoutTheRoot(), None, "neighbours_are_hard_to_tell_apart"),
    (LevelsNotCounted(), None, "neighbours_are_hard_to_tell_apart"),
    (LevelsNotCounted(), None, "one_row_moves_no_mean_too_far"),
    (EpsilonPerCoordinate(), None, "neighbours_are_hard_to_tell_apart"),
    (BoundPerCoordinate(), None, "one_row_moves_no_mean_too_far"),
    (HalfTheSensitivity(), None, "neighbours_are_hard_to_tell_apart"),
    (SwappedShares(), None, "neighbours_are_hard_to_tell_apart"),
    (RhoForEpsilon(), None, "neighbours_are_hard_to_tell_apart"),
    (RhoForEpsilon(), None, "budgets_in_a_foreign_measure_are_refused"),
    (ShortTails(), None, "neighbours_are_hard_to_tell_apart"),
    (ExactUnderAPrivateName(), None, "one_row_moves_no_mean_too_far"),
    (ExactUnderAPrivateName(), None, "noise_comes_from_the_rng_it_is_given"),
    (EmptyBucketsSkipped(), None, "empty_buckets_get_the_same_noise"),
    (OccupiedOnly(), None, "empty_buckets_get_the_same_noise"),
    (OneSeedForAllLevels(), None, "noises_are_independent"),
    (CancellingNoise(), None, "noises_are_independent"),
    (PublicNoise(), None, "noise_comes_from_the_rng_it_is_given"),
    (PublicNoise(), None, "noises_are_independent"),
    (OwnNoise(), None, "noise_comes_from_the_rng_it_is_given"),
    (FloatNoise(), None, "noise_is_discrete"),
    (CheaperOnPaper(), None, "neighbours_are_hard_to_tell_apart"),
    (DearerThanItsBudget(), None, "events_cover_the_budget_and_no_more"),
    (ForeignMeasure(), None, "events_cover_the_budget_and_no_more"),
    (TouchesMoreThanItSays(), None, "discreteness_is_declared_truthfully"),
    (CoarserThanItSays(), None, "discreteness_is_declared_truthfully"),
    (RemembersRows(), None, "what_it_costs_is_known_before_any_row"),
    (BetterOnPaper(), None, "variance_is_as_declared"),
    (WrongVariance(), None, "variance_is_as_declared"),
    (NotPlain(), None, "options_can_be_given_as_text"),
    (NotFrozen(), None, "it_is_frozen_and_equal_to_its_rebuilt_self"),
    (Undocumented(), None, "the_guarantee_is_documented"),
    (NoisyExact(), None, "exact_answers_are_exact"),
    (ReusesNoise(), None, "two_questions_have_independent_noise"),
    (FirstLevelOnly(), None, "sessions_answer_real_ids_only"),
    (DoublesVectors(), None, "a_vector_beyond_the_bound_is_clipped"),
    (_method(AsksLocally), None, "one_trust_model_from_start_to_end"),
    (_method(StartsAtARow), None, "replay_needs_no_rows"),
    (NanPasses(), None, "options_keep_to_their_bounds"),
    (Unexplained(), None, "every_option_and_slot_is_explained"),
    (CentredOnTheBatch(), None, "rows_count_the_same_in_any_chunk_and_order"),
    (DropsUsers(), None, "bias_is_as_declared"),
    (DropsRowsThatSkipALevel(), None, "bias_is_as_declared"),
    (MergesInPlace(), None, "merging_is_associative_and_commutative"),
    (DecodesInPlace(), None, "merging_is_associative_and_commutative"),
    (AbsorbsAnything(), None, "absorb_refuses_what_no_encoder_sends"),
    (FailsOnNoRows(), None, "no_rows_are_valid_rows"),
    (AnswersAnew(), None, "a_bucket_always_answers_the_same"),
    (TablesTravel(), None, "tables_neither_pickle_nor_print"),
    (TablesPrint(), None, "tables_neither_pickle_nor_print"),
    (WrongFlip(), None, "one_report_hides_its_row"),
    (SilentUsers(), None, "one_report_hides_its_row"),
    (DrawsInRowOrder(), None, "rows_count_the_same_in_any_chunk_and_order"),
    (_cells(_Float32), "Bucketing", "a_row_falls_in_the_same_bucket_in_any_batch"),
    (_cells(_Float64), "Bucketing", "a_row_falls_in_the_same_bucket_in_any_batch"),
    (_cells(_MeanCentred), "Bucketing", "a_row_falls_in_the_same_bucket_in_any_batch"),
    (_cells(_LastTie), "Bucketing", "ids_are_those_of_the_nearest_centers"),
    (_cells(_OneTooMany), "Bucketing", "ids_are_within_the_space"),
    (_cells(_Addressed), "Bucketing", "its_digest_travels"),
    (long_vectors, "Vectors", "vectors_are_bounded_and_of_their_row_alone"),
    (batch_vectors, "Vectors", "vectors_are_bounded_and_of_their_row_alone"),
    (GrowsNothing(), None, "any_counts_grow_a_coreset"),
    (ChildrenElsewhere(), None, "children_are_in_their_parents"),
    (_method(TriesAgain), None, "the_schedule_does_not_depend_on_answers"),
    (_method(StopsEarly), None, "the_schedule_does_not_depend_on_answers"),
    (_method(SwappedSplit), None, "all_rounds_together_keep_the_budget"),
    (_method(LastRoundUnnoised), None, "all_rounds_together_keep_the_budget"),
    (_method(StartsAtARow), None, "rows_are_reached_by_asking_only"),
    (_method(GathersAgain), None, "rows_are_reached_by_asking_only"),
    (_method(GlobalCoins), None, "equal_answers_give_equal_centers"),
    (_method(Remembers), None, "equal_answers_give_equal_centers"),
    (_method(DividesByCounts), None, "any_answers_give_centers_inside_the_domain"),
    (_method(LeavesTheDomain), None, "any_answers_give_centers_inside_the_domain"),
    (_method(HandsOutTables), None, "any_answers_give_centers_inside_the_domain"),
    (PositiveOnly(), None, "any_released_points_give_k_finite_centers"),
    (TooFew(), None, "any_released_points_give_k_finite_centers"),
    (GlobalStarts(), None, "the_same_points_and_key_give_the_same_centers"),
    (ClipsWeights(), None, "points_and_weights_are_left_alone"),
    (LosesTheLastChunk, "Population", "gathering_is_encoding_all_rows_at_once"),
    (NanIsZero, "Population", "unusable_rows_are_dropped_one_by_one"),
    (NumbersPerChunk, "Population", "users_keep_their_numbers"),
    (NewNumbers, "Population", "users_keep_their_numbers"),
    (NeedsRows, "Population", "no_rows_are_a_population"),
    (ReadsOnce, "Population", "gathering_again_reads_the_same_rows"),
)
