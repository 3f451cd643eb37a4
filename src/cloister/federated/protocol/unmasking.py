"""Taking the group's masks off the coordinator's sum. Only parties may: no module of the coordinator's imports this."""

from __future__ import annotations

from cloister.core.types import Ids
from cloister.federated.protocol.keys import Keyring
from cloister.federated.protocol.streams import Place


def unmask(sums: tuple[Ids, ...], keys: Keyring, round: int, attempt: int) -> tuple[Ids, ...]:
    """The parties' sum with its noise, as words (m,) per tensor; only the ring's bits mean anything.

    Args: sums (the masked sums of all parties' messages, with noise).
    """
    found = []
    for tensor, vector in enumerate(sums):
        total = vector
        for party in range(keys.parties):
            total = total - keys.group_mask(Place(round, tensor, attempt), party, len(vector))
        found.append(total)
    return tuple(found)
