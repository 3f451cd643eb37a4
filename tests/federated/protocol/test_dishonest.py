"""Machines that do not follow the protocol: what they reach, and what stays hidden from them all the same.

Nothing stops them here but what the parties' own machines do: the coordinator answers what it likes.
"""

from __future__ import annotations

import copy
import itertools

import attrs
import numpy as np

from cloister.core.aggregated import to_integers
from cloister.core.types import Ids
from cloister.federated.protocol.coordinator import Coordinator
from cloister.federated.protocol.journal import Memory
from cloister.federated.protocol.messages import HEAD, TAG
from cloister.federated.protocol.streams import Place, coordinator_mask
from cloister.federated.protocol.vectors import pack, unpack
from tests.federated.federated_session import (
    SHAPE,
    Keys,
    answered,
    expected,
    found,
    message_of,
    opened,
    values,
    vector,
)

HUGE = 2**34
"""Far beyond what the rows of a party could add up to, and within the least ring here."""


def words(data: bytes) -> tuple[Ids, ...]:
    """Masked words of a party's message."""
    return unpack(data[HEAD.size + TAG :], SHAPE)


def off(coordinator: Coordinator, party: int, tensor: int) -> Ids:
    """The coordinator's mask on a party's words of the first round."""
    place = Place(0, tensor, 0)
    return coordinator_mask(coordinator._secrets[party], coordinator.session, place, party, SHAPE[tensor].size)


def forged(answer: bytes, more: int) -> bytes:
    """An answer in which each sum is larger."""
    message = message_of(answer)
    sums = tuple(tensor + np.uint64(more) for tensor in unpack(message.body, SHAPE))
    return attrs.evolve(message, body=pack(sums, SHAPE)).to_bytes()


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
    believed = [found(p.answer(forged(answer, i * HUGE), 0, SHAPE)) for i, p in enumerate(parties)]
    for i, sums in enumerate(believed):
        assert sums == [[number + i * HUGE for number in tensor] for tensor in expected(0)]
    following = [vector(party, 1, digest=str(sums)) for party, sums in zip(parties, believed, strict=True)]
    assert len({data[HEAD.size :][:TAG] for data in following}) == len(parties)


def test_a_coordinator_that_adds_up_some_parties_alone_has_words_that_nobody_can_open() -> None:
    """Pair masks cancel in the sum of all: of two parties out of three neither the coordinator, which takes its own
    masks off, nor a party that is told the sum, nor the two together, if they take off the group's, learn what was
    sent. (A party that is left out holds both pair masks: that is collusion, of the coordinator and t parties.)"""
    coordinator, parties = opened()
    sent = [words(vector(party, 0)) for party in parties]
    answer = message_of(answered(coordinator, parties))
    for some in itertools.combinations(range(3), 2):
        added = tuple(
            sum((sent[i][t] - off(coordinator, i, t) for i in some), np.zeros(tensor.size, np.uint64))
            for t, tensor in enumerate(SHAPE)
        )
        told = attrs.evolve(answer, body=pack(added, SHAPE)).to_bytes()
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
    shown = [one - other for one, other in zip(words(first), words(second), strict=True)]
    truly = [one - other for one, other in zip(values(1), values(2), strict=True)]
    for one, other, tensor in zip(shown, truly, SHAPE, strict=True):
        assert to_integers(one, tensor.bits).tolist() == to_integers(other, tensor.bits).tolist()
