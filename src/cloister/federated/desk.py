"""The coordinator among threads and clocks: who waits for what, how long, and what is written in the log.

Nobody waits for ever: an attempt that a party does not complete in time is given up, and after ``attempts`` of them the session ends, with
the missing parties' names. A party waits once: asks it again, on another connection, the call before has nobody left to answer and
ends, so that a party that comes and goes cannot take all threads. Log entries hold names, kinds, numbers and lengths, never contents.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, TypeAlias, final

from cloister.core.errors import CloisterError
from cloister.federated.coordinator import Coordinator, Due
from cloister.federated.messages import HEAD, Kind, Reason, Rejected, refusal

Log: TypeAlias = Callable[[dict[str, Any]], None]


def silent(entry: dict[str, Any]) -> None:
    """A log that nobody reads."""


@final
class Desk:
    """Answers messages, one thread each.

    Args:
        coordinator: all of its rounds are expected already.
        rounds: how many there are.
        patience: seconds that parties may take to join, after the first one.
        timeout: seconds that a round's vectors may take, after the first one.
        attempts: how often a round is tried.
        log: told of everything that happens.
    """

    def __init__(
        self, coordinator: Coordinator, rounds: int, *, patience: float = 600.0, timeout: float = 60.0, attempts: int = 3, log: Log = silent,
    ) -> None:  # fmt: skip
        self._coordinator, self._rounds = coordinator, rounds
        self._patience, self._timeout, self._attempts, self._log = patience, timeout, attempts, log
        self._changed = threading.Condition()
        self._deadline: float | None = None
        self._deadline_of = (-2, -1)
        self._told = set[str]()
        self._calls = dict[str, int]()
        self._heard = time.monotonic()

    def handle(self, sender: str, data: bytes) -> bytes:
        """The reply to one message, when there is one: a refusal, or what the sender waits for."""
        with self._changed:
            self._heard = time.monotonic()
            try:
                due = self._receive(sender, data)
                reply = self._wait(due, sender)
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
                    self._log(
                        {"event": "idle", "round": self._coordinator.round, "missing": list(self._coordinator.missing)}
                    )
                    break
                self._changed.wait(0.2)
            return self._coordinator.round >= self._rounds

    def _quiet(self, seconds: float) -> bool:
        return time.monotonic() - self._heard > seconds

    def _broken(self, failure: CloisterError) -> Rejected:
        """The session ends: what must be remembered cannot be written."""
        return self._coordinator.fail(f"the coordinator had to stop: {failure}")

    def _receive(self, sender: str, data: bytes) -> Due:
        before = self._coordinator.round
        due = self._coordinator.receive(sender, data)
        kind = Kind(data[5]).name.lower()
        self._log(
            {
                "event": kind,
                "party": sender,
                "round": due.round,
                "attempt": due.attempt,
                "bytes": len(data),
                "body": max(0, len(data) - HEAD.size),
            }
        )
        if self._coordinator.round > before:
            self._log({"event": "answered", "round": before})
        if self._deadline is None or self._deadline_of != self._stage:
            wait = self._patience if due.round < 0 else self._timeout
            self._deadline, self._deadline_of = time.monotonic() + wait, self._stage
        self._changed.notify_all()
        return due

    @property
    def _stage(self) -> tuple[int, int]:
        """What is waited for at the moment: joining, or an attempt of a round."""
        return self._coordinator.round if self._coordinator.session else -1, self._coordinator.attempt

    def _wait(self, due: Due, sender: str) -> bytes:
        mine = self._calls[sender] = self._calls.get(sender, 0) + 1
        while (reply := self._coordinator.outcome(due)) is None:
            if self._calls[sender] != mine:
                raise Rejected(Reason.DUPLICATE, f"'{sender}' asks again on another connection", sender)
            left = 0.0 if self._deadline is None else self._deadline - time.monotonic()
            if self._deadline_of != self._stage:  # others have moved on; this wait has a new clock
                self._deadline, self._deadline_of = time.monotonic() + self._timeout, self._stage
            elif left <= 0:
                self._give_up()
            else:
                self._changed.wait(left)
        return reply

    def _give_up(self) -> None:
        c, missing = self._coordinator, ", ".join(self._coordinator.missing)
        if not c.session:
            c.fail(f"{missing} did not join within {self._patience:g} seconds: nothing was sent or spent")
        elif c.attempt + 1 >= self._attempts:
            c.fail(
                f"round {c.round} failed {self._attempts} times, for want of {missing}: rounds 0 to {c.round - 1} are spent"
            )
        else:
            c.abort()
        self._log({"event": "given up", "missing": missing, "round": c.round, "attempt": c.attempt})
        self._changed.notify_all()
