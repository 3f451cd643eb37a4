"""Questions about rows, and the opened questions that a round is made of.

There are two kinds: how many rows fall in each bucket (``count``), and the sum of the rows' vectors in each bucket
(``vector_sum``). A question names the oracle that makes its answer private and the budget it may spend.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar, final

import attrs

from cloister.core.buckets import Bucketing, BundleArrays, QuestionContext, Vectors
from cloister.core.budget import Budget, Event, PrivacyNotion, Share, drawings
from cloister.core.domains import Domain, Lattice
from cloister.core.errors import Refused
from cloister.core.lattice import Bound
from cloister.core.plain_data import digest
from cloister.core.roles import Channel, Counts, FrequencyOracle, Sums, VectorSumOracle
from cloister.core.trust import Shuffled, T, T_co
from cloister.core.types import Ints

V_co = TypeVar("V_co", covariant=True)


@final
@attrs.frozen(eq=False)
class Rows:
    """Rows themselves as vectors, relative to the domain's midpoint."""

    cells: Bucketing
    bound: Bound

    @classmethod
    def of(cls, cells: Bucketing, domain: Domain) -> Rows:
        """Return the rows of a domain, per bucket of ``cells``."""
        return cls(cells, cls.bound_in(domain))

    @staticmethod
    def bound_in(domain: Domain) -> Bound:
        """Return the norm bounds of a domain's rows: L2 at most its ``max_norm``, L1 at most the sum of its sides."""
        implied = math.isqrt(domain.dimension * domain.max_norm**2)
        return Bound(domain.max_norm, domain.dimension, min(implied, int(domain.sides.sum())))

    def values(self, rows: Ints, buckets: Ints) -> Ints:
        return rows

    def bundled(self, arrays: BundleArrays) -> Mapping[str, Any]:
        return {"kind": "rows", **self.bound.bundled}


@final
@attrs.frozen(eq=False)
class Question(Generic[T_co, V_co]):
    """Question to one oracle, with its budget. Made by ``count`` and ``vector_sum``.

    ``open`` makes its channel in a context, and ``variance`` is then that of the noise in one number of the answer
    (rows^2, or the caller's units^2).
    """

    trust: type[T_co]
    cells: Bucketing
    vectors: Vectors | None
    budget: Budget
    notion: PrivacyNotion
    open: Callable[[QuestionContext], Channel[Any, Any, Any, V_co]]
    variance: Callable[[QuestionContext], float]


def count(cells: Bucketing, *, oracle: FrequencyOracle[T], budget: Budget) -> Question[T, Counts]:
    """Return the question how many rows fall in each bucket."""

    def opened(context: QuestionContext) -> Channel[Any, Any, Any, Counts]:
        return oracle.open(cells.space, budget, context)

    def variance(context: QuestionContext) -> float:
        return oracle.variance(cells.space, budget, context)

    return Question(oracle.trust, cells, None, budget, PrivacyNotion.of(oracle), opened, variance)


def vector_sum(vectors: Vectors, *, oracle: VectorSumOracle[T], budget: Budget) -> Question[T, Sums]:
    """Return the question for the sum of the rows' vectors in each bucket."""

    def opened(context: QuestionContext) -> Channel[Any, Any, Any, Sums]:
        return oracle.open(vectors.cells.space, budget, context, vectors.bound)

    def variance(context: QuestionContext) -> float:
        return oracle.variance(vectors.cells.space, budget, context, vectors.bound)

    return Question(oracle.trust, vectors.cells, vectors, budget, PrivacyNotion.of(oracle), opened, variance)


@final
@attrs.frozen(eq=False)
class OpenedQuestion:
    """Opened question: everything a data holder needs. Plain data, so it pickles and has a digest."""

    cells: Bucketing
    vectors: Vectors | None
    user_share: Share | None
    channel: Channel[Any, Any, Any, Any]

    @property
    def fraction(self) -> float:
        """Fraction of the users who are asked."""
        return 1.0 if self.user_share is None else self.user_share.fraction


MOST_ROUNDS = 999
"""Limit on the rounds of a run: file names have three digits, and a thousandth of a budget buys only noise."""


@final
@attrs.frozen(eq=False)
class Round(Generic[T_co]):
    """Opened questions of one call of ``ask``: asked together, answered in one pass over the rows.

    Raises:
        Refused: there are more than ``MOST_ROUNDS`` rounds.
    """

    index: int
    trust: type[T_co]
    domain: Lattice
    parts: tuple[OpenedQuestion, ...]
    _digest: str = attrs.field(default="", init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        if self.index >= MOST_ROUNDS:
            raise Refused(f"the method asks more than {MOST_ROUNDS} rounds: give fewer in its options")

    @property
    def events(self) -> tuple[Event, ...]:
        """Cost of the round."""
        if self.trust is not Shuffled:
            return tuple(event for part in self.parts for event in part.channel.events)
        # people draw new numbers in every round, and for questions whose shares overlap: shares are disjoint within
        # one drawing only, so that each drawing gets a key of its own
        drawn = drawings([part.user_share for part in self.parts])
        return tuple(
            event.in_drawing(self.index, at)
            for part, at in zip(self.parts, drawn, strict=True)
            for event in part.channel.events
        )

    def digest(self) -> str:
        """Return a hash of everything public in this round; a data holder whose replay gives another one refuses."""
        if not self._digest:
            object.__setattr__(self, "_digest", digest((self.index, self.trust, self.domain, self.parts)))
        return self._digest
