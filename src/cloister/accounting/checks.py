"""Checks of privacy figures given by callers."""

from __future__ import annotations

import math

from cloister.core.errors import InvalidInput

MIN_DELTA = 1e-300
"""Smallest delta: below it floating point cannot tell a delta from zero. Use pure noise instead."""

ROUNDING = 1 + 1e-9
"""Shares of a budget may add up to this times the budget: room for rounding in sums of many shares, not for privacy."""


def checked_epsilon(value: float) -> float:
    """A finite epsilon >= 0, in nats. Raises: InvalidInput: NaN, negative or infinite."""
    if not 0 <= value < math.inf:
        raise InvalidInput(f"epsilon is {value}, expected a finite number >= 0 (in nats)")
    return value


def checked_delta(value: float) -> float:
    """A delta in [1e-300, 1): a probability that is not zero. Raises: InvalidInput: NaN, zero, negative, 1 or more."""
    if not MIN_DELTA <= value < 1:
        raise InvalidInput(f"delta is {value}, expected a probability in [1e-300, 1): for delta = 0 use pure noise")
    return value


def checked_amount(value: float, name: str) -> float:
    """A figure >= 0 that may be infinite, such as mu or rho. Raises: InvalidInput: NaN or negative."""
    if not value >= 0:
        raise InvalidInput(f"{name} is {value}, expected a number >= 0")
    return value
