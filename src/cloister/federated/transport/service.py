"""The coordinator among threads and clocks: who waits for what, how long, and what is written in the log.

Nobody waits for ever: an attempt that a party does not complete in time is given up, and after ``attempts`` of them the
session ends, with the missing parties' names. A party that would stop waiting sooner is told a little before who is
missing: it would else blame the coordinator. A party waits once: asks it again, on another connection, the call before
has nobody left to answer and ends, so that a party that comes and goes cannot take all threads. Log entries hold names,
kinds, numbers and lengths, never contents; rounds and attempts count from 0 there, and from 1 in words for people.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import Any, TypeAlias, final

from cloister.core.errors import CloisterError
from cloister.federated.protocol.coordinator import Coordinator, Due
from cloister.federated.protocol.messages import HEAD, Kind, Reason, Rejected, refusal

MARGIN = 1.0
"""Seconds in which a reply reaches a party that is about to stop waiting."""

Log: TypeAlias = Callable[[dict[str, Any]], None]


def silent(entry: dict[str, Any]) -> None:
    """A log that nobody reads."""


class Stopped(Exception):
    """The desk is left as if its process had died: whoever waits tries again."""


@final
class CoordinatorService:
    """Answers messages, one thread each.

    Args:
        coordinator: all of its rounds are expected already.
        rounds: how many there are.
        patience: seconds that parties may take to join, after the first one.
        timeout: seconds that an attempt's vectors may take, after the first one; of the first round, too.
        attempts: how often a round is tried.
        log: told of everything that happens.
    """

    def __init__(
        self, coordinator: Coordinator, rounds: int, *, patience: float = 600.0, timeout: float = 60.0,
        attempts: int = 3, log: Log = silent,
    ) -> None:  # fmt: skip
        self._coordinator, self._rounds = coordinator, rounds
        self._patience, self._timeout, self._attempts, self._log = patience, timeout, attempts, log
        self._changed = threading.Condition()
        self._deadline = math.inf
        self._deadline_of = (-2, -1)
        self._told = set[str]()
        self._calls = dict[str, int]()
        self._heard = time.monotonic()
        self._stopped = False

    def handle(self, sender: str, data: bytes, left: float | None = None) -> bytes:
        """The reply to one message, when there is one: a refusal, or what the sender waits for.

        Args:
            left: seconds that the sender waits for it, if that is known.

        Raises:
            Stopped: nobody is answered any more.
        """
        with self._changed:
            if self._stopped:
                raise Stopped
            self._heard = time.monotonic()
            try:
                due = self._receive(sender, data)
                reply = self._wait(due, sender, math.inf if left is None else left)
            except CloisterError as failure:
                error = failure if isinstance(failure, Rejected) else self._broken(failure)
                self._log(
                    {
                        "event": "refused",
                        "party": sender,
                        "reason": error.reason.name,
                        "why": str(error),
                        "round": self._coordinator.round,
                    }
                )
                self._changed.notify_all()
                return refusal(error, bytes(32), self._coordinator.round)
            if due.round == self._rounds - 1:
                self._told.add(sender)
                self._changed.notify_all()
            return reply

    def finished(self, idle: float) -> bool:
        """Wait until every party has the last answer.

        Args:
            idle: seconds without any message after which nobody is waited for.

        Returns:
            Whether the last round was answered.

        Raises:
            Rejected: the session failed.
        """
        with self._changed:
            while len(self._told) < self._coordinator.agreement.parties:
                if self._coordinator.failed is not None and self._quiet(min(idle, self._timeout)):
                    raise self._coordinator.failed
                if self._quiet(idle):
                    missing = ", ".join(self._coordinator.missing)
                    self._log({"event": "idle", "round": self._coordinator.round, "missing": missing})
                    break
                self._changed.wait(0.2)
            return self._coordinator.round >= self._rounds

    def stop(self, why: str = "") -> None:
        """Nobody waits here any longer.

        Args:
            why: the session is over, and this is what parties are told; without it they find the coordinator gone, and
                try again.
        """
        with self._changed:
            if why:
                self._coordinator.fail(why)
            self._stopped = not why
            self._changed.notify_all()

    def _quiet(self, seconds: float) -> bool:
        return time.monotonic() - self._heard > seconds

    def _broken(self, failure: CloisterError) -> Rejected:
        """The session ends: what must be remembered cannot be written."""
        return self._coordinator.fail(f"the coordinator had to stop: {failure}")

    def _receive(self, sender: str, data: bytes) -> Due:
        before = self._stage
        due = self._coordinator.receive(sender, data)
        kind = Kind(data[5])
        missing = self._coordinator.missing if self._stage == before else ()
        self._log(
            {
                "event": "back" if kind is Kind.HELLO and before[0] >= 0 else kind.name.lower(),
                "party": sender,
                "round": due.round,
                "attempt": due.attempt,
                "bytes": len(data),
                "body": max(0, len(data) - HEAD.size),
                "here": self._coordinator.agreement.parties - len(missing),
                "missing": ", ".join(missing),
            }
        )
        if self._coordinator.round > max(0, before[0]):
            self._log({"event": "answered", "round": before[0]})
        if due.round == self._stage[0] and self._deadline_of != self._stage:
            wait = self._timeout if self._coordinator.session else self._patience
            self._deadline, self._deadline_of = time.monotonic() + wait, self._stage
        self._changed.notify_all()
        return due

    @property
    def _stage(self) -> tuple[int, int]:
        """What is waited for at the moment: joining, or an attempt of a round."""
        return self._coordinator.round if self._coordinator.session else -1, self._coordinator.attempt

    def _wait(self, due: Due, sender: str, left: float) -> bytes:
        mine = self._calls[sender] = self._calls.get(sender, 0) + 1
        leaves = time.monotonic() + left - min(MARGIN, left / 4)
        while (reply := self._coordinator.outcome(due)) is None:
            if self._stopped:
                raise Stopped
            if self._calls[sender] != mine:
                raise Rejected(Reason.DUPLICATE, f"'{sender}' asks again on another connection", sender)
            now = time.monotonic()
            if now >= self._deadline:
                self._give_up()
            elif now >= leaves:
                raise self._left(sender)
            else:
                self._changed.wait(min(60.0, self._deadline - now, leaves - now))
        return reply

    def _left(self, sender: str) -> Rejected:
        """What a party hears whose own patience ends first."""
        c, missing = self._coordinator, ", ".join(self._coordinator.missing)
        what = f"send round {c.round + 1}" if c.session else "join"
        words = f"'{sender}' waited for others to {what} as long as its --patience allows: {missing} did not"
        return Rejected(Reason.TIMEOUT, words, missing)

    def _give_up(self) -> None:
        c, missing = self._coordinator, ", ".join(self._coordinator.missing)
        entry = {"event": "given up", "missing": missing, "round": c.round if c.session else -1, "attempt": c.attempt}
        if not c.session:
            c.fail(f"{missing} did not join within {self._patience:g} seconds: nothing was sent or spent")
        elif c.attempt + 1 >= self._attempts:
            spent = f"answered and spent so far: {c.round} of {self._rounds} rounds"
            c.fail(f"round {c.round + 1} was given up at attempt {c.attempt + 1}, for want of {missing}; {spent}")
        else:
            c.abort()
        self._log(entry)
        self._changed.notify_all()
