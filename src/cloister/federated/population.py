"""A party's population: its own rows, pooled with the other parties' through the coordinator.

To the session it looks like any other; a run calls ``join`` once its rows are checked and paid for.
"""

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
from cloister.federated.protocol.messages import HEAD, Kind, Message, Reason, Rejected, refused
from cloister.federated.protocol.party import Party
from cloister.federated.protocol.vectors import (
    PoolRounds,
    Shape,
    agreed_numbers,
    agreed_shape,
    agreed_words,
    party_words,
    released,
    round_shape,
)
from cloister.rows.selection import Selection

MAX_ATTEMPTS = 1000


class Exchange(Protocol):
    """Line to the coordinator."""

    def exchange(self, data: bytes) -> bytes: ...


@final
class Joined:
    """Population of trust Aggregated: this party's rows here, the others' elsewhere.

    Args:
        rows: this party's own.
        party: its state machine.
        line: to the coordinator.
        script: all rounds of the session; its numbers are those of the coordinator's log.
        on_progress: called with the progress in words: 'joining', 'joined', 'round 3', 'attempt 2 of round 3'.

    Attributes:
        hello_sent: whether the coordinator may have heard of this party in this process.
    """

    trust = Aggregated
    simulated = False

    def __init__(
        self,
        rows: Any,
        party: Party,
        line: Exchange,
        script: PoolRounds,
        on_progress: Callable[[str], None] = lambda words: None,
    ) -> None:
        self._rows, self._party, self._line, self._script, self._on_progress = rows, party, line, script, on_progress
        self.columns, self.dimension = rows.columns, rows.dimension
        self.selection: Selection | None = getattr(rows, "selection", None)
        self.hello_sent = False

    @property
    def opened(self) -> bool:
        """Whether all have joined, as far as this party and its journal know: from then on a round may be open."""
        return self._party.opened

    @property
    def payer(self) -> tuple[str, str] | None:
        """Data set and run in this party's own ledger that pay for the session, by its journal."""
        return self._party.payer

    def paid_by(self, dataset: str, run: str) -> None:
        """Journal which run pays."""
        self._party.paid_by(dataset, run)

    def check(self, most_rows: int = CAP) -> None:
        """Validate this party's rows, before anybody hears of it.

        Only this party learns whether they passed, which is outside the guarantee (law 7): others see only that
        somebody has not joined.

        Raises:
            InvalidInput: as the rows' population says; also if more than ``most_rows`` can be used.
        """
        # ``party_words`` checks the cap again, but only as a last defence: no single row decides anything later.
        self._rows.check(most_rows)

    def join(self) -> None:
        """Say hello and wait until all have, after the party's own ledger has reserved the run.

        Nothing that depends on a row is sent before. A party whose journal holds the opening has joined already, and
        replays the rounds that it knows without anybody.

        Raises:
            Rejected: the coordinator or another party agreed to something else, or somebody is missing or cannot begin.
        """
        if self._party.opened:
            self._on_progress("joined before: going on from the journal")
            return
        self._on_progress("joining")
        self.hello_sent = True
        self._party.take_noted(self._line.exchange(self._party.check()))
        self._party.open(self._line.exchange(self._party.hello()))
        self._on_progress("joined: all parties are here")

    def fingerprints(self, key: bytes) -> Mapping[str, bytes]:
        """Return fingerprints by which a resumed run recognises this party's rows (``core.fingerprints``)."""
        return fingerprinter(self._rows)(key)

    def gather(self, round: Round[Aggregated], rng: NoiseRng) -> tuple[RingVector, ...]:
        shape, number = round_shape(round, self._party.agreement.parties), self._script.round_at(round.index)
        return released(self._pool_round(number, round.digest(), shape, partial(self._own_words, round, rng)))

    def agree(self, after: int, number: int, values: Ints) -> Ints:
        """Return the first party's values, from which all parties go on (an agreed round of ``protocol.vectors``)."""
        at, shape = self._script.agreed_at(after, number), agreed_shape(values.size)
        words = partial(agreed_words, values, self._party.me)
        return agreed_numbers(self._pool_round(at, digest(("settled", after, number)), shape, words), values)

    def _own_words(self, round: Round[Aggregated], rng: NoiseRng) -> tuple[Ids, ...]:
        """Return this party's words with its share of the noise: drawn once per round, for all of its attempts."""
        agreement, me = self._party.agreement, self._party.me
        return party_words(round, self._rows.gather(round, rng), me, agreement.parties, rng)

    def _pool_round(
        self, number: int, name: str, shape: Shape, make_vectors: Callable[[], tuple[Ids, ...]]
    ) -> tuple[Ids, ...]:
        """Return the unmasked sum of all parties' words in a round of the session, whose digest is ``name``."""
        if (answered := self._party.answered(number, shape)) is not None:
            return answered
        self._on_progress(f"round {number + 1}")
        for _ in range(MAX_ATTEMPTS):
            message = self._party.vector(number, name, shape, make_vectors)
            try:
                return self._party.answer(self._exchange(message, number), number, shape)
            except Rejected as error:
                if error.reason not in (Reason.ABORTED, Reason.OTHER_ATTEMPT):
                    raise
                self._party.aborted(number, error.attempt)
                self._on_progress(f"attempt {error.attempt + 1} of round {number + 1}: another party was missing")
        raise Rejected(Reason.TIMEOUT, f"round {number + 1} was given up {MAX_ATTEMPTS} times")

    def _exchange(self, message: bytes, round: int) -> bytes:
        """Return the reply; if the coordinator already has this vector (sent before a cut-off), the round's outcome."""
        reply = self._line.exchange(message)
        if len(reply) >= HEAD.size and reply[5] == Kind.REFUSAL:
            _, _, _, _, name, _, attempt, *_ = HEAD.unpack_from(reply)
            error = refused(Message(Kind.REFUSAL, 0, name, round, attempt, reply[HEAD.size :]))
            if error.reason in (Reason.DUPLICATE, Reason.LATE):
                return self._line.exchange(self._party.ask(round))
        return reply
