"""A crowd of simulated phones that report to a collector a few hundred at a time, as a real one would over a day.

The people of the demonstration, who are made up, and the plan that asks them. Nobody's row is kept anywhere.
"""

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
"""Both in hours a day."""

GROUPS = ((9.0, 2.5), (5.5, 3.0), (4.5, 8.5), (8.8, 7.5))
"""The middles of the groups, which are of one size."""

SPREAD = 0.6
"""Standard deviation of each column within a group."""

LONGEST = 12.0
"""Public bound of both columns: each lies between 0 and so many hours."""


def plan_of(people: int, epsilon: float) -> CollectionPlan:
    """The plan that asks so many people, once each."""
    bounds = ((0.0, LONGEST),) * len(COLUMNS)
    request = Request(
        k=len(GROUPS), method="one-round", epsilon=epsilon, bounds=bounds, rows=people, zoom="off", scale="none"
    )
    return publish(request, COLUMNS)


def rows(people: int, g: np.random.Generator) -> Floats:
    """Rows (n, 2) of people who are new each time."""
    middles = np.asarray(GROUPS)[g.integers(0, len(GROUPS), people)]
    return np.clip(middles + g.normal(0, SPREAD, middles.shape), 0, LONGEST)


@final
class Numbers:
    """The user numbers 0 to n - 1 in an order that nobody chose, each given out once, from any thread.

    Whoever could choose hers could choose what it is asked (``collection.server.shares``).
    """

    def __init__(self, n: int) -> None:
        self._order = np.random.default_rng(secrets.randbits(128)).permutation(n)
        self._given, self._lock = 0, Lock()

    def take(self, count: int) -> list[int]:
        """The next numbers; fewer, or none, where they come to an end."""
        with self._lock:
            start, self._given = self._given, min(len(self._order), self._given + count)
            return [int(number) for number in self._order[start : self._given]]


PIECES = 80
"""Number of batches in which the crowd reports."""


@final
class SimulatedCrowd:
    """Phones that wait for their start. Each draws her row, randomises it by the client's own code and forgets it.

    Args:
        plan, numbers: what they are asked, and who they are.
        size: how many.
        send: takes the bytes of a batch.
        seconds: how long it takes until all have reported.
    """

    def __init__(
        self, plan: CollectionPlan, numbers: Numbers, size: int, send: Callable[[bytes], None], seconds: float
    ) -> None:
        self._encoder, self._numbers, self._size, self._send = PlanEncoder(plan), numbers, size, send
        self._pause, self._lock, self._stopped = seconds / PIECES, Lock(), Event()
        self._thread: Thread | None = None

    def start(self) -> bool:
        """Let them report. Returns whether they had not been told yet."""
        with self._lock:
            if self._thread is not None:
                return False
            self._thread = Thread(target=self._report, name="crowd", daemon=True)
            self._thread.start()
            return True

    def stop(self) -> None:
        """No phone reports after this."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def _report(self) -> None:
        with suppress(OSError):  # the collector has ended, and with it the demonstration
            self._pieces()

    def _pieces(self) -> None:
        g, left = np.random.default_rng(), self._size
        for piece in range(PIECES, 0, -1):
            due = time.monotonic() + self._pause
            who = self._numbers.take(-(-left // piece))
            left -= len(who)
            if who:
                self._send(self._encoder.encode(rows(len(who), g), who).to_bytes())
            if self._stopped.wait(max(0.0, due - time.monotonic())):
                return
