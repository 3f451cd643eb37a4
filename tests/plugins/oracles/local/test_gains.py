"""What one report of a liar can add to an answer: every possible report is sent, to the real decoder."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from cloister.plugin import Bound, Budget, NoiseRng, PublicRng, QuestionContext, Refused, Space
from cloister.plugins.oracles.local.counts.adaptive_response import AdaptiveResponse
from cloister.plugins.oracles.local.counts.local_hashing import AskedLocalHashing
from cloister.plugins.oracles.local.counts.optimised_unary import Unary
from cloister.plugins.oracles.local.counts.subset_selection import Subset
from cloister.plugins.oracles.local.randomised_response import packed
from cloister.plugins.oracles.local.reports import Reports
from cloister.plugins.oracles.local.vectors.ldp_average import LdpAverage
from cloister.plugins.oracles.local.vectors.unit_randomiser import ZERO
from cloister.plugins.oracles.local.vectors.vector_sums import ExplicitHistogramVector, HadamardVector
from cloister.plugins.oracles.shuffled.amplified import AmplifiedCounts
from tests.plugins.oracles.local.counts.test_counts import CLASSES, opened

RNG = NoiseRng.for_tests(0)
HONEST, LIARS = np.arange(40, dtype=np.uint64), np.arange(1000, 1400, dtype=np.uint64)
each_class = pytest.mark.parametrize("cls", [*CLASSES, AskedLocalHashing])


def every(level: Any) -> np.ndarray:
    """All answers (m, width) that the decoder takes at a level."""
    size = getattr(level, "size", 0)
    if isinstance(level, Unary):
        sets = [s for s in itertools.product((False, True), repeat=size) if sum(s) <= level.most]
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
        assert gain.chance == pytest.approx(channel.asked.chances(level).other)
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
        with pytest.raises(Refused):
            channel.absorb(Reports(np.array([user]), answer[None], asked.stamp))


def test_the_most_that_a_report_of_ldp_average_says_of_one_bucket():
    for d in (2, 64):
        channel = vectors(LdpAverage(), d, 1.0, (3,), 1e-6)
        (gain,), block = channel.gains, np.zeros((3, d))
        block[1] = min(channel.randomisers[0].farthest, channel.sent(3 * d).longest / math.sqrt(d))
        report = Reports(LIARS[:1], np.floor(block).astype(np.int64).astype(np.uint32).reshape(1, -1), channel.stamp)
        added = channel.decode(channel.absorb(report), RNG).at(np.array([1]))[0]
        assert np.linalg.norm(added) == pytest.approx(gain.most, rel=1e-6)


def test_a_shuffled_report_is_worth_what_the_report_inside_is():
    inner = AdaptiveResponse()
    context = QuestionContext(10_000, 1.0, PublicRng.from_seed(7), 10_000)
    channel = AmplifiedCounts(report=inner).open(Space((30,)), Budget("pure", 0.5, delta=1e-6), context)
    assert channel.gains == channel.inner.gains
    assert channel.gains[0].most < opened(inner, (30,), 0.5, 10_000).gains[0].most  # its epsilon is larger
    report = channel.encode(np.zeros((40, 1), np.int64), HONEST, RNG)
    assert channel.reported(channel.absorb(report)) == (40,)
