"""Methods, solvers and populations that read, spend or remember what they must not."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import attrs
import numpy as np

from cloister.core.buckets import Space
from cloister.core.budget import Budget
from cloister.core.clustering import Clustering, Problem
from cloister.core.encoding import absorb, encode_rows, finite
from cloister.core.errors import InvalidInput
from cloister.core.lattice import Bound
from cloister.core.questions import Round, Rows, count, vector_sum
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.session import Session
from cloister.core.types import Floats, Ids, Ints
from tests.testing.caught import caught_by
from tests.testing.honest import Chunks, FirstPoints, Plain, UnaryCounts, cells_of

people = partial(caught_by, role="Population")
"""For the class of a broken population."""


@caught_by("the_schedule_does_not_depend_on_answers")
class StopsEarly(Plain):
    """A round less where centres no longer move."""

    def clustered(self, problem: Problem, session: Session[Any], centers: Floats) -> Clustering:
        for _ in range(self.rounds):
            moved = self.step(problem, session, centers, problem.budget.over(self.rounds))
            if np.abs(moved - centers).max() > problem.domain.diameter / 4:
                break
            centers = moved
        return Clustering(centers)


@caught_by("the_number_it_chooses_changes_no_question")
class AsksAboutItsChoice(Plain):
    """Chooses the number of centres, and then asks about no more than those."""

    chooses_k = True

    def clustered(self, problem: Problem, session: Session[Any], centers: Floats) -> Clustering:
        (counts,) = session.ask(count(cells_of(problem, centers), oracle=self.counts, budget=problem.budget.over(2)))
        if problem.fewest is None:
            return Clustering(centers)
        k = min(problem.k, problem.fewest + int((counts.at(np.arange(problem.k)) > 0).sum()))
        session.ask(count(cells_of(problem, centers[:k]), oracle=self.counts, budget=problem.budget.over(2)))
        return Clustering(centers[:k], details={"curve": {"k": [k], "costs": [0.0], "suggested": k, "why": "counts"}})


@caught_by("the_number_it_chooses_changes_no_question")
class SaysAnotherNumber(AsksAboutItsChoice):
    """Returns all centres, whatever it suggests."""

    def clustered(self, problem: Problem, session: Session[Any], centers: Floats) -> Clustering:
        session.ask(count(cells_of(problem, centers), oracle=self.counts, budget=problem.budget))
        return Clustering(centers, details={"curve": {"k": [2], "costs": [0.0], "suggested": 2, "why": "always"}})


@caught_by("every_option_keeps_the_budget")
class BudgetOfThreeRounds(Plain):
    """Every round spends a third of the budget, however many there are: right by default."""

    def step(self, problem: Problem, session: Session[Any], centers: Floats, budget: Budget) -> Floats:
        return super().step(problem, session, centers, problem.budget.over(3))


@caught_by("all_rounds_together_keep_the_budget")
class SwappedSplit(Plain):
    """Asks a sum per column, and takes the shares of the budget in the wrong order."""

    def step(self, problem: Problem, session: Session[Any], centers: Floats, budget: Budget) -> Floats:
        domain = problem.domain
        near = cells_of(problem, centers)
        of_counts, of_sums = budget.split(9, 1)
        per_sum, per_count = of_counts, of_sums.over(domain.dimension)
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


@caught_by("its_questions_see_each_row_alone")
class CentresOnTheBatch(Plain):
    """Brings vectors of its own, which look at the other rows."""

    def step(self, problem: Problem, session: Session[Any], centers: Floats, budget: Budget) -> Floats:
        domain = problem.domain
        near = cells_of(problem, centers)
        vectors = _FromTheirMean(near, Bound(2 * domain.max_norm, domain.dimension))
        session.ask(vector_sum(vectors, oracle=self.sums, budget=budget))
        return centers


@caught_by("its_questions_see_each_row_alone")
class TestsTheBatch(Plain):
    """Brings a bucketing of its own, which looks at all rows: one row moves every count."""

    def step(self, problem: Problem, session: Session[Any], centers: Floats, budget: Budget) -> Floats:
        session.ask(count(_AllOrNone(problem.domain.sides), oracle=self.counts, budget=budget))
        return centers


@caught_by("replay_needs_no_rows", "rows_are_reached_by_asking_only")
class StartsAtARow(Plain):
    """The first centres are rows."""

    def start(self, problem: Problem, session: Session[Any], rng: PublicRng) -> Floats:
        population: Any = session._population
        if population is None:
            return super().start(problem, session, rng)
        return problem.domain.truncate(population.rows[: problem.k])


@caught_by("rows_are_reached_by_asking_only")
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


@caught_by("only_answers_tell_of_the_rows")
class KeepsTheLastRows(Plain):
    """The centres are the rows that its bucketing saw last, in whatever run: a replay in this process gives them
    again."""

    def clustered(self, problem: Problem, session: Session[Any], centers: Floats) -> Clustering:
        session.ask(count(_Keeping(), oracle=self.counts, budget=problem.budget))
        last = problem.domain.real(np.array(_Keeping.kept[::-1]).reshape(-1, problem.domain.dimension))
        return Clustering(np.concatenate([last, centers])[: problem.k])


@caught_by("rows_are_reached_by_asking_only", "only_answers_tell_of_the_rows")
class AsksOnceMore(Plain):
    """A round more where the answers are real, and not those of a forecast."""

    def clustered(self, problem: Problem, session: Session[Any], centers: Floats) -> Clustering:
        found = super().clustered(problem, session, centers)
        if not session._forecasting:
            self.step(problem, session, found.centers, problem.budget)
        return found


@caught_by("one_trust_model_from_start_to_end")
class AsksLocally(Plain):
    """Brings an oracle of another trust model along."""

    def start(self, problem: Problem, session: Session[Any], rng: PublicRng) -> Floats:
        centers = super().start(problem, session, rng)
        session.ask(count(cells_of(problem, centers), oracle=UnaryCounts(), budget=Budget("pure", 0.01)))
        return centers


@caught_by("equal_answers_give_equal_centers")
class GlobalCoins(Plain):
    """Starts from NumPy's global generator."""

    def start(self, problem: Problem, session: Session[Any], rng: PublicRng) -> Floats:
        g = np.random.default_rng(np.random.randint(2**31))
        return problem.domain.sample(g, problem.k, 0.0)


