"""Mechanisms that are broken on purpose, each in one way that was seen in living code or that a component can commit.

Each says where it is defined which checks of the kit must catch it.
"""

from __future__ import annotations

from tests.testing import (  # noqa: F401  # to be defined there is to be in the zoo
    undocumented,
    zoo_cells,
    zoo_claims,
    zoo_messages,
    zoo_noise,
    zoo_programs,
    zoo_reports,
)
from tests.testing.caught import SPECIMENS

__all__ = ["SPECIMENS"]
