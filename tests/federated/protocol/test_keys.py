"""Keys, and what a mask's key depends on. False alarms: two words of 64 bits of a thousand are equal by chance below
1e-12."""

from __future__ import annotations

from itertools import combinations, product

import attrs
import numpy as np
import pytest

from cloister.core.errors import InvalidInput
from cloister.federated.protocol.agreement import HASH, NONCE, Masks, session_of
from cloister.federated.protocol.coordinator import Coordinator
from cloister.federated.protocol.journal import Memory
from cloister.federated.protocol.messages import HEAD, Kind, Message, Reason, Rejected
from cloister.federated.protocol.party import JOINED, Party
from cloister.federated.protocol.streams import Place, agreed, coordinator_mask, new_private_key, public_key
from tests.federated.federated_session import NAMES, Keys, opened

MODES: tuple[Masks, ...] = ("shared", "pairwise")
LOW_ORDER = (bytes(32), bytes([1]) + bytes(31))


def test_two_sides_agree_on_a_secret_that_nobody_else_has() -> None:
    one, other, third = (new_private_key() for _ in range(3))
    assert agreed(one, public_key(other)) == agreed(other, public_key(one))
    assert agreed(one, public_key(other)) != agreed(third, public_key(other))
    for wrong in (b"", bytes(31), bytes(33)):
        with pytest.raises(InvalidInput, match="32 bytes"):
            public_key(wrong)
    for weak in LOW_ORDER:
        with pytest.raises(InvalidInput, match="low order"):
            agreed(one, weak)


def test_the_coordinators_mask_depends_on_secret_session_party_and_every_part_of_its_place() -> None:
    places = [Place(*p) for p in product((0, 1), repeat=3)]
    found = [
        coordinator_mask(secret, session, place, party, 16)
        for secret, session, party, place in product((b"a" * 32, b"b" * 32), (b"s" * 32, b"t" * 32), (0, 1), places)
    ]
    words = np.concatenate(found)
    assert len(np.unique(words)) == len(words) == 64 * 16


def test_groups_pairs_and_the_coordinators_masks_differ_though_their_secret_be_one() -> None:
    keys = Keys()
    _, parties = opened(keys=keys)
    ring = attrs.evolve(parties[0]._ring, group=b"x" * 32, coordinator=b"x" * 32, pairs={1: b"x" * 32})
    place = Place(0, 0, 0)
    streams = [
        ring.group_mask(place, 1, 16),
        ring.pair_mask(place, 1, 16),
        coordinator_mask(ring.coordinator, ring.session, place, 1, 16),
    ]
    for one, other in combinations(streams, 2):
        assert not np.intersect1d(one, other).size


@pytest.mark.parametrize("masks", MODES)
def test_every_session_has_a_new_secret_of_each_party_and_the_coordinator(masks: Masks) -> None:
    keys = Keys(masks)
    sessions = [opened(keys=keys) for _ in range(2)]
    secrets = [secret for coordinator, _ in sessions for secret in coordinator._secrets]
    assert len(set(secrets)) == 6
    for coordinator, parties in sessions:
        assert [party._ring.coordinator for party in parties] == coordinator._secrets


def test_the_name_of_a_session_depends_on_every_hello_and_on_the_agreement() -> None:
    hellos = tuple(bytes([i]) * NONCE for i in range(3))
    names = {session_of(b"a" * HASH, hellos), session_of(b"b" * HASH, hellos), session_of(b"a" * HASH, hellos[::-1])}
    for i in range(3):
        names.add(session_of(b"a" * HASH, (*hellos[:i], b"x" * NONCE, *hellos[i + 1 :])))
        names.add(session_of(b"a" * HASH, (*hellos[:i], hellos[i] + b"x", *hellos[i + 1 :])))
    assert len(names) == 9


def test_a_coordinator_with_another_key_than_the_plans_does_not_begin() -> None:
    keys = Keys()
    with pytest.raises(InvalidInput, match="does not belong to the plan's coordinator_key"):
        Coordinator(keys.agreement, private=new_private_key())
    with pytest.raises(InvalidInput, match="32 bytes"):
        Coordinator(keys.agreement, private=b"short")


def test_no_coordinators_key_is_a_partys_or_missing() -> None:
    keys = Keys()
    for wrong in (b"", bytes(31), keys.agreement.members[1].key):
        with pytest.raises(InvalidInput, match="no party's"):
            attrs.evolve(keys.agreement, coordinator_key=wrong)


@pytest.mark.parametrize("masks", MODES)
@pytest.mark.parametrize("weak", LOW_ORDER)
def test_keys_that_hide_nothing_are_refused_before_anything_is_written(masks: Masks, weak: bytes) -> None:
    keys, journal = Keys(masks), Memory()
    with pytest.raises(InvalidInput, match="low order"):
        keys.party(0, journal, agreement=attrs.evolve(keys.agreement, coordinator_key=weak))
    assert not journal.entries
    coordinator = keys.coordinate(journal)
    hello = Message(Kind.HELLO, 1, keys.agreement.hash, body=weak).to_bytes()
    with pytest.raises(Rejected) as error:
        coordinator.receive("south", hello)
    assert (error.value.reason, error.value.party) == (Reason.MALFORMED, "south")
    assert coordinator.missing == NAMES
    assert not journal.entries


def test_a_partys_hello_is_its_nonce_whose_other_half_is_in_its_journal_alone() -> None:
    keys, journal = Keys("shared"), Memory()
    party = Party(keys.agreement, "north", secret=keys.secret, journal=journal)
    nonce = party.hello()[HEAD.size :]
    ((kind, body),) = journal.entries
    assert kind == JOINED
    assert public_key(body[HASH : HASH + 32]) == nonce
    assert body[HASH : HASH + 32] not in party.hello()
