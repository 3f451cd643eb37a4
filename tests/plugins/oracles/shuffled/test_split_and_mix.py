"""Sums from shuffled shares: exact integers, the noise that is promised, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import attrs
import numpy as np
import pytest

from cloister.accounting.composition import Spent
from cloister.accounting.conversions import delta_of_mu, mu_of
from cloister.core.aggregated import to_integers
from cloister.plugin import (
    Bound,
    BucketedVectors,
    Budget,
    Ids,
    InvalidInput,
    NoiseRng,
    PublicRng,
    QuestionContext,
    Refused,
    Space,
)
from cloister.plugins.oracles.shuffled.blanket_histogram import BlanketHistogram
from cloister.plugins.oracles.shuffled.mixing import Mixed, MixingChannel, added_up, split
from cloister.plugins.oracles.shuffled.secrecy import delta_of_distance, log2_distance, max_distance
from cloister.plugins.oracles.shuffled.split_and_mix import SplitAndMix
from tests.alarms import Alarm

EPSILON, DELTA = 1.0, 1e-6
BUDGET = Budget("gaussian", mu_of(EPSILON, DELTA / 2) ** 2, delta=DELTA / 2)
BOUND = Bound(1000, 3)


def context(people: int = 1000) -> QuestionContext:
    return QuestionContext(people, 0.5, PublicRng.from_seed(1))


def opened(sizes: tuple[int, ...] = (5, 3), people: int = 1000, bound: Bound = BOUND, **options: Any) -> MixingChannel:
    return SplitAndMix(**options).open(Space(sizes), BUDGET, context(people), bound)


def users(n: int) -> Ids:
    return np.arange(n, dtype=np.uint64) * np.uint64(7919) + np.uint64(5)


def nowhere(people: int, levels: int, width: int) -> BucketedVectors:
    return BucketedVectors(np.full((people, levels), -1), np.zeros((people, width), np.int64))


def test_shares_add_up_and_all_but_the_last_are_the_words() -> None:
    g = np.random.default_rng(1)
    values, words = g.integers(0, 2**63, (4, 6)).astype(np.uint64), g.integers(0, 2**63, (4, 6, 9)).astype(np.uint64)
    for bits in (1, 7, 32, 41, 62):
        cut, mask = split(values, words, bits), np.uint64(2**bits - 1)
        assert cut.shape == (4, 6, 10)
        assert ((cut.sum(axis=-1, dtype=np.uint64) - values) & mask == 0).all()
        assert (cut[..., :-1] == words & mask).all()
        slots = np.repeat(np.arange(6), 10)[None].repeat(4, 0).reshape(-1)
        total = added_up(slots, cut.reshape(-1), 6, bits)
        assert ((total - values.sum(axis=0, dtype=np.uint64)) & mask == 0).all()


@pytest.mark.alarm(1e-7)
def test_every_number_has_noise_of_its_own(alarm: Alarm) -> None:
    """Else the difference of two numbers is exact. What 4,000 people in no bucket send for each two of 8 numbers is
    uncorrelated, in size too."""
    channel, n = opened((2, 2), people=4000, bound=Bound(1000, 2)), 4000
    sent = channel.encode(nowhere(n, 2, 2), users(n), NoiseRng.for_tests(8)).shares
    shares = sent.reshape(n, channel.slots, channel.shares_per_slot)
    numbers = to_integers(shares.astype(np.uint64).sum(axis=2, dtype=np.uint64), channel.bits).astype(np.float64)
    assert numbers.std() > 0.9 * channel.share
    for values in (numbers, np.abs(numbers)):
        alarm.near(np.corrcoef(values.T)[np.triu_indices(channel.slots, 1)], 0, 1 / math.sqrt(n), of=2)


def test_the_shares_of_all_numbers_together_cost_the_delta() -> None:
    """What each number's shares say adds up over all of them: 1 number and 24 use the same delta up, 24 with more
    shares each."""
    for sizes in ((1,), (5, 3)):
        channel = opened(sizes)
        (event,) = channel.events
        numbers = sum(sizes) * BOUND.dimension
        assert channel.slots == numbers
        assert log2_distance(channel.min_honest_users, channel.bits, channel.shares_per_slot) <= -channel.security
        assert numbers * 2.0**-channel.security <= max_distance(BUDGET.delta, BUDGET.mu)
        assert event.delta >= delta_of_distance(numbers * 2.0**-channel.security, BUDGET.mu)
        assert 0.999 * BUDGET.delta <= event.delta <= BUDGET.delta


def test_as_many_integers_as_a_replaced_row_can_change_are_declared() -> None:
    """All coordinates, in the bucket that it leaves and in the one that it goes to, on every level."""
    channel = opened((5, 3))
    vectors = np.array([[400, -300, 200]])
    before, after = (
        channel.pooled(BucketedVectors(np.array([ids]), vectors), users(1), NoiseRng.secret())
        for ids in ((0, 0), (4, 2))
    )
    (event,) = channel.events
    assert event.l0_sensitivity == np.count_nonzero(before.vector != after.vector) == 12


@pytest.mark.alarm(1e-7)
@pytest.mark.parametrize("on_the_wire", [True, False])
def test_messages_and_the_ideal_functionality_have_the_declared_noise(on_the_wire: bool, alarm: Alarm) -> None:
    """Noise of 60 numbers over 30 runs with 40 users and secret words, in declared standard deviations."""
    people, bound = 40, Bound(1000, 3)
    channel, nobody, found = opened((20,), people=people), nowhere(people, 1, 3), []
    for _ in range(30):
        rng = NoiseRng.secret()
        wire = channel.absorb(channel.encode(nobody, users(people), rng)) if on_the_wire else None
        summary = channel.pooled(nobody, users(people), rng) if wire is None else wire
        assert summary.owed == (0 if on_the_wire else people)
        found.append(channel.decode(summary, rng.child("decode")).at(np.arange(20)).ravel())
    noise = np.concatenate(found) / channel.deviation
    alarm.near(noise.mean(), 0, 1 / math.sqrt(len(noise)), of=2)
    alarm.near(noise.var(), 1, math.sqrt(2 / len(noise)), of=2)
    assert channel.deviation**2 == pytest.approx(SplitAndMix().variance(Space((20,)), BUDGET, context(people), bound))


@pytest.mark.parametrize("honest", [0.3, 0.9, 1.0])
def test_the_honest_share_of_the_noise_meets_the_stated_guarantee(honest: bool) -> None:
    """All noise of the others is taken off: what is left, with the secrecy of the least number of shares, is within
    (epsilon, delta)."""
    for channel, moved in (
        (opened((5, 3), honest=honest), 2 * BOUND.l2),
        (SplitAndMix(honest=honest).open(Space((5, 3)), BUDGET, context()), math.sqrt(2)),
    ):
        assert channel.min_honest_users == math.ceil(honest * 1000)
        left = channel.share * math.sqrt(channel.min_honest_users)
        mu = moved * math.sqrt(2) * 2.0**channel.shift / left
        (event,) = channel.events
        assert event.sigma == pytest.approx(left)
        assert delta_of_mu(mu, EPSILON) + event.delta <= DELTA
        assert mu > 0.999 * BUDGET.mu
        assert Spent.on(channel.events).epsilon(DELTA) <= EPSILON * 1.0002


@pytest.mark.parametrize("buckets", [None, 16])
def test_no_replaced_row_moves_counts_further_than_the_noise_pays_for(buckets: int | None) -> None:
    """Every pair of buckets, also two that share a place with opposite signs, which moves it by 2 and not by
    sqrt(2)."""
    space = Space((40, 9))
    channel = SplitAndMix(buckets=buckets).open(space, BUDGET, context())
    ids = np.stack([np.arange(-1, 40), np.arange(-1, 40) % 10 - 1], axis=1)
    numbers = channel._numbers(channel.layout.placed(ids)).astype(float)
    moved = max(float(np.linalg.norm(numbers - one, axis=1).max()) for one in numbers)
    assert channel.layout.hashed == ((False, False) if buckets is None else (True, False))
    assert moved == pytest.approx(math.sqrt(4 if buckets is None else 6) * 2.0**channel.shift)
    assert moved <= BUDGET.mu * channel.sigma


def test_buckets_of_a_large_space_are_read_at_their_places() -> None:
    """Exactly, where nobody shares a bucket's place and there is hardly any noise."""
    channel = SplitAndMix(buckets=64).open(Space((2**40,)), BUDGET, context(), Bound(1000, 1))
    silent = attrs.evolve(channel, sigma=1e-9)
    items = BucketedVectors(np.full((10, 1), 2**39), np.full((10, 1), 500))
    table = silent.decode(silent.pooled(items, users(10), NoiseRng.secret()), NoiseRng.secret())
    assert channel.layout.places == (64,)
    assert table.at(np.array([2**39]))[0, 0] == 10 * 500 * 0.5
    assert set(np.abs(table.at(np.arange(1000))[:, 0])) == {0.0, 2500.0}


