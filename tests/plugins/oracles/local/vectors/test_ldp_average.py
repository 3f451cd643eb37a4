"""LDP-AVG: what noise it adds, what it costs, and what nobody can send."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad

from cloister.accounting.conversions import delta_of_mu
from cloister.plugin import (
    Bound,
    BucketedVectors,
    Budget,
    Ints,
    NoiseRng,
    PublicRng,
    QuestionContext,
    Refused,
    Space,
)
from cloister.plugins.oracles.local.reports import Reports
from cloister.plugins.oracles.local.vectors.ldp_average import (
    MIN_SIGMA,
    OUT,
    SELDOM,
    LdpAverage,
    LdpAverageChannel,
    mu_within,
)
from tests.alarms import Alarm

SEED = PublicRng.from_seed(610)
BUDGET = Budget("pure", 1.0, delta=1e-6)


def opened(
    budget: Budget = BUDGET, sizes: tuple[int, ...] = (3,), l2: int = 1000, d: int = 2, share: str = "users"
) -> LdpAverageChannel:
    oracle = LdpAverage(share=share)  # type: ignore[arg-type]
    return oracle.open(Space(sizes), budget, QuestionContext(1000, 2.0**-10, SEED), Bound(l2, d))


def zeros(n: int, levels: int, d: int) -> BucketedVectors:
    return BucketedVectors(np.zeros((n, levels), np.int64), np.zeros((n, d), np.int64))


def test_no_two_rows_move_a_report_by_more_than_twice_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Joint over all blocks; attained by opposite rows of one region. Two regions: sqrt(2). By reports without their
    noise."""
    monkeypatch.setattr(
        NoiseRng, "discrete_gaussian_per_user", lambda self, users, sigma, each: np.zeros((len(users), each), np.int64)
    )
    channel, turn = opened(), np.linspace(0, 2 * np.pi, 9)
    vectors = np.rint(5000 * np.column_stack([np.cos(turn), np.sin(turn)])).astype(np.int64)
    items = BucketedVectors(np.repeat([-1, 0, 2], 9)[:, None], np.tile(vectors, (3, 1)))
    report = channel.encode(items, np.arange(27, dtype=np.uint64), NoiseRng.for_tests(611))
    sent = report.answers.view(np.int32) * 2.0**-channel.shift
    moved = np.linalg.norm(sent[:, None] - sent[None], axis=2)
    one, two = slice(9, 18), slice(18, 27)
    assert moved.max() <= 2000
    assert moved[one, one].max() > 1990
    assert 1400 < moved[one, two].max() <= 1000 * math.sqrt(2)
    assert channel.sigma == pytest.approx(2 * 1000 * 2.0**channel.shift / mu_within(1.0, 1e-6, 4))


@pytest.mark.parametrize(
    ("epsilon", "delta", "l2"),
    [(1e-4, 1e-6, 1), (0.5, 1e-6, 2**20), (1.0, 1e-6, 777), (4.0, 1e-9, 37), (12.0, 1e-5, 2**20), (30.0, 1e-6, 1)],
)
def test_sigma_is_the_analytic_one_but_for_what_discreteness_costs(epsilon: float, delta: float, l2: int) -> None:
    """delta(epsilon) of the exact relation, at sigma; 1.2 times less noise would need ten times the delta and more.
    Vectors are scaled so that noise is wide and fits in four bytes."""
    channel = opened(Budget("pure", epsilon, delta=delta), l2=l2)
    mu = 2 * l2 * 2.0**channel.shift / channel.sigma
    assert delta * (1 - 1e-4) < delta_of_mu(mu, epsilon) <= delta  # mu keeps 20 bits
    assert delta_of_mu(1.2 * mu, epsilon) > (3 if epsilon > 0.1 else 1) * delta
    assert MIN_SIGMA <= channel.sigma < 2 * MIN_SIGMA
    assert l2 * 2.0**channel.shift < 2**29


def test_levels_that_share_the_budget_pay_for_all_and_levels_that_share_the_users_for_one() -> None:
    by_users, by_budget = opened(sizes=(2, 3)), opened(sizes=(2, 3), share="budget")
    noise = [channel.sigma * 2.0**-channel.shift for channel in (by_users, by_budget)]
    assert noise[1] == pytest.approx(math.sqrt(2) * noise[0], rel=1e-6)
    assert (by_users.width, by_budget.width) == (6, 10)
    report = by_users.encode(zeros(50, 2, 2), np.arange(50, dtype=np.uint64), NoiseRng.for_tests(1))
    shorter = by_users.sharing.answers(report.users)[0]
    assert not report.answers[shorter, 4:].any()
    report.answers[shorter[0], 5] = 1
    with pytest.raises(Refused, match="level 0 that no encoder sends"):
        by_users.absorb(report)


