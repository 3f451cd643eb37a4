"""Admission of a population to a run: whether what it holds goes with the run, and its turns in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

import attrs

from cloister.accounting.ledger.run import Run
from cloister.accounting.privacy_target import PrivacyTarget
from cloister.core.aggregated import most_rows, pools
from cloister.core.capabilities import HoldsUsers, Joining, NumbersByName
from cloister.core.errors import CloisterError, InvalidInput
from cloister.core.lattice import CAP
from cloister.core.population import Population
from cloister.core.questions import Round
from cloister.core.randomness import PublicRng
from cloister.core.shuffling import check_enough_people
from cloister.core.trust import TRUSTS
from cloister.core.types import Ints


def check_trust(total: PrivacyTarget, method: str, trust: str | None) -> None:
    """Raise InvalidInput on a promise to users where nobody sees which rows are one user's."""
    if total.unit == "users" and trust not in (None, "Central"):
        raise InvalidInput(
            f"'{method}' as composed is {trust}, and rows per user need a curator (Central): nobody else sees which "
            f"rows are one user's. Choose central components, or give every user one row"
        )


def check_users(total: PrivacyTarget, population: Population[Any], trust: str) -> None:
    """Check that rows name their users if, and only if, the promise is about users, or only names number them.

    Raises:
        InvalidInput: they do not. No row is read.
    """
    known = isinstance(population, HoldsUsers) and population.has_users
    if _numbered(trust):
        if isinstance(population, NumbersByName):
            if not known:
                population.number_by_name()  # which says what is missing
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


def _numbered(trust: str) -> bool:
    """Return True if every row is a person with a number of her own, to whom her report belongs."""
    return TRUSTS[trust].relation == "replace one row"


@final
@attrs.frozen(eq=False)
class Admission:
    """A population that goes with a run, and its turns in it.

    Args:
        population: the holder of the rows.
        trust: that the method as composed needs.
        total: what the run promises.
        users: the population, if it may know which rows are one user's.
        numbers: the population, if it numbers users by their names, and they have numbers.
        others: the population, if it needs others, who hold the remaining rows.
    """

    population: Population[Any]
    trust: str
    total: PrivacyTarget
    users: HoldsUsers | None
    numbers: NumbersByName | None
    others: Joining | None

    @property
    def simulated(self) -> bool:
        """Whether one process holds rows that the trust model spreads over many hands."""
        pooled = pools(self.population) and getattr(self.population, "simulated", False)
        return self.trust in {"Local", "Shuffled"} or pooled

    @property
    def agree(self) -> Callable[[int, int, Ints], Ints] | None:
        """``Joining.agree`` of a population that needs others."""
        return None if self.others is None else self.others.agree

    def check(self, rounds: Sequence[Round[Any]]) -> None:
        """Make the validation pass: go or refuse, told to the data holder alone (law 7).

        Pooled rows have a hard cap on their number, shuffled messages need enough people, and no two rows may name one
        numbered user.

        Raises:
            InvalidInput: as the population says.
            Refused: there are too few people.
        """
        self.population.check(most_rows(rounds) if pools(self.population) else CAP)
        for round in rounds:
            check_enough_people(round, self.population)
        if self.numbers is not None:
            self.numbers.number_by_name()

    def join(self, run: Run | None) -> None:
        """Let a party's population join the others', once its own rows are checked and its budget is reserved.

        Nothing that depends on a row is sent before the first round opens: a run that could not begin gives its
        reservation back.
        """
        if self.others is None:
            return
        try:
            self.others.join()
        except (CloisterError, KeyboardInterrupt):
            if run is not None and not run.record.digests:
                run.finish(())
            raise

    def keep(self, seed: PublicRng) -> None:
        """Keep at most so many rows of each user, by public coins: a run that goes on keeps the same."""
        if self.users is not None and self.total.rows_per_user is not None:
            self.users.keep(self.total.rows_per_user, seed.child("rows of users"))


def admit(population: Population[Any], trust: str, total: PrivacyTarget) -> Admission:
    """Admit a population to a run, before a row is read.

    Parties pool their rows under Aggregated trust, and only there. Rows name users where the promise is about users,
    and only there.

    Raises: InvalidInput: it does not go with the run's trust, or with its promise.
    """
    if pools(population) != (trust == "Aggregated"):
        raise InvalidInput(
            "the method as composed adds its noise where parties pool their rows: 'cloister coordinate' and 'cloister "
            "join' run it, and 'cloister fit --pooled' (the population 'parties') simulates it with a file per party"
            if not pools(population)
            else f"parties pool their rows with Aggregated oracles only, and the method as composed is {trust}: "
            f"choose counts and sums from masked-gaussian and skellam"
        )
    check_users(total, population, trust)
    return Admission(
        population,
        trust,
        total,
        users=population if isinstance(population, HoldsUsers) else None,
        numbers=population if _numbered(trust) and isinstance(population, NumbersByName) else None,
        others=population if isinstance(population, Joining) else None,
    )
