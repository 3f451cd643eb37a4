"""The (epsilon, delta) that a run may cost, and the budget that it buys."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import ClassVar, Literal, TypeAlias, final

import attrs

from cloister.accounting.conversions import mu_of, rho_of
from cloister.accounting.users import checked_rows_per_user, of_row, of_user
from cloister.core.budget import Budget, Event, Measure
from cloister.core.defaults import DELTA
from cloister.core.doubles import as_float
from cloister.core.errors import InvalidInput
from cloister.core.reproducible_math import fewer_bits

Unit: TypeAlias = Literal["rows", "users"]
"""Unit of privacy: one row, or one user with all of their rows. The two do not add up."""

SLACK = 1e-4
"""Share of epsilon and of delta that a Gaussian run keeps to pay for its noise being discrete (see ``discrete``).

With noise of 2^16 and more it covers 25,000 touched coordinates at epsilon 1; the accountant checks each run.
"""

OWN_DELTA_SHARE = 0.5
"""Share of delta reserved for mechanisms with a delta of their own, where the noise needs the rest."""


def _number(value: float) -> float:
    try:
        return as_float(value)
    except (TypeError, ValueError):
        raise InvalidInput(f"epsilon and delta are numbers, given: {value!r}") from None


MAX_EPSILON = 1e4
"""Largest epsilon: beyond it the guarantee is worth nothing, and noise rounds to nothing."""


def _check_epsilon(_: object, __: object, value: float) -> None:
    if not 0 < value < math.inf:
        raise InvalidInput(f"epsilon is {value}, expected a finite number > 0: pass epsilon=1, or what you may spend")
    if value > MAX_EPSILON:
        raise InvalidInput(f"epsilon is {value}, which protects nobody: pass epsilon=1, or what you may spend")


def _check_delta(_: object, __: object, value: float) -> None:
    if not 0 <= value < 1:
        raise InvalidInput(
            f"delta is {value}, expected a probability in [0, 1): pass delta=0 for pure noise, or less than one over "
            "the number of rows"
        )


@final
@attrs.frozen
class PrivacyTarget:
    """The (epsilon, delta) of a run, or of a data set's lifetime.

    Args:
        epsilon: nats, > 0 and finite. 1 is customary; above 10 little is promised.
        delta: probability in [0, 1), well below one over the number of rows. 0 is pure differential privacy.
        rows_per_user: m, if (epsilon, delta) is the guarantee of a user, of whom at most m rows are used; None: of a
            row.

    Raises:
        InvalidInput: anything else, NaN included.
    """

    digest_tag: ClassVar = "cloister.Total"

    epsilon: float = attrs.field(converter=_number, validator=_check_epsilon)
    delta: float = attrs.field(default=DELTA, converter=_number, validator=_check_delta)
    rows_per_user: int | None = attrs.field(default=None, converter=checked_rows_per_user, kw_only=True)

    @property
    def unit(self) -> Unit:
        return "rows" if self.rows_per_user is None else "users"

    def measured(self, measures: Collection[Measure], uses_delta: bool = False) -> Budget:
        """Return the budget that this target buys each row, in the measure that all these noises share.

        All pure: epsilon. All Gaussian: mu^2, calibrated at (epsilon, delta) less ``SLACK``, which the discreteness of
        the noise then spends. Pure and Gaussian together, or anything in rho: rho (basic composition would fix the
        split between the two in advance; zCDP leaves it to the method). All exact: no privacy, an infinite budget.

        Where an oracle has a delta of its own (``uses_delta``), the budget carries one, shared as the budget is: all of
        delta where all noise is pure, otherwise ``OWN_DELTA_SHARE`` of it, and the noise is calibrated at the rest.

        Args:
            measures: of the oracles that will share the budget, in any order; without any it counts as pure.
            uses_delta: whether one of them spends delta itself, as thresholding does.

        Raises:
            InvalidInput: noise or thresholds that need delta > 0 at delta = 0; exact answers beside private ones;
                deltas of mechanisms where users have several rows.
        """
        return of_row(self._measured(set(measures), uses_delta), self.rows_per_user)

    def paid(self, budget: Budget) -> Budget:
        """Return the price of a row or, where users are counted, of a user, if each row pays ``budget``."""
        return of_user(Event("budget", budget), self.rows_per_user).spent

    def _measured(self, kinds: set[Measure], uses_delta: bool) -> Budget:
        """Return the budget before it is divided over a user's rows."""
        if uses_delta and (self.rows_per_user or 1) > 1:
            raise InvalidInput(
                "thresholds spend a delta that is proved for one row, and not for users with several: take components "
                "without a delta of their own, such as discrete-laplace for thresholded"
            )
        if uses_delta and self.delta == 0:
            raise InvalidInput(
                "delta is 0, but thresholds, shuffled reports and Gaussian noise on a person's own report need delta "
                "> 0: pass delta (less than one over the number of rows, 1e-6 say), or take components without a "
                "delta of their own, such as discrete-laplace for thresholded, hadamard-vector for ldp-average"
            )
        if "exact" in kinds:
            if len(kinds) > 1:
                raise InvalidInput(
                    "exact answers have an infinite budget, in which no noise is calibrated: fill every slot that "
                    "takes an oracle with an exact one (--with slot=exact), or none"
                )
            return Budget("exact", math.inf, delta=self.delta if uses_delta else 0.0)
        if kinds <= {"pure"}:
            return Budget("pure", self.epsilon, delta=self.delta if uses_delta else 0.0)
        if self.delta == 0:
            raise InvalidInput(
                "delta is 0, but Gaussian noise and zCDP need delta > 0: pass delta (less than one over the number of "
                "rows, 1e-6 say), or choose components with pure noise, such as discrete Laplace"
            )
        reserved = self.delta * OWN_DELTA_SHARE if uses_delta else 0.0
        remaining = self.delta - reserved
        # mu and rho come from special functions and enter plans: fewer bits are the same on every platform.
        if kinds == {"gaussian"}:
            mu = fewer_bits(mu_of(self.epsilon * (1 - SLACK), remaining * (1 - SLACK)))
            return Budget("gaussian", mu * mu, delta=reserved)
        return Budget("zcdp", fewer_bits(rho_of(self.epsilon, remaining)), delta=reserved)
