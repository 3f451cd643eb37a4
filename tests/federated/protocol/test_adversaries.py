"""Who learns what when parties pool: lines of ``docs/explanation/threat_model.md``, played by machines that use all
they hold.

An adversary of these tests has the messages that it says it has, takes off every mask that it can derive, and then sees
either uniform words or what its line says it sees, exactly. Uniform means that each byte's chi-square is within 8
deviations: a false alarm is below 1e-10 per byte. A noise's deviation over 3,000 numbers is within 6 / sqrt(6000) =
7.7% of what is promised: below 1e-8.
"""

from __future__ import annotations

import copy
import itertools
import math
from typing import Any

import attrs
import numpy as np
import pytest

from cloister.core.aggregated import RingVector, to_integers
from cloister.core.errors import InvalidInput
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.types import Ids
from cloister.federated.protocol.agreement import Masks
from cloister.federated.protocol.journal import Memory
from cloister.federated.protocol.messages import HEAD, TAG
from cloister.federated.protocol.streams import Place, coordinator_mask, without_coordinator_mask
from cloister.federated.protocol.vectors import coordinator_noise, pack, party_words, unpack
from cloister.run.fit import fit
from cloister.run.request import prepare
from tests.federated.federated_session import SHAPE, Keys, altered, answered, expected, found, opened, values, vector
from tests.federated.pooling import pool, request
from tests.federated.protocol.played import NUMBERS, Played, added, cut, opened_for, play, round_of

ORACLES = ("skellam", "masked-gaussian")
MODES: tuple[Masks, ...] = ("pairwise", "shared")


games = pytest.mark.parametrize(
    ("oracle", "masks", "parties"),
    [
        ("skellam", "pairwise", 4),
        ("skellam", "shared", 2),
        ("masked-gaussian", "pairwise", 2),
        ("masked-gaussian", "shared", 3),
    ],
)


