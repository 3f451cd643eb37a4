"""Tickets: Ed25519 signatures of an issuer, each allowing one user number to report under one plan.

Malicious clients that choose their numbers spoil a round, since a number decides which question is asked. Whoever knows
the people, not necessarily the collector, signs a ticket per number and gives it to its person; it holds for all rounds
of the plan. The issuer knows who has which number, but sees no report; the collector sees which numbers have reported,
as it does without tickets. A ticket has 64 bytes; a file of tickets holds those of consecutive numbers.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, final

import attrs

from cloister.collection.plan.durable_files import atomic_file, create_private, flush, reading, writing
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
    """Issuer of tickets, known by its public key."""

    key: Ed25519PublicKey

    @classmethod
    def read(cls, path: Path) -> Issuer:
        """Read a public key written by ``new_key``. Raises: InvalidInput: the file holds none."""
        other = "the issuer's private key: collectors need the public one, the file that ends in .pub"
        key = _load(path, load_pem_public_key, _private_key, other)
        if not isinstance(key, Ed25519PublicKey):
            raise InvalidInput(f"{path} holds no public key of an issuer: give the file that ends in .pub")
        return cls(key)

    def valid(self, plan: str, tickets: Iterable[tuple[int, bytes]]) -> list[bool]:
        """Return which tickets are valid, given the plan's hash and user numbers with 64 bytes each."""
        return [self._valid(plan, user, ticket) for user, ticket in tickets]

    def _valid(self, plan: str, user: int, ticket: bytes) -> bool:
        try:
            self.key.verify(ticket, ticket_message(plan, user))
        except InvalidSignature:
            return False
        return True


def ticket_message(plan: str, user: int) -> bytes:
    """Return the message that a ticket signs: the plan's hash and the user's number."""
    return PURPOSE + bytes.fromhex(plan) + user.to_bytes(8, "little")


def new_key(path: Path) -> Path:
    """Create an issuer's private key, for its owner alone, and beside it the public one, whose path is returned.

    Raises: InvalidInput: one of the files exists or cannot be written.
    """
    if not path.name:
        raise InvalidInput(f"'{path}' is a folder: give the name of a new file, such as issuer.key")
    public = path.with_suffix(".pub")
    if public == path:
        raise InvalidInput(f"{path} is the name of the public key's file: choose another ending, such as .key")
    for target in (path, public):
        if os.path.lexists(target):
            raise InvalidInput(
                f"{target} already exists: it is not replaced, since tickets in use would become invalid"
            )
    key = Ed25519PrivateKey.generate()
    with writing(path), create_private(path) as file:
        file.write(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        flush(file)
    with writing(public), public.open("xb") as file:
        file.write(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
        flush(file)
    return public


def read_key(path: Path) -> Ed25519PrivateKey:
    """Read an issuer's private key. Raises: InvalidInput: the file holds none. Refused: others can read it."""
    other = "the public key, which checks tickets: give the issuer's private key, which signs them"
    key = _load(path, _private_key, load_pem_public_key, other)
    if not isinstance(key, Ed25519PrivateKey):
        raise InvalidInput(f"{path} holds no key of an issuer: 'cloister tickets new-key' makes one")
    with reading(path):
        check_own(path)
    return key


def mint(key: Ed25519PrivateKey, plan: str, users: Iterable[int]) -> Iterator[bytes]:
    """Yield a ticket for each user number under the plan with this hash."""
    for user in users:
        yield key.sign(ticket_message(plan, user))


def write(path: Path, tickets: Iterable[bytes]) -> None:
    """Write tickets to a new file, readable by its owner alone, whole or not at all.

    Raises: InvalidInput: it exists or cannot be written.
    """
    with writing(path):
        if os.path.lexists(path):
            raise InvalidInput(f"{path} already exists and is not replaced: choose another --out, or remove it")
        with atomic_file(path, os.link, private=True) as file:
            for ticket in tickets:
                file.write(ticket)


def _private_key(content: bytes) -> Any:
    return load_pem_private_key(content, None)


def _load(path: Path, load: Any, other: Any, description: str) -> Any:
    """Return the key in a file by ``load``; if ``other`` reads it, refuse it as ``description``."""
    with reading(path), path.open("rb") as file:
        content = file.read(MAX_KEY_BYTES)
    try:
        return load(content)
    except (ValueError, TypeError):  # TypeError: the key has a password
        with suppress(ValueError, TypeError):
            if isinstance(other(content), (Ed25519PrivateKey, Ed25519PublicKey)):
                raise InvalidInput(f"{path} holds {description}") from None
        raise InvalidInput(f"{path} holds no key: give a PEM file made by 'cloister tickets new-key'") from None