def test_plans_of_absurdly_many_messages_are_refused() -> None:
    with pytest.raises(InvalidInput, match="limit is 1000"):
        opened((50,), bound=Bound(2**17, 10), most_messages=1000)


def test_the_ring_has_room_for_all_users_and_far_noise() -> None:
    channel = opened((2,), people=10**6, bound=Bound(2**20, 4))
    largest = 4 * 10**6 * 2.0**20 * 2.0**channel.shift + 60 * channel.sigma
    assert largest < 2.0 ** (channel.bits - 1) <= 4 * largest
    small = opened((2,))
    crowd = Mixed(np.zeros(6, np.uint64), np.full(6, 4001 * small.shares_per_slot))
    with pytest.raises(Refused, match="has room for 4000"):
        small.decode(crowd, NoiseRng.secret())


def test_what_no_user_sends_is_refused_and_a_shuffler_can_tell_whose_it_is() -> None:
    channel = opened((2,))
    good = channel.encode(nowhere(4, 1, 3), users(4), NoiseRng.for_tests(1))
    shares, slots = good.shares.copy(), good.slots.copy()
    shares[2 * channel.messages] = 2**channel.bits
    slots[0] = channel.slots
    for whole, message, changes in (
        ([True, True, False, True], "not in the ring", {"shares": shares}),
        ([False, True, True, True], "in no slot", {"slots": slots}),
        ([False] * 4, "another question", {"question": good.question + 1}),
        ([True] * 4, "arrays of one length", {"slots": good.slots.astype(np.int64)}),
    ):
        bad = attrs.evolve(good, **changes)
        assert channel.whole(bad).tolist() == whole
        with pytest.raises(Refused, match=message):
            channel.absorb(bad)
    assert channel.whole(good).all()
    slots[0] = slots[-1]  # one of these too many, one of the first slot too few
    assert channel.whole(attrs.evolve(good, slots=slots)).tolist() == [False, True, True, True]


@pytest.mark.parametrize(
    ("oracle", "asked", "people", "delta", "message"),
    [
        (SplitAndMix(), 500, 1000, 1e-6, "share=budget"),
        (BlanketHistogram(), 500, 1000, 1e-6, "share=budget"),
        (SplitAndMix(), 1000, 1000, 0.0, "spends delta"),
        (BlanketHistogram(), 1000, 1000, 0.0, "spends delta"),
        (SplitAndMix(), 20, 20, 1e-6, "19 honest users"),
    ],
)
def test_questions_that_messages_cannot_answer_are_refused(
    oracle: Any, asked: int, people: int, delta: float, message: str
) -> None:
    context = QuestionContext(asked, 0.5, PublicRng.from_seed(1), people)
    with pytest.raises(InvalidInput, match=message):
        oracle.open(Space((4,)), Budget(oracle.measure, 1.0, delta=delta), context)
