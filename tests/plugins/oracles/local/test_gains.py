"""What one report of a liar can add to an answer: every possible report is sent, to the real decoder. And what honest
reports look like, whatever their rows are: exact chances are within the bounds that blocks state, and what its channel
counts is what was sent."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
import pytest

from cloister.core.reports import ReportLaw
from cloister.plugin import Bound, Budget, NoiseRng, PublicRng, QuestionContext, Refused, Space
from cloister.plugins.oracles.local.coins import WORDS, odds, words_per_integer
from cloister.plugins.oracles.local.counts.channel import Direct
from cloister.plugins.oracles.local.counts.hadamard_response import Signed
from cloister.plugins.oracles.local.counts.local_hashing import AskedLocalHashing
from cloister.plugins.oracles.local.counts.optimised_unary import Unary, at_least
from cloister.plugins.oracles.local.counts.subset_selection import Subset
from cloister.plugins.oracles.local.hashing import Hashed
from cloister.plugins.oracles.local.packed_sets import packed
from cloister.plugins.oracles.local.randomised_response import Response
from cloister.plugins.oracles.local.reports import Reports
from cloister.plugins.oracles.local.vectors.duchi import Duchi
from cloister.plugins.oracles.local.vectors.ldp_average import LdpAverage
from cloister.plugins.oracles.local.vectors.unit_randomiser import ZERO
from cloister.plugins.oracles.local.vectors.vector_sums import ExplicitHistogramVector, HadamardVector
from tests.plugins.oracles.local.counts.test_counts import CLASSES, each_oracle, exact_table, opened

RNG, SEED = NoiseRng.for_tests(0), PublicRng.from_seed(3)
HONEST, LIARS = np.arange(40, dtype=np.uint64), np.arange(1000, 1400, dtype=np.uint64)
each_class = pytest.mark.parametrize("cls", [*CLASSES, AskedLocalHashing])


def every(level: Any) -> np.ndarray:
    """All answers (m, width) that the decoder takes at a level."""
    size = getattr(level, "size", 0)
    if isinstance(level, Unary):
        sets = [s for s in itertools.product((False, True), repeat=size) if sum(s) <= level.max_bits]
    elif isinstance(level, Subset):
        sets = [s for s in itertools.product((False, True), repeat=size + 1) if sum(s) == level.chosen]
    else:
        return np.arange(level.response.symbols)[:, None].astype(level.dtype)
    return packed(np.array(sets))


def lies(asked: Any, user: np.uint64, level: int) -> Iterator[Reports]:
    """Every report of a user that differs in what it says of a level."""
    answers = np.zeros((1, asked.width), asked.dtype)
    for other, at in enumerate(asked.layout):
        if asked.sharing.factor == 1:
            answers[0, at] = every(asked.levels[other])[0]
    for answer in every(asked.levels[level]):
        answers[0, asked.layout[level]] = answer
        yield Reports(np.array([user]), answers.copy(), asked.stamp)


@each_class
@pytest.mark.parametrize(("share", "epsilon"), [("users", 0.5), ("budget", 4.0)])
def test_no_report_moves_a_count_by_more_than_its_gain_and_one_moves_it_by_as_much(cls, share, epsilon):
    sizes = (4, 5)
    channel = opened(cls(share=share), sizes, epsilon, 40)
    items = np.random.default_rng(3).integers(-1, 4, (40, 2))
    honest = channel.absorb(channel.encode(items, HONEST, RNG))
    before = channel.decode(honest, RNG)
    for level, (size, gain) in enumerate(zip(sizes, channel.gains, strict=True)):
        ids = np.arange(size)
        moved = [
            channel.decode(honest.merge(channel.absorb(lie)), RNG).at(ids, level) - before.at(ids, level)
            for user in LIARS[channel.asked.sharing.answers(LIARS)[level]][:8]
            for lie in lies(channel.asked, user, level)
        ]
        assert np.max(moved) == pytest.approx(gain.most * gain.factor)
        assert np.min(moved) == pytest.approx(-gain.least * gain.factor)
        assert gain.factor == channel.asked.sharing.factor
        assert gain.chance == pytest.approx(channel.asked.chances(level).q)
        assert sum(channel.reported(honest)) == 40 * (1 if gain.factor > 1 else 2)


@each_class
def test_so_many_buckets_of_her_choice_get_it_whatever_her_number_is(cls):
    """For every set of so many buckets there is an answer; for sets of one more there is none, for some number."""
    channel, size = opened(cls(), (5,), 1.0, 40), 5
    (gain,), asked = channel.gains, channel.asked
    least = size
    for user in LIARS[:60]:
        raised = [supported(channel, lie, size) for lie in lies(asked, user, 0)]
        for many in range(size + 1):
            wanted = map(set, itertools.combinations(range(size), many))
            if not all(any(some <= got for got in raised) for some in wanted):
                least = min(least, many - 1)
                break
    assert least == gain.buckets


def supported(channel: Any, lie: Reports, size: int) -> set[int]:
    values = channel.decode(channel.absorb(lie), RNG).at(np.arange(size))
    return set(np.flatnonzero(values > 0).tolist())


def vectors(oracle: Any, d: int, epsilon: float, sizes: tuple[int, ...] = (4,), delta: float = 0.0) -> Any:
    context = QuestionContext(100, 2.0**-20, PublicRng.from_seed(7))
    return oracle.open(Space(sizes), Budget("pure", epsilon, delta=delta), context, Bound(2**20, d))


def sums(channel: Any, users: np.ndarray, answers: np.ndarray, level: int = 0) -> np.ndarray:
    """What one report alone adds to bucket 1 (n, d), in bounds."""
    found = []
    for user, answer in zip(users, answers, strict=True):
        report = Reports(np.array([user]), answer[None], channel.asked.stamp)
        found.append(channel.decode(channel.absorb(report), RNG).at(np.array([1]), level)[0])
    return np.array(found)


@pytest.mark.parametrize(("d", "epsilon"), [(3, 0.5), (127, 2.0)])
def test_no_codeword_is_longer_than_its_gain_says_and_the_nearest_is_usually_as_long(d, epsilon):
    """All 256 codewords of some users. Of the mean over 400 numbers of the longest in one direction, 2.8 +- 0.4 / sqrt
    400 in units where ``usual`` is M_1 = 2.8: seven deviations are 5%."""
    channel = vectors(HadamardVector(), d, epsilon)
    (gain,), asked = channel.gains, channel.asked
    everything = np.arange(2 * asked.randomiser.size, dtype=np.uint8)[:, None]
    for user in LIARS[:3]:
        lengths = np.linalg.norm(sums(channel, np.full(256, user), everything), axis=1)
        assert lengths.max() <= gain.most * (1 + 1e-9)
        if d == 127:
            assert lengths.max() >= 0.98 * gain.most
    best = [(asked.estimates(np.full(256, user), everything, 0)[:, 0] * asked.randomiser.scale).max() for user in LIARS]
    assert np.mean(best) == pytest.approx(gain.usual, rel=0.05)


@pytest.mark.parametrize("name", ["privunit", "duchi"])
@pytest.mark.parametrize("oracle", [HadamardVector, ExplicitHistogramVector])
def test_the_longest_vector_that_is_taken_is_as_long_as_its_gain_says(name, oracle):
    channel, d = vectors(oracle(randomiser=name), 8, 1.0), 8
    (gain,), asked = channel.gains, channel.asked
    steps = gain.most / asked.randomiser.scale
    away = np.random.default_rng(1).normal(size=(60, d))
    away *= steps / np.linalg.norm(away, axis=1, keepdims=True)
    longest = (np.trunc(away) + ZERO).astype(np.uint16)
    found = np.linalg.norm(sums(channel, LIARS[:60], longest), axis=1)
    assert found.max() <= gain.most * (1 + 1e-9)
    assert found.min() >= 0.999 * gain.most
    assert gain.usual == gain.most
    longer = (np.trunc(away * 1.01) + ZERO).astype(np.uint16)
    for user, answer in zip(LIARS[:60], longer, strict=True):
        with pytest.raises(Refused, match="no encoder sends"):
            channel.absorb(Reports(np.array([user]), answer[None], asked.stamp))


def test_the_most_that_a_report_of_ldp_average_says_of_one_bucket():
    for d in (2, 64):
        channel = vectors(LdpAverage(), d, 1.0, (3,), 1e-6)
        (gain,), block = channel.gains, np.zeros((3, d))
        block[1] = min(channel.randomisers[0].farthest, channel.sent(3 * d).longest / math.sqrt(d))
        report = Reports(LIARS[:1], np.floor(block).astype(np.int64).astype(np.uint32).reshape(1, -1), channel.stamp)
        added = channel.decode(channel.absorb(report), RNG).at(np.array([1]))[0]
        assert np.linalg.norm(added) == pytest.approx(gain.most, rel=1e-6)


# What honest reports look like.


def unary_law(coins: list[Fraction], most: int) -> tuple[list[Fraction], list[Fraction]]:
    """Exact chances that so many bits or more are sent, and that each bit is. Sets of more than ``most`` are empty."""
    sizes, bits = [Fraction(0)] * (len(coins) + 1), [Fraction(0)] * len(coins)
    for some in itertools.product((0, 1), repeat=len(coins)):
        chance = math.prod((p if s else 1 - p for p, s in zip(coins, some, strict=True)), start=Fraction(1))
        sent = some if sum(some) <= most else (0,) * len(coins)
        sizes[sum(sent)] += chance
        bits = [b + chance * s for b, s in zip(bits, sent, strict=True)]
    return [sum(sizes[n:], Fraction(0)) for n in range(len(sizes))], bits


@pytest.mark.parametrize(("size", "epsilon"), [(1, 0.1), (1, 30.0), (2, 1.0), (6, 0.1), (6, 5.0), (6, 30.0)])
def test_so_many_bits_or_more_are_set_with_a_chance_within_the_bounds(size: int, epsilon: float) -> None:
    """Every input, exactly; and the bounds are no wider than these inputs need."""
    level = Unary(size, -int(-WORDS // (odds(Budget("pure", epsilon)) + 1)))
    (law,), q = level.laws(np.zeros(level.max_bits + 1, np.int64), 10), Fraction(level.flip, WORDS)
    assert law.of == len(law.proportions) == level.max_bits
    somebody, nobody = (unary_law([own, *[q] * (size - 1)], level.max_bits)[0] for own in (Fraction(1, 2), q))
    for n, proportion in enumerate(law.proportions, 1):
        least, most = proportion.bounds
        assert least <= nobody[n] <= somebody[n] <= most
        assert least >= float(nobody[n]) * (1 - 1e-8) - 2e-14
        assert most <= float(somebody[n]) * (1 + 1e-8) + 1e-289


def test_a_mean_is_the_sum_of_its_tails_to_the_last_third_of_the_digits() -> None:
    found = at_least(4096, 0.3)
    assert found[0] == pytest.approx(1, abs=1e-10)
    assert found.sum() - 1 == pytest.approx(4096 * 0.3, rel=1e-10)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0, 30.0])
def test_a_bucket_is_supported_with_a_chance_within_the_bounds_whatever_the_row_is(epsilon: float) -> None:
    """Exactly, over secret coins, and over the public coins of hashes and rows of a matrix as their docstrings say."""
    o = odds(Budget("pure", epsilon))
    u, direct = Unary(5, -int(-WORDS // (o + 1))), Direct(5, Response.within(o, 6))
    signed, hashed = Signed(5, SEED, Response.within(o, 2)), Hashed.optimised(5, o, SEED)
    q = Fraction(u.flip, WORDS)
    coins = ([Fraction(1, 2), *[q] * 4], [q] * 5)
    known = {
        u: [chance for some in coins for chance in unary_law(some, u.max_bits)[1]],
        direct: list(itertools.chain(*exact_table(direct.response))),
        signed: [Fraction(1, 2), (1 + Fraction(signed.response.keep, WORDS)) / 2],
    }
    g, t = hashed.response.symbols, Fraction(hashed.response.keep, WORDS)
    if g < 9:
        tops = starting(g)
        blind = sum((a * Fraction(b, WORDS) for a, b in zip(tops, words_per_integer(g), strict=True)), Fraction(0))
        known[hashed] = [blind, t * sum(a * a for a in tops) + (1 - t) * blind, t + (1 - t) * blind]
    for level, chances in known.items():
        total = np.zeros(level.size + isinstance(level, Direct), np.int64)
        law: ReportLaw = level.chances.law(total, 10, level.size)
        for proportion in law.proportions:
            least, most = proportion.bounds
            assert all(least <= chance <= most for chance in chances)


def starting(symbols: int) -> list[Fraction]:
    """The chance of each symbol of a hash, over all 2^32 tops, by where each begins."""
    starts = [-(-(y * 2**32) // symbols) for y in range(symbols + 1)]
    return [Fraction(end - start, 2**32) for start, end in itertools.pairwise(starts)]


@pytest.mark.parametrize("symbols", [2, 3, 4, 7])
def test_a_symbol_is_sent_with_a_chance_within_the_bounds(symbols: int) -> None:
    """All 2^32 tops of a hash, and all words of ``multiply_shift``."""
    level = Hashed.into(symbols, 5, odds(Budget("pure", 1.0)), SEED)
    (law,) = level.laws(np.zeros(symbols, np.int64), 10)
    for chance in (*starting(symbols), *(Fraction(n, WORDS) for n in words_per_integer(symbols))):
        assert all(one.bounds[0] <= chance <= one.bounds[1] for one in law.proportions)
    assert law.of == symbols


def test_signs_of_neighbours_are_counted_where_both_are_off_zero() -> None:
    steps = np.array([[3, -2, 0, 7], [1, 1, -1, -1], [0, 0, 5, -32767]])
    level = Duchi.within(odds(Budget("pure", 1.0)), 4)
    found = level.counted((steps + ZERO).astype(np.uint16))
    assert found.tolist() == [2, 1, 2, 1, 1, 1]
    (law,) = level.laws(found, 3)
    found = [(one.count, one.among, one.bounds) for one in law.proportions]
    assert found == [(1, 2, (0.5, 0.5)), (1, 1, (0.5, 0.5)), (1, 2, (0.5, 0.5))]
    assert attrs.evolve(level, dimension=1).laws(np.zeros(0, np.int64), 3) == ()


@each_oracle
def test_what_is_counted_is_what_was_sent_however_it_is_merged(oracle: Any) -> None:
    channel, users = opened(oracle, (5, 12), 1.0, 300), np.arange(300, dtype=np.uint64)
    report = channel.encode(np.random.default_rng(0).integers(-1, 5, (300, 2)), users, RNG)
    pieces = [Reports(users[some], report.answers[some], report.question) for some in (slice(0, 100), slice(100, 300))]
    whole, merged = channel.absorb(report), channel.absorb(pieces[0]).merge(channel.absorb(pieces[1]))
    assert channel.laws(merged) == channel.laws(whole)
    for law in channel.laws(whole):
        assert all(one.among == channel.reported(whole)[int(one.label[6]) - 1] for one in law.proportions)
        assert all(0 <= one.bounds[0] <= one.bounds[1] <= 1 for one in law.proportions)
