"""What additive noise declares: how many of the released numbers one row can change. Where parties pool: the ring's
size, noise in shares, and what is counted on."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
import pytest
from scipy.stats import gamma

from cloister.accounting.composition import Spent
from cloister.core import randomness
from cloister.core.aggregated import RingVector, pooled, to_integers, to_words, whole_noise
from cloister.core.budget import Event
from cloister.core.randomness import skellam_ratio
from cloister.noise.channel import AdditiveChannel, TensorChannel
from cloister.noise.distributions import Noise, Spherical
from cloister.noise.sparse import DENSE
from cloister.plugin import (
    CAP,
    UP,
    AdditiveNoise,
    Aggregated,
    Bound,
    Budget,
    Central,
    Ints,
    InvalidInput,
    Laplace,
    Measure,
    NoiseRng,
    PublicRng,
    QuestionContext,
    Refused,
    RingChannel,
    Sensitivity,
    Space,
    Threshold,
    additive_channel,
    component,
)
from cloister.plugins.oracles.aggregated.masked_gaussian import MaskedGaussian
from cloister.plugins.oracles.aggregated.skellam import MIN_SHARE, C, SkellamShares
from cloister.plugins.oracles.central.discrete_gaussian import DiscreteGaussian
from cloister.plugins.oracles.central.thresholded import ThresholdedCounts
from tests.alarms import Alarm

SPACES = [Space((7,)), Space((4, 9, 30)), Space((2, 4, 8, 16), nested=True), Space((2**40, 2**41), nested=True)]
SETTING = QuestionContext(1000, 2.0**-10, PublicRng.from_seed(1))
BOUND = Bound(1000, 5)
GAUSSIAN = Budget("gaussian", 0.04)
EXACT = Budget("exact", math.inf)


@pytest.mark.parametrize(
    ("oracle", "space"),
    [
        *((oracle, space) for oracle in (MaskedGaussian, SkellamShares) for space in SPACES[:3]),
        *((DiscreteGaussian, space) for space in SPACES),
    ],
)  # pooled ones list all buckets
def test_one_row_changes_a_count_or_a_vector_of_every_level(space: Space, oracle: Any) -> None:
    for bound, width in ((None, 1), (BOUND, BOUND.dimension)):
        (event,) = oracle().open(space, GAUSSIAN, SETTING, bound).events
        assert event.l0_sensitivity == space.levels * width
        assert math.isfinite(event.sigma)


@pytest.mark.parametrize("space", SPACES)
def test_gaussian_noise_is_never_called_pure(space: Space) -> None:
    for spend in (GAUSSIAN, Budget("zcdp", 0.02)):
        channels = (
            DiscreteGaussian().open(space, spend, SETTING),
            DiscreteGaussian().open(space, spend, SETTING, BOUND),
        )
        assert [event.pure for channel in channels for event in channel.events] == [math.inf] * 2


@pytest.mark.parametrize("space", [Space((7,)), Space((2**40,))])
@pytest.mark.parametrize("bucket", [-1, 1])
def test_totals_of_buckets_that_there_are_not_are_refused(space: Space, bucket: int) -> None:
    """-1, which would be the last one; and the first beyond the last."""
    channel = DiscreteGaussian().open(space, GAUSSIAN, SETTING)
    ids = np.array([bucket if bucket < 0 else space.sizes[0]])
    with pytest.raises(Refused):
        channel.totalled([(ids, np.array([1]))], 1)


@pytest.mark.parametrize("sizes", [(6,), (DENSE + 6,)], ids=["tensor", "sparse"])
@pytest.mark.parametrize("shift", [0, 5])
def test_a_threshold_is_in_rows_however_far_totals_are_shifted(sizes: tuple[int, ...], shift: int) -> None:
    """A plugin's noise may be scaled up in integers; its threshold is as many rows all the same."""
    spend, rng = Budget("pure", 1.0, delta=1e-6), NoiseRng.for_tests(1)
    channel = additive_channel("above-ten", spend, Space(sizes), None, None, shift, 1.0, Threshold(10, 1e-6))
    held = np.repeat(np.arange(6, dtype=np.int64), [0, 1, 9, 10, 11, 40])[:, None]
    summary = channel.absorb(channel.encode(held, np.arange(len(held), dtype=np.uint64), rng))
    assert channel.decode(summary, rng).at(np.arange(6)).tolist() == [0, 0, 0, 0, 11, 40]


