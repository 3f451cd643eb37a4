"""A party's population: its own rows, and a line to the coordinator. To the session it looks like any other; a run
calls ``join`` once its rows are checked and paid for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol, final

from cloister.core.aggregated import RingVector
from cloister.core.fingerprints import fingerprinter
from cloister.core.lattice import CAP
from cloister.core.plain_data import digest
from cloister.core.questions import Round
from cloister.core.randomness import NoiseRng
from cloister.core.trust import Aggregated
from cloister.core.types import Ids, Ints
from cloister.federated.protocol.messages import Reason, Rejected
from cloister.federated.protocol.party import Party
from cloister.federated.protocol.vectors import (
    PoolRounds,
    Shape,
    outline,
    party_words,
    released,
    settled_numbers,
    settled_outline,
    settled_words,
)
from cloister.rows.selection import Selection

MAX_ATTEMPTS = 1000


class Exchange(Protocol):
    """Carries a message (bytes) to the coordinator and its reply back."""

    def exchange(self, data: bytes) -> bytes: ...


@final
class Joined:
    """A population of trust Aggregated: this party's rows here, the others' elsewhere.

    Args:
        rows: this party's own.
        party: its state machine.
        line: to the coordinator.
        script: all rounds of the session; its numbers are those of the coordinator's log.
        told: called with the progress in words: 'joining', 'joined', 'round 3', 'attempt 2 of round 3'.

    Attributes:
        greeted: whether the coordinator may have heard of this party in this process.
    """

    trust = Aggregated
    simulated = False

    def __init__(
        self,
        rows: Any,
        party: Party,
        line: Exchange,
        script: PoolRounds,
        told: Callable[[str], None] = lambda words: None,
    ) -> None:
        self._rows, self._party, self._line, self._script, self._told = rows, party, line, script, told
        self.columns, self.dimension = rows.columns, rows.dimension
        self.selection: Selection | None = getattr(rows, "selection", None)
        self.greeted = False

    @property
    def opened(self) -> bool:
        """Whether all have joined, by what this party and its journal know: from then on a round may be open."""
        return self._party.opened

    @property
    def payer(self) -> tuple[str, str] | None:
        """The data set and the run in this party's own ledger that pay for the session, by its journal."""
        return self._party.payer

    def paid_by(self, dataset: str, run: str) -> None:
        """Write down in the journal who pays."""
        self._party.paid_by(dataset, run)

    def check(self, most_rows: int = CAP) -> None:
        """This party's validation pass, before anybody hears of it. Its outcome, go or refuse, goes to this party alone
        and is outside the guarantee (law 7): others see only that somebody has not joined. No single row decides
        anything later: ``party_words`` checks the same cap again, only as a last defence.

        Raises: InvalidInput: as the rows' population says; also if more than ``most_rows`` can be used.
        """
        self._rows.check(most_rows)

    def join(self) -> None:
        """Say hello and wait until all have: after the party's own ledger has reserved the run, and before anything
        that depends on a row is sent. A party whose journal holds the opening has joined already, and replays the
        rounds that it knows without anybody.

        Raises: Rejected: the coordinator or another party agreed to something else, or somebody is missing or cannot
        begin.
        """
        if self._party.opened:
            self._told("joined before: going on from the journal")
            return
        self._told("joining")
        self.greeted = True
        self._party.noted(self._line.exchange(self._party.check()))
        self._party.open(self._line.exchange(self._party.hello()))
        self._told("joined: all parties are here")

    def fingerprints(self, key: bytes) -> Mapping[str, bytes]:
        """Marks by which a resumed run recognises this party's rows (``core.record``)."""
        return fingerprinter(self._rows)(key)

    def gather(self, round: Round[Aggregated], rng: NoiseRng) -> tuple[RingVector, ...]:
        shape, number = outline(round, self._party.agreement.parties), self._script.asked_at(round.index)
        return released(self._pooled(number, round.digest(), shape, partial(self._own, round, rng)))

    def agree(self, after: int, number: int, found: Ints) -> Ints:
        """The vectors that all parties go on from: the first one's, in a round of its own (``protocol.vectors``)."""
        at, shape = self._script.settled_at(after, number), settled_outline(found.size)
        words = partial(settled_words, found, self._party.me)
        return settled_numbers(self._pooled(at, digest(("settled", after, number)), shape, words), found)

    def _own(self, round: Round[Aggregated], rng: NoiseRng) -> tuple[Ids, ...]:
        """This party's words with its share of the noise: made once per round, for all of its attempts."""
        agreement, me = self._party.agreement, self._party.me
        return party_words(round, self._rows.gather(round, rng), me, agreement.parties, rng)

    def _pooled(self, number: int, name: str, shape: Shape, own: Callable[[], tuple[Ids, ...]]) -> tuple[Ids, ...]:
        """The unmasked sum of all parties' words in a round of the session. Args: name (its digest)."""
        if (known := self._party.known(number, shape)) is not None:
            return known
        self._told(f"round {number + 1}")
        for _ in range(MAX_ATTEMPTS):
            message = self._party.vector(number, name, shape, own)
            try:
                return self._party.answer(self._sent(message, number), number, shape)
            except Rejected as error:
                if error.reason not in (Reason.ABORTED, Reason.OTHER_ATTEMPT):
                    raise
                self._party.aborted(number, error.attempt)
                self._told(f"attempt {error.attempt + 1} of round {number + 1}: another party was missing")
        raise Rejected(Reason.TIMEOUT, f"round {number + 1} was given up {MAX_ATTEMPTS} times")

    def _sent(self, message: bytes, round: int) -> bytes:
        """The reply; if the coordinator already has this vector (sent before a cut-off), the round's outcome."""
        from cloister.federated.protocol.messages import HEAD, Kind, Message, refused

        reply = self._line.exchange(message)
        if len(reply) >= HEAD.size and reply[5] == Kind.REFUSAL:
            _, _, _, _, name, _, attempt, *_ = HEAD.unpack_from(reply)
            error = refused(Message(Kind.REFUSAL, 0, name, round, attempt, reply[HEAD.size :]))
            if error.reason in (Reason.DUPLICATE, Reason.LATE):
                return self._line.exchange(self._party.ask(round))
        return reply
