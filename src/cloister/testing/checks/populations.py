"""Checks of populations, made by a function ``rows (n, d) -> population``."""

from __future__ import annotations

from typing import Any, TypeAlias, final

import attrs
import numpy as np

from cloister.core.capabilities import NumbersByName
from cloister.core.encoding import absorb, encode_rows
from cloister.core.questions import OpenedQuestion
from cloister.core.registry.registry import registry
from cloister.plugin import (
    Bound,
    Budget,
    Central,
    Event,
    Floats,
    Ids,
    Ints,
    InvalidInput,
    Local,
    NearestCenter,
    NoiseRng,
    PublicRng,
    QuestionContext,
    Round,
    Rows,
    Shuffled,
    Vectors,
)
from cloister.testing.check import refuses, require
from cloister.testing.stubs import CarriedVectors, ModuloBuckets, carrying_domain

Maker: TypeAlias = Any

WIDTH = 3


def rows(n: int = 40_000) -> Floats:
    """Return rows (n, 4), most inside the bounds [-1, 1], enough for several chunks and processes."""
    return np.random.default_rng(80).normal(0, 0.5, (n, WIDTH + 1))


def exact_round() -> Round[Central]:
    """Return a round of exact counts and sums, which shows every row that is missed or read twice.

    It asks about buckets that only their class can find, and about nearest centres, which a population may find in its
    own way.
    """
    domain, dealt = carrying_domain(WIDTH), ModuloBuckets((50, 7))
    nearest = NearestCenter(domain.snap(rows(5)), domain.max_norm)
    vectors = (CarriedVectors(dealt, Bound(2**20, WIDTH)), Rows.of(nearest, domain))
    return Round(0, Central, domain, tuple(part for item in vectors for part in _exact(item)))


def _exact(vectors: Vectors) -> tuple[OpenedQuestion, OpenedQuestion]:
    """Return questions for the counts and sums of vectors' buckets."""
    context, budget = QuestionContext(1000, 1.0, PublicRng.from_seed(81)), Budget("exact", 1.0)
    counts, sums = (
        registry().load(registry().spec(role, "exact"))() for role in ("FrequencyOracle", "VectorSumOracle")
    )
    space = vectors.cells.space
    return (
        OpenedQuestion(vectors.cells, None, None, counts.open(space, budget, context)),
        OpenedQuestion(vectors.cells, vectors, None, sums.open(space, budget, context, vectors.bound)),
    )


def exact_totals(round: Round[Any], summaries: tuple[Any, ...]) -> list[Floats]:
    """Return the exact totals, question by question."""
    totals = []
    for part, summary in zip(round.parts, summaries, strict=True):
        table = part.channel.decode(summary, NoiseRng.for_tests(82))
        totals += [table.at(np.arange(size), level) for level, size in enumerate(part.cells.space.sizes)]
    return totals


def gathered_totals(population: Any, round: Round[Any], seed: int = 83) -> list[Floats]:
    return exact_totals(round, population.gather(round, NoiseRng.for_tests(seed)))


def _encoded_at_once(table: Floats, round: Round[Any]) -> list[Floats]:
    users = np.arange(len(table), dtype=np.uint64)
    return exact_totals(round, absorb(round, encode_rows(round, table, users, NoiseRng.for_tests(84))))


