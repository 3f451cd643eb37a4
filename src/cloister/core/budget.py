"""Budgets and events: plain data. Converting them to (epsilon, delta) is the job of ``cloister.accounting``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, Protocol, Self, TypeAlias, final

import attrs

from cloister.core.errors import InvalidInput
from cloister.core.randomness import PublicRng, unit_floats
from cloister.core.reproducible_math import few_bits, root
from cloister.core.types import Bools, Ids

Measure: TypeAlias = Literal["pure", "gaussian", "zcdp", "exact"]
"""Additive measure of privacy: epsilon (pure), mu^2 (gaussian), rho (zcdp); 'exact' is no privacy, for benchmarks."""


@final
@attrs.frozen
class PrivacyNotion:
    """Privacy notion of an oracle: its measure, and whether it also spends a delta of its own, as thresholds do."""

    measure: Measure
    uses_delta: bool = False

    @classmethod
    def of(cls, oracle: Any) -> Self:
        """Return the notion that an oracle declares."""
        return cls(oracle.measure, oracle.uses_delta)


@final
@attrs.frozen
class Share:
    """Public random share of the users: those whose keyed hash of the stable user number falls in [low, high).

    Shares made by one ``split_users`` call are disjoint. It is never a function of a row's position.
    """

    rng: PublicRng
    part: int
    low: float
    high: float

    @property
    def fraction(self) -> float:
        return self.high - self.low

    def overlaps(self, other: Share) -> bool:
        """Return True if two shares with the same key overlap."""
        return self.low < other.high and other.low < self.high

    def holds(self, users: Ids) -> Bools:
        """Return a mask (n,) of the users in this share."""
        u = unit_floats(self.rng.of_users(users))
        return (u >= self.low) & (u < self.high)


def drawings(shares: Sequence[Share | None]) -> list[int]:
    """Return for each question the index of its private drawing of roles, given its share of the users (None: all).

    Questions with one key and disjoint shares are roles of one drawing: a user plays one of them. A question whose
    share overlaps an earlier one's is put into another drawing, so that nobody can link a user's two answers.
    """
    taken, numbers = dict[tuple[PublicRng, int], list[Share]](), list[int]()
    for share in shares:
        number = 0
        while share and any(share.overlaps(other) for other in taken.get((share.rng, number), ())):
            number += 1
        if share:
            taken.setdefault((share.rng, number), []).append(share)
        numbers.append(number)
    return numbers


@final
@attrs.frozen
class Budget:
    """Part of a run's privacy budget.

    Args:
        measure: the unit of ``amount``.
        amount: epsilon (pure), mu^2 (gaussian) or rho (zcdp): additive under composition.
        user_share: the users who are asked; None for all.
        delta: failure probability set aside for mechanisms that spend their own (thresholding); 0 for none. Additive,
            and shared like ``amount``; most mechanisms leave it unspent.
    """

    measure: Measure
    amount: float
    user_share: Share | None = None
    delta: float = 0.0

    def __attrs_post_init__(self) -> None:
        if not self.amount > 0:
            raise InvalidInput(f"a budget must be positive, not {self.amount}")
        if not 0 <= self.delta < 1:
            raise InvalidInput(f"a budget's delta is a probability in [0, 1), not {self.delta}")

    @property
    def fraction(self) -> float:
        """Fraction of the users who are asked."""
        return 1.0 if self.user_share is None else self.user_share.fraction

    @property
    def beside_pure(self) -> float:
        """Factor for the small share of a Gaussian question, where a pure question gets the rest of the budget.

        In zCDP a pure question gets epsilon = sqrt(2 rho), little for its rho, so it needs more of the budget. The
        value is measured.
        """
        return 0.3 if self.measure == "zcdp" else 1.0

    def over(self, rounds: int) -> Budget:
        """Return one round's equal share of this budget over ``rounds`` rounds."""
        return attrs.evolve(self, amount=self.amount / rounds, delta=self.delta / rounds)

    def split(self, *weights: float) -> tuple[Budget, ...]:
        """Return shares in proportion to the weights, in the order given; they add up to this budget."""
        total = sum(weights)
        return tuple(attrs.evolve(self, amount=self.amount * w / total, delta=self.delta * w / total) for w in weights)

    def split_for(self, *errors: float) -> tuple[Budget, ...]:
        """Return the shares that minimise the sum of these errors, each stated as if its part had the whole budget.

        Variance falls as amount^-p with p = 2 for pure noise (Laplace: 2 (D/eps)^2) and p = 1 for mu^2 and rho, so by
        Lagrange the best share of error a is a^(1 / (p + 1)): square roots for Gaussian noise (FastLloyd's sqrt(4 d) :
        1, equation 19), cube roots for pure noise (Su et al. 2016).
        """
        if self.measure == "exact":
            return (self,) * len(errors)
        degree = 3 if self.measure == "pure" else 2
        largest = max(errors)
        # errors come from integrals, whose last bits differ between machines: keep 24 bits of each root
        return self.split(*(few_bits(root(e / largest, degree), 24) for e in errors))

    def split_users(self, rng: PublicRng, *weights: float) -> tuple[Budget, ...]:
        """Return budgets for disjoint public shares of the users, each with the whole amount.

        Weights are rounded to 24 bits. If this budget is for a share already, its parts are parts of that
        share, by its own key, and ``rng`` is not used.

        Raises:
            InvalidInput: a weight is too small.
        """
        parent = self.user_share or Share(rng, 0, 0.0, 1.0)
        weights = tuple(few_bits(w) for w in weights)
        total, low, shares = sum(weights), parent.low, list[Budget]()
        for i, w in enumerate(weights):
            high = parent.high if i == len(weights) - 1 else low + parent.fraction * w / total
            if not low < high <= parent.high:
                raise InvalidInput(
                    f"a weight of {w:g} in a sum of {total:g} is too small a share of the users: give a larger one"
                )
            shares.append(attrs.evolve(self, user_share=Share(parent.rng, i, low, high)))
            low = high
        return tuple(shares)

    @property
    def epsilon(self) -> float:
        """Epsilon that a pure mechanism may spend (from rho: eps^2 / 2 <= rho, Bun and Steinke 2016)."""
        if self.measure == "pure" or self.measure == "exact":
            return self.amount
        if self.measure == "zcdp":
            return math.sqrt(2 * self.amount)
        raise InvalidInput("a pure oracle was given a Gaussian budget: give it one in pure or zcdp")

    @property
    def mu(self) -> float:
        """Ratio sensitivity / sigma that a Gaussian mechanism may have."""
        if self.measure == "gaussian":
            return math.sqrt(self.amount)
        if self.measure == "zcdp":
            return math.sqrt(2 * self.amount)
        raise InvalidInput("a Gaussian oracle was given a pure budget: give it one in gaussian or zcdp")


