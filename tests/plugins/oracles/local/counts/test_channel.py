"""Reports of local counts on their way: what is refused, what is sent as none, and hashes that are looked up."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest
from scipy.stats import binom

from cloister.plugin import NoiseRng, PublicRng, Refused
from cloister.plugins.oracles.local.counts.optimised_unary import OptimisedUnary
from cloister.plugins.oracles.local.hashing import Hashes
from cloister.plugins.oracles.local.randomised_response import packed, unpacked
from cloister.plugins.oracles.local.reports import Reports
from tests.plugins.oracles.local.counts.test_counts import each_class, numbered, opened


def sent(channel: Any) -> Reports:
    return channel.encode(np.random.default_rng(1).integers(-1, 3, (40, 2)), numbered(40), NoiseRng.for_tests(1))


@each_class
def test_answers_that_no_encoder_sends_are_refused(cls):
    """Other types and shapes: the conformance kit."""
    channel = opened(cls(), (3, 20))
    good = sent(channel)
    channel.absorb(good)
    for changes in (
        {"users": np.concatenate([good.users[:1], good.users[:-1]])},  # two reports of one user
        {"answers": np.full_like(good.answers, 255)},
        {"question": good.question ^ 1},
    ):
        with pytest.raises(Refused):
            channel.absorb(attrs.evolve(good, **changes))


@pytest.mark.parametrize(("epsilon", "size"), [(0.5, 4), (0.5, 4096), (1.0, 256), (4.0, 4), (4.0, 4096)])
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
    channel = opened(OptimisedUnary(), (3, 20))
    good = sent(channel)
    answers = good.answers.copy()
    answers[channel.asked.sharing.answers(good.users)[0][0], 2] = 1
    with pytest.raises(Refused, match="level 0"):
        channel.absorb(attrs.evolve(good, answers=answers))


def test_looking_a_hash_up_agrees_with_computing_it():
    """The comparison with a moving interval, over all buckets and at some, against the hash itself, in every value."""
    users = numbered(9000)
    for symbols in (2, 400, 2**16):
        hashes, values = Hashes(PublicRng.from_seed(symbols), symbols), np.arange(9000) % symbols
        values[100:] = np.where(np.arange(8900) % 2, hashes.of(users[100:], np.full(8900, 4)), values[100:])
        ids = [*range(7), 2**61 + 5, 2**32]
        brute = [int((hashes.of(users, np.full(9000, v)) == values).sum()) for v in ids]
        assert hashes.at(users, values, np.array(ids)).tolist() == brute
        assert hashes.everywhere(users, values, 7).tolist() == brute[:7]
