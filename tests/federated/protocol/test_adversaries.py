"""Who learns what when parties pool: lines of ``docs/explanation/threat_model.md``, played by machines that use all
they hold.

An adversary of these tests has the messages that it says it has, takes off every mask that it can derive, and then sees
either uniform words or what its line says it sees, exactly. Uniform means that each byte's chi-square is within 8
deviations: a false alarm is below 1e-10 per byte. A noise's deviation over 3,000 numbers is within 6 / sqrt(6000) =
7.7% of what is promised: below 1e-8.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from typing import Any

import attrs
import numpy as np
import pytest

from cloister.core.aggregated import to_integers
from cloister.core.randomness import PublicRng
from cloister.core.types import Ids
from cloister.federated.protocol.agreement import Masks
from cloister.federated.protocol.streams import Place, coordinator_mask
from cloister.run.fit import fit
from cloister.run.request import prepare
from tests.federated.pooling import pool, request
from tests.federated.protocol.played import NUMBERS, Played, cut, play

ORACLES = ("skellam", "masked-gaussian")
MODES: tuple[Masks, ...] = ("pairwise", "shared")


def uniform(words: Ids, played: Played) -> bool:
    """Whether the chi-square statistic of every byte is within 8 deviations."""
    data = np.ascontiguousarray(words, "<u8").view(np.uint8).reshape(-1, 8)[:, : played.channel.bits // 8]
    counts = [np.bincount(column, minlength=256) for column in data.T]
    statistics = [float(((c - NUMBERS / 256) ** 2).sum() / (NUMBERS / 256)) for c in counts]
    return all(abs(statistic - 255) < 8 * math.sqrt(2 * 255) for statistic in statistics)


def added(vectors: Iterable[Ids]) -> Ids:
    return np.sum(list(vectors), axis=0, dtype=np.uint64)


def same(one: Ids, other: Ids, played: Played) -> bool:
    return np.array_equal(cut(one, played.channel), cut(other, played.channel))


def deviation(words: Ids, played: Played) -> float:
    return float(np.std(to_integers(words, played.channel.bits).astype(float)))


def near(found: float, promised: float) -> bool:
    return abs(found / promised - 1) < 6 / math.sqrt(2 * NUMBERS)


def every(oracle: str, masks: Masks, parties: int, **more: Any) -> Played:
    """Shared masks with noise in shares are allowed only if one share is enough."""
    colluding = parties - 1 if masks == "shared" and oracle == "skellam" else 1
    return play(oracle, masks, parties, colluding, **more)


@pytest.mark.parametrize(("oracle", "masks"), [("skellam", "pairwise"), ("masked-gaussian", "shared")])
def test_a_stranger_sees_uniform_words_even_behind_the_transports_encryption(oracle: str, masks: Masks) -> None:
    """Messages, answers, and what can be made of them by adding and subtracting. That TLS takes strangers for nobody:
    ``transport/test_tls``."""
    played = every(oracle, masks, 3)
    sent = [played.messages[0, i][0] for i in range(3)]
    for signs in itertools.product((-1, 0, 1), repeat=4):
        if any(signs):
            factors = np.array(signs).astype(np.uint64)
            assert uniform(added(f * w for f, w in zip(factors, [*sent, played.answer[0]], strict=True)), played), signs


@pytest.mark.parametrize(
    ("oracle", "masks", "parties"),
    [
        ("skellam", "pairwise", 3),
        ("skellam", "shared", 2),
        ("masked-gaussian", "pairwise", 2),
        ("masked-gaussian", "shared", 3),
    ],
)
def test_the_coordinator_sees_uniform_words_when_it_has_taken_its_masks_and_its_noise_off(
    oracle: str, masks: Masks, parties: int
) -> None:
    """Each message, and their sum, in which pairwise masks cancel: the group's are left, exactly those."""
    played = every(oracle, masks, parties)
    left = [played.opened(i, coordinator=True) for i in range(parties)]
    total = played.answer[0] - played.noise[0]
    assert same(total, added(left), played)
    assert all(uniform(words, played) for words in (*left, total, *(a - b for a, b in itertools.combinations(left, 2))))
    shares = (share[0] for share in played.shares)
    assert same(total - played.group(), added([played.sum_of(range(parties)), *shares]), played)


