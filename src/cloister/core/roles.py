"""The roles that components play. All are Protocols: implementations never subclass.

Laws that every implementer keeps stand in the Protocol's docstring; ``cloister.testing`` checks them.
"""

from __future__ import annotations

from typing import Any, Protocol, Self, TypeVar

from cloister.core.buckets import BucketedVectors, QuestionContext, Space
from cloister.core.budget import Budget, Event, Measure
from cloister.core.clustering import Coreset, Problem, Released
from cloister.core.lattice import Bound
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.trust import T_co
from cloister.core.types import Floats, Ids, Ints

V_co = TypeVar("V_co", covariant=True)
I_contra = TypeVar("I_contra", contravariant=True)
R = TypeVar("R")
S = TypeVar("S")


class Table(Protocol):
    """Answers, asked for and not listed, so that a domain of 2^60 buckets works. Neither pickles nor prints.

    Laws: the same id gives the same value however often and in whatever order it is asked.
    """

    def at(self, ids: Ints, level: int = 0) -> Floats:
        """Values of the buckets ids (m,) of one level: (m,) counts, or (m, dimension) sums."""
        ...

    def standard_error(self, ids: Ints, level: int = 0) -> Floats:
        """Standard deviation (m,) of the noise in each value (of one coordinate, for sums). Public: no row enters
        it."""
        ...


class Counts(Table, Protocol):
    """``at(ids (m,)) -> (m,)`` rows."""


class Sums(Table, Protocol):
    """``at(ids (m,)) -> (m, dimension)``, in the caller's units."""


class Summary(Protocol):
    """Merged reports. Merging is associative and commutative, on integers, and changes neither side."""

    def merge(self, other: Self, /) -> Self: ...


class Encoder(Protocol[I_contra, V_co]):
    """The data holder's half of a question.

    Laws: ``items`` is bucket ids (n, levels), -1 for none, or those with vectors (``BucketedVectors``). Under Local
    trust report i depends on row i, user i and a fixed number of draws of her own, and a user in no bucket reports like
    any other. Under Central trust nothing is drawn. Under Shuffled trust it is as under Local trust, with a private
    number that she drew in place of her public one. Reports of users travel: ``columns()`` gives named arrays with one
    entry per user, and the class's ``load(columns)`` takes them back, or refuses.
    """

    def encode(self, items: I_contra, users: Ids, rng: NoiseRng) -> V_co: ...


class Decoder(Protocol[I_contra, S, V_co]):
    """The server's half of a question.

    Laws: ``absorb`` is exact, draws nothing and refuses what no encoder sends. ``decode`` draws the noise of a Central
    question, once per released value; of other trusts it draws nothing (but see ``MultiMessageChannel.pooled``).
    """

    def absorb(self, report: I_contra) -> S: ...

    def decode(self, summary: S, rng: NoiseRng) -> V_co: ...


class Channel(Encoder[I_contra, R], Decoder[R, S, V_co], Protocol[I_contra, R, S, V_co]):
    """An opened question: both halves, and what they cost. Plain public data with a digest.

    Laws: ``events`` is fixed when the channel is opened; their sum, and that of their deltas, is at most the budget it
    was opened with.
    """

    @property
    def events(self) -> tuple[Event, ...]: ...


class FrequencyOracle(Protocol[T_co]):
    """Makes counts of rows per bucket private, under one trust model.

    Laws: the guarantee (trust, neighbouring relation, measure) and its derivation stand in the class's docstring. A row
    may fall in one bucket of every level; the oracle pays for all of them. Released values are unbiased, and
    ``standard_error`` is the standard deviation of their noise, whatever the rows are; unless it says ``biased``.

    A class that is made by ``@component`` may leave out ``uses_delta``, ``asks_all_users`` and ``biased``: they are
    False then.
    """

    @property
    def trust(self) -> type[T_co]: ...

    @property
    def measure(self) -> Measure: ...

    @property
    def uses_delta(self) -> bool:
        """Whether the guarantee may fail by itself, with a probability that is taken from ``budget.delta``."""
        ...

    @property
    def asks_all_users(self) -> bool:
        """Whether everybody is asked, for a share of the noise say: methods then divide the budget, not the users."""
        ...

    @property
    def biased(self) -> bool:
        """Whether released values may be off on average, as counts are that are clamped at 0. ``standard_error`` is
        then at least the root of the mean squared error, whatever the rows are."""
        ...

    def open(self, space: Space, budget: Budget, context: QuestionContext) -> Channel[Ints, Any, Any, Counts]: ...

    def variance(self, space: Space, budget: Budget, context: QuestionContext) -> float:
        """Variance of one count's noise, in rows^2, had it this budget: what methods choose their shares by."""
        ...


class VectorSumOracle(Protocol[T_co]):
    """Makes sums of bounded vectors per bucket private, under one trust model. Laws as for ``FrequencyOracle``: sums
    are unbiased, unless it says ``biased``."""

    @property
    def trust(self) -> type[T_co]: ...

    @property
    def measure(self) -> Measure: ...

    @property
    def uses_delta(self) -> bool: ...

    @property
    def asks_all_users(self) -> bool: ...

    @property
    def biased(self) -> bool: ...

    def open(
        self, space: Space, bound: Bound, budget: Budget, context: QuestionContext
    ) -> Channel[BucketedVectors, Any, Any, Sums]: ...

    def variance(self, space: Space, bound: Bound, budget: Budget, context: QuestionContext) -> float:
        """Variance of one coordinate's noise, in the caller's units squared, had it this budget."""
        ...


class Tree(Protocol):
    """A ``Bucketing``, whose laws it keeps, with levels, coarse ones first, that can be grown from noisy counts.

    A root, which holds every row, may be its first level; where users share the levels it is better left out. A flat
    partition has one level.

    Laws: where it is ``nested``, a row's bucket of a level is its bucket of the next level, halved (parent id =
    id >> 1), and ``space.nested`` says so too: counts need then be kept of the deepest level only. ``grow`` looks at
    counts and at public figures only, and gives equal points for equal counts.
    """

    @property
    def space(self) -> Space: ...

    @property
    def nested(self) -> bool:
        """Whether each level halves the next one."""
        ...

    def locate(self, rows: Ints) -> Ints: ...

    def grow(self, counts: Counts) -> Coreset:
        """Released weighted points, looking at ``counts.at(ids, level)`` a level's frontier at a time.

        Returns:
            At least one point, also when all counts are zero or negative: finite, inside the domain, with a finite
            weight. ``leaves`` says which buckets the points stand for; no row is in two of them.
        """
        ...


class TreeBuilder(Protocol):
    """Partitions a domain. Public: reads no rows and draws public coins only, so that a problem and a seed give one
    tree, of one digest, on every machine."""

    def open(self, problem: Problem, seed: PublicRng) -> Tree:
        """Raises: InvalidInput for a domain that it is not for, with what to use instead."""
        ...


class NonPrivateSolver(Protocol):
    """Clusters released weighted points. Post-processing: takes only what is ``Released``, draws only public coins.

    Laws: it never fails on released values, whatever noise made of them, since their budget is spent; weights may be
    zero or negative, all of them too (a forecast answers zero everywhere). Only a coreset without a point is refused
    (InvalidInput).
    """

    def solve(self, coreset: Released[Coreset], k: int, rng: PublicRng) -> Floats:
        """Centres (k, d) in the caller's units."""
        ...
