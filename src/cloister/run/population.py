"""Admission of a population to a run: whether it fits the run, and its steps in it."""

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
    """Raise InvalidInput for a guarantee for users under trust where nobody sees which rows are one user's."""
    if total.unit == "users" and trust not in (None, "Central"):
        raise InvalidInput(
            f"'{method}' as composed is {trust}, and rows per user need a curator (Central): nobody else sees which "
            f"rows are one user's. Choose central components, or give every user one row"
        )


def check_users(total: PrivacyTarget, population: Population[Any], trust: str) -> None:
    """Raise InvalidInput unless rows name their users exactly if the guarantee is for users. Reads no row.

    Where every row is a numbered person (Local, Shuffled), names are required if only they give the numbers.
    """
    has_users = isinstance(population, HoldsUsers) and population.has_users
    if _numbered(trust):
        if isinstance(population, NumbersByName):
            if not has_users:
                population.number_by_name()  # which says what is missing
        elif has_users:
            raise InvalidInput(
                f"under {trust} trust a row's user is numbered by its place here, and has this row alone: leave the "
                f"user column out"
            )
        return
    if has_users and total.unit == "rows":
        raise InvalidInput(
            "rows are of users: give the most rows of one user that may count, a public number (--rows-per-user M, "
            "rows_per_user=M)"
        )
    if total.unit == "users" and not has_users:
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
    """Population that fits a run, and its steps in it.

    Args:
        population: the holder of the rows.
        trust: that the method as composed needs.
        total: the run's guarantee.
        users: the population, if it may know which rows are one user's.
        numbers: the population, if it numbers users by name and the trust model numbers users.
        others: the population, if other parties hold further rows.
    """

    population: Population[Any]
    trust: str
    total: PrivacyTarget
    users: HoldsUsers | None
    numbers: NumbersByName | None
    others: Joining | None

    @property
    def simulated(self) -> bool:
        """True if one process holds rows that the trust model distributes."""
        pooled = pools(self.population) and getattr(self.population, "simulated", False)
        return self.trust in {"Local", "Shuffled"} or pooled

    @property
    def agree(self) -> Callable[[int, int, Ints], Ints] | None:
        """``Joining.agree`` of a population with other parties."""
        return None if self.others is None else self.others.agree

    def check(self, rounds: Sequence[Round[Any]]) -> None:
        """Validate the rows: go or refuse, which only the data holder learns (law 7).

        Pooled rows have a hard cap on their number, shuffled messages need enough people, and no two rows may name one
        numbered user.

        Raises:
            InvalidInput: as the population says.
            Refused: too few people.
        """
        self.population.check(most_rows(rounds) if pools(self.population) else CAP)
        for round in rounds:
            check_enough_people(round, self.population)
        if self.numbers is not None:
            self.numbers.number_by_name()

    def join(self, run: Run | None) -> None:
        """Join the other parties, once this one's rows are checked and its budget is reserved."""
        if self.others is None:
            return
        try:
            self.others.join()
        except (CloisterError, KeyboardInterrupt):
            # nothing that depends on a row is sent before the first round opens: the reservation is given back
            if run is not None and not run.record.digests:
                run.finish(())
            raise

    def keep(self, seed: PublicRng) -> None:
        """Bound contributions to ``rows_per_user``, by coins of the public seed: a resumed run keeps the same rows."""
        if self.users is not None and self.total.rows_per_user is not None:
            self.users.keep(self.total.rows_per_user, seed.child("rows of users"))


def admit(population: Population[Any], trust: str, total: PrivacyTarget) -> Admission:
    """Admit a population to a run, before a row is read.

    Parties pool their rows exactly under Aggregated trust; rows name users exactly if the guarantee is for users.

    Raises:
        InvalidInput: it does not fit the run's trust or guarantee.
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