@pytest.mark.parametrize("masks", MODES)
def test_the_coordinator_cannot_check_a_guess_of_the_centres_by_a_rounds_tag(masks: Masks) -> None:
    """Whatever it holds as the key, the tag of the true digest comes out differently; with the group's secret it comes
    out."""
    played = every("skellam", masks, 3)
    ring = played.parties[0]._ring
    seen = ring.tag(0, "centres")
    coordinator = played.coordinator
    public = [coordinator.session, coordinator.agreement.hash, b"", bytes(32), *coordinator._secrets]
    for key in (*public, coordinator._private):
        for guess in ({"group": key}, {"group": key, "session": key}):
            assert attrs.evolve(ring, **guess).tag(0, "centres") != seen
    assert played.parties[1]._ring.tag(0, "centres") == seen != played.parties[1]._ring.tag(1, "centres")


@pytest.mark.parametrize(("oracle", "exact"), [("masked-gaussian", True), ("skellam", False)])
def test_the_weights_of_a_published_run_are_the_exact_counts_to_a_coordinator_that_drew_the_noise_alone(
    oracle: str, exact: bool
) -> None:
    """From what stands in a result's file: how many rows each centre had in the last round, to the row."""
    asked, parties = request(oracle, rounds=2, epsilon=8.0), pool()
    drawn, expect = list[Any](), parties.coordinator.expect

    def noted(shape: Any, noise: Any) -> None:
        drawn.append(noise())
        expect(shape, lambda: drawn[-1])

    parties.coordinator.expect = noted
    weights = fit(asked, parties).weights
    assert weights is not None
    last = prepare(asked, parties.columns).forecast(PublicRng.from_seed(1))[-1].parts[0].channel
    left = weights - to_integers(drawn[-1][0], last.bits) * 2.0**-last.tensor.shift
    assert (weights > 0).all()
    assert np.array_equal(left, np.round(left)) == exact
    assert bool(drawn[-1][0].any()) == exact


@pytest.mark.parametrize(
    ("oracle", "parties", "colluding"),
    [("skellam", 2, 1), ("skellam", 3, 1), ("skellam", 3, 2), ("masked-gaussian", 2, 1), ("masked-gaussian", 4, 4)],
)
def test_parties_that_know_all_rows_but_ones_are_left_with_the_noise_that_is_paid_for(
    oracle: str, parties: int, colluding: int
) -> None:
    """The parties tell each other everything, and know the others' rows even: what hides the last row is the noise that
    they did not draw: all of it, however many they are, where the coordinator drew it."""
    played = play(oracle, parties=parties, colluding=colluding)
    for tensor in (0, 1):
        known = added(share[tensor] for share in played.shares[:colluding])
        noise = played.released[tensor] - played.sum_of(range(parties), tensor) - known
        (event,) = played.channel.events
        assert near(deviation(noise, played), event.sigma)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("oracle", "masks", "parties"),
    [
        ("skellam", "pairwise", 2),
        ("skellam", "shared", 3),
        ("skellam", "pairwise", 4),
        ("masked-gaussian", "pairwise", 3),
        ("masked-gaussian", "shared", 2),
    ],
)
def test_parties_that_read_the_wire_see_uniform_words(oracle: str, masks: Masks, parties: int) -> None:
    """All but one of them, and one alone: every message of others, their sums and differences, in two tensors and two
    attempts, with every mask taken off that they can derive. What is left on the exact sums is the coordinator's masks,
    exactly."""
    played = every(oracle, masks, parties, aborted=1)
    for among in {(0,), (parties - 1,), tuple(range(parties - 1)), tuple(range(1, parties))}:
        others = [i for i in range(parties) if i not in among]
        left = [played.opened(i, t, a, among=among) for a, i in played.messages for t in (0, 1) if i in others]
        assert all(uniform(words, played) for words in left)
        pairs = itertools.combinations(left, 2)
        assert all(uniform(one - other, played) and uniform(one + other, played) for one, other in pairs)
        total = added(played.opened(i, 0, 1, among=among) for i in range(parties))
        assert uniform(total, played)
        secrets, session = played.coordinator._secrets, played.coordinator.session
        masks_left = (coordinator_mask(secrets[i], session, Place(0, 0, 1), i, NUMBERS) for i in others)
        shares = (share[0] for share in played.shares)
        assert same(total, added([played.sum_of(range(parties)), *shares, *masks_left]), played)


