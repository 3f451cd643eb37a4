"""Checks of populations. The kit is given a maker, ``rows (n, d) -> population``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, final

import attrs
import numpy as np

from cloister.core.buckets import QuestionContext, Vectors
from cloister.core.budget import Budget, Event
from cloister.core.capabilities import NumbersByName
from cloister.core.encoding import absorb, encode_rows
from cloister.core.errors import InvalidInput
from cloister.core.lattice import Bound
from cloister.core.nearest import NearestCenter
from cloister.core.questions import OpenedQuestion, Round, Rows
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.registry.registry import registry
from cloister.core.trust import Central, Local, Shuffled
from cloister.core.types import Floats, Ids, Ints
from cloister.testing.check import require
from cloister.testing.stubs import Carried, Dealt, carrying

Maker: TypeAlias = Any

WIDTH = 3


def rows(n: int = 40_000) -> Floats:
    """Rows (n, 4): most inside the bounds [-1, 1], some beyond, enough for several chunks and processes."""
    return np.random.default_rng(80).normal(0, 0.5, (n, WIDTH + 1))


def exact_round() -> Round[Central]:
    """A round of exact counts and sums, which shows every row that was missed or read twice: of buckets that only their
    class can find, and of the nearest centres, which a population may find in a way of its own."""
    domain, dealt = carrying(WIDTH), Dealt((50, 7))
    near = NearestCenter(domain.snap(rows(5)), domain.max_norm)
    vectors = (Carried(dealt, Bound(2**20, WIDTH)), Rows.of(near, domain))
    return Round(0, Central, domain, tuple(part for some in vectors for part in _exact(some)))


def _exact(vectors: Vectors) -> tuple[OpenedQuestion, OpenedQuestion]:
    """The count and the sums of some vectors' buckets."""
    context, budget = QuestionContext(1000, 1.0, PublicRng.from_seed(81)), Budget("exact", 1.0)
    counts, sums = (
        registry().load(registry().spec(role, "exact"))() for role in ("FrequencyOracle", "VectorSumOracle")
    )
    space = vectors.cells.space
    return (
        OpenedQuestion(vectors.cells, None, None, counts.open(space, budget, context)),
        OpenedQuestion(vectors.cells, vectors, None, sums.open(space, budget, context, vectors.bound)),
    )


def answers(round: Round[Any], summaries: tuple[Any, ...]) -> list[Floats]:
    """The exact totals, question by question."""
    found = []
    for part, summary in zip(round.parts, summaries, strict=True):
        table = part.channel.decode(summary, NoiseRng.for_tests(82))
        found += [table.at(np.arange(size), level) for level, size in enumerate(part.cells.space.sizes)]
    return found


def gathered(population: Any, round: Round[Any], seed: int = 83) -> list[Floats]:
    return answers(round, population.gather(round, NoiseRng.for_tests(seed)))


def _at_once(some: Floats, round: Round[Any]) -> list[Floats]:
    users = np.arange(len(some), dtype=np.uint64)
    return answers(round, absorb(round, encode_rows(round, some, users, NoiseRng.for_tests(84))))


