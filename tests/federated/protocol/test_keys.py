"""Keys, what a mask's key depends on, and what the coordinator holds. False alarms: two words of 64 bits of a thousand
are equal by chance below 1e-12."""

from __future__ import annotations

import gc
from itertools import product
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import attrs
import numpy as np
import pytest

from cloister.core.errors import InvalidInput
from cloister.core.types import Ids
from cloister.federated.protocol.agreement import HASH, NONCE, Masks, session_of
from cloister.federated.protocol.coordinator import Coordinator
from cloister.federated.protocol.journal import Memory
from cloister.federated.protocol.masking import Keyring
from cloister.federated.protocol.messages import HEAD, Kind, Message, Reason, Rejected
from cloister.federated.protocol.party import JOINED, Party
from cloister.federated.protocol.streams import Place, coordinator_mask, new_private_key, public_key
from tests.federated.federated_session import NAMES, SHAPE, Keys, opened

MODES: tuple[Masks, ...] = ("shared", "pairwise")
LOW_ORDER = (bytes(32), bytes([1]) + bytes(31))


def test_masks_depend_on_their_kind_secret_session_party_and_every_part_of_their_place() -> None:
    words = list[Ids]()
    for secret, session in product((b"a" * 32, b"b" * 32), (b"s" * 32, b"t" * 32)):
        ring = Keyring(session, 0, 3, secret, secret, {1: secret, 2: secret})
        for place, party in product((Place(*p) for p in product((0, 1), repeat=3)), (1, 2)):
            words += [
                ring.group_mask(place, party, 16),
                ring.pair_mask(place, party, 16),
                coordinator_mask(ring.coordinator, session, place, party, 16),
            ]
    every = np.concatenate(words)
    assert len(np.unique(every)) == len(every) == 2 * 2 * 8 * 2 * 3 * 16


@pytest.mark.parametrize("masks", MODES)
def test_every_session_has_a_new_secret_of_each_party_and_the_coordinator(masks: Masks) -> None:
    keys = Keys(masks)
    sessions = [opened(keys) for _ in range(2)]
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
    """And no plan has a key of the coordinator that is a party's."""
    keys = Keys()
    with pytest.raises(InvalidInput, match="does not belong to the plan's coordinator_key"):
        Coordinator(keys.agreement, private=new_private_key())
    with pytest.raises(InvalidInput, match="32 bytes"):
        Coordinator(keys.agreement, private=b"short")

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


def contents(root: object) -> list[Any]:
    """Everything that an object holds, at any depth."""
    seen, queue, found = {id(root)}, [root], [root]
    while queue:
        for part in gc.get_referents(queue.pop()):
            code = isinstance(part, type | ModuleType | FunctionType | BuiltinFunctionType)
            if id(part) not in seen and not code:
                seen.add(id(part))
                queue.append(part)
                found.append(part)
    return found


def test_the_coordinator_holds_no_key_and_no_unmasked_value() -> None:
    """All bytes and arrays that it can reach, against the group's secret, every party's exact words and the noised
    sums. That its modules import nothing that unmasks is a contract in ``pyproject.toml``."""
    coordinator, parties = opened()
    words = [tuple(np.full(t.size, 10**9 + i, np.uint64) for t in SHAPE) for i in range(3)]
    private = [parties[1]._ring.group, *(w.tobytes()[:5] for own in words for w in own)]
    for party, own in zip(parties, words, strict=True):
        due = coordinator.receive(party.name, party.vector(0, "d", SHAPE, lambda own=own: own))
        for part in contents(coordinator):
            if isinstance(part, bytes | bytearray):
                assert not any(p in part for p in private)
            if isinstance(part, np.ndarray):
                assert not np.isin(part, [10**9 + i for i in range(3)]).any()
    answer = coordinator.outcome(due)
    assert answer is not None
    sums = parties[0].answer(answer, 0, SHAPE)
    assert int(sums[0][0]) == 3 * 10**9 + 3
    assert not any(isinstance(p, bytes) and sums[0].tobytes()[:8] in p for p in contents(coordinator))
