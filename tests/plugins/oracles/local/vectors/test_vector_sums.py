"""Local vector sums: what the oracles answer, whoever adds the reports up, and in whatever order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from cloister.plugin import (
    Bound,
    BucketedVectors,
    Budget,
    InvalidInput,
    NoiseRng,
    PublicRng,
    QuestionContext,
    Space,
)
from cloister.plugins.oracles.local.reports import Share
from cloister.plugins.oracles.local.vectors.channel import RANDOMISERS, Randomised
from cloister.plugins.oracles.local.vectors.vector_sums import ExplicitHistogramVector, HadamardVector
from tests.alarms import Alarm

SEED = PublicRng.from_seed(90)
NOISE = NoiseRng.for_tests(91)
UNIT = 2.0**-12
BOUND = 2**12


def opened(oracle: Any, sizes: tuple[int, ...], d: int, n: int, epsilon: float = 1.0, seed: PublicRng = SEED) -> Any:
    return oracle.open(Space(sizes), Budget("pure", epsilon), QuestionContext(n, UNIT, seed), Bound(BOUND, d))


def points(n: int, d: int, seed: int = 0) -> np.ndarray:
    g = np.random.default_rng(seed)
    v = g.standard_normal((n, d))
    inside = v / np.linalg.norm(v, axis=1)[:, None] * g.uniform(0, BOUND, (n, 1))
    return np.asarray(np.trunc(inside), np.int64)


def users_of(n: int) -> np.ndarray:
    return np.arange(n, dtype=np.uint64)


def released(channel: Any, items: BucketedVectors) -> Any:
    return channel.decode(channel.absorb(channel.encode(items, users_of(len(items.buckets)), NOISE)), NOISE)


@pytest.mark.alarm(1e-8)
@pytest.mark.parametrize(
    ("oracle", "size", "far"),
    [
        (HadamardVector(), 8, 0),
        (HadamardVector(randomiser="privunit"), 1, 0),
        (ExplicitHistogramVector(), 2**62, 2**61 + 12345),
        (ExplicitHistogramVector(randomiser="one-byte"), 8, 0),
    ],
)
def test_sums_are_unbiased_in_any_number_of_buckets(oracle: Any, size: int, far: int, alarm: Alarm) -> None:
    """Half of the people are in the last bucket, the others in one as far as can be, with the opposite vector; the
    projection on the truth is 1, within a seventh."""
    n, d, ids = 60_000, 6, np.array([size - 1, far, size // 3])
    vector = np.array([BOUND * 2 // 3, -BOUND // 2, 0, 0, 0, 0])
    odd = np.arange(n)[:, None] % 2
    items = BucketedVectors(np.where(odd, far, size - 1), np.where(odd, 0, vector))
    table = released(opened(oracle, (size,), d, n, 4.0), items)
    want = np.outer(ids == size - 1, vector) * UNIT * n / 2
    got, error = table.at(ids), table.standard_error(ids)[0]
    along = error / np.linalg.norm(want)
    assert alarm.errors(2) * along < 0.15
    alarm.near((got * want).sum() / (want**2).sum(), 1, along, of=2)
    alarm.near(got, want, error * 1.3, of=2)
    assert np.array_equal(table.at(ids[::-1])[::-1], got)
    assert table.at(ids[:0]).shape == (0, d)


@pytest.mark.parametrize("share", ["users", "budget"])
@pytest.mark.parametrize("oracle", [HadamardVector, ExplicitHistogramVector])
def test_levels_share_users_or_budget(oracle: Any, share: Share) -> None:
    one, wider = (opened(oracle(), (5,), 20, 1000, epsilon).asked.variance for epsilon in (4.0, 4.0 / 3))
    channel = opened(oracle(share=share), (1, 2, 5), 20, 1000, 4.0)
    assert channel.asked.variance == pytest.approx(3 * one if share == "users" else wider)
    assert [event.spent.amount for event in channel.events] == [4.0]


@pytest.mark.parametrize("oracle", [HadamardVector(), ExplicitHistogramVector()])
def test_standard_errors_are_those_of_the_reports_that_came(oracle: Any) -> None:
    """A fifth of the planned users, and as many as were planned."""
    items = BucketedVectors(np.zeros((200, 1), np.int64), points(200, 3))
    some, all_of_them = (released(opened(oracle, (4,), 3, planned), items) for planned in (1000, 200))
    assert some.standard_error(np.arange(4)) == pytest.approx(all_of_them.standard_error(np.arange(4)))


@pytest.mark.parametrize("name", RANDOMISERS)
def test_a_row_in_no_bucket_reports_whatever_its_vector_is_and_adds_nothing(name: Randomised) -> None:
    """Noise of the declared width (5 standard errors: 2% of 32,000 numbers)."""
    n, d, size = 4_000, 64, 500
    channel, nowhere, ids = opened(HadamardVector(randomiser=name), (size,), d, n), np.full((n, 1), -1), np.arange(size)
    reports = [channel.encode(BucketedVectors(nowhere, points(n, d, seed)), users_of(n), NOISE) for seed in (8, 9)]
    assert np.array_equal(reports[0].answers, reports[1].answers)
    table = channel.decode(channel.absorb(reports[0]), NOISE)
    noise, error = table.at(ids), table.standard_error(ids)[0]
    assert noise.std() == pytest.approx(error, rel=0.02)
    assert np.abs(noise.mean(axis=0)).max() < 6 * error / math.sqrt(size)


@pytest.mark.parametrize(
    ("oracle", "size", "ids"),
    [
        (HadamardVector(), 8, range(-1, 8)),
        (ExplicitHistogramVector(), 2**62, [0, 1, 2, 3, 255, 256, 2**31, 2**40 + 1, 2**62 - 1]),
    ],
)
def test_signs_tell_any_two_buckets_apart_and_from_none(oracle: Any, size: int, ids: Any) -> None:
    """So the lifted coordinate of rows in no bucket cancels too: its public signs are independent of every bucket's."""
    asked, n = opened(oracle, (size,), 3, 10).asked, 200_000
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
