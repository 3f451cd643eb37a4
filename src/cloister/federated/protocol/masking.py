"""A party's masks: the group's, and those of pairs. Only parties may import this module.

A party's vector travels as value + cancelling pairwise masks + a mask of the group + one for the coordinator. A pair's
secret is X25519 of their static keys, whose public halves are in the agreement. Code that the coordinator may use too
is in ``streams``.
"""

from __future__ import annotations

import hmac
import os
from typing import final

import attrs

from cloister.core.errors import InvalidInput, MissingExtra
from cloister.core.types import Ids
from cloister.federated.protocol.agreement import Agreement
from cloister.federated.protocol.streams import Place, coordinator_mask, derive, public_key, shared_secret, stream

try:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
except ImportError as error:
    raise MissingExtra("cryptography", "federated", "masking") from error

SECRET = 32
WRAPPED = SECRET + 16


def new_secret() -> bytes:
    """Return a new secret for the parties to share."""
    return os.urandom(SECRET)


def pair_secrets(agreement: Agreement, me: int, private: bytes) -> dict[int, bytes]:
    """Return this party's secret with each other one, by index.

    Raises:
        InvalidInput: the private key is not the agreement's, or a public one hides nothing.
    """
    if public_key(private) != agreement.members[me].key:
        raise InvalidInput(
            f"the private key of '{agreement.members[me].name}' does not belong to the agreement's public one"
        )
    return {i: shared_secret(private, m.key) for i, m in enumerate(agreement.members) if i != me}


def wrap(secret: bytes, pair: bytes, nonce: bytes, agreement: bytes, reader: int) -> bytes:
    """Return the group's secret, sealed for one other party under a key that the pair uses once."""
    key = derive(pair, nonce, "group secret", reader)  # used once, since the nonce is fresh: a zero nonce below is safe
    return ChaCha20Poly1305(key).encrypt(bytes(12), secret, agreement)


def unwrap(sealed: bytes, pair: bytes, nonce: bytes, agreement: bytes, reader: int) -> bytes:
    """Unseal the group's secret.

    Raises:
        InvalidInput: it was not sealed by that party for this one, under this agreement.
    """
    key = derive(pair, nonce, "group secret", reader)
    try:
        return ChaCha20Poly1305(key).decrypt(bytes(12), sealed, agreement)
    except InvalidTag:
        raise InvalidInput(
            "the group's secret was not sealed by the first party for this one: somebody changed it"
        ) from None


@final
@attrs.frozen
class Keyring:
    """Secrets of one session at one party.

    Args:
        session: its name.
        me: this party's index.
        parties: their number.
        group: the parties' common secret, which the coordinator lacks.
        coordinator: the secret of this party and the coordinator.
        pairs: secrets with each other party, by index; empty with a shared secret only.
    """

    session: bytes
    me: int
    parties: int
    group: bytes = attrs.field(repr=False)
    coordinator: bytes = attrs.field(repr=False)
    pairs: dict[int, bytes] = attrs.field(factory=dict, repr=False)

    def group_mask(self, place: Place, party: int, size: int) -> Ids:
        """Return a mask that every party can take off, and the coordinator cannot."""
        numbers = (place.round, place.tensor, place.attempt, party)
        return stream(derive(self.group, self.session, "group mask", *numbers), size)

    def pair_mask(self, place: Place, other: int, size: int) -> Ids:
        """Return a mask that only this party and one other know: the first adds it, the second subtracts it."""
        low, high = sorted((self.me, other))
        numbers = (place.round, place.tensor, place.attempt, low, high)
        return stream(derive(self.pairs[other], self.session, "pair mask", *numbers), size)

    def tag(self, round: int, digest: str) -> bytes:
        """Return a keyed hash that shows the coordinator whether all parties mean the same round, and nothing else."""
        # Keyed: a bare hash of centres would confirm a guess.
        return hmac.digest(derive(self.group, self.session, "round tag", round), digest.encode(), "sha256")


def mask(vectors: tuple[Ids, ...], keys: Keyring, round: int, attempt: int) -> tuple[Ids, ...]:
    """Return masked words (m,) per tensor, uniform to whoever lacks one of the three secrets in each of them.

    Pairwise masks cancel in the sum of all parties. Alone they would show the coordinator the exact sum, so that every
    party also adds its own mask of the group, which ``unmask`` takes off. These two would show the exact sum to any
    party that reads all messages, so that every party also adds a mask that the coordinator alone takes off.
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


def unmask(sums: tuple[Ids, ...], keys: Keyring, round: int, attempt: int) -> tuple[Ids, ...]:
    """Return the parties' noised sum, words (m,) per tensor, from the masked one; only the ring's bits count."""
    unmasked = []
    for tensor, vector in enumerate(sums):
        total = vector
        for party in range(keys.parties):
            total = total - keys.group_mask(Place(round, tensor, attempt), party, len(vector))
        unmasked.append(total)
    return tuple(unmasked)
