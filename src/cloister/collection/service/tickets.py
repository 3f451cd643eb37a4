"""Tickets: an issuer's Ed25519 signatures, each of which lets one user number report under one plan.

Numbers that liars choose spoil a round, since a number says which question is asked. Whoever knows the people, who need
not be the collector, signs a ticket per number and gives each person hers; it holds for all rounds of the plan. The
issuer knows who has which number, and sees no report; the collector sees which numbers have reported, as it does
without tickets. A ticket is 64 bytes; a file of them holds those of consecutive numbers, one after the other.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, final

import attrs

from cloister.collection.plan.canonical_json import appearing, flush, private, reading, writing
from cloister.core.errors import InvalidInput, MissingExtra
from cloister.core.keyfiles import check_own

try:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        PublicFormat,
        load_pem_private_key,
        load_pem_public_key,
    )
except ImportError as error:
    raise MissingExtra("cryptography", "serve", "tickets") from error

PURPOSE = b"cloister ticket 1\n"
MAX_KEY_BYTES = 2**16


@final
@attrs.frozen
class Issuer:
    """Checks tickets. Args: key (the issuer's public one)."""

    key: Ed25519PublicKey

    @classmethod
    def read(cls, path: Path) -> Issuer:
        """Read what ``new_key`` wrote for everybody. Raises: InvalidInput: it holds no such key."""
        other = "the issuer's own key: collectors take the other half of the pair, the file that ends in .pub"
        key = _loaded(path, load_pem_public_key, _private_key, other)
        if not isinstance(key, Ed25519PublicKey):
            raise InvalidInput(f"{path} holds no public key of an issuer: give the file that ends in .pub")
        return cls(key)

    def valid(self, plan: str, tickets: Iterable[tuple[int, bytes]]) -> list[bool]:
        """Which tickets are this issuer's. Args: plan (hash), tickets (user numbers, with 64 bytes each)."""
        return [self._valid(plan, user, ticket) for user, ticket in tickets]

    def _valid(self, plan: str, user: int, ticket: bytes) -> bool:
        try:
            self.key.verify(ticket, signed(plan, user))
        except InvalidSignature:
            return False
        return True


def signed(plan: str, user: int) -> bytes:
    """What a ticket signs. Args: plan (hash), user (number)."""
    return PURPOSE + bytes.fromhex(plan) + user.to_bytes(8, "little")


def new_key(path: Path) -> Path:
    """Make an issuer's key: a file for its owner alone, and beside it one for everybody. Returns: the latter's path.
    Raises: InvalidInput: one of them is there, or cannot be written."""
    if not path.name:
        raise InvalidInput(f"'{path}' is a folder: give the name of a file to make, such as issuer.key")
    public = path.with_suffix(".pub")
    if public == path:
        raise InvalidInput(f"{path} is the name of the file for everybody: choose another ending, such as .key")
    for one in (path, public):
        if os.path.lexists(one):
            raise InvalidInput(f"{one} is there already: a key is never replaced, since tickets in use would die")
    key = Ed25519PrivateKey.generate()
    with writing(path), private(path) as file:
        file.write(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        flush(file)
    with writing(public), public.open("xb") as file:
        file.write(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
        flush(file)
    return public


def read_key(path: Path) -> Ed25519PrivateKey:
    """An issuer's own key. Raises: InvalidInput: the file holds none. Refused: others can read it."""
    other = "the public half of a pair, which checks tickets: the other half signs them, the issuer's own key"
    key = _loaded(path, _private_key, load_pem_public_key, other)
    if not isinstance(key, Ed25519PrivateKey):
        raise InvalidInput(f"{path} holds no key of an issuer: 'cloister tickets new-key' makes one")
    with reading(path):
        check_own(path)
    return key


def mint(key: Ed25519PrivateKey, plan: str, users: Iterable[int]) -> Iterator[bytes]:
    """Yield a ticket for each user number. Args: plan (hash)."""
    for user in users:
        yield key.sign(signed(plan, user))


def write(path: Path, tickets: Iterable[bytes]) -> None:
    """Write tickets one after the other, for the owner alone; a file is there whole or not at all. Raises:
    InvalidInput: it is there already, or cannot be written."""
    with writing(path):
        if os.path.lexists(path):
            raise InvalidInput(f"{path} is there already, and is not replaced: choose another --out, or remove it")
        with appearing(path, os.link, owners=True) as file:
            for ticket in tickets:
                file.write(ticket)


def _private_key(content: bytes) -> Any:
    return load_pem_private_key(content, None)


def _loaded(path: Path, load: Any, other: Any, what: str) -> Any:
    """The key in a file. Args: load (reads it), other (reads the other half of a pair), what (that is, in words)."""
    with reading(path), path.open("rb") as file:
        content = file.read(MAX_KEY_BYTES)
    try:
        return load(content)
    except (ValueError, TypeError):  # TypeError: it has a password
        with suppress(ValueError, TypeError):
            if isinstance(other(content), (Ed25519PrivateKey, Ed25519PublicKey)):
                raise InvalidInput(f"{path} holds {what}") from None
        raise InvalidInput(f"{path} holds no key: give a PEM file of 'cloister tickets new-key'") from None
