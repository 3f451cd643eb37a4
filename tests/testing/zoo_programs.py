"""Methods, solvers and populations that read, spend or remember what they must not."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs
import numpy as np

from cloister.core.buckets import Space
from cloister.core.budget import Budget
from cloister.core.clustering import Clustering, Problem
from cloister.core.encoding import absorb, encode_rows
from cloister.core.errors import InvalidInput
from cloister.core.lattice import Bound
from cloister.core.nearest import NearestCenter
from cloister.core.questions import Round, Rows, count, vector_sum
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.session import Session
from cloister.core.types import Floats, Ids, Ints
from tests.testing.honest import (
    Chunks,
    FirstPoints,
    Plain,
    UnaryCounts,
)


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


class AsksAboutItsChoice(Plain):
    """Chooses the number of centres, and then asks about no more than those."""

    chooses_k = True

    def cluster(self, problem: Problem, session: Session[Any], rng: PublicRng) -> Clustering:
        centers = self.start(problem, session, rng)
        near = NearestCenter(problem.domain.snap(centers), problem.domain.max_norm)
        (counts,) = session.ask(count(near, oracle=self.counts, budget=problem.budget.over(2)))
        if problem.fewest is None:
            return Clustering(centers)
        k = min(problem.k, problem.fewest + int((counts.at(np.arange(problem.k)) > 0).sum()))
        near = NearestCenter(problem.domain.snap(centers[:k]), problem.domain.max_norm)
        session.ask(count(near, oracle=self.counts, budget=problem.budget.over(2)))
        return Clustering(centers[:k], details={"curve": {"k": [k], "costs": [0.0], "suggested": k, "why": "counts"}})


class SaysAnotherNumber(AsksAboutItsChoice):
    """Returns all centres, whatever it suggests."""

    def cluster(self, problem: Problem, session: Session[Any], rng: PublicRng) -> Clustering:
        centers = self.start(problem, session, rng)
        near = NearestCenter(problem.domain.snap(centers), problem.domain.max_norm)
        session.ask(count(near, oracle=self.counts, budget=problem.budget))
        return Clustering(centers, details={"curve": {"k": [2], "costs": [0.0], "suggested": 2, "why": "always"}})


def _shares_of(budget: Budget, columns: int) -> tuple[Budget, Budget]:
    """(of the counts, of one column's sums)."""
    per_count, per_sums = budget.split(9, 1)
    return per_count, per_sums.over(columns)


class BudgetOfThreeRounds(Plain):
    """Every round spends a third of the budget, however many there are: right by default."""

    def cluster(self, problem: Problem, session: Session[Any], rng: PublicRng) -> Clustering:
        centers = self.start(problem, session, rng)
        for i in range(self.rounds):
            centers = self.step(problem, session, centers, problem.budget.over(3), i)
        return Clustering(centers)


class SwappedSplit(Plain):
    """Asks a sum per column, and unpacks the split of the budget in the wrong order."""

    def step(self, problem: Problem, session: Session[Any], centers: Floats, budget: Budget, index: int) -> Floats:
        domain = problem.domain
        near = NearestCenter(domain.snap(centers), domain.max_norm)
        per_sum, per_count = _shares_of(budget, domain.dimension)
        vectors = Rows(near, Bound(domain.max_norm, domain.dimension))
        sums = [vector_sum(vectors, oracle=self.sums, budget=per_sum) for _ in range(domain.dimension)]
        session.ask(count(near, oracle=self.counts, budget=per_count), *sums)
        return centers


@attrs.frozen(eq=False)
class _FromTheirMean(Rows):
    """Rows relative to the mean of the batch that they came in."""

    def values(self, rows: Ints, buckets: Ints) -> Ints:
        return rows - rows.mean(axis=0).astype(np.int64) if len(rows) else rows


@attrs.frozen(eq=False)
class _AllOrNone:
    """One bucket, where every row is that a batch has, if none of them is in the last tenth of the domain."""

    sides: Ints

    space = Space((1,))

    def locate(self, rows: Ints) -> Ints:
        return np.full((len(rows), 1), -1 if (rows[:, 0] > self.sides[0] * 4 // 5).any() else 0)


class CentresOnTheBatch(Plain):
    """Brings vectors of its own, which look at the other rows."""

    def step(self, problem: Problem, session: Session[Any], centers: Floats, budget: Budget, index: int) -> Floats:
        domain = problem.domain
        near = NearestCenter(domain.snap(centers), domain.max_norm)
        if index:
            vectors = _FromTheirMean(near, Bound(2 * domain.max_norm, domain.dimension))
            session.ask(vector_sum(vectors, oracle=self.sums, budget=budget))
        else:
            session.ask(count(near, oracle=self.counts, budget=budget))
        return centers


class TestsTheBatch(Plain):
    """Brings a bucketing of its own, which looks at all rows: one row moves every count."""

    def step(self, problem: Problem, session: Session[Any], centers: Floats, budget: Budget, index: int) -> Floats:
        session.ask(count(_AllOrNone(problem.domain.sides), oracle=self.counts, budget=budget))
        return centers


class StartsAtARow(Plain):
    """The first centres are rows."""

    def start(self, problem: Problem, session: Session[Any], rng: PublicRng) -> Floats:
        population: Any = session._population
        if population is None:
            return super().start(problem, session, rng)
        return problem.domain.truncate(population.rows[: problem.k])


class BringsItsOwnNoise(Plain):
    """The answers' noise is one that it knows."""

    def start(self, problem: Problem, session: Session[Any], rng: PublicRng) -> Floats:
        session._noise = NoiseRng.for_tests(7)
        return super().start(problem, session, rng)


@attrs.frozen(eq=False)
class _Keeping:
    """One bucket for everybody, which keeps whom it sees, for all of its kind."""

    kept: ClassVar[Any] = []

    space = Space((1,))
    digest_tag = "tests.zoo.Keeping"

    def locate(self, rows: Ints) -> Ints:
        self.kept.extend(rows)
        return np.zeros((len(rows), 1), np.int64)


class KeepsTheLastRows(Plain):
    """The centres are the rows that its bucketing saw last, in whatever run: a replay in this process gives them
    again."""

    def cluster(self, problem: Problem, session: Session[Any], rng: PublicRng) -> Clustering:
        centers = self.start(problem, session, rng)
        session.ask(count(_Keeping(), oracle=self.counts, budget=problem.budget))
        last = problem.domain.real(np.array(_Keeping.kept[::-1]).reshape(-1, problem.domain.dimension))
        return Clustering(np.concatenate([last, centers])[: problem.k])


class AsksOnceMore(Plain):
    """A round more where the answers are real, and not those of a forecast."""

    def cluster(self, problem: Problem, session: Session[Any], rng: PublicRng) -> Clustering:
        found = super().cluster(problem, session, rng)
        if not session._forecasting:
            self.step(problem, session, found.centers, problem.budget, self.rounds)
        return found


class AsksLocally(Plain):
    """Brings an oracle of another trust model along."""

    def start(self, problem: Problem, session: Session[Any], rng: PublicRng) -> Floats:
        centers = super().start(problem, session, rng)
        near = NearestCenter(problem.domain.snap(centers), problem.domain.max_norm)
        session.ask(count(near, oracle=UnaryCounts(), budget=Budget("pure", 0.01)))
        return centers


class GlobalCoins(Plain):
    """Starts from NumPy's global generator."""

    def start(self, problem: Problem, session: Session[Any], rng: PublicRng) -> Floats:
        g = np.random.default_rng(np.random.randint(2**31))
        return problem.domain.sample(g, problem.k, 0.0)


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
        near = NearestCenter(problem.domain.snap(self.start(problem, session, rng)), problem.domain.max_norm)
        (counts,) = session.ask(count(near, oracle=self.counts, budget=problem.budget))
        return Clustering(self.start(problem, session, rng), None, {"counts": counts})


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


class NewNumbers(Chunks):
    """Users get other numbers in every round."""

    def users(self, start: int, n: int) -> Ids:
        self.first = getattr(self, "first", 0) + 10**6
        return np.arange(self.first + start, self.first + start + n, dtype=np.uint64)


class NumbersByRank(Chunks):
    """Users are numbered in the order of their cells, which is the same in every round."""

    def __init__(self, rows: Floats) -> None:
        super().__init__(rows[np.lexsort(rows.T[::-1])])


class NumbersWithoutNames(Chunks):
    """Users are numbered by the order in which an engine gave their rows."""

    has_users = False

    def number_by_name(self) -> None:
        raise InvalidInput("rows name no users")


class NeedsRows(Chunks):
    def __init__(self, rows: Floats) -> None:
        super().__init__(rows - rows.min(axis=0) * 0.0)


class TakesAnyNumber(Chunks):
    """Its check passes however many rows it has."""

    def check(self, most_rows: int = 0) -> None:
        pass


class CountsEveryRow(Chunks):
    """Its people are all its rows, those too that no answer counts."""

    @property
    def people(self) -> int:
        return len(self.rows)


class ReadsOnce(Chunks):
    """An iterator that is empty the second time."""

    def gather(self, round: Round[Any], rng: NoiseRng) -> tuple[Any, ...]:
        found = super().gather(round, rng)
        self.rows = self.rows[:0]
        return found
