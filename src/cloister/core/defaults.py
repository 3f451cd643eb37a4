"""Defaults shared by Python, the command line, ledgers and pools."""

from __future__ import annotations

from typing import Final

DELTA: Final = 0.0
"""Delta of a run, and of a lifetime, that states none: pure differential privacy. A default above 0 would depend on the
number of rows, which is private. Commands with another default (compare, demo) say why in their help."""
