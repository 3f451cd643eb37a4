"""The coordinator among threads and clocks: who waits for what, for how long, and what the log says.

Timeouts are for silent parties: one that is refused before all have joined, that says it cannot begin, or whose
certificate has expired ends the session at once, and all are told. An attempt that a party does not complete in time is
given up, and after ``attempts`` of them the session ends, with the missing parties' names. A party whose own patience
ends sooner is told shortly before who is missing: otherwise it would blame the coordinator. Each party has one waiting
call: when it asks again, on another connection, the earlier call ends, so that a party that comes and goes cannot take
all threads. Log entries hold names, kinds, numbers and lengths, never contents; rounds and attempts count from 0 there,
and from 1 in words for people.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, final

from cloister.core.errors import CloisterError
from cloister.federated.protocol.coordinator import NOTED, Coordinator, Due
from cloister.federated.protocol.messages import HEAD, Kind, Reason, Rejected, refusal

MARGIN = 1.0
"""Seconds before the end of a party's patience at which it gets its last reply."""

MOST_REFUSALS = 100
"""Largest number of logged refusals of one party, and of all strangers with a certificate together."""

Log: TypeAlias = Callable[[dict[str, Any]], None]


def silent(entry: dict[str, Any]) -> None:
    """Discard a log entry."""


class Stopped(Exception):
    """Raised when the service stopped as if its process had died: parties that wait try again."""