@pytest.mark.parametrize("law", [Laplace(50.0), Spherical(2000.0, 5)])
@pytest.mark.parametrize("space", [Space((7,)), Space((2**40,))])
def test_pure_noise_that_is_paid_in_rho_says_its_epsilon(space: Space, law: Noise) -> None:
    for spend, pure in ((Budget("zcdp", 0.02), 0.2), (Budget("pure", 0.2), math.inf)):
        (event,) = additive_channel("test", spend, space, BOUND, law, 0, 1.0).events
        assert event.pure == pytest.approx(pure, rel=1e-12)
        assert event.sigma == math.inf


@attrs.frozen
class Wide(Laplace):
    """Of a deviation that is given."""

    @property
    def deviation(self) -> float:
        return self.scale


@pytest.mark.parametrize(
    ("fits", "overflows"),
    [
        ((None, None, 30), (None, None, 31)),
        ((None, Bound(2**20, 3), 10), (None, Bound(2**20, 3), 11)),
        ((None, Bound(2**25, 3), 5), (None, Bound(2**26, 3), 5)),
        ((Wide(2.0**55), None, 29), (Wide(2.0**55), None, 30)),
        ((Wide(2.0**54), None, 30), (Wide(2.0**55), None, 30)),
        ((Wide(2.0**56 - 2.0**26), None, 0), (Wide(2.0**56 - 2.0**25), None, 0)),
    ],
)
@pytest.mark.parametrize("space", [Space((7,)), Space((2**40,))])
def test_totals_of_all_rows_with_their_noise_stay_below_2_to_the_62(space: Space, fits: Any, overflows: Any) -> None:
    """Rows times the bound times the shift, and 64 deviations."""

    def opened(law: Noise | None, bound: Bound | None, shift: int) -> AdditiveChannel:
        return additive_channel("test", EXACT, space, bound, law, shift, 1.0)

    assert opened(*fits)
    with pytest.raises(InvalidInput, match="could overflow 64 bits"):
        opened(*overflows)


def test_a_variance_is_the_square_of_the_deviation_of_what_is_opened() -> None:
    counts = DiscreteGaussian().open(SPACES[1], GAUSSIAN, SETTING).deviation
    sums = DiscreteGaussian().open(SPACES[1], GAUSSIAN, SETTING, BOUND).deviation
    assert DiscreteGaussian().variance(SPACES[1], GAUSSIAN, SETTING) == counts**2
    assert DiscreteGaussian().variance(SPACES[1], GAUSSIAN, SETTING, BOUND) == sums**2
    assert ThresholdedCounts().variance(SPACES[0], Budget("pure", 0.1, delta=1e-6), SETTING) == pytest.approx(
        2 * 10**2, rel=0.01
    )


@pytest.mark.parametrize("width", [1, 5, 16])
def test_noise_on_whole_vectors_has_the_deviation_of_a_gamma_length(width: int) -> None:
    """Of each coordinate: a mean square length over the number of coordinates."""
    law = Spherical(2000.0, width)
    assert law.deviation == pytest.approx(math.sqrt(gamma(width, scale=2000.0).moment(2) / width), rel=1e-9)


@pytest.mark.parametrize("ids", [[0], [-1, 0], [-1, 3, 0, 3], [-1], [4, -1]])
def test_buckets_without_rows_are_counted_as_empty_the_last_ones_too(ids: list[int]) -> None:
    channel: Any = additive_channel("exact", EXACT, Space((5,)), None, None, 0, 1.0)
    sent = channel.encode(np.array(ids)[:, None], np.arange(len(ids)), NoiseRng.for_tests(1))
    assert sent.vector.tolist() == [ids.count(bucket) for bucket in range(5)]


def test_noise_on_whole_vectors_that_is_too_narrow_is_refused() -> None:
    assert Spherical(1024.0, 5)
    for scale in (1023.9, math.nan):
        with pytest.raises(InvalidInput, match="too narrow"):
            Spherical(scale, 5)


def test_noise_on_whole_vectors_is_drawn_as_many_numbers_as_are_asked() -> None:
    drawn = Spherical(2000.0, 5).draw(15, NoiseRng.for_tests(1))
    assert drawn.shape == (15,)
    assert len(np.unique(drawn)) > 10


# --- pooled by parties


