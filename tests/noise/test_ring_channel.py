"""Oracles that parties pool: the ring's size, noise in shares, and what is counted on."""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

import numpy as np
import pytest

from cloister.accounting.composition import Spent
from cloister.core import randomness
from cloister.core.aggregated import RingVector, pooled, to_integers, to_words, whole_noise
from cloister.core.budget import Event, Measure
from cloister.core.randomness import skellam_ratio
from cloister.plugin import (
    CAP,
    Bound,
    BucketedVectors,
    Budget,
    InvalidInput,
    NoiseRng,
    PublicRng,
    QuestionContext,
    Refused,
    RingChannel,
    Space,
)
from cloister.plugins.oracles.aggregated.masked_gaussian import MaskedGaussian
from cloister.plugins.oracles.aggregated.skellam import MIN_SHARE, C, SkellamShares
from cloister.plugins.oracles.central.discrete_gaussian import DiscreteGaussian

SETTING = QuestionContext(1000, 2.0**-10, PublicRng.from_seed(1))
GAUSS = Budget("gaussian", 0.04)


@pytest.mark.parametrize("law", [MaskedGaussian, SkellamShares])
@pytest.mark.parametrize(
    ("most_rows", "parties", "bound"),
    [
        (1000, 2, None),
        (1000, 32, Bound(2**16, 2)),
        (10**6, 2, Bound(2**16, 2)),
        (CAP, 32, None),
        (CAP, 2, Bound(2**16, 2)),
    ],
)
def test_the_largest_sum_with_the_largest_noise_does_not_wrap(
    law: Any, most_rows: int, parties: int, bound: Bound | None
) -> None:
    channel = law(parties=parties, most_rows=most_rows).open(Space((4,)), GAUSS, SETTING, bound)
    rows = parties * most_rows * (bound.l2 if bound else 1) * 2**channel.tensor.shift
    extreme = rows + int(64 * channel.tensor.law.deviation)
    assert extreme < 2 ** (channel.bits - 1)
    assert channel.bits == 8 or extreme >= 2 ** (channel.bits - 9)
    for value in (extreme, -extreme):
        assert to_integers(to_words(np.array([value])), channel.bits).tolist() == [value]


def test_a_ring_that_could_wrap_is_refused_when_it_is_opened() -> None:
    with pytest.raises(InvalidInput, match="could overflow 64 bits"):
        MaskedGaussian(parties=1024).open(Space((4,)), Budget("gaussian", 100.0), SETTING)
    MaskedGaussian(parties=1024, most_rows=10**6).open(Space((4,)), Budget("gaussian", 100.0), SETTING)


def test_pooled_sums_are_the_curators_to_the_last_bit() -> None:
    space, bound = Space((5,)), Bound(1000, 2)
    central, channel = (oracle().open(space, GAUSS, SETTING, bound) for oracle in (DiscreteGaussian, MaskedGaussian))
    g, users, rng = np.random.default_rng(2), np.arange(300, dtype=np.uint64), NoiseRng.for_tests(3)
    buckets, values = g.integers(-1, 5, (300, 1)), g.integers(-400, 400, (300, 2))
    summary = central.absorb(central.encode(BucketedVectors(buckets, values), users, rng))
    parts = (channel.encode(BucketedVectors(buckets[i::3], values[i::3]), users[i::3], rng) for i in range(3))
    total = reduce(RingVector.merge, map(channel.absorb, parts))
    assert total.rows == 300
    noised = total.released(whole_noise(channel, rng))
    ids = np.arange(5)
    assert np.array_equal(central.decode(summary, rng).at(ids), channel.decode(noised, rng).at(ids))


def test_a_sum_without_its_noise_is_not_decoded_and_noise_is_added_once() -> None:
    channel = MaskedGaussian().open(Space((2,)), GAUSS, SETTING)
    empty = RingVector(np.zeros(2, np.uint64))
    with pytest.raises(Refused, match="without its noise"):
        channel.decode(empty, NoiseRng.secret())
    noised = empty.released(channel.noise(NoiseRng.secret()))
    for wrong in (lambda: noised.released(noised.vector), lambda: noised.merge(empty), lambda: empty.merge(noised)):
        with pytest.raises(Refused):
            wrong()