def _all_equal(one: list[Floats], other: list[Floats]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def gathering_is_encoding_all_rows_at_once(make: Maker) -> None:
    """Summaries equal those of ``encode_rows`` on all rows at once, however the rows are stored and cut."""
    round = exact_round()
    for n in (40_000, 1, 1000):
        totals, expected = gathered_totals(make(rows(n)), round), _encoded_at_once(rows(n), round)
        counted = (int(totals[0].sum()), int(expected[0].sum()))
        require(
            _all_equal(totals, expected),
            f"{n} rows: the summary differs ({counted[0]} rows counted, {counted[1]} in one piece)",
        )


def gathering_again_reads_the_same_rows(make: Maker) -> None:
    """Rows do not change between rounds: a round gathered twice gives one summary, and draws no central noise."""
    round = exact_round()
    population = make(rows(5000))
    one, other = gathered_totals(population, round), gathered_totals(population, round, seed=85)
    require(_all_equal(one, other), "gathered twice, it gives two summaries")


def no_rows_are_a_population(make: Maker) -> None:
    """Zero rows are valid input: parties and chunks may be empty, and whether they are is private."""
    round = exact_round()
    totals = gathered_totals(make(rows(0)), round)
    require(all(not values.any() for values in totals), "zero rows give totals other than 0")


def unusable_rows_are_dropped_one_by_one(make: Maker) -> None:
    """Rows with a missing or infinite value are dropped, by a rule for each row alone; no other row is touched."""
    round, table = exact_round(), rows(5000)
    g = np.random.default_rng(86)
    bad = g.choice(len(table), 200, replace=False)
    table[bad, g.integers(0, WIDTH + 1, 200)] = g.choice([np.nan, np.inf, -np.inf], 200)
    good = table[np.isfinite(table).all(axis=1)]
    require(
        _all_equal(gathered_totals(make(table), round), _encoded_at_once(good, round)),
        "rows with missing cells change the summary",
    )


def it_says_its_columns_and_checks_its_rows(make: Maker) -> None:
    """Every population names each column once; ``check`` accepts usable rows, up to the given maximum."""
    population = make(rows(1000))
    names = list(population.columns)
    require(
        len(set(names)) == WIDTH + 1 and all(isinstance(name, str) for name in names),
        f"rows of {WIDTH + 1} columns have the columns {names}",
    )
    population.check()
    population.check(1000)
    require(refuses(InvalidInput, population.check, 999), "check(most_rows=999) lets 1000 rows pass")


def users_keep_their_numbers(make: Maker) -> None:
    """Rows have distinct user numbers, the same in every question and round, whatever other rows hold.

    Noise and shares of the users belong to these numbers. A population without them refuses
    (``capabilities.NumbersByName``).
    """
    round, table = _recording_round(Local, 2), rows(5000)
    population = make(table)
    named: object = population
    if isinstance(named, NumbersByName) and not named.has_users:
        refused = refuses(InvalidInput, population.gather, round, NoiseRng.for_tests(88))
        require(refused, "rows without users or positions have user numbers")
        return
    (one, other), (again, _) = (population.gather(round, NoiseRng.for_tests(88)) for _ in range(2))
    users = np.sort(one.users)
    require(len(users) == 5000, f"of 5000 users {len(users)} are asked")
    require(len(np.unique(users)) == 5000, f"5000 users have {len(np.unique(users))} numbers")
    require(np.array_equal(users, np.sort(other.users)), "two questions of one round are asked of different users")
    require(np.array_equal(users, np.sort(again.users)), "the next round is asked of different users")
    replaced = table.copy()
    replaced[100] = -2.0 * np.sign(table[100])
    neighbours, _ = make(replaced).gather(round, NoiseRng.for_tests(88))
    moved = len(one.pairs - neighbours.pairs)
    require(moved <= 1, f"one row is replaced, and {moved} rows of 5000 get other numbers")


def _recording_round(trust: Any, questions: int) -> Round[Any]:
    question = OpenedQuestion(ModuloBuckets((2**20,)), None, None, RecordingChannel())
    return Round(0, trust, carrying_domain(WIDTH), (question,) * questions)


def a_population_counts_its_people(make: Maker) -> None:
    """Any population with ``people`` counts all rows, unusable ones too, whose owners report as well.

    The count is right before and after a gather; None if only a gather can tell. Without ``people`` a population
    answers nothing under trust Shuffled.
    """
    round, table = exact_round(), rows(5000)
    table[::7, 1] = np.nan
    population = make(table)
    counted: Any = population
    if not hasattr(counted, "people"):
        return
    people_before = counted.people
    population.gather(round, NoiseRng.for_tests(89))
    after = counted.people
    require(
        people_before in (None, len(table)) and after == len(table),
        f"{len(table)} rows, some of them unusable, are as many people; `people` is {people_before} before "
        f"a gather and {after} after it",
    )


def whoever_has_no_usable_row_reports_too(make: Maker) -> None:
    """Owners of unusable rows report like all others, in no bucket, under Local and Shuffled trust.

    Neighbouring data sets differ there by a replaced row: the number of reports would reveal a missing value. A
    population without user numbers refuses.
    """
    table = rows(5000)
    table[::7, 1] = np.nan
    table[3::7, 0] = np.inf
    bad = int((~np.isfinite(table).all(axis=1)).sum())
    population: object = make(table)
    if isinstance(population, NumbersByName) and not population.has_users:
        return
    counted: Any = population
    trusts: tuple[Any, ...] = (Local, Shuffled)
    for trust in trusts:
        (reports,) = counted.gather(_recording_round(trust, 1), NoiseRng.for_tests(90))
        nowhere = int((reports.items[:, 0] < 0).sum())
        require(
            len(reports.users) == len(table) and nowhere == bad,
            f"under {trust.__name__} trust {len(reports.users)} of {len(table)} people report, {nowhere} of them in no "
            f"bucket; all must report, {bad} of them in no bucket",
        )


@final
@attrs.frozen(eq=False)
class RecordedUsers:
    """User numbers of those asked, and their buckets."""

    users: Ids
    items: Ints

    @property
    def pairs(self) -> set[tuple[int, int]]:
        """User numbers with their buckets."""
        return set(zip(self.users.tolist(), self.items[:, 0].tolist(), strict=True))

    def merge(self, other: RecordedUsers) -> RecordedUsers:
        return RecordedUsers(np.concatenate([self.users, other.users]), np.concatenate([self.items, other.items]))


@final
@attrs.frozen
class RecordingChannel:
    """Channel that only records who is asked."""

    @property
    def events(self) -> tuple[Event, ...]:
        return ()

    def encode(self, items: Any, users: Ids, rng: NoiseRng) -> RecordedUsers:
        return RecordedUsers(users, items)

    def absorb(self, report: RecordedUsers) -> RecordedUsers:
        return report

    def decode(self, summary: RecordedUsers, rng: NoiseRng) -> Any:
        raise TypeError("this channel only records users")


POPULATIONS = (
    gathering_is_encoding_all_rows_at_once,
    gathering_again_reads_the_same_rows,
    no_rows_are_a_population,
    unusable_rows_are_dropped_one_by_one,
    it_says_its_columns_and_checks_its_rows,
    users_keep_their_numbers,
    a_population_counts_its_people,
    whoever_has_no_usable_row_reports_too,
)
