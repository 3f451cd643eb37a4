"""A session of the protocol without a method: vectors in, noised sums out."""

from __future__ import annotations

import math

import numpy as np

from cloister.core.types import Ids
from cloister.federated.protocol.agreement import Agreement, Masks, Member
from cloister.federated.protocol.coordinator import Coordinator, Due
from cloister.federated.protocol.journal import SessionJournal
from cloister.federated.protocol.masking import new_secret
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
        agreed = self.agreement if agreement is None else agreement
        name = self.agreement.members[i].name
        if agreed.masks == "shared":
            return Party(agreed, name, secret=self.secret, journal=journal)
        return Party(agreed, name, private=self.private[i], journal=journal)


def no_noise(shape: tuple[VectorShape, ...] = SHAPE) -> tuple[Ids, ...]:
    return tuple(np.zeros(t.size, np.uint64) for t in shape)


def opened(masks: Masks = "pairwise", rounds: int = 3, keys: Keys | None = None) -> tuple[Coordinator, list[Party]]:
    """A session that all parties have joined."""
    keys = keys or Keys(masks)
    coordinator = keys.coordinate()
    for _ in range(rounds):
        coordinator.expect(SHAPE, no_noise)
    parties = [keys.party(i) for i in range(keys.agreement.parties)]
    join(coordinator, parties)
    return coordinator, parties


def join(coordinator: Coordinator, parties: list[Party]) -> None:
    for party in parties:
        coordinator.receive(party.name, party.hello())
    opening = coordinator.outcome(Due(-1))
    assert opening is not None
    for party in parties:
        party.open(opening)


def values(seed: int, shape: tuple[VectorShape, ...] = SHAPE) -> tuple[Ids, ...]:
    """A party's words for a round: small signed numbers."""
    g = np.random.default_rng(seed)
    return tuple(g.integers(-1000, 1000, t.size).astype(np.int64).view(np.uint64) for t in shape)


def vector(party: Party, round: int, seed: int | None = None, digest: str = "d") -> bytes:
    number = 100 * round + party.me if seed is None else seed
    return party.vector(round, digest, SHAPE, lambda: values(number))


def chi_square(words: Ids, bits: int = 64) -> float:
    """Standardised chi-square statistic of all bytes being uniform."""
    data = np.ascontiguousarray(words, "<u8").view(np.uint8).reshape(-1, 8)[:, : bits // 8]
    worst = 0.0
    for column in data.T:
        counts = np.bincount(column, minlength=256)
        statistic = float(((counts - len(column) / 256) ** 2).sum() / (len(column) / 256))
        worst = max(worst, abs(statistic - 255) / math.sqrt(2 * 255))
    return worst