def uniform(words: Ids, played: Played) -> bool:
    """Whether the chi-square statistic of every byte is within 8 deviations."""
    data = np.ascontiguousarray(words, "<u8").view(np.uint8).reshape(-1, 8)[:, : played.channel.bits // 8]
    counts = [np.bincount(column, minlength=256) for column in data.T]
    statistics = [float(((c - NUMBERS / 256) ** 2).sum() / (NUMBERS / 256)) for c in counts]
    return all(abs(statistic - 255) < 8 * math.sqrt(2 * 255) for statistic in statistics)


def same(one: Ids, other: Ids, played: Played) -> bool:
    return np.array_equal(cut(one, played.channel), cut(other, played.channel))


def promised(noise: Ids, played: Played, part: float = 1.0) -> bool:
    """Whether its deviation is the one that is paid for, or this part of it."""
    (event,) = played.channel.events
    found = np.std(to_integers(noise, played.channel.bits).astype(float))
    return bool(abs(found / (part * event.sigma) - 1) < 6 / math.sqrt(2 * NUMBERS))


@games
def test_a_stranger_sees_uniform_words_even_behind_the_transports_encryption(
    oracle: str, masks: Masks, parties: int
) -> None:
    """Messages, answers, and what can be made of them by adding and subtracting. That TLS takes strangers for nobody:
    ``transport/test_tls``."""
    played = play(oracle, masks, parties)
    sent = [played.messages[0, i][0] for i in range(parties)]
    for signs in itertools.product((-1, 0, 1), repeat=parties + 1):
        if any(signs):
            factors = np.array(signs).astype(np.uint64)
            assert uniform(added(f * w for f, w in zip(factors, [*sent, played.answer[0]], strict=True)), played), signs


@games
def test_the_coordinator_sees_uniform_words_when_it_has_taken_its_masks_and_its_noise_off(
    oracle: str, masks: Masks, parties: int
) -> None:
    """Each message, and their sum, in which pairwise masks cancel: the group's are left, exactly those."""
    played = play(oracle, masks, parties)
    left = [played.opened(i, coordinator=True) for i in range(parties)]
    total = played.answer[0] - played.noise[0]
    assert same(total, added(left), played)
    assert all(uniform(words, played) for words in (*left, total, *(a - b for a, b in itertools.combinations(left, 2))))
    assert same(total - played.group(), played.noised(range(parties)), played)


@pytest.mark.parametrize("masks", MODES)
def test_the_coordinator_cannot_check_a_guess_of_the_centres_by_a_rounds_tag(masks: Masks) -> None:
    """Whatever it holds as the key, the tag of the true digest comes out differently; with the group's secret it comes
    out."""
    played = play("skellam", masks, 3)
    ring = played.parties[0]._ring
    seen = ring.tag(0, "centres")
    coordinator = played.coordinator
    public = [coordinator.session, coordinator.agreement.hash, b"", bytes(32), *coordinator._secrets]
    for key in (*public, coordinator._private):
        for guess in ({"group": key}, {"group": key, "session": key}):
            assert attrs.evolve(ring, **guess).tag(0, "centres") != seen
    assert played.parties[1]._ring.tag(0, "centres") == seen != played.parties[1]._ring.tag(1, "centres")


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
        assert promised(played.released[tensor] - played.sum_of(range(parties), tensor) - known, played)


@pytest.mark.thorough
@games
def test_parties_that_read_the_wire_see_uniform_words(oracle: str, masks: Masks, parties: int) -> None:
    """All but one of them, and one alone: every message of others, their sums and differences, in two tensors and two
    attempts, with every mask taken off that they can derive. What is left on the exact sums is the coordinator's masks,
    exactly."""
    played = play(oracle, masks, parties, aborted=1)
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
        assert same(total, added([played.noised(range(parties)), *masks_left]), played)


@pytest.mark.parametrize("masks", MODES)
def test_an_answer_on_the_wire_is_the_one_that_a_party_is_sent_and_who_drew_the_noise_takes_it_off(
    masks: Masks,
) -> None:
    """No mask of the coordinator's is left in it, so that reading others' answers tells nothing new. A published result
    less the noise is the exact sums."""
    played = play("masked-gaussian", masks, 3)
    exact = played.sum_of(range(3))
    assert same(played.answer[0] - played.group(), exact + played.noise[0], played)
    assert same(played.released[0] - played.noise[0], exact, played)


@pytest.mark.parametrize(("parties", "colluding"), [(2, 1), (3, 1), (4, 2)])
def test_the_coordinator_and_parties_see_the_others_sum_under_the_others_shares(parties: int, colluding: int) -> None:
    played = play("skellam", parties=parties, colluding=colluding)
    among, others = tuple(range(colluding)), range(colluding, parties)
    left = added(played.opened(i, coordinator=True, among=among) for i in others)
    assert same(left, played.noised(others), played)
    assert promised(left - played.sum_of(others), played)


def test_each_share_that_is_known_beyond_what_is_counted_on_makes_the_noise_smaller() -> None:
    """To a coordinator that is shown the result none is: what it drew itself is nothing."""
    played = play("skellam", parties=4, colluding=1)
    assert not played.noise[0].any()
    noise = played.released[0] - played.sum_of(range(4))
    for known in range(4):
        assert promised(noise, played, math.sqrt((4 - known) / 3))
        noise = noise - played.shares[known][0]
    assert not cut(noise, played.channel).any()


@pytest.mark.parametrize("oracle", ORACLES)
def test_all_masks_taken_off_one_partys_words_leave_her_value_and_uniform_pair_masks(oracle: str) -> None:
    """The coordinator and one party of three take off all that they hold: the pair mask of the two others is what is
    left, exactly, and it is uniform. With that too, it is exactly her value (and her share of the noise)."""
    played = play(oracle, parties=3)
    for of, other in ((1, 2), (2, 1)):
        left = played.opened(of, coordinator=True, among=(0,))
        value = played.noised((of,))
        assert uniform(left, played)
        assert uniform(left - value, played)
        pair = played.parties[of]._ring.pair_mask(Place(0, 0, 0), other, NUMBERS)
        assert same(left, value + pair if of < other else value - pair, played)
        assert same(played.opened(of, among=(of,)), value, played)


@pytest.mark.parametrize("oracle", ORACLES)
def test_with_a_shared_secret_the_coordinator_and_a_party_unmask_each_other_party_alone(oracle: str) -> None:
    """Her exact sums where the coordinator draws the noise; else with her share, which must be worth the budget
    alone."""
    played = play(oracle, "shared", 3)
    for of in (1, 2):
        left = played.opened(of, coordinator=True, among=(0,))
        assert same(left, played.noised((of,)), played)
        if oracle == "skellam":
            assert promised(left - played.sum_of((of,)), played)


# between a round's questions and a party's words


CAP = 100


def sums(*rows: int) -> tuple[RingVector, ...]:
    return tuple(RingVector(np.zeros(NUMBERS, np.uint64), n) for n in rows)


@pytest.mark.parametrize("oracle", ["masked-gaussian", "skellam"])
def test_a_party_with_more_rows_than_the_ring_was_proved_for_sends_nothing(oracle: str) -> None:
    """In any of a round's questions: beyond the cap sums could wrap around the ring, and come out as others."""
    asked, rng = round_of(opened_for(oracle, 3, most_rows=CAP)), NoiseRng.for_tests(1)
    assert len(party_words(asked, sums(CAP, CAP), 0, 3, rng)) == 2
    for rows in ((CAP + 1, 0), (0, CAP + 1)):
        with pytest.raises(InvalidInput, match=f"more rows than the {CAP} that all agreed on"):
            party_words(asked, sums(*rows), 0, 3, rng)


@pytest.mark.parametrize(("oracle", "shares"), [("skellam", True), ("masked-gaussian", False)])
def test_no_two_parties_questions_or_rounds_share_their_share_of_the_noise(oracle: str, shares: bool) -> None:
    """Seeded, where children could be confused: 3,000 numbers of independent noises have a correlation below 6 /
    sqrt(3000). Noise that the coordinator draws is drawn once and by no party, and the other way round."""
    rng, channel, drawn, none = NoiseRng.for_tests(2), opened_for(oracle, 3), list[Ids](), list[Ids]()
    for index in range(2):
        asked = round_of(channel, index)
        for me in range(3):
            (drawn if shares else none).extend(party_words(asked, sums(0, 0), me, 3, rng))
        (none if shares else drawn).extend(coordinator_noise(asked, 3, rng))
    assert not any(words.any() for words in none)
    assert len(drawn) == (12 if shares else 4)
    correlations = np.corrcoef([to_integers(words, channel.bits) for words in drawn])
    assert (np.abs(correlations - np.eye(len(drawn))) < 6 / NUMBERS**0.5).all()


# machines that do not follow the protocol: nothing stops them but what the parties' own machines do


HUGE = 2**34
"""Far beyond what the rows of a party could add up to, and within the least ring here."""


def words(data: bytes) -> tuple[Ids, ...]:
    """Masked words of a party's message."""
    return unpack(data[HEAD.size + TAG :], SHAPE)


def test_a_party_that_lies_moves_a_sum_as_far_as_it_likes_and_nobody_sees_it() -> None:
    coordinator, parties = opened()
    lie = tuple(own + np.uint64(HUGE) for own in values(0))
    coordinator.receive("north", parties[0].vector(0, "d", SHAPE, lambda: lie))
    answer = answered(coordinator, parties[1:])
    for party in parties:
        sums = found(party.answer(answer, 0, SHAPE))
        assert sums == [[number + HUGE for number in tensor] for tensor in expected(0)]


def test_parties_believe_a_coordinator_that_answers_each_something_else() -> None:
    """It moves centres blindly, and shows parties different ones: only a coordinator would compare the tags by which
    parties whose rounds differ are found."""
    coordinator, parties = opened()
    answer = answered(coordinator, parties)
    sums, believed = unpack(answer[HEAD.size :], SHAPE), list[list[list[int]]]()
    for i, party in enumerate(parties):
        larger = pack(tuple(tensor + np.uint64(i * HUGE) for tensor in sums), SHAPE)
        believed.append(found(party.answer(altered(answer, body=larger), 0, SHAPE)))
        assert believed[i] == [[number + i * HUGE for number in tensor] for tensor in expected(0)]
    following = [vector(party, 1, digest=str(sums)) for party, sums in zip(parties, believed, strict=True)]
    assert len({data[HEAD.size :][:TAG] for data in following}) == len(parties)


def test_a_coordinator_that_adds_up_some_parties_alone_has_words_that_nobody_can_open() -> None:
    """Pair masks cancel in the sum of all: of two parties out of three neither the coordinator, which takes its own
    masks off, nor a party that is told the sum, nor the two together, if they take off the group's, learn what was
    sent. (A party that is left out holds both pair masks: that is collusion, of the coordinator and t parties.)"""
    coordinator, parties = opened()
    left = [
        without_coordinator_mask(words(vector(party, 0)), secret, coordinator.session, 0, 0, party.me)
        for party, secret in zip(parties, coordinator._secrets, strict=True)
    ]
    answer = answered(coordinator, parties)
    for some in itertools.combinations(range(3), 2):
        added = tuple(one + other for one, other in zip(*(left[i] for i in some), strict=True))
        told = altered(answer, body=pack(added, SHAPE))
        group = sum(parties[0]._ring.group_mask(Place(0, 0, 0), i, SHAPE[0].size) for i in some)
        truly = sum(values(i)[0].view(np.int64) for i in some)
        for party in parties:
            known = copy.deepcopy(party)
            for seen in (added[0], known.answer(told, 0, SHAPE)[0], added[0] - group):
                assert not np.intersect1d(to_integers(seen, 64), truly).size


def test_a_journal_of_before_a_round_sends_other_noise_under_the_same_masks() -> None:
    """Whoever reads both messages has the difference of what was in them, without a mask."""
    keys, journal = Keys(), Memory()
    _, parties = opened(keys, (journal,))
    older = copy.deepcopy(journal)
    first = vector(parties[0], 0, seed=1)
    second = vector(keys.party(0, older), 0, seed=2)
    for one, other, before, after, tensor in zip(words(first), words(second), values(1), values(2), SHAPE, strict=True):
        shown, truly = (to_integers(difference, tensor.bits) for difference in (one - other, before - after))
        assert shown.tolist() == truly.tolist()


@pytest.mark.parametrize(("oracle", "exact"), [("masked-gaussian", True), ("skellam", False)])
def test_the_weights_of_a_published_run_are_the_exact_counts_to_a_coordinator_that_drew_the_noise_alone(
    oracle: str, exact: bool
) -> None:
    """From what stands in a result's file: how many rows each centre had in the last round, to the row."""
    asked, parties = request(oracle, rounds=2, epsilon=8.0), pool()
    drawn, expect = list[Any](), parties.coordinator.expect

    def take_noted(shape: Any, noise: Any) -> None:
        drawn.append(noise())
        expect(shape, lambda: drawn[-1])

    parties.coordinator.expect = take_noted
    weights = fit(asked, parties).weights
    assert weights is not None
    last = prepare(asked, parties.columns).forecast(PublicRng.from_seed(1))[-1].parts[0].channel
    left = weights - to_integers(drawn[-1][0], last.bits) * 2.0**-last.tensor.shift
    assert (weights > 0).all()
    assert np.array_equal(left, np.round(left)) == exact
    assert bool(drawn[-1][0].any()) == exact
