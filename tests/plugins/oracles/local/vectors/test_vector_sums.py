"""Local vector sums: what the oracles answer, whoever adds the reports up, and in whatever order."""

from __future__ import annotations

import math
from typing import Any

import attrs
import numpy as np
import pytest

from cloister.core.buckets import BucketedVectors, QuestionContext, Space
from cloister.core.budget import Budget
from cloister.core.errors import InvalidInput, Refused
from cloister.core.lattice import Bound
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.plugins.oracles.local.reports import Share
from cloister.plugins.oracles.local.vectors.channel import Randomised
from cloister.plugins.oracles.local.vectors.vector_sums import ExplicitHistogramVector, HadamardVector
from tests.alarms import Alarm

SEED = PublicRng.from_seed(90)
NOISE = NoiseRng.for_tests(91)
NAMES = ("one-byte", "privunit", "duchi")
UNIT = 2.0**-12
BOUND = 2**12


def opened(oracle: Any, sizes: tuple[int, ...], d: int, n: int, epsilon: float = 1.0, seed: PublicRng = SEED) -> Any:
    return oracle.open(Space(sizes), Budget("pure", epsilon), QuestionContext(n, UNIT, seed), Bound(BOUND, d))


def points(n: int, d: int, seed: int = 0) -> np.ndarray:
    g = np.random.default_rng(seed)
    v = g.standard_normal((n, d))
    inside = v / np.linalg.norm(v, axis=1)[:, None] * g.uniform(0, BOUND, (n, 1))
    return np.asarray(np.trunc(inside), np.int64)


def truth(items: BucketedVectors, size: int, level: int = 0) -> np.ndarray:
    total = np.zeros((size + 1, items.values.shape[1]))
    np.add.at(total, items.buckets[:, level], items.values * UNIT)
    return total[:-1]


def users_of(n: int) -> np.ndarray:
    return np.arange(n, dtype=np.uint64)


def released(channel: Any, items: BucketedVectors, rng: NoiseRng = NOISE) -> Any:
    return channel.decode(channel.absorb(channel.encode(items, users_of(len(items.buckets)), rng)), rng)


def together(n: int, d: int, sizes: tuple[int, ...]) -> BucketedVectors:
    """Rows whose vectors differ little within a bucket, so that there is something to find in the sums."""
    g = np.random.default_rng(2)
    buckets = np.stack([g.integers(0, size, n) for size in sizes], axis=1)
    centres = points(sizes[-1], d, 3) // 4 + np.eye(d, dtype=np.int64)[0] * (BOUND * 2 // 3)
    return BucketedVectors(buckets, centres[buckets[:, -1]])


@pytest.mark.alarm(1e-8)
@pytest.mark.parametrize("oracle", [HadamardVector, ExplicitHistogramVector])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [1, 5, 8])
def test_sums_are_unbiased_in_any_number_of_buckets(oracle: Any, name: Randomised, size: int, alarm: Alarm) -> None:
    """The projection on the truth is 1, within an eighth."""
    n, d = 60_000, 6
    items, ids = together(n, d, (size,)), np.arange(size)
    table = released(opened(oracle(randomiser=name), (size,), d, n, 4.0), items)
    want, got = truth(items, size), table.at(ids)
    error = table.standard_error(ids)[0] / np.linalg.norm(want)
    assert alarm.errors(2) * error < 0.15
    alarm.near((got * want).sum() / (want**2).sum(), 1, error, of=2)
    alarm.near(got, want, table.standard_error(ids)[0] * 1.3, of=2)


@pytest.mark.parametrize("share", ["users", "budget"])
@pytest.mark.parametrize("oracle", [HadamardVector, ExplicitHistogramVector])
def test_levels_share_users_or_budget(oracle: Any, share: Share) -> None:
    n, d, sizes = 40_000, 20, (1, 2, 5)
    channel = opened(oracle(randomiser="one-byte", share=share), sizes, d, n, 4.0)
    one = opened(oracle(randomiser="one-byte"), (5,), d, n, 4.0).asked.variance
    wider = opened(oracle(randomiser="one-byte"), (5,), d, n, 4.0 / 3).asked.variance
    assert channel.asked.variance == pytest.approx(3 * one if share == "users" else wider)
    assert [event.spent.amount for event in channel.events] == [4.0]


@pytest.mark.parametrize("oracle", [HadamardVector, ExplicitHistogramVector])
def test_noise_is_as_wide_as_declared_where_a_fifth_of_the_users_report(oracle: Any) -> None:
    """3% on 20,000 numbers is six standard errors of the sd."""
    n, d, size = 4_000, 100, 200
    items = BucketedVectors(np.random.default_rng(1).integers(0, size, (n, 1)), points(n, d))
    table, ids = released(opened(oracle(randomiser="one-byte"), (size,), d, 5 * n), items), np.arange(size)
    assert (table.at(ids) - truth(items, size)).std() == pytest.approx(table.standard_error(ids)[0], rel=0.03)


