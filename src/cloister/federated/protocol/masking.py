"""A party's vector under its masks: value + cancelling pairwise masks + a mask of the group + one for the coordinator.
Only parties may use this."""

from __future__ import annotations

from cloister.core.types import Ids
from cloister.federated.protocol.coordinator_masks import coordinator_mask
from cloister.federated.protocol.keys import Keyring
from cloister.federated.protocol.streams import Place


def mask(vectors: tuple[Ids, ...], keys: Keyring, round: int, attempt: int) -> tuple[Ids, ...]:
    """Masked words, uniform to whoever lacks one of the three secrets that each of them carries.

    Pairwise masks cancel in the sum of all parties. Alone they would show the coordinator the exact sum, so that every
    party also adds its own mask of the group, which ``unmasking`` takes off. These two would show the exact sum to any
    party that reads all messages, so that every party also adds a mask that the coordinator alone takes off.

    Args: vectors (words (m,) per tensor).
    """
    masked = []
    for tensor, vector in enumerate(vectors):
        place, size = Place(round, tensor, attempt), len(vector)
        total = vector + keys.group_mask(place, keys.me, size)
        total = total + coordinator_mask(keys.coordinator, keys.session, place, keys.me, size)
        for other in keys.pairs:
            pair = keys.pair_mask(place, other, size)
            total = total + pair if keys.me < other else total - pair
        masked.append(total)
    return tuple(masked)
