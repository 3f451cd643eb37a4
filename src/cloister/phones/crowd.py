"""A crowd of simulated phones that report to a collector a few hundred at a time, as a real one would over a day."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Lock, Thread
from typing import final

import numpy as np

from cloister.collection.client.encoder import PlanEncoder
from cloister.collection.plan.plan import CollectionPlan
from cloister.phones.people import Numbers, rows

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
