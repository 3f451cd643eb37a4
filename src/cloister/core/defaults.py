"""Defaults that Python, the command line, ledgers and pools share."""

from __future__ import annotations

from typing import Final

DELTA: Final = 0.0
"""Delta of a run, and of a lifetime, that states none: pure differential privacy, which needs no choice of a small
probability. A default above 0 would depend on the number of rows, which is private. What has another
default (compare, demo) says why in its help."""
