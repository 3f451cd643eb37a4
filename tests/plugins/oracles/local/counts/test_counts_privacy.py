"""Exact privacy of the local count oracles, by enumeration: the real encoders are run on every cell of their secret
words.

An encoder is a step function of its words. Between two steps it is constant (looked at on both ends of every cell), so
that the chance of every report is a sum of products of whole numbers over 2^64, in fractions, with nothing estimated.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
import pytest

from cloister.plugin import Budget, InvalidInput, PublicRng
from cloister.plugins.oracles.local.coins import WORDS, multiply_shift, odds, words_per_integer
from cloister.plugins.oracles.local.counts.channel import Direct
from cloister.plugins.oracles.local.counts.hadamard_response import HadamardResponse, Signed
from cloister.plugins.oracles.local.counts.local_hashing import ExplicitHistogram, OptimisedLocalHashing
from cloister.plugins.oracles.local.counts.optimised_unary import Unary
from cloister.plugins.oracles.local.counts.subset_selection import Subset
from cloister.plugins.oracles.local.hashing import Hashed
from cloister.plugins.oracles.local.randomised_response import Response
from tests.plugins.oracles.local.counts.test_counts import each_class, each_oracle, exact_table, numbered, opened

EPSILONS = (0.1, 1.0, 3.7)
PUBLIC = Direct, Hashed, Signed
"""Levels whose users' numbers choose hashes or rows of a matrix, or that have one word for all buckets."""
Law = dict[tuple[int, ...], Fraction]


def e_to(epsilon: float) -> Fraction:
    """Above e^epsilon, by less than one part in 1e70: another precision than the code's."""
    return Fraction(Context(prec=80).exp(Decimal(epsilon))) * (1 + Fraction(1, 10**70))


def edges(*steps: int) -> list[tuple[int, int]]:
    """Cells of one word: first word, and one past the last."""
    at = sorted({0, WORDS, *steps})
    return list(itertools.pairwise(at))


def even(m: int) -> list[tuple[int, int]]:
    """The cells of a uniform integer below m."""
    return edges(*itertools.accumulate(words_per_integer(m)))