@pytest.mark.parametrize("name", NAMES)
def test_an_explicit_histogram_answers_for_ids_of_any_size(name: Randomised) -> None:
    n, d, far = 40_000, 4, 2**61 + 12345
    values = np.repeat(np.array([[BOUND // 2, -BOUND // 2, 0, 0]]), n, axis=0)
    items = BucketedVectors(np.where(np.arange(n) % 2, far, 3)[:, None], values)
    table = released(opened(ExplicitHistogramVector(randomiser=name), (2**62,), d, n, 4.0), items)
    ids = np.array([far, 3, 0, far - 1, 2**62 - 1])
    se = table.standard_error(ids)[0]
    want = np.outer([1, 1, 0, 0, 0], [n / 4, -n / 4, 0, 0])
    assert 6 * se < 0.2 * n / 4
    assert table.at(ids) == pytest.approx(want, abs=6 * se)
    assert np.array_equal(table.at(ids[::-1])[::-1], table.at(ids))
    assert table.at(ids[:0]).shape == (0, d)


def test_absorb_refuses_codewords_beyond_a_codebook_of_16_bits() -> None:
    channel = opened(HadamardVector(), (4,), 200, 10)
    report = channel.encode(together(10, 200, (4,)), users_of(10), NOISE)
    assert report.answers.dtype == np.uint16
    channel.absorb(attrs.evolve(report, answers=np.full((10, 1), 511, np.uint16)))
    with pytest.raises(Refused):
        channel.absorb(attrs.evolve(report, answers=np.full((10, 1), 512, np.uint16)))


@pytest.mark.parametrize("name", NAMES)
def test_a_row_in_no_bucket_reports_like_any_other_and_adds_nothing(name: Randomised) -> None:
    """Its vector does not count, and what remains is noise of the declared width (5 standard errors: 2% of 32,000
    numbers)."""
    n, d, size = 30_000, 64, 500
    channel, ids = opened(HadamardVector(randomiser=name), (size,), d, n), np.arange(size)
    nowhere = np.full((n, 1), -1)
    table = released(channel, BucketedVectors(nowhere, np.full((n, d), 10)))
    noise = table.at(ids)
    assert noise.std() == pytest.approx(table.standard_error(ids)[0], rel=0.02)
    assert np.abs(noise.mean(axis=0)).max() < 6 * table.standard_error(ids)[0] / math.sqrt(size)
    users, one, other = users_of(n), points(n, d, 8), points(n, d, 9)
    first, second = (channel.encode(BucketedVectors(nowhere, v), users, NOISE).answers for v in (one, other))
    assert np.array_equal(first, second)
    assert len(first) == n


def test_the_lifted_coordinate_of_rows_in_no_bucket_cancels_too() -> None:
    """Their public signs are even, and independent of every bucket's."""
    asked = opened(HadamardVector(), (8,), 3, 10).asked
    n = 200_000
    nobody = asked.signs(np.full(n, -1), users_of(n), 0)
    for v in range(8):
        signs = asked.signs(np.full(n, v), users_of(n), 0)
        assert abs((nobody * signs).mean()) < 5.5 / math.sqrt(n)
        assert v == 0 or abs(signs.mean()) < 5.5 / math.sqrt(n)


def test_signs_tell_any_two_buckets_apart() -> None:
    asked = opened(ExplicitHistogramVector(), (2**62,), 3, 10).asked
    n, ids = 200_000, [0, 1, 2, 3, 255, 256, 2**31, 2**40 + 1, 2**62 - 1]
    signs = np.stack([asked.signs(np.full(n, v), users_of(n), 0) for v in ids])
    assert (signs @ signs.T / n) == pytest.approx(np.eye(len(ids)), abs=5.5 / math.sqrt(n))


def test_what_cannot_be_answered_is_refused_when_it_is_opened() -> None:
    with pytest.raises(InvalidInput, match="explicit-histogram-vector"):
        opened(HadamardVector(), (2**24,), 10, 100)
    with pytest.raises(InvalidInput, match="finite"):
        opened(HadamardVector(), (4,), 10, 100, math.inf)
    with pytest.raises(InvalidInput, match="Gaussian"):
        HadamardVector().open(Space((4,)), Budget("gaussian", 1.0), QuestionContext(10, 1.0, SEED), Bound(10, 3))
    with pytest.raises(InvalidInput, match="laplace"):
        HadamardVector(randomiser="laplace")  # type: ignore[arg-type]
