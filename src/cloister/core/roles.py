"""The roles that components play. All are Protocols: implementations never subclass.

Laws that every implementer keeps stand in the Protocol's docstring; ``cloister.testing`` checks them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar, runtime_checkable

from cloister.core.budget import Budget, Event, Measure
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.trust import T, T_co, T_contra
from cloister.core.types import Bools, Floats, Ids, Ints

if TYPE_CHECKING:
    from cloister.core.clustering import Clustering, Coreset, Problem, Released
    from cloister.core.lattice import Bound
    from cloister.core.questions import Bucketing, Placed, Round, Setting, Space
    from cloister.core.session import Session

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
        """Standard deviation (m,) of the noise in each value (of one coordinate, for sums). Public: no row enters it."""
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

    Laws: ``items`` is bucket ids (n, levels), -1 for none, or those with vectors (``Placed``). Under Local trust report i
    depends on row i, user i and a fixed number of draws of her own, and a user in no bucket reports like any other.
    Under Central trust nothing is drawn. Under Shuffled trust it is as under Local trust, with a private number that she drew
    in place of her public one. Reports of users travel: ``columns()`` gives named arrays with one entry per user, and the
    class's ``load(columns)`` takes them back, or refuses.
    """

    def encode(self, items: I_contra, users: Ids, rng: NoiseRng) -> V_co: ...


class Decoder(Protocol[I_contra, S, V_co]):
    """The server's half of a question.

    Laws: ``absorb`` is exact, draws nothing and refuses what no encoder sends. ``decode`` draws the noise of a Central
    question, once per released value; of other trusts it draws nothing (but see ``Mixing.pooled``).
    """

    def absorb(self, report: I_contra) -> S: ...

    def decode(self, summary: S, rng: NoiseRng) -> V_co: ...


class Channel(Encoder[I_contra, R], Decoder[R, S, V_co], Protocol[I_contra, R, S, V_co]):
    """An opened question: both halves, and what they cost. Plain public data with a digest.

    Laws: ``events`` is fixed when the channel is opened; their sum, and that of their deltas, is at most the budget it was opened with.
    """

    @property
    def events(self) -> tuple[Event, ...]: ...


class FrequencyOracle(Protocol[T_co]):
    """Makes counts of rows per bucket private, under one trust model.

    Laws: the guarantee (trust, neighbouring relation, measure) and its derivation stand in the class's docstring. A row
    may fall in one bucket of every level; the oracle pays for all of them. An oracle whose guarantee may fail by itself has
    ``failing = True``, and takes the probability from ``budget.delta``. One that asks everybody, for a share of its noise say, has
    ``everybody = True``: methods divide the budget then and not the users.
    """

    @property
    def trust(self) -> type[T_co]: ...

    @property
    def measure(self) -> Measure: ...

    def open(self, space: Space, budget: Budget, setting: Setting) -> Channel[Ints, Any, Any, Counts]: ...

    def variance(self, space: Space, budget: Budget, setting: Setting) -> float:
        """Variance of one count's noise, in rows^2, had it this budget: what methods choose their shares by."""
        ...


class VectorSumOracle(Protocol[T_co]):
    """Makes sums of bounded vectors per bucket private, under one trust model. Laws as for ``FrequencyOracle``."""

    @property
    def trust(self) -> type[T_co]: ...

    @property
    def measure(self) -> Measure: ...

    def open(self, space: Space, bound: Bound, budget: Budget, setting: Setting) -> Channel[Placed, Any, Any, Sums]: ...

    def variance(self, space: Space, bound: Bound, budget: Budget, setting: Setting) -> float:
        """Variance of one coordinate's noise, in the caller's units squared, had it this budget."""
        ...


class Tree(Protocol):
    """A public bucketing with levels, coarse ones first, that can be grown from noisy counts.

    A root, which holds every row, may be its first level; where users share the levels it is better left out. A flat
    partition has one level. ``nested``: parent id = id >> 1.
    """

    @property
    def space(self) -> Space: ...

    @property
    def nested(self) -> bool: ...

    def locate(self, rows: Ints) -> Ints: ...

    def grow(self, counts: Counts) -> Coreset:
        """Released weighted points with their leaves, looking a level's frontier at a time. At least one, also when all counts
        are zero."""
        ...


class TreeBuilder(Protocol):
    """Partitions a domain. Public: reads no rows."""

    def open(self, problem: Problem, seed: PublicRng) -> Tree: ...


class NonPrivateSolver(Protocol):
    """Clusters released weighted points. Post-processing: takes only what is ``Released``, draws only public coins.

    Laws: it never fails on released values, whatever noise made of them, since their budget is spent; weights may be zero or
    negative, all of them too (a forecast answers zero everywhere).
    """

    def solve(self, coreset: Released[Coreset], k: int, rng: PublicRng) -> Floats:
        """Centres (k, d) in the caller's units."""
        ...


