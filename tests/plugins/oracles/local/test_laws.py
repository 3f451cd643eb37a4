"""What honest reports look like, whatever their rows are: exact chances are within the bounds that blocks state, and
what its channel counts is what was sent."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
import pytest

from cloister.core.reports import ReportLaw
from cloister.plugin import Bound, BucketedVectors, Budget, NoiseRng, PublicRng, QuestionContext, Space
from cloister.plugins.oracles.local.counts.channel import Direct
from cloister.plugins.oracles.local.counts.hadamard_response import Signed
from cloister.plugins.oracles.local.counts.optimised_unary import Unary, at_least
from cloister.plugins.oracles.local.hashing import Hashed
from cloister.plugins.oracles.local.randomised_response import WORDS, Response, hits, odds
from cloister.plugins.oracles.local.reports import Reports
from cloister.plugins.oracles.local.vectors.duchi import Duchi
from cloister.plugins.oracles.local.vectors.ldp_average import LdpAverage
from cloister.plugins.oracles.local.vectors.unit_randomiser import ZERO
from cloister.plugins.oracles.local.vectors.vector_sums import ExplicitHistogramVector, HadamardVector
from tests.plugins.oracles.local.counts.test_counts import each_oracle, opened

RNG = NoiseRng.for_tests(0)
SEED = PublicRng.from_seed(3)


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
    (law,), q = level.laws(np.zeros(level.most + 1, np.int64), 10), Fraction(level.flip, WORDS)
    assert law.of == len(law.proportions) == level.most
    somebody, nobody = (unary_law([own, *[q] * (size - 1)], level.most)[0] for own in (Fraction(1, 2), q))
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
        u: [chance for some in coins for chance in unary_law(some, u.most)[1]],
        direct: list(itertools.chain(*direct.response.table())),
        signed: [Fraction(1, 2), (1 + Fraction(signed.response.keep, WORDS)) / 2],
    }
    g, t = hashed.response.symbols, Fraction(hashed.response.keep, WORDS)
    if g < 9:
        tops = starting(g)
        blind = sum((a * Fraction(b, WORDS) for a, b in zip(tops, hits(g), strict=True)), Fraction(0))
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
    """All 2^32 tops of a hash, and all words of ``below``."""
    level = Hashed.into(symbols, 5, odds(Budget("pure", 1.0)), SEED)
    (law,) = level.laws(np.zeros(symbols, np.int64), 10)
    for chance in (*starting(symbols), *(Fraction(n, WORDS) for n in hits(symbols))):
        assert all(one.bounds[0] <= chance <= one.bounds[1] for one in law.proportions)
    assert law.of == symbols


def test_signs_of_neighbours_are_counted_where_both_are_off_zero() -> None:
    steps = np.array([[3, -2, 0, 7], [1, 1, -1, -1], [0, 0, 5, -32767]])
    level = Duchi.within(odds(Budget("pure", 1.0)), 4)
    found = level.counted((steps + ZERO).astype(np.uint16))
    assert found.tolist() == [2, 1, 2, 1, 1, 1]
    (law,) = level.laws(found, 3)
    found = [(one.found, one.among, one.bounds) for one in law.proportions]
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
        assert all(one.among == channel.reported(whole)[int(one.what[6]) - 1] for one in law.proportions)
        assert all(0 <= one.bounds[0] <= one.bounds[1] <= 1 for one in law.proportions)


def summed_up(oracle: Any) -> tuple[Any, Any, Any]:
    """A channel, the report of 500 people, and its summary."""
    context = QuestionContext(500, 2.0**-20, PublicRng.from_seed(7))
    channel = oracle.open(Space((4,)), Budget("pure", 1.0, delta=1e-6), context, Bound(2**20, 3))
    items = BucketedVectors(np.zeros((500, 1), np.int64), np.zeros((500, 3), np.int64))
    report = channel.encode(items, np.arange(500, dtype=np.uint64), RNG)
    return channel, report, channel.absorb(report)


@pytest.mark.parametrize("oracle", [HadamardVector(), ExplicitHistogramVector(randomiser="one-byte")])
def test_codewords_are_counted_and_have_one_of_two_chances(oracle: Any) -> None:
    channel, report, summary = summed_up(oracle)
    (law,), randomiser = channel.laws(summary), channel.asked.randomiser
    sent = np.bincount(report.answers[:, 0], minlength=256)
    assert {one.found for one in law.proportions} == {sent.min(), sent.max()}
    assert law.proportions[0].bounds == (randomiser.far / WORDS, randomiser.near / WORDS)


@pytest.mark.parametrize("oracle", [HadamardVector(randomiser="privunit"), LdpAverage()])
def test_of_some_blocks_nothing_is_known(oracle: Any) -> None:
    channel, _, summary = summed_up(oracle)
    assert getattr(channel, "laws", lambda _: ())(summary) == ()