def sent_by(channel: LdpAverageChannel, numbers: Ints) -> Reports:
    """Reports of people who send these numbers (n, N), whatever an encoder would do."""
    users = np.arange(len(numbers), dtype=np.uint64)
    return Reports(users, numbers.astype(np.uint32), channel.stamp)


@pytest.mark.parametrize("epsilon", [0.5, 4.0, 30.0])
def test_numbers_and_reports_beyond_any_that_are_sent_are_refused(epsilon: float) -> None:
    """One person in 100,000 who sends 2^31 - 1 everywhere would move every sum by more than a standard error."""
    channel = opened(Budget("pure", epsilon, delta=1e-6), sizes=(10,), d=4)
    one, all_of_it, farthest = (
        np.eye(1, 40, dtype=np.int64),
        np.ones((1, 40), np.int64),
        channel.randomisers[0].farthest,
    )
    even = int(channel.sent(40).longest / math.sqrt(40))
    assert even < 3 * channel.sigma + channel.reach
    for numbers in (one * farthest, -one * farthest, all_of_it * even, 0 * one):
        channel.absorb(sent_by(channel, numbers))
    for numbers in (one * (farthest + 1), -one * (farthest + 1), all_of_it * (even + 2), one * (2**31 - 1)):
        with pytest.raises(Refused, match="level 0 that no encoder sends"):
            channel.absorb(sent_by(channel, numbers))


def test_a_noise_that_is_too_large_is_clipped_and_shrunk_before_it_is_sent() -> None:
    channel = opened(sizes=(10,), d=4)
    s = int(channel.sigma)
    for noise in (np.full((1, 40), 7 * s), np.full((1, 40), -(2**30)), 20 * s * np.eye(1, 40, dtype=np.int64)):
        sent = channel.sent(40).within(noise)
        channel.absorb(sent_by(channel, sent))
        assert (sent * noise >= 0).all()
        assert np.abs(sent).max() > 1.5 * s
    usual = np.random.default_rng(615).normal(0, s, (2000, 40)).astype(np.int64)
    assert np.array_equal(channel.sent(40).within(usual), usual)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            NoiseRng, "discrete_gaussian_per_user", lambda self, users, sigma, each: np.full((3, each), 9 * s)
        )
        channel.absorb(channel.encode(zeros(3, 1, 4), np.arange(3, dtype=np.uint64), NoiseRng.for_tests(616)))


def test_integers_decide_which_noise_is_too_long_to_be_sent() -> None:
    """One unit of the sum of squares, of 2^51, makes the difference."""
    channel = opened(sizes=(10,), d=4)
    most = math.floor(Fraction(channel.sent(40).longest) ** 2)
    noise = np.zeros((2, 40), np.int64)
    left = most
    for place in range(40):
        noise[:, place] = min(channel.randomisers[0].farthest, math.isqrt(left))
        left = most - int((noise[0] ** 2).sum())
    assert left == 0
    noise[1, 39] += 1
    sent = channel.sent(40).within(noise)
    assert np.array_equal(sent[0], noise[0])
    assert (sent[1] < noise[1])[noise[1] > 0].all()


def test_what_clipping_and_shrinking_cost_is_what_is_stated() -> None:
    """E (|x| - 8)+ of a sub-Gaussian law, and what longer noise is shortened by, by quadrature: below 1e-14 of sigma
    together."""
    clipped = quad(lambda x: 2 * math.exp(-x * x / 2), OUT, 30, epsabs=0)[0]
    # sqrt(N + 2 sqrt(N t) + 2 t) rises slower
    shrunk = quad(lambda t: math.exp(-t) / math.sqrt(2 * t), SELDOM, 200, epsabs=0)[0]
    assert clipped + shrunk < 1e-14


@pytest.mark.alarm(1e-8)
def test_every_report_has_the_noise_that_the_guarantee_is_calibrated_for(alarm: Alarm) -> None:
    """20,000 numbers: a standard error of 1% of the variance. Noise that is 1.2 times smaller has 31% less."""
    n, channel = 500, opened(l2=1000, sizes=(10,), d=4)
    report = channel.encode(zeros(n, 1, 4), np.arange(n, dtype=np.uint64), NoiseRng.for_tests(614))
    noise = report.answers.view(np.int32).astype(np.float64)
    assert noise.size == 20_000
    alarm.near((noise**2).mean() / channel.sigma**2, 1, 0.01)
