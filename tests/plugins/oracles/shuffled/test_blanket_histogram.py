"""Counts from hash values among uniform ones: unbiased, as noisy as declared, private, and for any ids."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from cloister.core.buckets import QuestionContext, Space
from cloister.core.budget import Budget
from cloister.core.errors import InvalidInput, Refused
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.types import Ids, Ints
from cloister.plugins.oracles.shuffled.blanket_histogram import BlanketHistogram, delta_of
from cloister.plugins.oracles.shuffled.tagged import BlanketChannel, Tagged
from tests.alarms import Alarm

BUDGET = Budget("pure", 1.0, delta=1e-6)


def opened(sizes: tuple[int, ...], people: int = 2000, budget: Budget = BUDGET, seed: int = 1) -> BlanketChannel:
    return BlanketHistogram().open(Space(sizes), budget, QuestionContext(people, 1.0, PublicRng.from_seed(seed)))


def users(n: int) -> Ids:
    return np.arange(n, dtype=np.uint64)


def test_listed_levels_and_single_looks_agree() -> None:
    """The kernel for all buckets and the one for a few give the same integers."""
    n = 1000
    items = (np.arange(n) % 50)[:, None]
    small = opened((50,), people=n)
    large = BlanketChannel(
        small.mechanism,
        small.budget,
        Space((2**20,)),
        n,
        small.min_honest_users,
        small.blankets,
        small.values,
        small.delta,
        small.seed,
    )
    report = small.encode(items, users(n), NoiseRng.for_tests(1))
    other = Tagged(large.stamp, report.levels, report.tags, report.values)
    one = small.decode(small.absorb(report), NoiseRng.secret()).at(np.arange(50))
    assert (one == large.decode(large.absorb(other), NoiseRng.secret()).at(np.arange(50))).all()


def test_few_messages_and_a_small_error_at_any_size() -> None:
    for sizes, people in (((2**60,), 10**4), ((2**60,), 10**6)):
        channel = opened(sizes, people)
        assert channel.messages == 5
        assert channel.message_bytes == 12
        assert channel.deviation < 9
    ten = opened((2**60,) * 10, 10**4)
    assert ten.messages == 50
    assert ten.deviation < 25


def test_few_users_send_more_blankets() -> None:
    channel = opened((100,), people=100)
    assert channel.blankets > 4
    assert channel.delta <= 1e-6
    with pytest.raises(InvalidInput, match="cannot hide"):
        BlanketHistogram(blankets=4).open(Space((100,)), BUDGET, QuestionContext(10, 1.0, PublicRng.from_seed(1)))


@pytest.mark.thorough
@pytest.mark.alarm(1e-8)
def test_no_event_tells_neighbours_apart_better_than_declared(alarm: Alarm) -> None:
    """The likelihood ratio N_x / N_x', which is the best statistic there is, over 20,000 runs of the wire form on 60
    users who all but one are elsewhere; lower bound of delta by Clopper and Pearson. With a quarter of the
    blankets it is found out."""
    budget = Budget("pure", 1.0, delta=0.02)
    channel = BlanketHistogram(honest=1.0, blankets=4).open(
        Space((3,)), budget, QuestionContext(60, 1.0, PublicRng.from_seed(1))
    )
    few = BlanketChannel(
        channel.mechanism, budget, channel.space, 60, 60, 1, channel.values, channel.delta, channel.seed
    )
    for tried, caught in ((channel, False), (few, True)):
        scores = []
        for row in (0, 1):
            runs = 20_000
            items = np.full((runs * 60, 1), -1)
            items[::60] = row
            report = tried.encode(items, users(runs * 60), NoiseRng.for_tests(5 + row))
            each = 60 * (1 + tried.blankets)
            kept = np.ones((runs, each), bool)
            kept[:, 1 + tried.blankets :: 1 + tried.blankets] = False  # messages of the others, which they could tell
            agree = [
                (tried.hashes(0).of(report.tags, np.full(len(report.tags), x)) == report.values).reshape(runs, each)
                & kept
                for x in (0, 1)
            ]
            scores.append(agree[0].sum(axis=1) > math.e * agree[1].sum(axis=1))
        low = alarm.proportion(int(scores[0].sum()), 20_000, 2)[0]
        high = alarm.proportion(int(scores[1].sum()), 20_000, 2)[1]
        assert (low - math.e * high > channel.delta) == caught


def dependence(one: Ints, other: Ints) -> float:
    """How probable it is that independent numbers below 16 depend on each other as these do (chi-square)."""
    found: Any = chi2_contingency(np.bincount(16 * one + other, minlength=256).reshape(16, 16))
    return float(found.pvalue)


@pytest.mark.alarm(1e-7)
@pytest.mark.parametrize("bucket", [-1, 7])
def test_a_tag_does_not_tell_its_value(bucket: int, alarm: Alarm) -> None:
    """Else a message that says something is known by its value. High and low bits of tags and values, of one message
    and of two."""
    channel, n = opened((400,)), 20_000
    sent = channel.encode(np.full((n, 1), bucket), users(n), NoiseRng.secret())
    shape = n, 1 + channel.blankets
    values = (sent.values.reshape(shape).astype(np.int64) * 16) // channel.values
    for shift in (0, 60):
        tags = ((sent.tags.reshape(shape) >> np.uint64(shift)) & np.uint64(15)).astype(np.int64)
        alarm.fits(dependence(tags[:, 1:].ravel(), values[:, 1:].ravel()), of=5)
        alarm.fits(dependence(tags[:, 1], values[:, 2]), of=5)
    alarm.fits(dependence(values[:, 1], values[:, 2]), of=5)


def test_levels_pay_for_each_other() -> None:
    """A row is on every level: two levels of blankets hide it less than one, at the same number of values."""
    one, three = opened((50,)), opened((50, 50, 50))
    for channel, levels in ((one, 1), (three, 3)):
        (event,) = channel.events
        blankets = channel.blankets * channel.min_honest_users
        found = delta_of(BUDGET.epsilon, blankets, channel.values, levels)
        assert found <= event.delta <= min(BUDGET.delta, found * (1 + 2.0**-8))  # rounded up, alike on all machines
    assert delta_of(BUDGET.epsilon, one.blankets * one.min_honest_users, one.values, 3) > BUDGET.delta
    assert three.values < one.values / 2


def test_what_no_user_sends_is_refused() -> None:
    channel = opened((40, 3))
    report = channel.encode(np.zeros((4, 2), np.int64), users(4), NoiseRng.for_tests(1))
    beyond, nowhere = report.values.copy(), report.levels.copy()
    beyond[0], nowhere[-1] = channel.values, 2
    assert channel.whole(report).all()
    assert channel.whole(Tagged(report.question, nowhere, report.tags, beyond)).tolist() == [False, True, True, False]
    for bad, message in (
        (Tagged(report.question + 1, report.levels, report.tags, report.values), "another question"),
        (Tagged(report.question, report.levels, report.tags, beyond), "a value of"),
        (Tagged(report.question, nowhere, report.tags, report.values), "of level 2"),
        (Tagged(report.question, report.levels[:-1], report.tags, report.values), "differ in length"),
        (Tagged(report.question, report.levels, report.tags, report.values.astype(np.int64)), "lines of"),
    ):
        with pytest.raises(Refused, match=message):
            channel.absorb(bad)
    columns = report.columns()
    for wrong in (
        {name: c for name, c in columns.items() if name != "tag"},
        {**columns, "value": columns["value"][:-1]},
        {**columns, "question": np.arange(len(report.tags), dtype=np.uint64)},
    ):
        with pytest.raises(Refused):
            Tagged.load(wrong)


def test_questions_that_it_cannot_answer_are_refused() -> None:
    with pytest.raises(InvalidInput, match="share=budget"):
        BlanketHistogram().open(Space((4,)), BUDGET, QuestionContext(500, 1.0, PublicRng.from_seed(1), 1000))
    with pytest.raises(InvalidInput, match="delta of its own"):
        BlanketHistogram().open(Space((4,)), Budget("pure", 1.0), QuestionContext(500, 1.0, PublicRng.from_seed(1)))


def test_a_liar_adds_as_many_people_as_she_has_messages_and_no_more() -> None:
    """All of them name the bucket, or none does."""
    channel, ids = opened((30, 30)), users(40)
    (gain, _), each = channel.gains, 1 + channel.blankets
    rng = NoiseRng.for_tests(4)
    honest = channel.absorb(channel.encode(np.zeros((40, 2), np.int64), ids, rng))
    before = channel.decode(honest, rng).at(np.array([7]), 1)[0]
    levels, tags = np.repeat(np.arange(2, dtype=np.uint16), each), np.arange(2 * each, dtype=np.uint64)
    named = channel.hashes(1).of(tags, np.full(len(tags), 7)).astype(np.uint16)
    for values, moved in ((named, gain.most), ((named + 1) % channel.values, -gain.least)):
        lie = channel.absorb(Tagged(channel.stamp, levels, tags, values.astype(np.uint16)))
        both = honest.merge(lie)
        assert channel.decode(both, rng).at(np.array([7]), 1)[0] - before == pytest.approx(moved)
        assert channel.reported(both) == (41, 41)
