"""A party's side of the protocol, without I/O: it masks vectors, each under a fresh mask, and unmasks the sums.

The contents of a round's vector, noise share included, are fixed once and journalled: a second attempt masks the same
numbers anew, and a restarted party sends the same bytes.
"""

from __future__ import annotations

import hmac
import struct
from collections.abc import Callable
from typing import final

from cloister.core.errors import Damaged, InvalidInput, Refused
from cloister.core.types import Ids
from cloister.federated.protocol.agreement import HASH, KEY, NONCE, Agreement, check_journal, journal_name, session_of
from cloister.federated.protocol.journal import Memory, SessionJournal
from cloister.federated.protocol.masking import (
    SECRET,
    WRAPPED,
    Keyring,
    mask,
    new_secret,
    pair_secrets,
    unmask,
    unwrap,
    wrap,
)
from cloister.federated.protocol.messages import (
    COORDINATOR,
    TAG,
    Kind,
    Message,
    Reason,
    Rejected,
    read,
    refused,
    split_hellos,
)
from cloister.federated.protocol.outline import to_bytes
from cloister.federated.protocol.streams import new_private_key, public_key, shared_secret
from cloister.federated.protocol.vectors import Shape, pack, unpack

FROM_COORDINATOR = frozenset({Kind.OPENING, Kind.ANSWER, Kind.REFUSAL, Kind.NOTED})
JOINED, OPENED, VALUE, SENT, ABORTED, ANSWERED, PAID = range(7)
PLACE = struct.Struct("<II")


