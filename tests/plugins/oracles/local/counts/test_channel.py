"""Reports of local counts on their way: what is refused, what comes back from columns, hashes, transforms, a whole
round."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest
from scipy.linalg import hadamard
from scipy.stats import binom

from cloister.core.errors import Refused
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.plugins.oracles.local.counts.optimised_unary import OptimisedUnary
from cloister.plugins.oracles.local.hadamard_transform import parity, transform
from cloister.plugins.oracles.local.hashing import Hashes
from cloister.plugins.oracles.local.randomised_response import filled, members, packed, unpacked
from cloister.plugins.oracles.local.reports import Reports
from tests.alarms import Alarm
from tests.plugins.oracles.local.counts.test_counts import (
    CLASSES,
    each_oracle,
    numbered,
    opened,
)

HASHES = Hashes(PublicRng.from_seed(3), 5)


def sent(channel: Any, n: int = 40, levels: int = 2) -> Reports:
    return channel.encode(np.random.default_rng(1).integers(-1, 3, (n, levels)), numbered(n), NoiseRng.for_tests(1))


@each_oracle
def test_answers_that_no_encoder_sends_are_refused(oracle):
    channel = opened(oracle, (3, 20))
    good = sent(channel)
    wrong = [
        attrs.evolve(good, users=good.users.astype(np.int64)),
        attrs.evolve(good, users=good.users[:-1]),
        attrs.evolve(good, users=good.users[None]),
        attrs.evolve(good, users=np.concatenate([good.users[:1], good.users[:-1]])),
        attrs.evolve(good, answers=good.answers.astype(np.int32)),
        attrs.evolve(good, answers=good.answers.astype(np.float64)),
        attrs.evolve(good, answers=good.answers[:, 0]),
        attrs.evolve(good, answers=good.answers[:, :0]),
        attrs.evolve(good, answers=np.concatenate([good.answers, good.answers], axis=1)),
        attrs.evolve(good, answers=np.full_like(good.answers, 255)),
        attrs.evolve(good, question=good.question ^ 1),
    ]
    channel.absorb(good)
    for report in wrong:
        with pytest.raises(Refused):
            channel.absorb(report)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("size", [4, 256, 4096])
def test_a_unary_report_supports_no_more_buckets_than_honest_ones_do(epsilon, size):
    """Else one who lies sets all bits and is worth a person in every bucket at once. The limit is exceeded with a
    chance below e^-32."""
    channel = opened(OptimisedUnary(), (size,), epsilon)
    (level,) = channel.asked.levels
    assert binom.sf(level.most, size, level.chances.other) < np.exp(-32)
    assert binom.sf(level.most - 1, size - 1, level.chances.other) < np.exp(-32)
    if size >= 256:
        assert level.most < 0.65 * size
    bits = np.zeros((10, size), bool)
    bits[:, : level.most] = True
    channel.absorb(Reports(numbered(10), packed(bits), channel.asked.stamp))
    if level.most < size:
        bits[3, level.most] = True
        with pytest.raises(Refused, match="no encoder sends"):
            channel.absorb(Reports(numbered(10), packed(bits), channel.asked.stamp))


def test_a_unary_report_of_too_many_buckets_is_sent_as_none():
    channel = opened(OptimisedUnary(), (256,))
    (level,) = channel.asked.levels
    words = np.full((3, 256), 2**63, np.uint64)
    for user, number in enumerate((level.most - 1, level.most, level.most + 1)):
        words[user, :number] = 0
    sets = unpacked(level.randomise(np.full(3, -1), numbered(3), words), 256)
    assert sets.sum(axis=1).tolist() == [level.most - 1, level.most, 0]


def test_padding_beyond_a_level_s_answer_is_refused():
    """Level 0 takes one byte of the three that level 1 takes."""
    channel = opened(CLASSES[3](), (3, 20))
    good = sent(channel)
    answers = good.answers.copy()
    answers[channel.asked.sharing.answers(good.users)[0][0], 2] = 1
    with pytest.raises(Refused, match="level 0"):
        channel.absorb(attrs.evolve(good, answers=answers))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"users": np.zeros(3, np.int64)}, "column 'users'"),
        ({"answers": np.zeros((3, 1), np.float32)}, "column 'answers'"),
        ({"answers": np.zeros(3, np.uint8)}, "column 'answers'"),
        ({"users": np.zeros(2, np.uint64)}, "differ in length"),
        ({"question": np.array([1, 1, 2], np.uint64)}, "several questions"),
        ({"more": np.zeros(3)}, "have the columns"),
    ],
)
def test_columns_that_are_no_reports_are_refused(change, text):
    good = Reports(np.arange(3, dtype=np.uint64), np.zeros((3, 1), np.uint8), 9).columns()
    with pytest.raises(Refused, match=text):
        Reports.load({**good, **change})


def test_hashes_are_the_documented_polynomial_in_exact_integers():
    users, ids = numbered(20), np.random.default_rng(5).integers(0, 2**62, 20)
    ids[:5] = np.arange(5)
    words = [HASHES.seed.child(name).of_users(users).tolist() for name in ("low", "high", "shift")]
    expected = []
    for a0, a1, b, v in zip(*words, ids.tolist(), strict=True):
        top = ((a0 * (v % 2**32) + a1 * (v >> 32) + b) % 2**64) >> 32
        expected.append(top * 5 >> 32)
    assert HASHES.of(users, ids).tolist() == expected


def test_looking_a_hash_up_agrees_with_computing_it():
    """The comparison with a moving interval, over all buckets and at some, against the hash itself, in every value."""
    for symbols in (2, 3, 5, 400, 2**16):
        hashes, users = Hashes(PublicRng.from_seed(symbols), symbols), numbered(9000)
        values = np.random.default_rng(6).integers(0, symbols, 9000)
        values[:2] = 0, symbols - 1
        values[100:] = np.where(np.arange(8900) % 2, hashes.of(users[100:], np.full(8900, 4)), values[100:])
        brute = [int((hashes.of(users, np.full(9000, v)) == values).sum()) for v in range(7)]
        assert hashes.everywhere(users, values, 7).tolist() == brute
        assert hashes.at(users, values, np.arange(7)).tolist() == brute
        large = np.array([2**61 + 5, 2**32, 4], np.int64)
        assert hashes.at(users, values, large).tolist() == [
            int((hashes.of(users, np.full(9000, v)) == values).sum()) for v in large
        ]


@pytest.mark.alarm(1e-8)
@pytest.mark.parametrize(("v", "w"), [(0, 1), (0, 2**31), (7, 8), (3, 2**40 + 3), (2**59, 2**59 + 1)])
def test_hashes_of_two_buckets_are_uniform_and_independent(v, w, alarm: Alarm):
    """All 25 pairs of values, 200,000 users."""
    n = 200_000
    pairs = HASHES.of(numbered(n), np.full(n, v)) * 5 + HASHES.of(numbered(n), np.full(n, w))
    alarm.near(np.bincount(pairs, minlength=25), n / 25, np.sqrt(n * (1 / 25) * (24 / 25)))


@pytest.mark.parametrize("bits", [0, 1, 5, 9])
def test_the_transform_is_the_hadamard_matrix_in_exact_integers(bits):
    values = np.random.default_rng(7).integers(-(2**40), 2**40, 2**bits)
    kept = values.copy()
    assert np.array_equal(transform(values), hadamard(2**bits).astype(np.int64) @ values)
    assert np.array_equal(values, kept)
    rows = np.arange(2**bits, dtype=np.uint64)
    assert np.array_equal(1 - 2.0 * parity(rows[:, None] & rows), hadamard(2**bits))


def test_hadamard_supports_are_those_of_a_direct_count():
    level = opened(CLASSES[1](), (11,), 1.0).asked.levels[0]
    users, answers = numbered(500), np.random.default_rng(8).integers(0, 2, (500, 1)).astype(np.uint8)
    signs = hadamard(16)[level.rows(users)][:, :11]
    direct = (signs == 1 - 2 * answers.astype(np.int64)).sum(axis=0)
    assert np.array_equal(level.supports(level.tally(users, answers), 500), direct)


@pytest.mark.parametrize("size", [1, 7, 8, 9, 40])
def test_sets_are_packed_and_counted_bit_by_bit(size):
    sets = np.random.default_rng(9).random((50, size)) < 0.4
    assert np.array_equal(members(packed(sets), size), sets.sum(axis=0))
    assert not filled(packed(sets), size)
    assert filled(packed(np.ones((1, size), bool)), size - 1) == (size % 8 != 1)
