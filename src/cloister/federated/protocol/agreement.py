"""The agreement: everything that must be equal on all sides before anything is masked. It is public."""

from __future__ import annotations

import hashlib
from typing import Literal, TypeAlias, final

import attrs

from cloister.core.errors import InvalidInput
from cloister.federated.protocol.outline import Outline

Masks: TypeAlias = Literal["shared", "pairwise"]
"""``shared``: as in the paper, one secret among the parties. ``pairwise``: also cancelling masks from X25519 keys."""

COORDINATOR_NAME = "coordinator"
"""Common name of the coordinator's certificate, wherever it listens: no party's certificate may have it."""
MAX_PARTIES = 1024
NONCE = 32
"""Bytes of a hello's nonce: the public half of an X25519 key that the party makes for this session, for its secret with
the coordinator.
"""
KEY = 32
HASH = 32


@final
@attrs.frozen
class Member:
    """Party.

    Args:
        name: as in its certificate.
        key: public X25519 key of 32 bytes; empty with a shared secret.
    """

    name: str
    key: bytes = b""


@final
@attrs.frozen
class Agreement:
    """Fixed list of parties, and everything about the run.

    Args:
        plan: digest of the method, its options, the bounds, the budget and the public seed.
        members: the parties, in an order that all share.
        masks: how messages are hidden.
        coordinator_key: the coordinator's public X25519 key: every message carries a mask that only it takes off.
        outline: of the plan's entries, to say which of them differ from another's; no part of what is agreed on.

    Raises:
        InvalidInput: fewer than two parties, two of one name, one of the coordinator's or one that cannot be printed,
            or a missing key.
    """

    plan: str
    members: tuple[Member, ...]
    masks: Masks
    coordinator_key: bytes
    outline: Outline = ()

    def __attrs_post_init__(self) -> None:
        names = [m.name for m in self.members]
        if not 2 <= len(names) <= MAX_PARTIES or len(set(names)) != len(names) or not all(names):
            raise InvalidInput(f"an agreement needs 2 to {MAX_PARTIES} parties of different names, not {names[:10]}")
        if odd := [name for name in names if not name.isprintable()]:
            raise InvalidInput(f"the party's name {odd[0]!r} has characters that cannot be printed: give it another")
        if COORDINATOR_NAME in names:
            raise InvalidInput(
                f"a party is called '{COORDINATOR_NAME}': rename it, since a certificate of that name would pass for "
                f"the coordinator's"
            )
        if self.masks not in ("shared", "pairwise"):
            raise InvalidInput(f"masks are '{self.masks}': choose shared or pairwise")
        keys = [m.key for m in self.members]
        if self.masks == "pairwise" and (any(len(key) != KEY for key in keys) or len(set(keys)) != len(keys)):
            raise InvalidInput(f"pairwise masks need a public key of {KEY} bytes from every party, all different")
        if len(self.coordinator_key) != KEY or self.coordinator_key in keys:
            raise InvalidInput(f"the coordinator needs a public key of {KEY} bytes, which must be no party's")

    @property
    def parties(self) -> int:
        return len(self.members)

    @property
    def hash(self) -> bytes:
        """Digest of exactly this agreement (32 bytes). A party or coordinator with another one is refused."""
        h = hashlib.sha256(b"cloister agreement 1\0")
        for part in (
            self.plan.encode(),
            self.masks.encode(),
            self.coordinator_key,
            *(x for m in self.members for x in (m.name.encode(), m.key)),
        ):
            h.update(len(part).to_bytes(4, "little") + part)
        return h.digest()

    def index(self, name: str) -> int:
        """Return a party's position, or -1."""
        return next((i for i, m in enumerate(self.members) if m.name == name), -1)


def journal_name(agreement: Agreement, owner: str) -> bytes:
    """Return the 32 bytes at the head of a journal, which name its owner (empty: the coordinator) and the agreement.

    The coordinator's journal can be read off its messages: were it accepted as a party's, that party would use keys
    that everybody knows.
    """
    return hashlib.sha256(b"cloister journal 1\0" + agreement.hash + owner.encode()).digest()


def check_journal(entry: bytes, agreement: Agreement, owner: str) -> None:
    """Check that a journal's first entry begins with its name.

    Raises:
        InvalidInput: it belongs to somebody else.
    """
    if entry[:HASH] != journal_name(agreement, owner):
        raise InvalidInput(
            "the journal belongs to another plan, or to somebody else in this one: choose another file, or the plan "
            "that it was made with"
        )


def session_of(agreement: bytes, hellos: tuple[bytes, ...]) -> bytes:
    """Return the 32 bytes that name one session.

    They cover every party's whole hello with its fresh nonce, so that whoever relays the hellos (a coordinator that
    replays an old session) cannot make a party derive a mask twice.
    """
    return hashlib.sha256(
        b"cloister session 1\0" + agreement + b"".join(hashlib.sha256(h).digest() for h in hellos)
    ).digest()
