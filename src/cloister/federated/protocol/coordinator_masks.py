"""The mask that a party shares with the coordinator alone: it hides a message from everybody else who reads the wire.

Pairwise masks cancel in the sum of all messages, and every party can take the group's masks off: a party that read all
messages would have the others' exact sums. So each message carries a third mask, which only the coordinator takes off,
before it adds its noise: other readers see uniform words, and learn the answer alone.

The mask's secret is X25519 of the coordinator's key, whose public half is in the agreement, and of a key that the party
makes for the session, whose public half is the nonce of its hello. It is thus fresh in every session, a party's own
keys open no old message, and the coordinator has nothing to remember but its key and the hellos.
"""

from __future__ import annotations

from cloister.core.types import Ids
from cloister.federated.protocol.streams import Place, derive, stream


def coordinator_mask(secret: bytes, session: bytes, place: Place, party: int, size: int) -> Ids:
    """Words (size,) that a party adds and the coordinator takes off.

    Args:
        secret: shared by that party and the coordinator.
        session: its name.
        party: the sender of the message.
    """
    numbers = (place.round, place.tensor, place.attempt, party)
    return stream(derive(secret, session, "coordinator mask", *numbers), size)


def uncovered(
    vectors: tuple[Ids, ...], secret: bytes, session: bytes, round: int, attempt: int, party: int
) -> tuple[Ids, ...]:
    """One party's words (m,) per tensor without the coordinator's masks, still under the group's and the pairs'."""
    return tuple(
        vector - coordinator_mask(secret, session, Place(round, tensor, attempt), party, len(vector))
        for tensor, vector in enumerate(vectors)
    )
