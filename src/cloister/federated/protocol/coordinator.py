"""The coordinator's half, free of I/O: it collects every party's masked vector, adds them up with noise, and answers.

It holds uniform words, nonces, noise and its own key. That key takes off the mask that hides a message from everybody
else on the wire, and leaves the message under the group's mask. This module may not import the code that takes the
group's mask off (a contract in ``pyproject.toml``). Every refusal says why and names the party; none changes what was
accepted before.
"""

from __future__ import annotations

import hmac
import struct
from collections import Counter
from typing import final

import attrs

from cloister.core.errors import Damaged, InvalidInput
from cloister.federated.protocol.agreement import HASH, NONCE, Agreement, check_journal, journal_name, session_of
from cloister.federated.protocol.journal import Memory, SessionJournal
from cloister.federated.protocol.messages import (
    COORDINATOR,
    TAG,
    Kind,
    Message,
    Reason,
    Rejected,
    joined_hellos,
    read,
    split_hellos,
)
from cloister.federated.protocol.outline import differing, from_bytes
from cloister.federated.protocol.streams import public_key, shared_secret, without_coordinator_mask
from cloister.federated.protocol.vectors import Noise, Shape, pack, shape_bytes, unpack

FROM_PARTIES = frozenset({Kind.HELLO, Kind.VECTOR, Kind.ASK, Kind.CHECK, Kind.LEAVE})
OPENING, ABORT, CLOSED = range(3)
PLACE = struct.Struct("<II")

NOTED = -2
"""Stands in for a round where the sender waits for an acknowledgement only."""


@final
@attrs.frozen
class Due:
    """Reply that a sender waits for.

    Args:
        round: -1 for the opening, ``NOTED`` for an acknowledgement.
        attempt: of the round.
    """

    round: int
    attempt: int = 0