@final
class CoordinatorService:
    """Answers messages, one thread each.

    Args:
        coordinator: with all of its rounds announced.
        rounds: their number.
        patience: seconds that parties may take to join, after the first one.
        timeout: seconds that an attempt's vectors may take, after the first one; also in the first round.
        attempts: how often a round is tried.
        log: called with every event.
        valid_until: when parties' certificates expire, on the clock of ``time.monotonic``, where that is known.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        rounds: int,
        *,
        patience: float = 600.0,
        timeout: float = 60.0,
        attempts: int = 3,
        log: Log = silent,
        valid_until: Mapping[str, float] | None = None,
    ) -> None:
        self._coordinator, self._rounds = coordinator, rounds
        self._patience, self._timeout, self._attempts, self._log = patience, timeout, attempts, log
        self._valid_until = dict(valid_until or {})
        self._changed = threading.Condition()
        self._deadline = math.inf
        self._deadline_of = (-2, -1)
        self._served = set[str]()
        self._calls = dict[str, int]()
        self._waiting, self._dismissed, self._refusals = Counter[str](), set[str](), Counter[str]()
        self._last_heard = time.monotonic()
        self._stopped = False

    def handle(self, sender: str, data: bytes, seconds_left: float | None = None) -> bytes:
        """Return the reply to one message, once there is one: a refusal, or what the sender waits for.

        Args:
            sender: the name that the transport has authenticated.
            data: the message.
            seconds_left: for which the sender will wait for it, if known.

        Raises:
            Stopped: nobody is answered any more.
        """
        with self._changed:
            if self._stopped:
                raise Stopped
            if self._is_party(sender):  # a stranger keeps nobody waiting
                self._last_heard = time.monotonic()
            try:
                due = self._accept(sender, data)
                reply = None if due.round != NOTED else self._coordinator.outcome(due)
                reply = reply or self._wait(due, sender, math.inf if seconds_left is None else seconds_left)
            except CloisterError as failure:
                error = failure if isinstance(failure, Rejected) else self._fail(failure)
                self._dismiss(sender)
                self._log_refusal(sender, error)
                self._changed.notify_all()
                return refusal(error, bytes(32), self._coordinator.round)
            self._dismiss(sender)
            if due.round == self._rounds - 1:
                self._served.add(sender)
                self._changed.notify_all()
            return reply

    def finished(self, idle: float) -> bool:
        """Wait until every party has the last answer; return whether the last round was answered.

        Args:
            idle: seconds without any message after which the wait ends.

        Raises:
            Rejected: the session failed.
        """
        with self._changed:
            while len(self._served) < self._coordinator.agreement.parties:
                if self._coordinator.failed is not None and (
                    len(self._dismissed) == self._coordinator.agreement.parties
                    or self._silent_for(min(idle, self._timeout))
                ):
                    raise self._coordinator.failed
                if self._silent_for(idle):
                    missing = ", ".join(self._coordinator.missing)
                    self._log({"event": "idle", "round": self._coordinator.round, "missing": missing})
                    break
                self._changed.wait(0.2)
            return self._coordinator.round >= self._rounds

    def stop(self, why: str = "") -> None:
        """Stop: all waiting calls end.

        Args:
            why: told to the parties: the session is over; without it they find the coordinator gone, and try again.
        """
        with self._changed:
            if why:
                self._coordinator.fail(why)
            self._stopped = not why
            self._changed.notify_all()

    def _log_refusal(self, sender: str, error: Rejected) -> None:
        """Log a refusal, up to ``MOST_REFUSALS`` of this party, or of all strangers whatever their names are."""
        whose = sender if self._is_party(sender) else "strangers"
        self._refusals[whose] += 1
        if self._refusals[whose] <= MOST_REFUSALS:
            last = f". No further refusal of {whose} is logged" if self._refusals[whose] == MOST_REFUSALS else ""
            entry = {"event": "refused", "party": sender, "reason": error.reason.name, "why": f"{error}{last}"}
            self._log(entry | {"round": self._coordinator.round})

    def _is_party(self, sender: str) -> bool:
        return self._coordinator.agreement.index(sender) >= 0

    def _silent_for(self, seconds: float) -> bool:
        return time.monotonic() - self._last_heard > seconds

    def _fail(self, failure: CloisterError) -> Rejected:
        """End the session because its journal cannot be written."""
        return self._coordinator.fail(f"the coordinator had to stop: {failure}")

    def _dismiss(self, sender: str) -> None:
        """Record who has been told that the session has failed: nobody else need be waited for."""
        if self._coordinator.failed is not None and self._is_party(sender):
            self._dismissed.add(sender)

    def _accept(self, sender: str, data: bytes) -> Due:
        """Return what ``_receive`` does; end a session that a refused party keeps from beginning.

        A party that is refused before all have joined will not join: nobody waits for it any longer. A stranger ends
        nothing, nor does a trial, nor a second start beside one that waits.
        """
        try:
            return self._receive(sender, data)
        except Rejected as error:
            c = self._coordinator
            beside = error.reason is Reason.DUPLICATE and self._waiting[sender]
            if self._is_party(sender) and not (c.session or c.failed or beside or _is_trial(data)):
                c.fail(f"{error}. So this session cannot begin: nothing was sent or spent", sender)
            raise

    def _receive(self, sender: str, data: bytes) -> Due:
        earlier_stage = self._stage
        due = self._coordinator.receive(sender, data)
        kind = Kind(data[5])
        if kind is Kind.LEAVE:
            self._log({"event": "left", "party": sender, "round": self._coordinator.round})
        if due.round == NOTED:
            if _is_trial(data):
                self._log({"event": "tried", "party": sender, "round": self._coordinator.round})
            self._changed.notify_all()
            return due
        missing = self._coordinator.missing if self._stage == earlier_stage else ()
        self._log(
            {
                "event": "back" if kind is Kind.HELLO and earlier_stage[0] >= 0 else kind.name.lower(),
                "party": sender,
                "round": due.round,
                "attempt": due.attempt,
                "bytes": len(data),
                "body": max(0, len(data) - HEAD.size),
                "here": self._coordinator.agreement.parties - len(missing),
                "missing": ", ".join(missing),
            }
        )
        if self._coordinator.round > max(0, earlier_stage[0]):
            self._log({"event": "answered", "round": earlier_stage[0]})
        if due.round == self._stage[0] and self._deadline_of != self._stage:
            wait = self._timeout if self._coordinator.session else self._patience
            self._deadline, self._deadline_of = time.monotonic() + wait, self._stage
        self._changed.notify_all()
        return due

    @property
    def _stage(self) -> tuple[int, int]:
        """Current stage: (round, attempt), with round -1 while parties join."""
        return self._coordinator.round if self._coordinator.session else -1, self._coordinator.attempt

    def _wait(self, due: Due, sender: str, seconds_left: float) -> bytes:
        call = self._calls[sender] = self._calls.get(sender, 0) + 1
        leaves = time.monotonic() + seconds_left - min(MARGIN, seconds_left / 4)
        self._waiting[sender] += 1
        try:
            return self._outcome(due, sender, call, leaves)
        finally:
            self._waiting[sender] -= 1

    def _outcome(self, due: Due, sender: str, call: int, leaves: float) -> bytes:
        while (reply := self._coordinator.outcome(due)) is None:
            if self._stopped:
                raise Stopped
            if self._calls[sender] != call:
                raise Rejected(Reason.DUPLICATE, f"'{sender}' asks again on another connection", sender)
            now = time.monotonic()
            expired, ends = self._expired(now)
            if expired:
                words = f"the certificate of {expired} has expired: it cannot join. Nothing was sent or spent"
                self._coordinator.fail(words, expired)
                self._changed.notify_all()
            elif now >= self._deadline:
                self._give_up()
            elif now >= leaves:
                raise self._out_of_patience(sender)
            else:
                self._changed.wait(min(60.0, self._deadline - now, leaves - now, ends - now))
        return reply

    def _expired(self, now: float) -> tuple[str, float]:
        """Return parties that cannot join since their certificates have expired, and when the next one expires."""
        missing = () if self._coordinator.session else self._coordinator.missing
        times = {name: self._valid_until.get(name, math.inf) for name in missing}
        return ", ".join(name for name, end in times.items() if end <= now), min(times.values(), default=math.inf)

    def _out_of_patience(self, sender: str) -> Rejected:
        """Return the refusal for a party whose own patience ends first."""
        c, missing = self._coordinator, ", ".join(self._coordinator.missing)
        step = f"send round {c.round + 1}" if c.session else "join"
        words = f"'{sender}' waited for others to {step} as long as its --patience allows: {missing} did not"
        return Rejected(Reason.TIMEOUT, words, missing)

    def _give_up(self) -> None:
        c, missing = self._coordinator, ", ".join(self._coordinator.missing)
        entry = {"event": "given up", "missing": missing, "round": c.round, "attempt": c.attempt}
        if not c.session:
            entry |= {"event": "not joined", "round": -1}
            c.fail(f"{missing} did not join within {self._patience:g} seconds: nothing was sent or spent")
        elif c.attempt + 1 >= self._attempts:
            spent = f"answered and spent so far: {c.round} of {self._rounds} rounds"
            c.fail(f"round {c.round + 1} was given up at attempt {c.attempt + 1}: {missing} did not send; {spent}")
        else:
            c.abort()
        self._log(entry)
        self._changed.notify_all()


def _is_trial(data: bytes) -> bool:
    """Return True if a message only compares the plan, for a party that does not join now."""
    return len(data) >= HEAD.size and data[5] == Kind.CHECK and HEAD.unpack_from(data)[6] == 1
