"""Questions about rows, and what opened questions are made of.

A method asks only two kinds: how many rows fall in each bucket (``count``), and what the vectors of the rows in each
bucket add up to (``add_up``). A question names the oracle that makes its answer private and the budget it may spend.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar, final

import attrs

from cloister.core.budget import Budget, Currency, Event, Share, drawings
from cloister.core.digests import digest
from cloister.core.domains import Domain
from cloister.core.errors import InvalidInput
from cloister.core.lattice import Bound
from cloister.core.randomness import PublicRng
from cloister.core.roles import Channel, Counts, FrequencyOracle, Sums, VectorSumOracle
from cloister.core.trust import Shuffled, T, T_co
from cloister.core.types import Ints

V_co = TypeVar("V_co", covariant=True)


@final
@attrs.frozen
class Space:
    """How many buckets there are: ids of level l are 0 <= id < sizes[l]; -1 means 'in no bucket'.

    Args:
        sizes: buckets per level, coarse levels first.
        nested: each level halves the next one: a row's id at level l is its id at level l + 1, shifted right by one bit (and -1
            at all levels or none). Then whoever counts rows needs to look at the deepest level only.

    Raises:
        InvalidInput: a nested level that has not half as many buckets as the next one, rounded up.
    """

    sizes: tuple[int, ...]
    nested: bool = False

    def __attrs_post_init__(self) -> None:
        halves = tuple((size + 1) // 2 for size in self.sizes[1:])
        if self.nested and self.sizes[:-1] != halves:
            raise InvalidInput(f"a nested space halves from level to level, which {self.sizes} does not")

    @property
    def levels(self) -> int:
        return len(self.sizes)


@final
@attrs.frozen
class Setting:
    """Public facts about one question, the same on every machine.

    Args:
        rows: the public number of rows (users) that are asked: where a share of them is, the expected number.
        unit: the lattice's spacing in the caller's units.
        seed: of this question alone.
        people: the public number of users of the round, asked this question or not. Where a shuffler mixes their messages and roles are
            private, all of them hide each other. By default those who are asked.
    """

    rows: int
    unit: float
    seed: PublicRng
    people: int = attrs.field(default=attrs.Factory(lambda self: self.rows, takes_self=True))


class Bucketing(Protocol):
    """Which bucket a row falls in: a function of that row alone, on exact integers, ties to the lowest id. Ids that its space does not have
    are refused, whatever oracle is asked (``core.encoding``)."""

    @property
    def space(self) -> Space: ...

    def locate(self, rows: Ints) -> Ints:
        """Lattice rows (n, d) to bucket ids (n, levels), -1 for none."""
        ...


class Vectors(Protocol):
    """One vector per row, to be added up per bucket of ``cells``. Vectors beyond ``bound`` are clipped to it."""

    @property
    def cells(self) -> Bucketing: ...

    @property
    def bound(self) -> Bound: ...

    def values(self, rows: Ints, buckets: Ints) -> Ints:
        """Lattice rows (n, d) and their bucket ids (n, levels) to vectors (n, dimension)."""
        ...


@final
@attrs.frozen(eq=False)
class Rows:
    """The rows themselves, relative to the domain's midpoint."""

    cells: Bucketing
    bound: Bound

    @classmethod
    def of(cls, cells: Bucketing, domain: Domain) -> Rows:
        """Rows of a domain: their L2 norm is its reach, their L1 norm at most the sum of its sides."""
        implied = math.isqrt(domain.dimension * domain.reach**2)
        return cls(cells, Bound(domain.reach, domain.dimension, min(implied, int(domain.sides.sum()))))

    def values(self, rows: Ints, buckets: Ints) -> Ints:
        return rows


@final
@attrs.frozen(eq=False)
class Placed:
    """Vectors (n, dimension) with the buckets (n, levels) that they are added to."""

    buckets: Ints = attrs.field(repr=False)
    values: Ints = attrs.field(repr=False)


@final
@attrs.frozen(eq=False)
class Question(Generic[T_co, V_co]):
    """What is asked, of which oracle, for how much. Made by ``count`` and ``add_up``."""

    trust: type[T_co]
    cells: Bucketing
    vectors: Vectors | None
    spend: Budget
    currency: Currency
    open: Callable[[Setting], Channel[Any, Any, Any, V_co]]


def count(cells: Bucketing, *, via: FrequencyOracle[T], spend: Budget) -> Question[T, Counts]:
    """How many rows fall in each bucket?"""

    def opened(setting: Setting) -> Channel[Any, Any, Any, Counts]:
        return via.open(cells.space, spend, setting)

    return Question(via.trust, cells, None, spend, Currency.of(via), opened)


def add_up(vectors: Vectors, *, via: VectorSumOracle[T], spend: Budget) -> Question[T, Sums]:
    """What do the vectors of the rows in each bucket add up to?"""

    def opened(setting: Setting) -> Channel[Any, Any, Any, Sums]:
        return via.open(vectors.cells.space, vectors.bound, spend, setting)

    return Question(via.trust, vectors.cells, vectors, spend, Currency.of(via), opened)


@final
@attrs.frozen(eq=False)
class Part:
    """An opened question: all that a data holder needs. Plain data, so it pickles and has a digest."""

    cells: Bucketing
    vectors: Vectors | None
    among: Share | None
    channel: Channel[Any, Any, Any, Any]

    @property
    def fraction(self) -> float:
        """Of the users who are asked."""
        return 1.0 if self.among is None else self.among.fraction


@final
@attrs.frozen(eq=False)
class Round(Generic[T_co]):
    """The opened questions of one call of ``ask``: asked together, answered in one pass over the rows."""

    index: int
    trust: type[T_co]
    domain: Domain
    parts: tuple[Part, ...]
    _digest: str = attrs.field(default="", init=False, repr=False)

    @property
    def events(self) -> tuple[Event, ...]:
        """What it costs. Under Shuffled trust people draw their numbers anew in every round, and for questions whose shares meet: shares are
        disjoint within one drawing only, which has a key of its own here."""
        if self.trust is not Shuffled:
            return tuple(event for part in self.parts for event in part.channel.events)
        drawn = drawings([part.among for part in self.parts])
        return tuple(
            event.among_those_drawn(self.index, at)
            for part, at in zip(self.parts, drawn, strict=True)
            for event in part.channel.events
        )

    def digest(self) -> str:
        """A hash of everything public in this round. A data holder whose replay gives another one refuses."""
        if not self._digest:
            object.__setattr__(self, "_digest", digest((self.index, self.trust, self.domain, self.parts)))
        return self._digest
