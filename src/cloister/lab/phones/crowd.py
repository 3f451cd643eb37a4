"""Simulated phones that report to a collector in batches, and the plan that asks them. No row is stored."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Lock, Thread
from typing import final

import numpy as np

from cloister.collection.client.encoder import PlanEncoder
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.plan.publish import publish
from cloister.core.types import Floats
from cloister.run.request import Request

COLUMNS = ("sleep", "screen")
"""Columns, both in hours a day."""

GROUPS = ((9.0, 2.5), (5.5, 3.0), (4.5, 8.5), (8.8, 7.5))
"""Centres of the groups, which are of equal size."""

SPREAD = 0.6
"""Standard deviation of each column within a group."""

LONGEST = 12.0
"""Public upper bound of both columns; the lower one is 0."""


def plan_of(people: int, epsilon: float) -> CollectionPlan:
    """Return the plan that asks so many people, once each."""
    bounds = ((0.0, LONGEST),) * len(COLUMNS)
    request = Request(
        k=len(GROUPS), method="one-round", epsilon=epsilon, bounds=bounds, rows=people, zoom="off", scale="none"
    )
    return publish(request, COLUMNS)


def rows(people: int, g: np.random.Generator) -> Floats:
    """Draw rows (n, 2)."""
    middles = np.asarray(GROUPS)[g.integers(0, len(GROUPS), people)]
    return np.clip(middles + g.normal(0, SPREAD, middles.shape), 0, LONGEST)


@final
class Numbers:
    """User numbers 0 to n - 1 in random order, each handed out once. Thread-safe."""

    def __init__(self, n: int) -> None:
        # random: whoever could choose a number could choose what it is asked (``collection.server.shares``)
        self._order = np.random.default_rng(secrets.randbits(128)).permutation(n)
        self._given, self._lock = 0, Lock()

    def take(self, count: int) -> list[int]:
        """Return the next numbers, fewer or none at the end."""
        with self._lock:
            start, self._given = self._given, min(len(self._order), self._given + count)
            return [int(number) for number in self._order[start : self._given]]


PIECES = 80
"""Number of batches in which the crowd reports."""


@final
class SimulatedCrowd:
    """Simulated phones. Each draws a row, randomises it with the client's code and discards it.

    Args:
        plan: of the collection.
        numbers: user numbers of the phones.
        size: number of phones.
        send: called with the bytes of a batch.
        seconds: until all have reported.
    """

    def __init__(
        self, plan: CollectionPlan, numbers: Numbers, size: int, send: Callable[[bytes], None], seconds: float
    ) -> None:
        self._encoder, self._numbers, self._size, self._send = PlanEncoder(plan), numbers, size, send
        self._pause, self._lock, self._stopped = seconds / PIECES, Lock(), Event()
        self._thread: Thread | None = None

    def start(self) -> bool:
        """Start reporting. Returns False if it has started before."""
        with self._lock:
            if self._thread is not None:
                return False
            self._thread = Thread(target=self._report, name="crowd", daemon=True)
            self._thread.start()
            return True

    def stop(self) -> None:
        """Stop reporting, and wait for the batch under way."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def _report(self) -> None:
        with suppress(OSError):  # the collector has ended, and with it the demonstration
            self._pieces()

    def _pieces(self) -> None:
        g, remaining = np.random.default_rng(), self._size
        for piece in range(PIECES, 0, -1):
            due = time.monotonic() + self._pause
            who = self._numbers.take(-(-remaining // piece))
            remaining -= len(who)
            if who:
                self._send(self._encoder.encode(rows(len(who), g), who).to_bytes())
            if self._stopped.wait(max(0.0, due - time.monotonic())):
                return
