"""Whose rows are whose in a run: where users have several, and where each has one, and a number that she answers by."""

from __future__ import annotations

from typing import Any

from cloister.accounting.total import Total
from cloister.core.capabilities import HoldsUsers, NumbersByName
from cloister.core.errors import InvalidInput
from cloister.core.randomness import PublicRng
from cloister.core.session import Population
from cloister.core.trust import TRUSTS


def check_trust(total: Total, method: str, trust: str | None) -> None:
    """Raises: InvalidInput: a promise to users, where nobody sees which rows are one user's."""
    if total.unit == "users" and trust not in (None, "Central"):
        raise InvalidInput(
            f"'{method}' as composed is {trust}, and rows per user need a curator (Central): nobody else sees which "
            f"rows are one user's. Choose central components, or give every user one row"
        )


def check(total: Total, population: Population[Any], trust: str) -> None:
    """Raises: InvalidInput unless rows say whose they are if, and only if, the promise is about users, or users have
    numbers that nothing else gives them. Reads no row."""
    known = isinstance(population, HoldsUsers) and population.has_users
    if _numbered(trust):
        if isinstance(population, NumbersByName):
            if not known:
                population.number()  # which says what is missing
        elif known:
            raise InvalidInput(
                f"under {trust} trust a row's user is numbered by its place here, and has this row alone: leave the "
                f"user column out"
            )
        return
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


def number(population: Population[Any], trust: str) -> None:
    """The validation pass over users who are numbered by their names. Raises: InvalidInput: two rows name one."""
    if _numbered(trust) and isinstance(population, NumbersByName):
        population.number()


def _numbered(trust: str) -> bool:
    """Whether every row is a person with a number of her own, to whom her report belongs."""
    return TRUSTS[trust].relation == "replace one row"


def keep(total: Total, population: Population[Any], seed: PublicRng) -> None:
    """Keep at most so many rows of each user, by coins of the run's public seed: a run that goes on keeps the same."""
    if isinstance(population, HoldsUsers) and total.rows_per_user is not None:
        population.keep(total.rows_per_user, seed.child("rows of users"))
