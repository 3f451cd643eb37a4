"""LDP-AVG: what noise it adds, what it costs, and what nobody can send."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from scipy.integrate import quad

from cloister.accounting.composition import Spent
from cloister.accounting.conversions import delta_of_mu
from cloister.core.encoding import encode_lattice
from cloister.core.questions import OpenedQuestion
from cloister.plugin import (
    Ball,
    Bound,
    BucketedVectors,
    Budget,
    Floats,
    Ints,
    InvalidInput,
    Local,
    NoiseRng,
    PublicRng,
    QuestionContext,
    Refused,
    Round,
    Space,
    shrink,
)
from cloister.plugins.methods.weighted_centers.buckets import Centred, Regions
from cloister.plugins.methods.weighted_centers.partitions import Intervals, PStable
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


def means(channel: LdpAverageChannel, items: BucketedVectors) -> Floats:
    """The means of one person's reports (n, numbers), at level 0, in the integers that are sent."""
    out = np.zeros((len(items.buckets), channel.sizes[0], channel.bound.dimension))
    inside = np.flatnonzero(items.buckets[:, 0] >= 0)
    vectors = shrink(items.values, channel.bound) * 2.0**channel.shift
    out[inside, items.buckets[inside, 0]] = np.trunc(vectors[inside])
    return out.reshape(len(out), -1)


def test_no_two_rows_move_a_report_by_more_than_twice_the_bound() -> None:
    """Joint over all blocks; attained by opposite rows of one region. Two regions: sqrt(2)."""
    channel = opened()
    turn = np.linspace(0, 2 * np.pi, 9)
    vectors = np.rint(5000 * np.column_stack([np.cos(turn), np.sin(turn)])).astype(np.int64)
    items = BucketedVectors(np.repeat([-1, 0, 2], 9)[:, None], np.tile(vectors, (3, 1)))
    sent = means(channel, items) * 2.0**-channel.shift
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


@pytest.mark.parametrize(
    ("budget", "size", "message"),
    [
        (Budget("pure", 1.0), 3, "delta"),
        (BUDGET, 2**20, "hadamard-vector"),
        (Budget("pure", 1e-13, delta=1e-6), 3, "out of range"),
    ],
)
def test_what_it_cannot_do_is_said(budget: Budget, size: int, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        opened(budget, sizes=(size,))


def test_its_events_cost_epsilon_and_delta_once_per_user() -> None:
    parts = BUDGET.split_users(SEED, 1.0, 2.0)
    spent = Spent.on([event for part in parts for event in opened(part).events])
    assert (spent.pure, spent.delta) == (1.0, 1e-6)
    assert spent.epsilon(1e-6) == 1.0
    assert spent.epsilon(0.9e-6) == math.inf
    both = Spent.on([event for part in BUDGET.split(1.0, 2.0) for event in opened(part).events])
    assert (both.pure, both.delta) == pytest.approx((1.0, 1e-6))


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
        patch.setattr(NoiseRng, "discrete_gaussian_each", lambda self, users, sigma, each: np.full((3, each), 9 * s))
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


def _told_apart(sent: list[Floats], odds: float, delta: float, alarm: Alarm) -> float | None:
    """How much more probable a half-space is with one row than odds allows, if it is certain."""
    for one, other in permutations(sent, 2):
        along = one.mean(axis=0) - other.mean(axis=0)
        a, b = one @ along, other @ along
        for at in np.quantile(a, (0.5, 0.8, 0.95, 0.99)):
            low, _ = alarm.proportion(int((a > at).sum()), len(a), 48)
            _, high = alarm.proportion(int((b > at).sum()), len(b), 48)
            if low > odds * high + delta:
                return low / high
    return None


def far_region(domain: Ball) -> tuple[Centred, Ints]:
    """One region at the border of the domain, some fifty times smaller than it; two rows in opposite corners, and one
    in no region."""
    intervals = Intervals.of(domain, domain.max_norm / 100, SEED.child("intervals"))
    h = PStable(domain.max_norm / 3, 0.9, 0.1, 1).sample(2, 1, SEED.child("hash"))
    middle = np.array([[round(domain.max_norm * 0.9), 0]])
    cells = Regions(h, intervals, np.array([0, 1]), np.repeat(intervals.of_rows(middle), 2, axis=0), 4)
    vectors = Centred(cells, intervals.middles(cells.chosen), Bound(int(intervals.half_diagonal), 2))
    corner = np.rint(0.98 * 1.5 * intervals.length / 2**60 * intervals.basis.sum(axis=0)).astype(np.int64)
    return vectors, np.stack([vectors.middles[0] + corner, vectors.middles[0] - corner, np.zeros(2, np.int64)])


@pytest.mark.alarm(1e-8)
def test_the_audit_finds_no_more_than_epsilon_for_rows_far_from_the_domains_middle(alarm: Alarm) -> None:
    """40,000 reports of each of three rows, in the direction in which they differ most: P(S) <= e^epsilon P'(S) + delta
    on half-spaces, by Clopper and Pearson. With a sixth of the noise, or sent as they are, the
    same rows would show."""
    domain, n = Ball((0.0, 0.0), 1.0), 40_000
    vectors, rows = far_region(domain)
    assert (vectors.cells.locate(rows)[:, 0] >= 0).tolist() == [True, True, False]
    channel = LdpAverage().open(vectors.cells.space, BUDGET, QuestionContext(n, domain.unit, SEED), vectors.bound)
    asked: Round[Local] = Round(0, Local, domain, (OpenedQuestion(vectors.cells, vectors, None, channel),))
    users, sent = np.arange(n, dtype=np.uint64), list[Floats]()
    for i, row in enumerate(rows):
        (report,) = encode_lattice(asked, np.repeat(row[None], n, axis=0), users, NoiseRng.for_tests(612 + i))
        sent.append(report.answers.view(np.int32).astype(np.float64))
    assert _told_apart(sent, math.e, 1e-6, alarm) is None
    ids = vectors.cells.locate(rows)
    mean = means(channel, BucketedVectors(ids, vectors.values(rows, ids)))
    noise = [one - m for one, m in zip(sent, mean, strict=True)]
    assert _told_apart([m + z / 6 for m, z in zip(mean, noise, strict=True)], math.e, 1e-6, alarm) is not None
    bare = np.zeros_like(mean)
    for i, row in enumerate(rows[:2]):
        bare[i].reshape(-1, 2)[ids[i, 0]] = row * 2.0**channel.shift
    assert _told_apart([m + z for m, z in zip(bare, noise, strict=True)], math.e, 1e-6, alarm) is not None
