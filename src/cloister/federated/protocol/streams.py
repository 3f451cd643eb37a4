"""Key streams: key agreement, key derivation, and the mask that a party shares with the coordinator alone.

Every stream is ChaCha20 with a zero nonce under a key of its own, HKDF-SHA256(secret; salt = session, info = purpose,
round, tensor, attempt, peers): no key is used for two streams, and a session's name covers every party's fresh nonce.
The secret of two sides is X25519 of one's private key and the other's public one.

**The coordinator's mask.** Pairwise masks cancel in the sum of all messages, and every party can take the group's masks
off: a party that read all messages would have the others' exact sums. So each message carries a third mask, which only
the coordinator takes off, before it adds its noise: other readers see uniform words, and learn the answer alone.

The mask's secret is X25519 of the coordinator's key, whose public half is in the agreement, and of a key that the party
makes for the session, whose public half is the nonce of its hello. It is thus fresh in every session, a party's own
keys open no old message, and the coordinator has nothing to remember but its key and the hellos.

Source: RFC 5869, RFC 7748, RFC 8439; library: cryptography.
"""

from __future__ import annotations

import struct
from typing import final

import attrs
import numpy as np

from cloister.core.errors import InvalidInput, MissingExtra
from cloister.core.types import Ids
from cloister.federated.protocol.agreement import KEY

try:
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF
except ImportError as error:
    raise MissingExtra("cryptography", "federated", "masking") from error


@final
@attrs.frozen
class Place:
    """Place of a mask."""

    round: int
    tensor: int
    attempt: int


def derive(secret: bytes, salt: bytes, purpose: str, *numbers: int) -> bytes:
    """Return a 32-byte key for one purpose."""
    info = b"cloister " + purpose.encode() + b"\0" + struct.pack(f"<{len(numbers)}I", *numbers)
    return HKDF(SHA256(), 32, salt, info).derive(secret)


def stream(key: bytes, size: int) -> Ids:
    """Return uniform 64-bit words (size,) from a key that is used for nothing else."""
    cipher = Cipher(algorithms.ChaCha20(key, bytes(16)), None).encryptor()
    return np.frombuffer(cipher.update(bytes(8 * size)), "<u8").astype(np.uint64)


def new_private_key() -> bytes:
    """Return a new X25519 private key."""
    return X25519PrivateKey.generate().private_bytes_raw()


def public_key(private: bytes) -> bytes:
    """Return the public half of a private key.

    Raises:
        InvalidInput: it is no private key.
    """
    return _loaded(private).public_key().public_bytes_raw()


def shared_secret(private: bytes, public: bytes) -> bytes:
    """Return the secret of the holders of these two keys' private halves.

    Raises:
        InvalidInput: the public key is of low order: everybody would know the secret.
    """
    try:
        return _loaded(private).exchange(X25519PublicKey.from_public_bytes(public))
    except ValueError:
        raise InvalidInput("a public key of low order hides nothing: its owner makes another") from None


def _loaded(private: bytes) -> X25519PrivateKey:
    if len(private) != KEY:
        raise InvalidInput(f"a pooling key has {KEY} bytes, not {len(private)}: 'cloister party-key' makes one")
    return X25519PrivateKey.from_private_bytes(private)


def coordinator_mask(secret: bytes, session: bytes, place: Place, party: int, size: int) -> Ids:
    """Return words (size,) that ``party`` adds and the coordinator takes off, by the secret of the two."""
    numbers = (place.round, place.tensor, place.attempt, party)
    return stream(derive(secret, session, "coordinator mask", *numbers), size)


def without_coordinator_mask(
    vectors: tuple[Ids, ...], secret: bytes, session: bytes, round: int, attempt: int, party: int
) -> tuple[Ids, ...]:
    """Return one party's words (m,) per tensor without the coordinator's masks, but under all others."""
    return tuple(
        vector - coordinator_mask(secret, session, Place(round, tensor, attempt), party, len(vector))
        for tensor, vector in enumerate(vectors)
    )