@final
class Coordinator:
    """State of one session.

    Args:
        agreement: what all parties must have agreed on.
        journal: its entries resume an earlier process's session: answers stay the same, and no noise is drawn twice.
        private: its X25519 key, which no journal holds.

    Attributes:
        failed: why the session ended, if it did.

    Raises:
        InvalidInput: the key is not the agreement's.
    """

    def __init__(self, agreement: Agreement, journal: SessionJournal | None = None, *, private: bytes) -> None:
        if public_key(private) != agreement.coordinator_key:
            raise InvalidInput("the coordinator's private key does not belong to the plan's coordinator_key")
        self.agreement, self._private = agreement, private
        self.failed: Rejected | None = None
        self._journal: SessionJournal = Memory() if journal is None else journal
        self._rounds: list[tuple[Shape, Noise]] = []
        self._hellos: dict[int, bytes] = {}
        self._secrets: list[bytes] = []
        self._session, self._opening = b"", b""
        self._attempt, self._received = 0, dict[int, bytes]()
        self._answers: list[bytes] = []
        for kind, body in list(self._journal.entries):
            self._resume(kind, body)

    @property
    def round(self) -> int:
        """First round without an answer."""
        return len(self._answers)

    @property
    def attempt(self) -> int:
        """Open attempt of that round."""
        return self._attempt

    @property
    def session(self) -> bytes:
        """Session's name; empty until all have joined."""
        return self._session

    @property
    def missing(self) -> tuple[str, ...]:
        """Parties whose hello, or vector of the current round, has not arrived."""
        here = self._received if self._opening else self._hellos
        return tuple(m.name for i, m in enumerate(self.agreement.members) if i not in here)

    def expect(self, shape: Shape, noise: Noise) -> None:
        """Announce the next round: the shape of its vectors, and the noise added to them."""
        self._rounds.append((shape, noise))

    def receive(self, sender: str, data: bytes) -> Due:
        """Accept one message.

        Args:
            sender: the name that the transport has authenticated.
            data: the message.

        Raises:
            Rejected: it is not accepted; the error names the party.
        """
        index = self.agreement.index(sender)
        if index < 0:
            raise Rejected(Reason.UNKNOWN_PARTY, f"'{sender}' is not one of the agreed parties", sender)
        if self.failed is not None:
            raise self.failed
        message = read(data, FROM_PARTIES, sender)
        if message.kind in (Kind.CHECK, Kind.LEAVE):
            return self._before_joining(sender, message)
        if message.sender != index:
            raise Rejected(
                Reason.UNKNOWN_PARTY, f"'{sender}' sent a message in the name of party {message.sender}", sender
            )
        if message.kind is Kind.HELLO:
            return self._hello(index, sender, message)
        if not self._opening or not hmac.compare_digest(message.name, self._session):
            raise Rejected(Reason.OTHER_SESSION, f"'{sender}' sent a message of another session", sender)
        return self._ask(sender, message) if message.kind is Kind.ASK else self._vector(index, sender, message)

    def outcome(self, due: Due) -> bytes | None:
        """Return the message that a sender waits for; None while others are missing.

        Raises:
            Rejected: it will never come.
        """
        if due.round == NOTED:
            return Message(Kind.NOTED, COORDINATOR, self.agreement.hash).to_bytes()
        if due.round < 0:
            if self._opening:
                return self._opening
        elif due.round < len(self._answers):
            return self._answers[due.round]
        elif due.attempt < self._attempt:
            raise Rejected(
                Reason.ABORTED,
                f"attempt {due.attempt + 1} of round {due.round + 1} was given up: send with fresh masks",
                "",
                self._attempt,
            )
        if self.failed is not None:
            raise self.failed
        return None

    def abort(self) -> tuple[str, ...]:
        """Give up the current attempt: its vectors are forgotten, and the next one takes fresh masks.

        Returns:
            The missing parties.
        """
        gone = self.missing
        self._next_attempt()
        return gone

    def fail(self, why: str, party: str = "") -> Rejected:
        """End the session. Answered rounds stay answered.

        Args:
            why: in words.
            party: the one at fault; those who are missing, if empty.
        """
        self.failed = Rejected(Reason.TIMEOUT, why, party or ", ".join(self.missing))
        return self.failed

    def _before_joining(self, sender: str, message: Message) -> Due:
        """Answer a party that compares the plan before it joins, or says that it cannot join."""
        self._check_plan(sender, message)
        if message.kind is Kind.LEAVE and not self._opening:
            self.fail(f"'{sender}' cannot begin, and knows why: nothing was sent or spent", sender)
        return Due(NOTED)

    def _check_plan(self, sender: str, message: Message) -> None:
        if hmac.compare_digest(message.name, self.agreement.hash):
            return
        difference = "compare the plan, the bounds, the parties and their keys, and cloister's version"
        if message.kind is Kind.CHECK and self.agreement.outline:
            names = differing(self.agreement.outline, from_bytes(message.body))
            difference = f"{', '.join(names) or 'no entry, but what cloister makes of them'} of the plan differs"
        raise Rejected(Reason.OTHER_AGREEMENT, f"'{sender}' agreed to something else: {difference}", sender)

    def _hello(self, index: int, sender: str, message: Message) -> Due:
        self._check_plan(sender, message)
        if (message.round, message.attempt) != (0, 0) or len(message.body) < NONCE:
            raise Rejected(Reason.MALFORMED, f"'{sender}' sent a hello without a nonce", sender)
        earlier = self._hellos.get(index)
        if earlier is not None and earlier != message.body:
            raise Rejected(
                Reason.DUPLICATE,
                f"'{sender}' joined this session before, with another nonce: resume it from that party's journal",
                sender,
            )
        if len(message.body) > NONCE + self.agreement.parties * 48:
            raise Rejected(Reason.WRONG_SHAPE, f"'{sender}' sent a hello of {len(message.body)} bytes", sender)
        try:
            shared_secret(self._private, message.body[:NONCE])
        except InvalidInput as error:
            raise Rejected(Reason.MALFORMED, f"'{sender}' sent a hello without a nonce: {error}", sender) from error
        self._hellos[index] = message.body
        if not self._opening and len(self._hellos) == self.agreement.parties:
            body = joined_hellos([self._hellos[i] for i in range(self.agreement.parties)])
            self._journal.write(OPENING, journal_name(self.agreement, "") + body)
            self._open(body)
        return Due(-1)

    def _open(self, body: bytes) -> None:
        bodies = split_hellos(body, self.agreement.parties)
        self._hellos = dict(enumerate(bodies))
        self._secrets = [shared_secret(self._private, hello[:NONCE]) for hello in bodies]
        self._session = session_of(self.agreement.hash, bodies)
        self._opening = Message(Kind.OPENING, COORDINATOR, self._session, body=body).to_bytes()

    def _ask(self, sender: str, message: Message) -> Due:
        if message.body or message.round > self.round:
            raise Rejected(
                Reason.EARLY, f"'{sender}' asks for round {message.round + 1}; round {self.round + 1} is open", sender
            )
        if message.round == self.round and self.agreement.index(sender) not in self._received:
            raise Rejected(
                Reason.OTHER_ATTEMPT,
                f"'{sender}' has sent no vector for round {message.round + 1}",
                sender,
                self._attempt,
            )
        return Due(message.round, self._attempt)

    def _vector(self, index: int, sender: str, message: Message) -> Due:
        attempt = f"round {message.round + 1}, attempt {message.attempt + 1}"
        if message.round < self.round:
            raise Rejected(Reason.LATE, f"'{sender}' sent a vector for {attempt}, but that round was answered", sender)
        if message.round > self.round or message.round >= len(self._rounds):
            raise Rejected(
                Reason.EARLY, f"'{sender}' sent a vector for {attempt}; round {self.round + 1} is open", sender
            )
        if message.attempt != self._attempt:
            raise Rejected(
                Reason.OTHER_ATTEMPT,
                f"'{sender}' sent a vector for {attempt}; attempt {self._attempt + 1} is open",
                sender,
                self._attempt,
            )
        if index in self._received:
            raise Rejected(Reason.DUPLICATE, f"'{sender}' sent a second vector for {attempt}", sender)
        expected = TAG + shape_bytes(self._rounds[self.round][0])
        if len(message.body) != expected:
            raise Rejected(
                Reason.WRONG_SHAPE,
                f"'{sender}' sent {len(message.body)} bytes for {attempt}, expected {expected}",
                sender,
            )
        self._received[index] = message.body
        if len(self._received) == self.agreement.parties:
            self._close()
        return Due(message.round, message.attempt)

    def _close(self) -> None:
        self._check_tags()
        shape, noise = self._rounds[self.round]
        totals = noise()
        for index, body in self._received.items():
            words = unpack(body[TAG:], shape)
            unmasked = without_coordinator_mask(
                words, self._secrets[index], self._session, self.round, self._attempt, index
            )
            totals = tuple(t + v for t, v in zip(totals, unmasked, strict=True))
        answer = Message(
            Kind.ANSWER, COORDINATOR, self._session, self.round, self._attempt, pack(totals, shape)
        ).to_bytes()
        self._journal.write(CLOSED, PLACE.pack(self.round, self._attempt) + answer)
        self._answers.append(answer)
        self._attempt, self._received = 0, {}

    def _check_tags(self) -> None:
        """Check that all parties mean the same round: their tags must be equal."""
        tags = {i: body[:TAG] for i, body in self._received.items()}
        common, times = Counter(tags.values()).most_common(1)[0]
        odd = [self.agreement.members[i].name for i, tag in sorted(tags.items()) if tag != common]
        if not odd:
            return
        if 2 * times <= len(tags):
            odd = [m.name for m in self.agreement.members]
        words = (
            f"round {self.round + 1} comes out differently at {', '.join(odd)}: another version, or a platform that "
            f"computes public choices differently. Nothing was answered"
        )
        self.failed = Rejected(Reason.OTHER_ROUND, words, ", ".join(odd))
        raise self.failed

    def _next_attempt(self) -> None:
        self._journal.write(ABORT, PLACE.pack(self.round, self._attempt + 1))
        self._attempt, self._received = self._attempt + 1, {}

    def _resume(self, kind: int, body: bytes) -> None:
        if kind == OPENING:
            check_journal(body, self.agreement, "")
            self._open(body[HASH:])
        elif kind == ABORT:
            self._attempt = PLACE.unpack(body)[1]
        elif kind == CLOSED and PLACE.unpack_from(body)[0] == self.round:
            self._answers.append(body[PLACE.size :])
            self._attempt = 0
        else:
            raise Damaged("the coordinator's journal is not in order: begin a new session")