@final
class Party:
    """State of one session at one party.

    Args:
        agreement: what all parties have agreed on.
        name: of this party.
        secret: the parties' common secret (``shared`` masks).
        private: this party's X25519 key (``pairwise`` masks).
        journal: its entries resume an earlier process's session.

    Attributes:
        payer: data set and id of the run in this party's ledger that pays for the session, if it has one.

    Raises:
        InvalidInput: no such party, the wrong kind of key, or a coordinator's key of low order, which hides nothing.
    """

    def __init__(
        self,
        agreement: Agreement,
        name: str,
        *,
        secret: bytes | None = None,
        private: bytes | None = None,
        journal: SessionJournal | None = None,
    ) -> None:
        self.agreement, self.me, self.name = agreement, agreement.index(name), name
        if self.me < 0:
            raise InvalidInput(f"'{name}' is not one of the agreed parties")
        self._journal: SessionJournal = Memory() if journal is None else journal
        self._pairs = self._checked_keys(secret, private)
        shared_secret(new_private_key(), agreement.coordinator_key)  # refuse a bad key before anything is written
        self._group, self._fresh = secret or b"", b""
        self._hello = b""
        self._keys: Keyring | None = None
        self._values: dict[int, bytes] = {}
        self._sent: dict[tuple[int, int], bytes] = {}
        self._attempts: dict[int, int] = {}
        self._answers: dict[int, bytes] = {}
        self.payer: tuple[str, str] | None = None
        for kind, body in list(self._journal.entries):
            self._resume(kind, body)

    @property
    def opened(self) -> bool:
        return self._keys is not None

    def paid_by(self, dataset: str, run: str) -> None:
        """Journal which run of this party's ledger pays for the session, so that no second run is opened for it."""
        self._note(PAID, journal_name(self.agreement, self.name) + f"{run} {dataset}".encode())

    def check(self, trial: bool = False) -> bytes:
        """Return the message that compares the plan, before anything is written or sent.

        Args:
            trial: only compare: the parties that wait go on waiting, even if this party's plan differs.
        """
        body = to_bytes(self.agreement.outline)
        return Message(Kind.CHECK, self.me, self.agreement.hash, attempt=int(trial), body=body).to_bytes()

    def leave(self) -> bytes:
        """Return the message saying that this party cannot begin, so that nobody waits for it."""
        return Message(Kind.LEAVE, self.me, self.agreement.hash).to_bytes()

    def take_noted(self, data: bytes) -> None:
        """Check that the coordinator holds the same agreement.

        Raises:
            Rejected: it holds another one.
        """
        if not hmac.compare_digest(self._read(data, Kind.NOTED).name, self.agreement.hash):
            raise Rejected(Reason.OTHER_AGREEMENT, "the coordinator agreed to something else", "coordinator")

    def hello(self) -> bytes:
        """Return the message that joins the session: this party's nonce.

        The first party's message also holds the group's secret, encrypted for each other party. The nonce is the public
        half of a fresh key, from which the party derives its secret with the coordinator.
        """
        if not self._hello:
            fresh, drawn, sealed = new_private_key(), b"", b""
            nonce = public_key(fresh)
            if self.agreement.masks == "pairwise" and self.me == 0:
                drawn = new_secret()
                sealed = b"".join(
                    wrap(drawn, self._pairs[i], nonce, self.agreement.hash, i) for i in range(1, self.agreement.parties)
                )
            secrets = fresh + bytes([len(drawn)]) + drawn
            self._note(JOINED, journal_name(self.agreement, self.name) + secrets + nonce + sealed)
        return Message(Kind.HELLO, self.me, self.agreement.hash, body=self._hello).to_bytes()

    def open(self, data: bytes) -> None:
        """Take the coordinator's opening: every party's nonce.

        Raises:
            Rejected: malformed, without this party's own nonce, or the group's secret was tampered with.
        """
        message = self._read(data, Kind.OPENING)
        bodies = split_hellos(message.body, self.agreement.parties)
        if (message.round, message.attempt) != (0, 0):
            raise Rejected(Reason.MALFORMED, "an opening with a round's number", "coordinator")
        if bodies[self.me] != self._hello:
            raise Rejected(Reason.OTHER_SESSION, "the opening does not hold what this party sent", "coordinator")
        if message.name != session_of(self.agreement.hash, bodies):
            raise Rejected(Reason.OTHER_SESSION, "the opening's name is not that of its hellos", "coordinator")
        if self.opened:
            if message.name != self._ring.session:
                raise Rejected(Reason.OTHER_SESSION, "a second opening, of another session", "coordinator")
            return
        self._keyring(bodies)
        self._note(OPENED, message.body)

    def answered(self, round: int, shape: Shape) -> tuple[Ids, ...] | None:
        """Return the noised sums of a round that was answered before, else None."""
        body = self._answers.get(round)
        return None if body is None else unmask(unpack(body, shape), self._ring, round, self._attempts.get(round, 0))

    def vector(self, round: int, digest: str, shape: Shape, values: Callable[[], tuple[Ids, ...]]) -> bytes:
        """Return the message of one round's current attempt: the same bytes however often it is requested.

        Args:
            round: index of the round.
            digest: of the round's questions, which must not change between attempts.
            shape: of the round's tensors.
            values: called once per round; draws this party's words (m,) per tensor, its share of the noise included.

        Raises:
            Refused: the round was answered already, or its digest changed.
        """
        if round in self._answers:
            raise Refused(f"round {round + 1} was answered: its vector is not sent again")
        attempt = self._attempts.get(round, 0)
        if (round, attempt) not in self._sent:
            if round not in self._values:
                self._note(VALUE, PLACE.pack(round, 0) + pack(values(), shape))
            masked = mask(unpack(self._values[round], shape), self._ring, round, attempt)
            body = self._ring.tag(round, digest) + pack(masked, shape)
            self._note(SENT, PLACE.pack(round, attempt) + body)
        body = self._sent[round, attempt]
        if not hmac.compare_digest(body[:TAG], self._ring.tag(round, digest)):
            raise Refused(
                f"round {round + 1} is not the one that was sent before: compare the options, the version of cloister "
                f"and the platform"
            )
        return Message(Kind.VECTOR, self.me, self._ring.session, round, attempt, body).to_bytes()

    def ask(self, round: int) -> bytes:
        """Return the message that asks for the outcome of a vector that was sent."""
        return Message(Kind.ASK, self.me, self._ring.session, round, self._attempts.get(round, 0)).to_bytes()

    def answer(self, data: bytes, round: int, shape: Shape) -> tuple[Ids, ...]:
        """Unmask the sum of a round, once, to noised sums: words (m,) per tensor.

        Raises:
            Rejected: it is a refusal, or does not answer what was sent.
        """
        message = self._read(data, Kind.ANSWER)
        attempt = self._attempts.get(round, 0)
        if message.name != self._ring.session or (message.round, message.attempt) != (round, attempt):
            raise Rejected(
                Reason.OTHER_ROUND,
                f"an answer to round {message.round + 1}, attempt {message.attempt + 1}; {round + 1}, {attempt + 1} "
                f"was asked",
                "coordinator",
            )
        if (round, attempt) not in self._sent:
            raise Rejected(Reason.EARLY, f"an answer to round {round + 1}, for which nothing was sent", "coordinator")
        sums = unpack(message.body, shape)
        if self._answers.get(round, message.body) != message.body:
            raise Rejected(Reason.DUPLICATE, f"a second answer to round {round + 1}, with other words", "coordinator")
        if round not in self._answers:
            self._note(ANSWERED, PLACE.pack(round, attempt) + message.body)
        return unmask(sums, self._ring, round, attempt)

    def aborted(self, round: int, attempt: int) -> None:
        """Go on to this attempt, with fresh masks: the coordinator has given up the one before.

        Raises:
            Refused: the attempt is not larger than the last one, or the round was answered.
        """
        if round in self._answers or not self._attempts.get(round, 0) < attempt < 2**32:
            raise Refused(
                f"attempt {attempt + 1} of round {round + 1} does not follow the last one: the coordinator is wrong"
            )
        self._note(ABORTED, PLACE.pack(round, attempt))

    @property
    def _ring(self) -> Keyring:
        if self._keys is None:
            raise Refused("the session is not open: say hello first, and take the coordinator's opening")
        return self._keys

    def _checked_keys(self, secret: bytes | None, private: bytes | None) -> dict[int, bytes]:
        if self.agreement.masks == "shared":
            if secret is None or len(secret) < SECRET or private is not None:
                raise InvalidInput(
                    f"shared masks need the parties' common secret, of {SECRET} bytes or more, and no private key"
                )
            return {}
        if private is None or secret is not None:
            raise InvalidInput("pairwise masks need this party's private key, and no common secret")
        return pair_secrets(self.agreement, self.me, private)

    def _read(self, data: bytes, kind: Kind) -> Message:
        message = read(data, FROM_COORDINATOR, "the coordinator")
        if message.sender != COORDINATOR:
            raise Rejected(Reason.MALFORMED, "a message that is not from the coordinator", "coordinator")
        if message.kind is Kind.REFUSAL:
            raise refused(message)
        if message.kind is not kind:
            raise Rejected(
                Reason.MALFORMED, f"the coordinator sent {message.kind.name}, expected {kind.name}", "coordinator"
            )
        return message

    def _note(self, kind: int, body: bytes) -> None:
        """Journal an entry and then apply it, before a byte leaves."""
        self._journal.write(kind, body)
        self._resume(kind, body)

    def _resume(self, kind: int, body: bytes) -> None:
        if kind == JOINED:
            check_journal(body, self.agreement, self.name)
            self._fresh, drawn = body[HASH : HASH + KEY], HASH + KEY + 1
            cut = drawn + body[drawn - 1]
            self._group, self._hello = body[drawn:cut] or self._group, body[cut:]
        elif kind == PAID:
            check_journal(body, self.agreement, self.name)
            run, _, dataset = body[HASH:].decode().partition(" ")
            self.payer = dataset, run
        elif kind == OPENED:
            self._keys = self._keyring(split_hellos(body, self.agreement.parties))
        else:
            place = PLACE.unpack_from(body)
            content = body[PLACE.size :]
            if kind == VALUE:
                self._values[place[0]] = content
            elif kind == SENT:
                self._sent[place] = content
            elif kind == ABORTED:
                self._attempts[place[0]] = place[1]
            elif kind == ANSWERED:
                self._answers[place[0]] = content
            else:
                raise Damaged("the party's journal is not in order: begin a new session")

    def _keyring(self, bodies: tuple[bytes, ...]) -> Keyring:
        if self.agreement.masks == "pairwise" and self.me > 0:
            sealed = bodies[0][NONCE:]
            if len(sealed) != WRAPPED * (self.agreement.parties - 1):
                raise Rejected(
                    Reason.WRONG_SHAPE,
                    "the first party's hello does not hold the group's secret",
                    self.agreement.members[0].name,
                )
            own_seal = sealed[WRAPPED * (self.me - 1) : WRAPPED * self.me]
            try:
                self._group = unwrap(own_seal, self._pairs[0], bodies[0][:NONCE], self.agreement.hash, self.me)
            except InvalidInput as error:
                raise Rejected(Reason.OTHER_SESSION, str(error), self.agreement.members[0].name) from error
        session = session_of(self.agreement.hash, bodies)
        coordinator = shared_secret(self._fresh, self.agreement.coordinator_key)
        return Keyring(session, self.me, self.agreement.parties, self._group, coordinator, self._pairs)
