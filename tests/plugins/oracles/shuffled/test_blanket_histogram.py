"""Counts from hash values among uniform ones: what is refused and stated, and the exact divergence against enumeration
of all messages."""

from __future__ import annotations

import itertools
import math
import tracemalloc
from collections import Counter
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
import pytest
from scipy.stats import chi2_contingency

from cloister.plugin import Budget, Ids, Ints, InvalidInput, NoiseRng, PublicRng, QuestionContext, Refused, Space
from cloister.plugins.oracles.shuffled import blanket_histogram as module
from cloister.plugins.oracles.shuffled.blanket_histogram import BlanketHistogram, delta_of, losses
from cloister.plugins.oracles.shuffled.tagged import BlanketChannel
from tests.alarms import Alarm

BUDGET = Budget("pure", 1.0, delta=1e-6)


def context(people: int, asked: int = 0) -> QuestionContext:
    return QuestionContext(asked or people, 1.0, PublicRng.from_seed(1), people)


def opened(sizes: tuple[int, ...], people: int = 2000, budget: Budget = BUDGET, **options: Any) -> BlanketChannel:
    return BlanketHistogram(**options).open(Space(sizes), budget, context(people))


def users(n: int) -> Ids:
    return np.arange(n, dtype=np.uint64)


@pytest.mark.parametrize(("levels", "people", "deviation"), [(1, 10**4, 9), (1, 10**6, 9), (10, 10**4, 25)])
def test_few_messages_and_a_small_error_at_any_size(levels: int, people: int, deviation: float) -> None:
    channel = opened((2**60,) * levels, people)
    assert channel.messages == 5 * levels
    assert channel.message_bytes == 12
    assert channel.deviation < deviation


def test_few_users_send_more_blankets() -> None:
    channel = opened((100,), people=100)
    assert channel.blankets > 4
    assert channel.delta <= 1e-6
    with pytest.raises(InvalidInput, match="cannot hide"):
        opened((100,), people=10, blankets=4)


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


def test_what_no_user_sends_is_refused_and_a_shuffler_can_tell_whose_it_is() -> None:
    channel = opened((40, 3))
    good = channel.encode(np.zeros((4, 2), np.int64), users(4), NoiseRng.for_tests(1))
    values, levels = good.values.copy(), good.levels.copy()
    values[0], levels[-1] = channel.values, 2
    assert channel.whole(good).all()
    assert channel.whole(attrs.evolve(good, levels=levels, values=values)).tolist() == [False, True, True, False]
    for message, changes in (
        ("another question", {"question": good.question + 1}),
        ("a value of", {"values": values}),
        ("of level 2", {"levels": levels}),
        ("differ in length", {"levels": good.levels[:-1]}),
        ("arrays of", {"values": good.values.astype(np.int64)}),
    ):
        with pytest.raises(Refused, match=message):
            channel.absorb(attrs.evolve(good, **changes))


Law = dict[tuple[tuple[int, int], ...], Fraction]
Hash = tuple[int, int]
"""A hash function's values of two rows, x and x'."""


def law(row: int | None, hashes: list[Hash], blankets: int, values: int) -> Law:
    """Of the multiset of messages (hash, value): one user's, in this bucket or none, among uniform ones."""
    every = list(itertools.product(range(len(hashes)), range(values)))
    hers = every if row is None else [(v, hashes[v][row]) for v in range(len(hashes))]
    found: Counter[tuple[tuple[int, int], ...]] = Counter()
    for mine in hers:
        for others in itertools.product(every, repeat=blankets):
            found[tuple(sorted((mine, *others)))] += 1
    total = len(hers) * len(every) ** blankets
    return {messages: Fraction(count, total) for messages, count in found.items()}


def divergence(one: Law, other: Law, epsilon: float) -> float:
    """Sum of (P - e^eps Q)_+."""
    e = math.exp(epsilon)
    return float(sum(max(0.0, float(p) - e * float(other.get(m, 0))) for m, p in one.items()))


def worst_pair(blankets: int, values: int) -> list[tuple[float, float]]:
    """Chances under P and Q of (messages of x, messages of x'), hers included, exactly."""
    found, rest = Counter[tuple[int, int, int]](), 1 - 2 / values
    for x in range(blankets + 1):
        for other in range(blankets + 1 - x):
            left = blankets - x - other
            ways = math.factorial(blankets) / (math.factorial(x) * math.factorial(other) * math.factorial(left))
            chance = ways * (1 / values) ** (x + other) * rest**left
            found[(x + 1, other, 0)] += chance  # type: ignore[assignment]
            found[(x, other + 1, 1)] += chance  # type: ignore[assignment]
    keys = {(x, y) for x, y, _ in found}
    return [(float(found[(*key, 0)]), float(found[(*key, 1)])) for key in keys]


