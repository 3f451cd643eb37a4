"""Budget of a run, added up from an entrant's own statement.

A statement is a JSON list of mechanisms that are composed, each with one of ``epsilon``, ``mu`` (Gaussian differential
privacy) and ``rho`` (zero-concentrated), and perhaps ``delta``, ``times`` and ``mechanism`` (its name).
"""

from __future__ import annotations

import math
from typing import Any

from cloister.accounting.conversions import epsilon_of_rho
from cloister.accounting.mixed import epsilon_of_mixed

AMOUNTS = ("epsilon", "mu", "rho")
OTHER = ("delta", "times", "mechanism")

MAX_TIMES = 10**6

MAX_AMOUNT = 1e100
"""Amounts below it can be squared and added up in doubles."""

MANY = 64
"""Number of pure mechanisms beside Gaussian ones above which they are added up in rho, which is quicker."""


class BadStatement(Exception):
    """Statement that cannot be added up; the reason is the message."""


def composed(statement: Any, delta: float) -> tuple[float, float]:
    """Return the epsilon and delta of all mechanisms together.

    Args:
        statement: as the entrant wrote it, parsed.
        delta: that it was given; what its mechanisms do not spend of it pays for the conversion.

    Raises:
        BadStatement: it is no list of mechanisms, or needs a delta where none is left.
    """
    if not isinstance(statement, list) or not statement:
        raise BadStatement("its statement is no list of mechanisms")
    pures, mu_squared, rho, own_delta = list[float](), 0.0, 0.0, 0.0
    for entry in statement:
        key, amount, times, part = _mechanism(entry)
        own_delta += times * part
        if key == "epsilon":
            pures += [amount] * times
        elif key == "mu":
            mu_squared += times * amount**2
        else:
            rho += times * amount
    if not (mu_squared or rho):
        return math.fsum(pures), own_delta
    if delta - own_delta <= 0:
        raise BadStatement(
            f"its mechanisms in mu or rho need a delta, and {delta:g} was given, of which they spend {own_delta:g}"
        )
    if rho or len(pures) > MANY:
        total = rho + mu_squared / 2 + math.fsum(pure**2 / 2 for pure in pures)
        return epsilon_of_rho(total, delta - own_delta), delta
    return epsilon_of_mixed(pures, math.sqrt(mu_squared), delta - own_delta), delta


def _mechanism(entry: Any) -> tuple[str, float, int, float]:
    """Return the key, amount, times and delta of a mechanism."""
    if not isinstance(entry, dict):
        raise BadStatement("a mechanism in its statement is no object")
    if unknown := set(entry) - {*AMOUNTS, *OTHER}:
        raise BadStatement(f"a mechanism in its statement has the key {min(unknown)!r}")
    keys = [key for key in AMOUNTS if key in entry]
    if len(keys) != 1:
        raise BadStatement("a mechanism in its statement has not exactly one of epsilon, mu and rho")
    amount, times, delta = entry[keys[0]], entry.get("times", 1), entry.get("delta", 0.0)
    if isinstance(times, bool) or not isinstance(times, int) or not 1 <= times <= MAX_TIMES:
        raise BadStatement(f"times is {times!r}, no whole number from 1")
    for value in (amount, delta):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < MAX_AMOUNT:
            raise BadStatement(f"a mechanism in its statement has the amount {value!r}")
    return keys[0], float(amount), times, float(delta)