@pytest.mark.parametrize("masks", MODES)
def test_the_answer_that_a_party_reads_on_the_wire_is_the_one_that_it_is_sent(masks: Masks) -> None:
    """No mask of the coordinator's is left in it, so that reading others' answers tells nothing new."""
    played = every("masked-gaussian", masks, 3)
    assert same(played.answer[0] - played.group(), played.sum_of(range(3)) + played.noise[0], played)


@pytest.mark.parametrize(("parties", "colluding"), [(2, 1), (3, 1), (4, 2)])
def test_the_coordinator_and_parties_see_the_others_sum_under_the_others_shares(parties: int, colluding: int) -> None:
    played = play("skellam", parties=parties, colluding=colluding)
    among, others = tuple(range(colluding)), range(colluding, parties)
    left = [played.opened(i, coordinator=True, among=among) for i in others]
    hidden = added(left) - played.sum_of(others)
    assert same(hidden, added(played.shares[i][0] for i in others), played)
    (event,) = played.channel.events
    assert near(deviation(hidden, played), event.sigma)


@pytest.mark.parametrize("masks", MODES)
def test_a_coordinator_that_drew_the_noise_takes_it_off_a_published_result(masks: Masks) -> None:
    played = every("masked-gaussian", masks, 3)
    assert same(played.released[0] - played.noise[0], played.sum_of(range(3)), played)


def test_each_share_that_is_known_beyond_what_is_counted_on_makes_the_noise_smaller() -> None:
    """To a coordinator that is shown the result none is: what it drew itself is nothing."""
    played = play("skellam", parties=4, colluding=1)
    assert not played.noise[0].any()
    (event,) = played.channel.events
    noise = played.released[0] - played.sum_of(range(4))
    for known in range(5):
        if known:
            noise = noise - played.shares[known - 1][0]
        left = math.sqrt((4 - known) / 3) * event.sigma
        assert near(deviation(noise, played), left) if left else not cut(noise, played.channel).any()


@pytest.mark.parametrize("oracle", ORACLES)
def test_all_masks_taken_off_one_partys_words_leave_her_value_and_uniform_pair_masks(oracle: str) -> None:
    """The coordinator and one party of three take off all that they hold: the pair mask of the two others is what is
    left, exactly, and it is uniform. With that too, it is exactly her value (and her share of the noise)."""
    played = play(oracle, parties=3)
    for of, other in ((1, 2), (2, 1)):
        left = played.opened(of, coordinator=True, among=(0,))
        value = played.sum_of((of,)) + played.shares[of][0]
        assert uniform(left, played)
        assert uniform(left - value, played)
        pair = played.parties[of]._ring.pair_mask(Place(0, 0, 0), other, NUMBERS)
        assert same(left, value + pair if of < other else value - pair, played)
        assert same(played.opened(of, among=(of,)), value, played)


@pytest.mark.parametrize("oracle", ORACLES)
def test_with_a_shared_secret_the_coordinator_and_a_party_unmask_each_other_party_alone(oracle: str) -> None:
    """Her exact sums where the coordinator draws the noise; else with her share, which must be worth the budget
    alone."""
    played = every(oracle, "shared", 3)
    for of in (1, 2):
        left = played.opened(of, coordinator=True, among=(0,))
        assert same(left, played.sum_of((of,)) + played.shares[of][0], played)
        if oracle == "skellam":
            (event,) = played.channel.events
            assert near(deviation(left - played.sum_of((of,)), played), event.sigma)