class Method(Protocol[T]):
    """A clustering algorithm: a short program that asks questions in rounds.

    Laws: the schedule (rounds, questions, what each spends) does not depend on answers. It sees no row and no exact
    figure. It is a pure function of the problem, ``rng`` and the answers.
    """

    def cluster(self, problem: Problem, session: Session[T], rng: PublicRng) -> Clustering: ...


class Population(Protocol[T_contra]):
    """Where the rows are. The round is opaque to it: one merged summary per question, in one pass."""

    def gather(self, round: Round[T_contra], rng: NoiseRng) -> tuple[Any, ...]: ...


@runtime_checkable
class Counted(Protocol):
    """A population that says of how many people its answers are: what trust Shuffled asks of it, where their number is public (neighbours
    replace a row) and the guarantee needs so many.

    Laws: a row that no answer counts (it has a missing cell, say) is nobody.
    """

    @property
    def people(self) -> int | None:
        """Of the rows that it holds, or of the reports that the last ``gather`` took; None while only a ``gather`` can tell."""
        ...


@runtime_checkable
class Hiding(Protocol):
    """A channel whose guarantee needs others: a Shuffled one.

    Laws: its events hold if at least ``least`` people, herself among them, follow the protocol and their messages are shuffled
    together, whoever else there is. Events say by ``alone`` what holds otherwise.
    """

    @property
    def least(self) -> int: ...


@runtime_checkable
class Mixing(Protocol):
    """A Shuffled channel of several messages per user: only their multiset means something. Everybody is asked: her share of the noise
    is owed whatever her role is, so such a question is never put to a share of the users.

    Laws: a report has one entry per message, ``messages`` for every user, those of one user together and in the order of users;
    its ``columns()`` have no "users". ``absorb`` takes messages in any order and in any pieces, and refuses those that no encoder
    sends; ``decode`` refuses a summary that is not of whole users. Whatever her row is, any two of a user's messages are independent, but for
    what is public of their places (which slot, which level): nothing tells that they are hers. No kind of message, by any of its fields
    together, is sent by users in some bucket alone: she hides it among ``least`` others'.
    """

    @property
    def messages(self) -> int:
        """That every user sends."""
        ...

    def pooled(self, items: Any, users: Ids, rng: NoiseRng) -> Any:
        """The ideal functionality: in law what ``absorb`` makes of the shuffled messages of these users, drawn at once. Where the noise of
        a sum is drawn at once too, the summary may owe it and ``decode`` draws it."""
        ...


@runtime_checkable
class Sorting(Protocol):
    """A ``Mixing`` channel that can tell whose messages would spoil the others': what a shuffler asks before it forgets the senders."""

    def whole(self, report: Any) -> Bools:
        """Which users (n,) could have sent their messages, given n x ``messages`` entries, user by user, in any order within a user.

        Raises:
            Refused: they cannot be told apart: the shuffler then asks about fewer.
        """
        ...


@runtime_checkable
class Predicting(Protocol):
    """A method that can say beforehand how well it will do: what a plan warns by."""

    def expected_error(self, problem: Problem) -> float:
        """v: the mean squared distance that noise alone puts between a row's centre and where it should be, over the squared
        radius of the domain (half its diameter), for k tight clusters of one size. At v >= 1 expect no better than one centre.
        """
        ...


@runtime_checkable
class Cutting(Protocol):
    """A tree whose cells have borders that a centre can be too near to."""

    def badly_cut(self, centers: Floats, margin: float) -> Bools:
        """Which centres (m,) are nearer to a cut than ``margin`` times the side of the cell that it cuts."""
        ...


@runtime_checkable
class Costing(Protocol):
    """A solver that can say what fewer centres would have cost, for the curve of cost against k. ``power``: z of its distances^z."""

    power: int

    def costs(self, coreset: Released[Coreset], k: int) -> Floats:
        """Cost (k,) of the best 1 .. k centres, over the released weights."""
        ...


@runtime_checkable
class Responding(Protocol):
    """A local channel whose report may be plain randomised response."""

    @property
    def values(self) -> int | None:
        """k, if each report is, given public coins, one answer of k-ary randomised response (of at least k values; at no input is
        an answer more than e^epsilon times as likely as any other); else None."""
        ...


class Charging(Protocol):
    """An accountant, as a session sees it."""

    def charge(self, index: int, events: tuple[Event, ...]) -> None:
        """Pay for round ``index``, or raise ``BudgetExceeded`` or ``Refused`` before any row is read."""
        ...


__all__ = [
    "Bucketing", "Channel", "Charging", "Costing", "Counted", "Counts", "Cutting", "Decoder", "Encoder", "FrequencyOracle", "Hiding", "Method", "Mixing",
    "NonPrivateSolver", "Population", "Predicting", "Responding", "Sorting", "Summary", "Sums", "T", "Table", "Tree", "TreeBuilder", "VectorSumOracle",
]  # fmt: skip