@pytest.mark.parametrize(("below", "bits"), [(2.0**-20, 32), (2.0**-31, 40)])
def test_a_ring_has_room_for_what_floats_round(below: float, bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A largest number nearer to 2^31 than 2^-30 of it takes another byte."""
    channel = MaskedGaussian(parties=2, most_rows=1000).open(Space((4,)), GAUSSIAN, SETTING)
    monkeypatch.setattr(RingChannel, "largest", 2.0**31 * (1 - below))
    assert channel.bits == bits


@pytest.mark.parametrize("law", [None, Laplace(2.0**20), Laplace(3.0)])
@pytest.mark.parametrize(("bound", "shift"), [(None, 0), (Bound(1001, 3), 7)])
def test_the_largest_number_of_a_ring_is_above_the_exact_one_by_what_floats_round(
    law: Noise | None, bound: Bound | None, shift: int
) -> None:
    channel = RingChannel(TensorChannel("test", EXACT, Space((4,)), bound, law, shift, 1.0), 3, 1009)
    noise = 64 * Fraction(law.deviation) if law else 0
    exact = 3 * 1009 * (bound.l2 if bound else 1) * 2**shift + noise
    assert 1 < Fraction(channel.largest) / exact < 1 + Fraction(2) ** -39


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
    channel = law(parties=parties, most_rows=most_rows).open(Space((4,)), GAUSSIAN, SETTING, bound)
    rows = parties * most_rows * (bound.l2 if bound else 1) * 2**channel.tensor.shift
    extreme = rows + int(64 * channel.tensor.law.deviation)
    assert extreme < 2 ** (channel.bits - 1)
    assert channel.bits == 8 or extreme >= 2 ** (channel.bits - 9)
    ends = np.array([extreme, -1, 0, 1, -extreme])
    for words in (to_words(ends), to_words(ends) & np.uint64(2**channel.bits - 1)):
        assert to_integers(words, channel.bits).tolist() == ends.tolist()


@pytest.mark.parametrize(("parties", "fits"), [(4, True), (7, True), (8, False)])
def test_a_ring_of_64_bits_holds_less_than_2_to_the_63(parties: int, fits: bool) -> None:
    tensor = TensorChannel("test", EXACT, Space((4,)), None, None, 29, 1.0)
    if fits:
        assert RingChannel(tensor, parties, CAP).bits == 64
    else:
        with pytest.raises(InvalidInput, match="could overflow 64 bits"):
            RingChannel(tensor, parties, CAP)


def test_a_sum_without_its_noise_is_not_decoded_and_noise_is_added_once() -> None:
    channel = MaskedGaussian().open(Space((2,)), GAUSSIAN, SETTING)
    empty = RingVector(np.zeros(2, np.uint64))
    with pytest.raises(Refused, match="without its noise"):
        channel.decode(empty, NoiseRng.secret())
    noised = empty.released(channel.noise(NoiseRng.secret()))
    for wrong in (lambda: noised.released(noised.vector), lambda: noised.merge(empty), lambda: empty.merge(noised)):
        with pytest.raises(Refused):
            wrong()


def test_other_numbers_of_parties_than_the_oracle_was_opened_for_are_refused() -> None:
    skellam, masked = (
        oracle(parties=3).open(Space((2,)), GAUSSIAN, SETTING) for oracle in (SkellamShares, MaskedGaussian)
    )
    for channel, parties in ((skellam, 3), (masked, 3), (masked, 2)):
        assert pooled(channel, parties) is channel
    for channel, parties in ((skellam, 2), (skellam, 4), (masked, 4)):
        with pytest.raises(InvalidInput, match="'parties'"):
            pooled(channel, parties)
    for share in ((3, 3), ()):
        with pytest.raises(Refused):
            skellam.noise(NoiseRng.secret(), *share)


@pytest.mark.parametrize(
    ("oracle", "amount", "message"),
    [
        (MaskedGaussian(parties=1024), 100.0, "could overflow 64 bits"),
        (SkellamShares(parties=2, colluding=2), 0.04, "must not collude"),
        (SkellamShares(), 1e-12, "too small for Skellam noise"),
    ],
)
def test_sums_that_could_wrap_and_noise_that_nobody_can_draw_are_refused(
    oracle: Any, amount: float, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        oracle.open(Space((4,)), Budget("gaussian", amount), SETTING)


@pytest.mark.parametrize(
    ("parties", "colluding", "amount", "dimension"),
    [
        (2, 0, 0.04, 3),
        (2, 1, 0.0004, 3),
        (3, 1, 4.0, 3),
        (8, 3, 0.0004, 3),
        (32, 31, 4.0, 3),
        (2, 1, 0.006, 2000),
        (32, 1, 0.006, 768),
    ],
)
@pytest.mark.parametrize("measure", ["gaussian", "zcdp"])
def test_the_honest_shares_alone_are_worth_the_budget(
    parties: int, colluding: int, amount: float, dimension: int, measure: Measure
) -> None:
    """What their Gaussian law costs together with their ratio to it, in rho; and it takes hardly more noise than a
    curator's, for many columns and parties, too."""
    budget, honest = Budget(measure, amount if measure == "gaussian" else amount / 2), parties - colluding
    oracle = SkellamShares(parties=parties, colluding=colluding)
    channel = oracle.open(Space((4, 2)), budget, SETTING, Bound(1000, dimension))
    law, (event,) = channel.tensor.law, channel.events
    assert isinstance(event, Event)
    assert (event.l0_sensitivity, law.shares, law.honest) == (2 * dimension, parties, honest)
    assert law.share >= MIN_SHARE
    assert event.sigma == pytest.approx(law.share * math.sqrt(honest))
    assert law.deviation == pytest.approx(law.share * math.sqrt(parties))
    assert event.ratio >= honest * skellam_ratio(law.share**2)
    moved = math.sqrt(2) * 1000 * 2.0**channel.tensor.shift
    rho = (moved / event.sigma) ** 2 / 2
    assert (1 + C) * rho + (2 + 1 / C) * event.l0_sensitivity * event.ratio <= amount / 2
    assert event.sigma <= 1.003 * moved / math.sqrt(amount)
    spent = Spent.on([event])
    assert spent.epsilon(1e-6) < math.inf
    assert 0 < spent.drift < 1e-6


@pytest.mark.parametrize("bits", [32, 44, 60, 80])
def test_every_candidate_is_kept_at_least_as_often_as_the_ratio_says(
    bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the coin that is just as rare: beyond 14 deviations, too."""
    candidates, variance = np.arange(-20 * 2**16, 20 * 2**16, 2**8 - 1) * 2 ** (bits // 2 - 16), 2.0**bits
    coin = math.exp(-skellam_ratio(variance))
    monkeypatch.setattr(NoiseRng, "discrete_gaussian", lambda self, sigma, size: candidates)
    monkeypatch.setattr(randomness, "unit_floats", lambda words: np.full(len(words), coin))
    assert np.array_equal(NoiseRng.for_tests(1).skellam(variance, len(candidates)), candidates)
    with pytest.raises(InvalidInput):
        NoiseRng.secret().skellam(2.0**31, 3)


@pytest.mark.alarm(1e-8)
def test_every_party_draws_a_share_of_its_own_that_is_as_wide_as_is_counted_on(alarm: Alarm) -> None:
    """So that those who know all shares but one have that one between them and the sum."""
    channel = SkellamShares(parties=3).open(Space((5000,)), GAUSSIAN, SETTING)
    for rng in (NoiseRng.for_tests(5), NoiseRng.secret()):
        shares = [to_integers(channel.noise(rng.child("share", i), i, 3), 64).astype(float) for i in range(3)]
        alarm.near(np.corrcoef(shares)[np.triu_indices(3, 1)], 0, 1 / math.sqrt(5000), of=4)
        alarm.near(np.var(shares, axis=1) / channel.tensor.law.share**2, 1, math.sqrt(2 / 5000), of=4)


# --- a law of an author


@attrs.frozen
class Even(Laplace):
    """Released are even numbers."""

    @property
    def deviation(self) -> float:
        return float(np.hypot(super().deviation, 0.5**0.5))

    def post_processed(self, noised: Ints) -> Ints:
        return 2 * np.rint(noised / 2).astype(np.int64)


@component
class EvenNoise(AdditiveNoise):
    """Even numbers, from noise of scale sensitivity / eps.

    Guarantee (Central; add-or-remove one row): eps-DP, post-processed.
    """

    trust = Central
    mechanism = "even"

    @property
    def measure(self) -> Measure:
        return "pure"

    def noise(self, sensitivity: Sensitivity, budget: Budget) -> tuple[Even, int]:
        return Even(sensitivity.l1 / budget.epsilon * UP), 0


@component
class PooledEven(EvenNoise):
    """Of parties."""

    trust = Aggregated

    def channel(self, space: Space, bound: Bound | None, budget: Budget, unit: float) -> RingChannel:
        return self.pooled(space, bound, budget, unit, 4, 1000)


@pytest.mark.parametrize(
    ("oracle", "size"), [(EvenNoise(), 5), (EvenNoise(), 2**40), (PooledEven(), 5)], ids=["dense", "sparse", "pooled"]
)
def test_what_is_released_is_post_processed(oracle: Any, size: int) -> None:
    channel, rng = oracle.open(Space((size,)), Budget("pure", 0.1), SETTING), NoiseRng.secret()
    sent = channel.encode(np.array([[0], [2], [2], [2]]), np.arange(4), rng)
    whole = sent.released(whole_noise(channel, rng)) if oracle.trust is Aggregated else channel.absorb(sent)
    table = channel.decode(whole, rng)
    values = table.at(np.arange(5))
    assert (values % 2 == 0).all()
    assert (table.at(np.arange(5)) == values).all()
