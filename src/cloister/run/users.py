"""A run whose promise is about users with several rows: what it needs, and what is kept of their rows."""

from __future__ import annotations

from typing import Any

from cloister.accounting.total import Total
from cloister.core.capabilities import HoldsUsers
from cloister.core.errors import InvalidInput
from cloister.core.randomness import PublicRng
from cloister.core.session import Population


def check_trust(total: Total, method: str, trust: str | None) -> None:
    """Raises: InvalidInput: a promise to users, where nobody sees which rows are one user's."""
    if total.unit == "users" and trust not in (None, "Central"):
        raise InvalidInput(
            f"'{method}' as composed is {trust}, and rows per user need a curator (Central): nobody else sees which "
            f"rows are one user's. Choose central components, or give every user one row"
        )


def check(total: Total, population: Population[Any]) -> None:
    """Raises: InvalidInput unless rows say whose they are if, and only if, the promise is about users."""
    known = isinstance(population, HoldsUsers) and population.has_users
    if known and total.unit == "rows":
        raise InvalidInput(
            "rows are of users: give the most rows of one user that may count, a public number (--rows-per-user M, "
            "rows_per_user=M)"
        )
    if total.unit == "users" and not known:
        raise InvalidInput(
            "at most so many rows of each user may count, but the rows do not say whose they are: give the column that "
            "does (--user-column NAME, user_column=, or users= for an array)"
        )


def keep(total: Total, population: Population[Any], seed: PublicRng) -> None:
    """Keep at most so many rows of each user, by coins of the run's public seed: a run that goes on keeps the same."""
    if isinstance(population, HoldsUsers) and total.rows_per_user is not None:
        population.keep(total.rows_per_user, seed.child("rows of users"))
