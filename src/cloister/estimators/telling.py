"""What a fit says besides its result: warnings at the caller's line, and how to go on with a run that was cut off."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

INSIDE = "cloister", "contextlib", "sklearn"
"""Packages whose lines are none of the caller's."""


@contextmanager
def run_named() -> Iterator[Callable[[str], None]]:
    """Yield a function that is told a ledger's run; what then cuts it off says how to go on."""
    runs = list[str]()
    try:
        yield runs.append
    except BaseException as error:
        for run in runs:
            error.add_note(f"the ledger's run {run} was cut off: go on with it by fit(X, resume={run!r})")
        raise


def warn(said: set[str], warning: UserWarning) -> None:
    """Give a warning once, at the caller's line. Args: said (what was given before)."""
    if str(warning) not in said:
        said.add(str(warning))
        warnings.warn(warning, stacklevel=_outside())


def _outside() -> int:
    """The stack level of the caller's own line, for a warning that our caller gives."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in INSIDE:
        frame, level = frame.f_back, level + 1
    return level
