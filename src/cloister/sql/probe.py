"""An engine's arithmetic, tried before it is trusted."""

from __future__ import annotations

from typing import Any


def tried(database: Any) -> None:
    """Raises: InvalidInput: it is not what rounds need."""