def cells(level: Any) -> Iterator[list[list[tuple[int, int]]]]:
    """For each word its cells. Subsets: once for every order that the ranked words may have, each with privacy of its
    own."""
    if isinstance(level, PUBLIC):
        yield [edges(level.response.keep), even(level.response.symbols)]
    elif isinstance(level, Unary):
        yield [edges(level.flip, WORDS // 2)] * level.size
    elif isinstance(level, Subset):
        m = level.size + 1
        for order in itertools.permutations(range(m)):
            ranked = [[(rank * 1000, rank * 1000 + 1)] for rank in order]
            yield [*ranked, even(level.chosen), edges(level.keep), even(m)]


@attrs.define
class Words:
    """A secret source that says what it is told to."""

    told: np.ndarray
    asked: list[tuple[int, ...]] = attrs.field(factory=list)

    def child(self, *path: Any) -> Words:
        return self

    def words(self, users: np.ndarray, each: int) -> np.ndarray:
        assert each <= self.told.shape[1]
        self.asked.append((len(users), each))
        return self.told[: len(users), :each]


def law(level: Any, bucket: int, user: int, table: list[list[tuple[int, int]]]) -> Law:
    """Exact chances of the answers of a user in this bucket."""
    found: Law = defaultdict(Fraction)
    for cell in itertools.product(*table):
        chance = Fraction(1)
        for low, high in cell:
            chance *= Fraction(high - low, 1 if high - low == 1 else WORDS)  # ranked words are given
        ends = [[low for low, _ in cell], [high - 1 for _, high in cell]]
        told = np.array(ends, np.uint64)
        one, other = level.randomise(np.full(2, bucket), np.full(2, user, np.uint64), told)
        assert np.array_equal(one, other), "not constant on a cell"
        found[tuple(one.tolist())] += chance
    assert sum(found.values()) == 1
    return found


def worst(laws: list[Law]) -> Fraction:
    """The largest ratio of the chances of one answer under two inputs."""
    answers = {answer for one in laws for answer in one}
    assert all(one[answer] > 0 for one in laws for answer in answers), "an answer gives an input away"
    return max(max(one[a] for one in laws) / min(one[a] for one in laws) for a in answers)


@each_class
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_no_two_inputs_give_a_report_chances_beyond_e_to_the_epsilon(cls, epsilon):
    """All buckets and 'no bucket', for users with different public hashes; and no privacy is left unused."""
    level, ratios = opened(cls(), (3,), epsilon).asked.levels[0], []
    for user in numbered(4 if isinstance(level, PUBLIC) else 1).tolist():
        for table in cells(level):
            ratios.append(worst([law(level, bucket, user, table) for bucket in (-1, 0, 1, 2)]))
    assert max(ratios) <= e_to(epsilon)
    assert max(ratios) > e_to(epsilon) * (1 - Fraction(1, 10**15))


@each_class
def test_reports_support_buckets_with_exactly_the_declared_chances(cls):
    """p for a user's own bucket and q for any other, and for all of them if she is in none. Where hashes are public,
    another bucket's chance is q over the hashes only."""
    level = opened(cls(), (3,), 1.0).asked.levels[0]
    tables, public = list(cells(level)), isinstance(level, PUBLIC)
    for bucket, user in itertools.product((-1, 1), range(3)):
        found = np.zeros(3)
        for table in tables:
            for answer, chance in law(level, bucket, user, table).items():
                sent, who = np.array([answer], level.dtype), np.array([user], np.uint64)
                found += float(chance) * level.supports(level.tally(who, sent), 1)[:3] / len(tables)
        declared = np.full(3, level.chances.q)
        if bucket >= 0:
            declared[bucket] = level.chances.p
        sure = [bucket] if public and bucket >= 0 else [0, 1, 2]
        assert found[sure] == pytest.approx(declared[sure], abs=1e-12)


@each_oracle
def test_the_number_of_words_drawn_does_not_depend_on_rows(oracle):
    channel, users, told = opened(oracle, (3, 4), 1.0), numbered(30), np.zeros((30, 9), np.uint64)
    drawn = []
    for items in (np.full((30, 2), -1), np.zeros((30, 2), np.int64), np.random.default_rng(3).integers(-1, 3, (30, 2))):
        source = Words(told)
        channel.encode(items, users, source)
        drawn.append(source.asked)
    assert drawn[0] == drawn[1] == drawn[2]


@pytest.mark.parametrize(("epsilon", "symbols"), [(0.1, 2), (0.1, 30), (1.0, 3), (1.0, 4), (3.7, 7), (3.7, 30)])
def test_randomised_response_tells_its_own_exact_table(epsilon, symbols):
    response = Response.within(odds(Budget("pure", epsilon)), symbols)
    table, beyond = exact_table(response), exact_table(Response(symbols, response.keep + 2 * symbols))
    assert all(sum(row) == 1 for row in table)
    worst_of, worse = (max(max(column) / min(column) for column in zip(*some, strict=True)) for some in (table, beyond))
    assert worst_of <= e_to(epsilon) < worse  # nothing was given away either
    level = Hashed.into(symbols, 4, odds(Budget("pure", epsilon)), PublicRng.from_seed(7))
    if symbols <= 7:
        exact = law(level, -1, 0, next(cells(level)))
        assert [exact[(y,)] for y in range(symbols)] == table[-1]


@pytest.mark.parametrize(("epsilon", "parts"), [(1e-8, 3), (0.1, 20), (1.0, 1), (7.7, 3), (40.0, 1), (40.0, 20)])
def test_odds_are_just_below_e_to_the_epsilon(epsilon, parts):
    found = odds(Budget("pure", epsilon), parts)
    assert found**parts <= e_to(epsilon)
    assert found**parts > e_to(epsilon) * (1 - Fraction(parts, 10**48))
    with pytest.raises(InvalidInput, match="every report would be noise"):
        odds(Budget("pure", 1e-8), 20)


@pytest.mark.parametrize("m", [1, 2, 3, 1000])
def test_uniform_integers_come_from_the_words_that_are_counted(m):
    assert sum(words_per_integer(m)) == WORDS
    assert max(words_per_integer(m)) - min(words_per_integer(m)) <= 1
    for first in (0, 1):  # the last word of each integer, and the first of the next
        ends = np.array([0, *itertools.accumulate(words_per_integer(m))][first : m + first], object) - first
        assert multiply_shift(ends.astype(np.uint64), m).tolist() == list(range(m))


@pytest.mark.parametrize("cls", [ExplicitHistogram, HadamardResponse, OptimisedLocalHashing])
def test_levels_that_share_the_budget_compose_to_epsilon(cls):
    """Whole reports over two levels, each with words of its own, so that their largest ratios multiply."""
    levels, ratios = opened(cls(share="budget"), (3, 3), 1.0).asked.levels, []
    for user in range(5):
        laws = ([law(level, bucket, user, next(cells(level))) for bucket in (-1, 0, 1, 2)] for level in levels)
        ratios.append(math.prod(map(worst, laws)))
    assert e_to(1.0) * (1 - Fraction(1, 10**14)) < max(ratios) <= e_to(1.0)


@each_class
def test_levels_that_share_users_hear_of_one_bucket_only(cls):
    """A user's report is decided by the level that her public number picks: her other buckets change nothing."""
    channel, users = opened(cls(), (3, 3), 1.0), numbered(40)
    told = np.random.default_rng(1).integers(0, WORDS, (40, 8), np.uint64, endpoint=False)
    first = channel.asked.sharing.answers(users)[0]
    items = np.random.default_rng(2).integers(-1, 3, (40, 2))
    changed = items.copy()
    changed[first, 1] = (items[first, 1] + 2) % 3
    second = np.setdiff1d(np.arange(40), first)
    changed[second, 0] = -1
    one, other = (channel.encode(rows, users, Words(told)) for rows in (items, changed))
    assert np.array_equal(one.answers, other.answers)
