"""Roles of components, as Protocols that implementations never subclass.

A Protocol's docstring states the laws that every implementer keeps; ``cloister.testing`` checks them.
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
    """Private answers, looked up by bucket id and never listed, so that 2^60 buckets work. Neither pickles nor prints.

    Laws: an id gives the same value however often, and in whatever order, ids are looked up.
    """

    def at(self, ids: Ints, level: int = 0) -> Floats:
        """Return the values of buckets ids (m,) of one level: counts (m,), or sums (m, dimension)."""
        ...

    def standard_error(self, ids: Ints, level: int = 0) -> Floats:
        """Return the standard deviation (m,) of each value's noise (per coordinate, for sums); no row enters it."""
        ...


class Counts(Table, Protocol):
    """Counts of rows: ``at(ids (m,)) -> (m,)``."""


class Sums(Table, Protocol):
    """Sums of vectors: ``at(ids (m,)) -> (m, dimension)``, in the caller's units."""


class Summary(Protocol):
    """Merged reports. Merging is associative and commutative, on integers, and changes neither side."""

    def merge(self, other: Self, /) -> Self: ...


class Encoder(Protocol[I_contra, V_co]):
    """Data holder's half of a question, which encodes rows into a report.

    Laws: ``items`` is bucket ids (n, levels), -1 for none, or those with vectors (``BucketedVectors``). Under Central
    trust nothing is drawn. Under Local trust report i depends on row i, user i and a fixed number of that user's own
    draws, and a user in no bucket reports like any other. Under Shuffled trust the same holds, with a freshly drawn
    private number in place of the public user number. Reports of users can be sent: ``columns()`` gives named arrays
    with one entry per user, and the class's ``load(columns)`` reads them back, or refuses them.
    """

    def encode(self, items: I_contra, users: Ids, rng: NoiseRng) -> V_co:
        """Return one report of the rows' items, by their user numbers (n,)."""
        ...


class Decoder(Protocol[I_contra, S, V_co]):
    """Server's half of a question, which absorbs reports into summaries and decodes their sum.

    Laws: ``absorb`` is exact, draws nothing and refuses reports that no encoder sends. ``decode`` draws the noise of a
    Central question, once per released value; under other trust it draws nothing (but see
    ``MultiMessageChannel.pooled``).
    """

    def absorb(self, report: I_contra) -> S:
        """Return the summary of one report.

        Raises:
            Refused: no encoder sends such a report.
        """
        ...

    def decode(self, summary: S, rng: NoiseRng) -> V_co:
        """Return the released answer of a merged summary."""
        ...


class Channel(Encoder[I_contra, R], Decoder[R, S, V_co], Protocol[I_contra, R, S, V_co]):
    """Opened question: both halves, and their cost. Plain public data with a digest.

    Laws: ``events`` is fixed when the channel is opened; the sum of their costs, and that of their deltas, is at most
    the budget it was opened with.
    """

    @property
    def events(self) -> tuple[Event, ...]: ...


class FrequencyOracle(Protocol[T_co]):
    """Oracle that makes counts of rows per bucket private, under one trust model.

    Laws: the class's docstring states the guarantee (trust, neighbouring relation, measure) and derives it. A row may
    fall in one bucket of every level; the oracle pays for all of them. Released values are unbiased (unless
    ``biased``), and ``standard_error`` is the standard deviation of their noise, whatever the rows are.

    A class made by ``@component`` may leave out ``uses_delta``, ``asks_all_users`` and ``biased``: they are then False.
    """

    @property
    def trust(self) -> type[T_co]: ...

    @property
    def measure(self) -> Measure: ...

    @property
    def uses_delta(self) -> bool:
        """Whether the guarantee may fail with a probability of its own, taken from ``budget.delta``."""
        ...

    @property
    def asks_all_users(self) -> bool:
        """Whether every user is asked (for a share of the noise, say): methods then split the budget, not the users."""
        ...

    @property
    def biased(self) -> bool:
        """Whether released values may be biased, as counts clamped at 0 are.

        ``standard_error`` is then at least the root mean squared error, whatever the rows are.
        """
        ...

    def open(self, space: Space, budget: Budget, context: QuestionContext) -> Channel[Ints, Any, Any, Counts]:
        """Return the question's channel, with all public choices made and its cost fixed."""
        ...

    def variance(self, space: Space, budget: Budget, context: QuestionContext) -> float:
        """Return the variance of one count's noise, in rows^2, at this budget: methods split their budgets by it."""
        ...


class VectorSumOracle(Protocol[T_co]):
    """Oracle that makes sums of bounded vectors per bucket private. Laws as for ``FrequencyOracle``.

    One class may fill both roles: its ``bound`` is then None by default, for counts. A class that draws noise for whole
    vectors sets ``joint = True``: coordinates are uncorrelated, but their magnitudes may not be.
    """

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
        self, space: Space, budget: Budget, context: QuestionContext, bound: Bound
    ) -> Channel[BucketedVectors, Any, Any, Sums]:
        """Return the question's channel, for vectors within the bound."""
        ...

    def variance(self, space: Space, budget: Budget, context: QuestionContext, bound: Bound) -> float:
        """Return the variance of one coordinate's noise, in the caller's units squared, at this budget."""
        ...


class Tree(Protocol):
    """``Bucketing``, whose laws it keeps, with levels, coarse ones first, that can be grown from noisy counts.

    Its first level may be a root that holds every row; leave it out where levels share the users. A flat partition has
    one level.

    Laws: if ``nested``, a row's bucket id at each level is its id at the next level shifted right by one bit (parent id
    = id >> 1), and ``space.nested`` says so too: counts of the deepest level are then enough. ``grow`` reads only
    counts and public figures, and gives equal points for equal counts.
    """

    @property
    def space(self) -> Space: ...

    @property
    def nested(self) -> bool:
        """Whether each level halves the next one."""
        ...

    def locate(self, rows: Ints) -> Ints: ...

    def grow(self, counts: Counts) -> Coreset:
        """Return released weighted points, reading ``counts.at(ids, level)`` one level's frontier at a time.

        Returns:
            At least one point, also when all counts are zero or negative: finite, inside the domain, with a finite
                weight. ``leaves`` names the buckets that the points stand for; no row is in two of them.
        """
        ...


class TreeBuilder(Protocol):
    """Component that partitions a domain.

    Laws: it reads no rows and draws public coins only, so that a problem and a seed give one tree, with one digest, on
    every machine.
    """

    def open(self, problem: Problem, seed: PublicRng) -> Tree:
        """Return the tree of a problem.

        Raises:
            InvalidInput: it cannot partition the domain; the message names an alternative.
        """
        ...


class NonPrivateSolver(Protocol):
    """Solver that clusters released weighted points: post-processing of ``Released`` values, with public coins only.

    Laws: it never fails on released values, whatever the noise made of them, since their budget is spent; any or all
    weights may be zero or negative (a forecast answers zero everywhere). It refuses only a coreset without points, by
    InvalidInput.
    """

    def solve(self, coreset: Released[Coreset], k: int, rng: PublicRng) -> Floats:
        """Return centres (k, d) in the caller's units."""
        ...
