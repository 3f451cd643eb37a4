"""A session of the protocol without a method: vectors in, noised sums out."""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest
from typing import Any

import attrs
import numpy as np
import pytest

from cloister.core.aggregated import to_integers
from cloister.core.errors import InvalidInput
from cloister.core.types import Ids
from cloister.federated.protocol.agreement import Agreement, Masks, Member
from cloister.federated.protocol.coordinator import Coordinator, Due
from cloister.federated.protocol.journal import Memory, SessionJournal
from cloister.federated.protocol.masking import new_secret
from cloister.federated.protocol.messages import Kind, Message, Reason, Rejected, read
from cloister.federated.protocol.party import Party
from cloister.federated.protocol.streams import new_private_key, public_key
from cloister.federated.protocol.vectors import VectorShape

SHAPE = (VectorShape(3, 64), VectorShape(6, 40))
NAMES = ("north", "south", "west")


class Keys:
    """Keys of every party and of the coordinator, as they would lie on their disks."""

    def __init__(self, masks: Masks = "pairwise", names: tuple[str, ...] = NAMES, plan: str = "plan") -> None:
        self.private = [new_private_key() for _ in names]
        self.secret, self.coordinator = new_secret(), new_private_key()
        pairwise = masks == "pairwise"
        members = tuple(Member(n, public_key(k) if pairwise else b"") for n, k in zip(names, self.private, strict=True))
        self.agreement = Agreement(plan, members, masks, public_key(self.coordinator))

    def coordinate(self, journal: SessionJournal | None = None) -> Coordinator:
        return Coordinator(self.agreement, journal, private=self.coordinator)

    def party(self, i: int, journal: SessionJournal | None = None, agreement: Agreement | None = None) -> Party:
        agreed = agreement or self.agreement
        own = {"secret": self.secret} if agreed.masks == "shared" else {"private": self.private[i]}
        return Party(agreed, self.agreement.members[i].name, journal=journal, **own)


def others(agreed: Agreement) -> list[Agreement]:
    """Agreements that differ from this one in one thing each."""
    *first, last = agreed.members
    key = public_key(new_private_key())
    changes: list[dict[str, Any]] = [
        {"plan": "other bounds"},
        {"masks": "shared"},
        {"coordinator_key": key},
        {"members": (last, *first)},
        {"members": (*first, Member(last.name, key))},
        {"members": (*first, last, Member("one more", key))},
    ]
    return [attrs.evolve(agreed, **change) for change in changes]


class Full(Memory):
    """A journal without room for one kind of entry."""

    def __init__(self, kind: int) -> None:
        super().__init__()
        self.kind = kind

    def write(self, kind: int, body: bytes) -> None:
        if kind == self.kind:
            raise InvalidInput("cannot write the journal: no space left")
        super().write(kind, body)


def no_noise(shape: tuple[VectorShape, ...] = SHAPE) -> tuple[Ids, ...]:
    return tuple(np.zeros(t.size, np.uint64) for t in shape)


def begun(
    keys: Keys | None = None,
    journals: tuple[SessionJournal | None, ...] = (),
    desk: SessionJournal | None = None,
    noise: Callable[[], tuple[Ids, ...]] = no_noise,
) -> tuple[Coordinator, list[Party]]:
    """A coordinator that expects three rounds, and parties that have not joined. Args: journals (of the first parties),
    desk (the coordinator's)."""
    keys = keys or Keys()
    coordinator = keys.coordinate(desk)
    for _ in range(3):
        coordinator.expect(SHAPE, noise)
    return coordinator, [keys.party(i, journal) for i, journal in zip_longest(range(keys.agreement.parties), journals)]


def opened(
    keys: Keys | None = None, journals: tuple[SessionJournal | None, ...] = (), desk: SessionJournal | None = None
) -> tuple[Coordinator, list[Party]]:
    """The same, when all have joined."""
    coordinator, parties = begun(keys, journals, desk)
    join(coordinator, parties)
    return coordinator, parties


def join(coordinator: Coordinator, parties: list[Party]) -> None:
    for party in parties:
        coordinator.receive(party.name, party.hello())
    opening = coordinator.outcome(Due(-1))
    assert opening is not None
    for party in parties:
        party.open(opening)


def refuses(
    coordinator: Coordinator, sender: str, data: bytes, reason: Reason, words: str | None = None, attempt: int = 0
) -> None:
    """The coordinator does, for this reason and in these words, and names the sender."""
    with pytest.raises(Rejected, match=words) as error:
        coordinator.receive(sender, data)
    assert (error.value.reason, error.value.party, error.value.attempt) == (reason, sender, attempt)


def answered(coordinator: Coordinator, parties: list[Party], round: int = 0) -> bytes:
    """The answer to a round, whose vectors these parties send."""
    for party in parties:
        due = coordinator.receive(party.name, vector(party, round))
    answer = coordinator.outcome(due)
    assert answer is not None
    return answer


def message_of(data: bytes) -> Message:
    return read(data, frozenset(Kind), "somebody")


def altered(data: bytes, **changes: Any) -> bytes:
    """A message in which something is changed, with a checksum that fits."""
    return attrs.evolve(message_of(data), **changes).to_bytes()


def values(seed: int, shape: tuple[VectorShape, ...] = SHAPE) -> tuple[Ids, ...]:
    """A party's words for a round: small signed numbers."""
    g = np.random.default_rng(seed)
    return tuple(g.integers(-1000, 1000, t.size).astype(np.int64).view(np.uint64) for t in shape)


def vector(party: Party, round: int, seed: int | None = None, digest: str = "d") -> bytes:
    number = 100 * round + party.me if seed is None else seed
    return party.vector(round, digest, SHAPE, lambda: values(number))


def expected(round: int) -> list[list[int]]:
    """What three parties' vectors add up to."""
    per_party = [values(100 * round + i) for i in range(3)]
    return [np.sum([p[t].view(np.int64) for p in per_party], axis=0).tolist() for t in range(len(SHAPE))]


def found(sums: tuple[Ids, ...] | None) -> list[list[int]]:
    assert sums is not None
    return [to_integers(s, t.bits).tolist() for s, t in zip(sums, SHAPE, strict=True)]