@caught_by("any_answers_give_centers_inside_the_domain")
class DividesByCounts(Plain):
    """Divides by whatever the counts are."""

    def moved(self, problem: Problem, total: Floats, size: Floats) -> Floats:
        with np.errstate(all="ignore"):
            return total / size[:, None] + problem.domain.middle


@caught_by("any_answers_give_centers_inside_the_domain")
class LeavesTheDomain(Plain):
    """Negative and tiny counts carry centres anywhere."""

    def moved(self, problem: Problem, total: Floats, size: Floats) -> Floats:
        return total / np.where(size == 0, 1.0, size)[:, None] + problem.domain.middle


@caught_by("any_answers_give_centers_inside_the_domain")
class HandsOutTables(Plain):
    """A table among the details of the result."""

    def clustered(self, problem: Problem, session: Session[Any], centers: Floats) -> Clustering:
        (counts,) = session.ask(count(cells_of(problem, centers), oracle=self.counts, budget=problem.budget))
        return Clustering(centers, None, {"counts": counts})


@caught_by("any_released_points_give_k_finite_centers")
class PositiveOnly(FirstPoints):
    """Fails where no weight is positive."""

    def chosen(self, points: Floats, weights: Floats, k: int, rng: PublicRng) -> Floats:
        heavy = points[weights > 0]
        return heavy[np.arange(k) % len(heavy)]


@caught_by("any_released_points_give_k_finite_centers")
class TooFew(FirstPoints):
    """No more centres than points."""

    def chosen(self, points: Floats, weights: Floats, k: int, rng: PublicRng) -> Floats:
        return points[:k]


@caught_by("the_same_points_and_key_give_the_same_centers")
class GlobalStarts(FirstPoints):
    def chosen(self, points: Floats, weights: Floats, k: int, rng: PublicRng) -> Floats:
        return points[np.random.randint(0, len(points), k)]


@caught_by("points_and_weights_are_left_alone")
class ClipsWeights(FirstPoints):
    """Makes weights positive in the caller's array."""

    def chosen(self, points: Floats, weights: Floats, k: int, rng: PublicRng) -> Floats:
        np.maximum(weights, 0.0, out=weights)
        return super().chosen(points, weights, k, rng)


@people("gathering_is_encoding_all_rows_at_once")
class LosesTheLastChunk(Chunks):
    """Only whole chunks are read."""

    def __init__(self, rows: Floats) -> None:
        super().__init__(rows[: max(1000, len(rows) // 1000 * 1000 - 1000)] if len(rows) > 1 else rows)


@people("unusable_rows_are_dropped_one_by_one")
class NanIsZero(Chunks):
    """Missing cells become zero."""

    def encoded(self, round: Round[Any], start: int, rng: NoiseRng) -> tuple[Any, ...]:
        some = np.nan_to_num(self.rows[start : start + 1000], posinf=0.0, neginf=0.0)
        return absorb(round, encode_rows(round, some, self.users(start, len(some)), rng))


@people("users_keep_their_numbers")
class NewNumbers(Chunks):
    """Users get other numbers in every round."""

    def users(self, start: int, n: int) -> Ids:
        self.first = getattr(self, "first", 0) + 10**6
        return np.arange(self.first + start, self.first + start + n, dtype=np.uint64)


@people("users_keep_their_numbers")
class NumbersByRank(Chunks):
    """Users are numbered in the order of their cells, which is the same in every round."""

    def __init__(self, rows: Floats) -> None:
        super().__init__(rows[np.lexsort(rows.T[::-1])])


@people("users_keep_their_numbers")
class NumbersWithoutNames(Chunks):
    """Users are numbered by the order in which an engine gave their rows."""

    has_users = False

    def number_by_name(self) -> None:
        raise InvalidInput("rows name no users")


@people("no_rows_are_a_population")
class NeedsRows(Chunks):
    def __init__(self, rows: Floats) -> None:
        super().__init__(rows - rows.min(axis=0) * 0.0)


@people("it_says_its_columns_and_checks_its_rows")
class TakesAnyNumber(Chunks):
    """Its check passes however many rows it has."""

    def check(self, most_rows: int = 0) -> None:
        pass


@people("a_population_counts_its_people")
class CountsUsableRows(Chunks):
    """Its people are the rows that can be used, and the others report too."""

    @property
    def people(self) -> int:
        return int(finite(self.rows).sum())


@people("whoever_has_no_usable_row_reports_too")
class DropsWhoReports(Chunks):
    """Rows that cannot be used are left out before they are encoded, whatever neighbours are."""

    def encoded(self, round: Round[Any], start: int, rng: NoiseRng) -> tuple[Any, ...]:
        some, users = self.rows[start : start + 1000], self.users(start, len(self.rows[start : start + 1000]))
        return absorb(round, encode_rows(round, some[finite(some)], users[finite(some)], rng))


@people("gathering_again_reads_the_same_rows")
class ReadsOnce(Chunks):
    """An iterator that is empty the second time."""

    def gather(self, round: Round[Any], rng: NoiseRng) -> tuple[Any, ...]:
        found = super().gather(round, rng)
        self.rows = self.rows[:0]
        return found
