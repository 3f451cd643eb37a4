"""Messages as bytes: a fixed head and a body, nothing optional. Any input that is not a message is ``Rejected``."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from enum import IntEnum, unique
from typing import final

import attrs

from cloister.core.errors import Refused
from cloister.federated.protocol.agreement import NONCE

MAGIC = b"CLSF"
VERSION = 1
HEAD = struct.Struct("<4sBBH32sIII8s")
"""magic, version, kind, sender, name (of the agreement or the session), round, attempt, length of the body, checksum.

The checksum finds accidents. That nobody else can send is the transport's promise (mutual TLS), which gives the name.
"""
TAG = 32
MAX_BYTES = 2**29
"""Longest body in bytes."""
COORDINATOR = 0xFFFF


@unique
class Kind(IntEnum):
    """Kind of message."""

    HELLO = 1  # party: agreement confirmed, with a nonce (a public key for this session)
    OPENING = 2  # coordinator: all parties' hellos
    VECTOR = 3  # party: tag, masked words
    ASK = 4  # party: request for the outcome of this round
    ANSWER = 5  # coordinator: the masked sum with its noise
    REFUSAL = 6  # coordinator: a refusal with its reason
    CHECK = 7  # party: the agreement's name, with the plan's outline; attempt 1 if it is only a trial
    LEAVE = 8  # party: it cannot begin
    NOTED = 9  # coordinator: the same agreement, or farewell


@unique
class Reason(IntEnum):
    """Code of a refusal, for programs. A text for people comes with it."""

    MALFORMED = 1
    UNKNOWN_PARTY = 2
    OTHER_AGREEMENT = 3
    OTHER_SESSION = 4
    DUPLICATE = 5
    LATE = 6
    EARLY = 7
    OTHER_ATTEMPT = 8
    WRONG_SHAPE = 9
    ABORTED = 10
    OTHER_ROUND = 11
    TIMEOUT = 12


@final
class Rejected(Refused):
    """Message that is not accepted.

    Attributes:
        reason: the code.
        party: the one at fault.
        attempt: the one that is open.
    """

    def __init__(self, reason: Reason, words: str, party: str = "", attempt: int = 0) -> None:
        super().__init__(words)
        self.reason, self.party, self.attempt = reason, party, attempt


@final
@attrs.frozen
class Message:
    """Message of the protocol.

    Args:
        kind: decides the body.
        sender: index of the party, or ``COORDINATOR``.
        name: 32 bytes, of the agreement (HELLO) or the session.
        round, attempt: the ones that the message belongs to.
    """

    kind: Kind
    sender: int
    name: bytes
    round: int = 0
    attempt: int = 0
    body: bytes = attrs.field(default=b"", repr=False)

    def to_bytes(self) -> bytes:
        head = (MAGIC, VERSION, self.kind, self.sender, self.name, self.round, self.attempt, len(self.body))
        open_head = HEAD.pack(*head, bytes(8))[:-8]
        return open_head + checksum(open_head, self.body) + self.body


def checksum(head: bytes, body: bytes) -> bytes:
    """Return 8 bytes of SHA-256."""
    return hashlib.sha256(head + body).digest()[:8]


def read(data: bytes, kinds: frozenset[Kind], who: str) -> Message:
    """Parse a message of one of these kinds.

    Args:
        data: its bytes.
        kinds: those that are accepted.
        who: the sender, for the error.

    Raises:
        Rejected: it is anything else.
    """
    if len(data) < HEAD.size:
        raise Rejected(Reason.MALFORMED, f"{who} sent {len(data)} bytes, which are not a message", who)
    magic, version, kind, sender, name, round, attempt, length, check = HEAD.unpack_from(data)
    if magic != MAGIC or version != VERSION:
        raise Rejected(Reason.MALFORMED, f"{who} sent no message of this protocol, version {VERSION}", who)
    if kind not in kinds:
        raise Rejected(Reason.MALFORMED, f"{who} sent a message of kind {kind}, which is not expected here", who)
    if length > MAX_BYTES or len(data) != HEAD.size + length:
        raise Rejected(
            Reason.MALFORMED, f"{who} sent {len(data)} bytes, but its message announces {HEAD.size + length}", who
        )
    if check != checksum(data[: HEAD.size - 8], data[HEAD.size :]):
        raise Rejected(Reason.MALFORMED, f"{who} sent a message that was changed on its way", who)
    return Message(Kind(kind), sender, name, round, attempt, data[HEAD.size :])


def refusal(error: Rejected, name: bytes, round: int) -> bytes:
    """Return a refusal as bytes. It holds no private value: reasons consist of names and public numbers."""
    party = error.party.encode()[:255]
    body = bytes([error.reason, len(party)]) + party + str(error).encode()
    return Message(Kind.REFUSAL, COORDINATOR, name, round, error.attempt, body).to_bytes()


def refused(message: Message) -> Rejected:
    """Return the error that a refusal message stands for."""
    body = message.body
    if len(body) < 2 or len(body) < 2 + body[1] or body[0] not in set(Reason):
        return Rejected(Reason.MALFORMED, "the coordinator sent a refusal that cannot be read", "coordinator")
    end = 2 + body[1]
    party, words = body[2:end].decode(errors="replace"), body[end:].decode(errors="replace")
    return Rejected(Reason(body[0]), words, party, message.attempt)


def joined_hellos(bodies: Sequence[bytes]) -> bytes:
    """Return the body of an opening: all parties' hellos, in the agreement's order."""
    return b"".join(struct.pack("<I", len(body)) + body for body in bodies)


def split_hellos(body: bytes, parties: int) -> tuple[bytes, ...]:
    """Return the hellos in an opening's body.

    Raises:
        Rejected: it does not hold exactly this many.
    """
    bodies, start = [], 0
    for _ in range(parties):
        length = int.from_bytes(body[start : start + 4], "little")
        if len(body) < start + 4 or length < NONCE or len(body) < start + 4 + length:
            raise Rejected(Reason.MALFORMED, "an opening without every party's nonce", "coordinator")
        bodies.append(body[start + 4 : start + 4 + length])
        start += 4 + length
    if start != len(body):
        raise Rejected(Reason.MALFORMED, "an opening that is too long", "coordinator")
    return tuple(bodies)
