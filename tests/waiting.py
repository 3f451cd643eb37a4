"""Waiting for what another process or thread does, however long a loaded machine takes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

PATIENCE = float(os.environ.get("CLOISTER_PATIENCE", "300"))
"""Seconds after which something will not happen any more: no test is about how long it took. Less under a fault."""


def until(true: Callable[[], object]) -> None:
    """Raises: AssertionError: it never happened."""
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.02)