def exact(epsilon: float, blankets: int, values: int, levels: int = 1) -> float:
    pairs, e = worst_pair(blankets, values), math.exp(epsilon)
    both = [(1.0, 1.0)]
    for _ in range(levels):
        both = [(p * a, q * b) for p, q in both for a, b in pairs]
    return sum(max(0.0, p - e * q) for p, q in both)


@pytest.mark.parametrize(("epsilon", "blankets", "values"), [(0.2, 12, 2), (0.2, 60, 9), (0.7, 30, 5), (1.5, 60, 9)])
def test_the_computed_delta_is_above_the_exact_one_and_near_it(epsilon: float, blankets: int, values: int) -> None:
    true = exact(epsilon, blankets, values)
    assert true <= delta_of(epsilon, blankets, values) <= true * 1.02 + 1e-12


def test_levels_compose_as_enumeration_says() -> None:
    for levels, blankets, values in ((2, 16, 3), (3, 8, 2)):
        true = exact(0.9, blankets, values, levels)
        assert true <= delta_of(0.9, blankets, values, levels) <= true * 1.02 + 1e-12


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_no_hash_family_is_worse_than_the_pair_that_is_accounted_for(epsilon: float) -> None:
    """All messages are enumerated: rows whose hashes never agree (the worst), at times, or always, and users in no
    bucket."""
    for values, hashes in (
        (2, [(0, 1), (1, 0)]),
        (2, [(0, 1), (1, 1)]),
        (3, [(0, 1), (2, 2), (1, 0)]),
        (3, [(0, 1), (1, 2)]),
        (2, [(0, 0), (1, 1)]),
    ):
        blankets = 3
        most = exact(epsilon, blankets, values)
        rows = [law(row, hashes, blankets, values) for row in (0, 1, None)]
        for one, other in itertools.permutations(rows, 2):
            assert divergence(one, other, epsilon) <= most + 1e-12
        disjoint = all(a != b for a, b in hashes)
        if disjoint:
            assert divergence(rows[0], rows[1], epsilon) == pytest.approx(most)


@pytest.mark.thorough
def test_many_levels_take_bounded_memory_and_err_on_the_safe_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """60 levels of nine million blankets took 16 GB: the law of all levels together is as long as their number's
    square. Steps are coarser then; where even they are too many nothing is promised."""
    case = 0.5, 5_000, 12, 3
    fine = delta_of.__wrapped__(*case)
    size = 3 * len(losses(5_000, 12, 0.5 / (module.FINE * 3))[1])
    monkeypatch.setattr(module, "MAX_STEPS", size // 5)
    coarse = delta_of.__wrapped__(*case)
    assert fine < coarse < 1.1 * fine
    monkeypatch.setattr(module, "MAX_STEPS", size // 200)
    assert delta_of.__wrapped__(*case) == 1.0
    monkeypatch.undo()
    tracemalloc.start()
    try:
        assert 0 < delta_of.__wrapped__(0.0725, 9_216_000, 65_536, 60) <= 1
        assert tracemalloc.get_traced_memory()[1] < 2**31
    finally:
        tracemalloc.stop()


def test_steps_are_as_coarse_as_memory_asks_and_a_fifteenth_of_epsilon_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """1,000 steps, halved until the law fits; where 15 do not fit either, nothing is promised."""
    of = (1.0, 2000, 20)
    fine, steps = delta_of.__wrapped__(*of), len(losses(2000, 20, 1.0 / 15)[1])
    monkeypatch.setattr(module, "MAX_STEPS", steps)
    assert fine < delta_of.__wrapped__(*of) < 1
    monkeypatch.setattr(module, "MAX_STEPS", steps - 1)
    assert delta_of.__wrapped__(*of) == 1.0


def test_messages_agree_with_a_bucket_alike_whether_it_is_looked_at_alone_or_among_all() -> None:
    channel = opened((1000,))
    summary = channel.pooled(np.arange(300)[:, None] % 7, users(300), NoiseRng.for_tests(3))
    ids = np.array([0, 3, 6, 7, 999])
    alone = channel._agreeing(summary, 0, ids)
    assert alone.tolist() == channel._agreeing(summary, 0, None)[ids].tolist()
    assert alone[0] >= 43
