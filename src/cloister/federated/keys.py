"""Keys and the streams that they give. The parties' alone: no module of the coordinator's imports this one.

Every stream has a key of its own, HKDF-SHA256(secret; salt = session, info = purpose, round, tensor, attempt, peers), and is ChaCha20's
under that key with a zero nonce: no key is used for two streams, and a session's name holds every party's fresh nonce.
A pair's secret is X25519 of their static keys, whose public halves are in the agreement.

Source: RFC 5869, RFC 7748, RFC 8439; library: cryptography.
"""

from __future__ import annotations

import hmac
import os
import struct
from typing import final

import attrs
import numpy as np

from cloister.core.errors import InvalidInput, MissingExtra
from cloister.core.types import Ids
from cloister.federated.agreement import Agreement

try:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF
except ImportError as error:
    raise MissingExtra("cryptography", "federated", "masking") from error

SECRET = 32
WRAPPED = SECRET + 16


@final
@attrs.frozen
class Place:
    """Where a mask belongs. Args: round, tensor, attempt."""

    round: int
    tensor: int
    attempt: int


def derive(secret: bytes, salt: bytes, purpose: str, *numbers: int) -> bytes:
    """32 bytes for one purpose."""
    info = b"cloister " + purpose.encode() + b"\0" + struct.pack(f"<{len(numbers)}I", *numbers)
    return HKDF(SHA256(), 32, salt, info).derive(secret)


def stream(key: bytes, size: int) -> Ids:
    """Uniform 64-bit words (size,) of a key that is used for nothing else."""
    cipher = Cipher(algorithms.ChaCha20(key, bytes(16)), None).encryptor()
    return np.frombuffer(cipher.update(bytes(8 * size)), "<u8").astype(np.uint64)


def new_secret() -> bytes:
    """A secret for the parties to share."""
    return os.urandom(SECRET)


def new_private_key() -> bytes:
    """A party's X25519 private key."""
    return X25519PrivateKey.generate().private_bytes_raw()


def public_key(private: bytes) -> bytes:
    """The half that goes into the agreement."""
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def pair_secrets(agreement: Agreement, me: int, private: bytes) -> dict[int, bytes]:
    """What this party shares with each other one.

    Raises:
        InvalidInput: the private key is not the agreement's.
    """
    if public_key(private) != agreement.members[me].key:
        raise InvalidInput(
            f"the private key of '{agreement.members[me].name}' does not belong to the agreement's public one"
        )
    mine = X25519PrivateKey.from_private_bytes(private)
    try:
        return {
            i: mine.exchange(X25519PublicKey.from_public_bytes(m.key))
            for i, m in enumerate(agreement.members)
            if i != me
        }
    except ValueError:
        raise InvalidInput("the agreement holds a public key of low order: it hides nothing") from None


def wrap(secret: bytes, pair: bytes, nonce: bytes, agreement: bytes, reader: int) -> bytes:
    """The group's secret for one other party: sealed under a key that this pair uses once, since the nonce is fresh."""
    key = derive(pair, nonce, "group secret", reader)
    return ChaCha20Poly1305(key).encrypt(bytes(12), secret, agreement)


def unwrap(sealed: bytes, pair: bytes, nonce: bytes, agreement: bytes, reader: int) -> bytes:
    """The group's secret.

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
    """One session's secrets at one party.

    Args:
        session: its name.
        me: this party's index.
        parties: how many there are.
        group: the parties' common secret, which the coordinator lacks.
        pairs: secrets with each other party; empty with a shared secret only.
    """

    session: bytes
    me: int
    parties: int
    group: bytes = attrs.field(repr=False)
    pairs: dict[int, bytes] = attrs.field(factory=dict, repr=False)

    def group_mask(self, place: Place, party: int, size: int) -> Ids:
        """What every party can take off, and the coordinator cannot."""
        numbers = (place.round, place.tensor, place.attempt, party)
        return stream(derive(self.group, self.session, "group mask", *numbers), size)

    def pair_mask(self, place: Place, other: int, size: int) -> Ids:
        """What this party and one other alone know. The first of the two adds it, the second takes it off."""
        low, high = sorted((self.me, other))
        numbers = (place.round, place.tensor, place.attempt, low, high)
        return stream(derive(self.pairs[other], self.session, "pair mask", *numbers), size)

    def tag(self, round: int, digest: str) -> bytes:
        """What shows the coordinator that all parties mean the same round, and nothing else: a bare hash of centres would confirm
        a guess."""
        return hmac.digest(derive(self.group, self.session, "round tag", round), digest.encode(), "sha256")