def test_other_numbers_of_parties_than_the_oracle_was_opened_for_are_refused() -> None:
    skellam, masked = SkellamShares(parties=3), MaskedGaussian(parties=3)
    opened = [o.open(Space((2,)), GAUSS, SETTING) for o in (skellam, masked)]
    for parties, fits in ((2, (False, True)), (3, (True, True)), (4, (False, False))):
        for channel, fine in zip(opened, fits, strict=True):
            if fine:
                assert pooled(channel, parties) is channel
            else:
                with pytest.raises(InvalidInput, match="'parties'"):
                    pooled(channel, parties)
    with pytest.raises(Refused):
        opened[0].noise(NoiseRng.secret(), 3, 3)
    with pytest.raises(Refused):
        opened[0].noise(NoiseRng.secret())
    with pytest.raises(InvalidInput, match="must be counted on"):
        SkellamShares(parties=2, colluding=2).open(Space((2,)), GAUSS, SETTING)


@pytest.mark.parametrize(
    ("parties", "colluding", "amount"), [(2, 0, 0.04), (2, 1, 0.0004), (3, 1, 4.0), (8, 3, 0.0004), (32, 31, 4.0)]
)
@pytest.mark.parametrize("measure", ["gaussian", "zcdp"])
def test_the_honest_shares_alone_are_worth_the_budget(
    parties: int, colluding: int, amount: float, measure: Measure
) -> None:
    budget = Budget(measure, amount if measure == "gaussian" else amount / 2)
    channel = SkellamShares(parties=parties, colluding=colluding).open(Space((4, 2)), budget, SETTING, Bound(1000, 3))
    law, (event,) = channel.tensor.law, channel.events
    assert isinstance(event, Event)
    assert (event.l0_sensitivity, law.shares, law.honest) == (6, parties, parties - colluding)
    assert law.share >= MIN_SHARE
    assert event.sigma == pytest.approx(law.share * math.sqrt(parties - colluding))
    assert law.deviation == pytest.approx(law.share * math.sqrt(parties))
    assert event.ratio >= (parties - colluding) * skellam_ratio(law.share**2)
    assert 0.9 * amount / 2 < paid(channel, math.sqrt(2) * 1000) <= amount / 2
    spent = Spent.on([event])
    assert spent.epsilon(1e-6) < math.inf
    assert 0 < spent.drift < 1e-6


def paid(channel: RingChannel, sensitivity: float) -> float:
    """What the Gaussian law of the honest shares costs together with their ratio to it, in rho."""
    (event,) = channel.events
    rho = (sensitivity * 2.0**channel.tensor.shift / event.sigma) ** 2 / 2
    return (1 + C) * rho + (2 + 1 / C) * event.l0_sensitivity * event.ratio


def test_a_budget_too_small_for_shares_is_refused() -> None:
    with pytest.raises(InvalidInput, match="too small for noise in shares"):
        SkellamShares().open(Space((1,)), Budget("gaussian", 1e-12), SETTING)


@pytest.mark.parametrize("ratio", [-1e-9, 1.0, math.nan])
def test_a_ratio_of_laws_that_is_none_is_refused(ratio: float) -> None:
    with pytest.raises(InvalidInput, match="ratio"):
        Spent.on([Event("x", GAUSS, 10, 2.0**22, ratio=ratio)])


def test_whatever_is_drawn_is_within_the_ratio_of_the_discrete_gaussian() -> None:
    z2 = np.linspace(0, 196, 200_001)
    for variance in (2.0**32, 2.0**44, 2.0**60, 2.0**80):
        log_kept = (z2**2 - 6 * z2 - 37240) / (24 * variance)
        assert log_kept.max() <= 1e-16
        assert log_kept.min() >= -skellam_ratio(variance)
    with pytest.raises(InvalidInput):
        NoiseRng.secret().skellam(2.0**31, 3)


def test_every_candidate_is_kept_at_least_as_often_as_the_ratio_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the coin that is just as rare: beyond 14 deviations, too."""
    candidates, variance = np.arange(-20 * 2**16, 20 * 2**16, 2**8 - 1), 2.0**32
    coin = math.exp(-skellam_ratio(variance))
    monkeypatch.setattr(NoiseRng, "discrete_gaussian", lambda self, sigma, size: candidates)
    monkeypatch.setattr(randomness, "unit_floats", lambda words: np.full(len(words), coin))
    assert np.array_equal(NoiseRng.for_tests(1).skellam(variance, len(candidates)), candidates)