def _same(one: list[Floats], other: list[Floats]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def gathering_is_encoding_all_rows_at_once(make: Maker) -> None:
    """One merged summary per question: what ``encode_rows`` makes of all rows at once, however they are kept and
    cut."""
    round = exact_round()
    for n in (40_000, 1, 1000):
        found, wanted = gathered(make(rows(n)), round), _at_once(rows(n), round)
        counted = (int(found[0].sum()), int(wanted[0].sum()))
        require(
            _same(found, wanted),
            f"{n} rows: the summary is another one ({counted[0]} rows counted, {counted[1]} in one piece)",
        )


def gathering_again_reads_the_same_rows(make: Maker) -> None:
    """Rows do not change between rounds: a round that is gathered twice gives one summary, and draws no central
    noise."""
    round = exact_round()
    population = make(rows(5000))
    one, other = gathered(population, round), gathered(population, round, seed=85)
    require(_same(one, other), "gathered twice, it gives two summaries")


def no_rows_are_a_population(make: Maker) -> None:
    """Zero rows are valid input: parties and chunks may be empty, and whether they are is private."""
    round = exact_round()
    found = gathered(make(rows(0)), round)
    require(all(not values.any() for values in found), "no rows are counted as some")


def unusable_rows_are_dropped_one_by_one(make: Maker) -> None:
    """A row with a missing or infinite cell is dropped, by a rule that looks at that row alone; no other row is
    touched."""
    round, some = exact_round(), rows(5000)
    g = np.random.default_rng(86)
    bad = g.choice(len(some), 200, replace=False)
    some[bad, g.integers(0, WIDTH + 1, 200)] = g.choice([np.nan, np.inf, -np.inf], 200)
    good = some[np.isfinite(some).all(axis=1)]
    require(_same(gathered(make(some), round), _at_once(good, round)), "rows with missing cells change the summary")


def it_says_its_columns_and_checks_its_rows(make: Maker) -> None:
    """A population names its columns, each once; ``check`` lets rows pass that can be used, as many as it is told at
    most and no more."""
    population = make(rows(1000))
    names = list(population.columns)
    require(
        len(set(names)) == WIDTH + 1 and all(isinstance(name, str) for name in names),
        f"rows of {WIDTH + 1} columns have the columns {names}",
    )
    population.check()
    population.check(1000)
    require(_refused(lambda: population.check(999)), "check(most_rows=999) lets 1000 rows pass")


def _refused(asked: Callable[[], Any]) -> bool:
    try:
        asked()
    except InvalidInput:
        return True
    return False


def users_keep_their_numbers(make: Maker) -> None:
    """Every row has a user number of its own, the same in every question and round, whatever other rows hold: noise and
    shares of the users belong to it. A population that has none for its rows refuses (``capabilities.NumbersByName``).
    """
    domain, cells = carrying(WIDTH), Dealt((2**20,))
    roll: Round[Any] = Round(
        0, Local, domain, (OpenedQuestion(cells, None, None, Roll()), OpenedQuestion(cells, None, None, Roll()))
    )
    some = rows(5000)
    population = make(some)
    named: object = population
    if isinstance(named, NumbersByName) and not named.has_users:
        refused = _refused(lambda: population.gather(roll, NoiseRng.for_tests(88)))
        require(refused, "rows that name no users have numbers, though they have no places")
        return
    (one, other), (again, _) = (population.gather(roll, NoiseRng.for_tests(88)) for _ in range(2))
    users = np.sort(one.users)
    require(len(users) == 5000, f"of 5000 users {len(users)} are asked")
    require(len(np.unique(users)) == 5000, f"5000 users have {len(np.unique(users))} numbers")
    require(np.array_equal(users, np.sort(other.users)), "two questions of one round are asked of other users")
    require(np.array_equal(users, np.sort(again.users)), "the next round is asked of other users")
    replaced = some.copy()
    replaced[100] = -2.0 * np.sign(some[100])
    neighbours, _ = make(replaced).gather(roll, NoiseRng.for_tests(88))
    moved = len(one.pairs - neighbours.pairs)
    require(moved <= 1, f"one row is replaced, and {moved} rows of 5000 get other numbers")


def a_population_counts_its_people(make: Maker) -> None:
    """One that says how many people it has (``people``, without which it answers nothing under trust Shuffled) counts
    all rows, those that cannot be used too, whose owners report as well, before and after they were gathered; None
    while only a gather can tell."""
    round, some = exact_round(), rows(5000)
    some[::7, 1] = np.nan
    population = make(some)
    counted: Any = population
    if not hasattr(counted, "people"):
        return
    before = counted.people
    population.gather(round, NoiseRng.for_tests(89))
    after = counted.people
    require(
        before in (None, len(some)) and after == len(some),
        f"{len(some)} rows, of which some cannot be used, are {len(some)} people; it says that they are {before}, and "
        f"{after} once they are gathered",
    )


def whoever_has_no_usable_row_reports_too(make: Maker) -> None:
    """Where neighbouring data differ by a row that is replaced (Local, Shuffled), the owner of a row that cannot be
    used reports like everybody and is in no bucket: else the number of reports says that her cell is missing. A
    population that has no numbers for its rows refuses."""
    cells, some = Dealt((2**20,)), rows(5000)
    some[::7, 1] = np.nan
    some[3::7, 0] = np.inf
    bad = int((~np.isfinite(some).all(axis=1)).sum())
    population: object = make(some)
    if isinstance(population, NumbersByName) and not population.has_users:
        return
    counted: Any = population
    trusts: tuple[Any, ...] = (Local, Shuffled)
    for trust in trusts:
        roll: Round[Any] = Round(0, trust, carrying(WIDTH), (OpenedQuestion(cells, None, None, Roll()),))
        (called,) = counted.gather(roll, NoiseRng.for_tests(90))
        nowhere = int((called.items[:, 0] < 0).sum())
        require(
            len(called.users) == len(some) and nowhere == bad,
            f"under {trust.__name__} trust {len(called.users)} of {len(some)} people report, {nowhere} of them in no "
            f"bucket: {bad} rows cannot be used, and everybody reports",
        )


@final
@attrs.frozen(eq=False)
class Called:
    """Who was asked, and about which buckets."""

    users: Ids
    items: Ints

    @property
    def pairs(self) -> set[tuple[int, int]]:
        """Each user's number, with the bucket that she is in."""
        return set(zip(self.users.tolist(), self.items[:, 0].tolist(), strict=True))

    def merge(self, other: Called) -> Called:
        return Called(np.concatenate([self.users, other.users]), np.concatenate([self.items, other.items]))


@final
@attrs.frozen
class Roll:
    """A channel that only notes who is asked."""

    @property
    def events(self) -> tuple[Event, ...]:
        return ()

    def encode(self, items: Any, users: Ids, rng: NoiseRng) -> Called:
        return Called(users, items)

    def absorb(self, report: Called) -> Called:
        return report

    def decode(self, summary: Called, rng: NoiseRng) -> Any:
        raise TypeError("a roll is called, not decoded")


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
