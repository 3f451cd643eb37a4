"""The price of an event to a user with several rows, from its price to one row.

Neighbours are data sets of which one has all rows of one user more. Of every user at most m rows are used, by a choice
that another user's rows do not change (contribution bounding, ``core.capabilities.HoldsUsers``): so what is used
differs by at most m rows, D_0, D_1, ..., D_m, each of which is the one before it and one row. Questions, oracles and
budgets below this module are those of rows, and every event says what one row pays, given any history. Then, given that
history, for one user

* epsilon is m times as large: P_0 <= e^epsilon P_1 <= e^(2 epsilon) P_2 ... pointwise;
* rho is m^2 times as large (Bun and Steinke 2016, Proposition 1.9), of pure noise that is paid in rho, too;
* mu is m times, mu^2 m^2 times as large (Dong, Roth and Su 2022, Theorem 2.14). For additive Gaussian noise that is the
  L2 sensitivity of m rows in one bucket, exactly.

No sharper figure is claimed: all m rows may fall in one bucket. These hold for every mechanism of the measure, whatever
its noise. None of them is group privacy of (epsilon, delta), which would multiply delta by e^epsilon.

*Discrete Gaussian noise.* The proof of ``accounting.discrete`` is about any two data sets: H, with real noise on the
coordinates where their answers differ, is mu-GDP for the mu of their distance, m times a row's; the coordinates that m
rows touch are at most m times those of one row; the distribution of one noise does not change. So ``l0_sensitivity`` is
m times as large, ``sigma`` and ``ratio`` are as they were.

*Deltas of mechanisms* are refused for m > 1. What an event's delta says is proved for one row more: that it is alone in
a bucket, for instance, where two rows of one user would pass a threshold together.

Source: as above; the derivation for discrete noise is this module's.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import attrs

from cloister.core.budget import Budget, Event
from cloister.core.errors import InvalidInput

MAX_ROWS_PER_USER = 2**20
"""Largest m: beyond it noise for one user drowns any number of rows that a run can read."""

ROUND_DOWN = 1 - 2.0**-50
"""Factor for rounding down: a row never gets more than its part of what a user pays."""


def checked_rows_per_user(value: Any) -> int | None:
    """Return a public number of rows per user, or None where the unit of privacy is the row.

    Raises:
        InvalidInput: it is neither.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, Integral) or not 1 <= int(value) <= MAX_ROWS_PER_USER:
        raise InvalidInput(f"rows_per_user is {value!r}: give a whole number from 1 to {MAX_ROWS_PER_USER}")
    return int(value)


def of_row(budget: Budget, rows_per_user: int | None) -> Budget:
    """Return the share of a budget that each row may pay where a user may pay ``budget``."""
    m = rows_per_user or 1
    return budget if m == 1 else attrs.evolve(budget, amount=budget.amount / _times(budget, m) * ROUND_DOWN)


def of_user(event: Event, rows_per_user: int | None) -> Event:
    """Return a user's price of an event of which a row pays ``event``.

    Raises:
        InvalidInput: the mechanism has a delta of its own.
    """
    if rows_per_user is None or rows_per_user == 1:
        return event
    if event.delta:
        raise InvalidInput(
            f"'{event.mechanism}' spends a delta of its own, which is proved for one row and not for users with "
            f"several: choose a component without, such as discrete-laplace for thresholded"
        )
    m, spent = rows_per_user, event.spent
    return attrs.evolve(
        event,
        l0_sensitivity=m * event.l0_sensitivity,
        pure=m * event.pure,
        spent=attrs.evolve(spent, amount=spent.amount * _times(spent, m)),
    )


def _times(budget: Budget, m: int) -> int:
    """Return how many times as much m rows pay as one."""
    return m if budget.measure == "pure" else m**2