@final
@attrs.frozen
class Event:
    """Use of a mechanism, for the accountant and the privacy statement.

    Args:
        mechanism: its registry name.
        spent: the budget that one row pays for it.
        l0_sensitivity: number of noised integers that one row can change (discrete noise only).
        sigma: the noise's standard deviation in integers (discrete Gaussian only), compared with a rounded real
            Gaussian. Paid in rho, such noise is worth mu^2 = 2 rho.
        delta: probability, given any history, that ``spent`` does not cover the output (see
            ``cloister.accounting.composition``).
        ratio: largest |log| of the ratio between the distribution of one noised integer and a discrete Gaussian of
            ``sigma``; 0 if it is that distribution.
        epsilon_without_shuffler: epsilon of one report by itself, against a dishonest shuffler (Shuffled only);
            infinite if nothing holds.
        pure: epsilon of a mechanism that is paid in rho and is pure, except with probability ``delta`` (epsilon^2 / 2
            is at most that rho); infinite if it is not pure, or is paid in epsilon.
    """

    mechanism: str
    spent: Budget
    l0_sensitivity: int = 0
    sigma: float = math.inf
    delta: float = 0.0
    ratio: float = attrs.field(default=0.0, kw_only=True)
    epsilon_without_shuffler: float = attrs.field(default=math.inf, kw_only=True)
    pure: float = attrs.field(default=math.inf, kw_only=True)

    def in_drawing(self, *drawing: int) -> Event:
        """Return this event with its share of the users keyed apart from the shares of all other drawings."""
        share = self.spent.user_share
        if share is None:
            return self
        return attrs.evolve(
            self, spent=attrs.evolve(self.spent, user_share=attrs.evolve(share, rng=share.rng.child("drawn", *drawing)))
        )


class Charging(Protocol):
    """Accountant, as a session sees it."""

    def charge(self, index: int, events: tuple[Event, ...]) -> None:
        """Pay for round ``index`` before any row is read.

        Raises:
            BudgetExceeded, Refused: it is not paid.
        """
        ...
