"""What a component may be able to do besides its role: optional Protocols, asked for by ``isinstance``."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from cloister.core.clustering import Coreset, Problem, Released
from cloister.core.randomness import NoiseRng
from cloister.core.types import Bools, Floats, Ids


@runtime_checkable
class Counted(Protocol):
    """A population that says of how many people its answers are: what trust Shuffled asks of it, where their number is
    public (neighbours replace a row) and the guarantee needs so many.

    Laws: a row that no answer counts (it has a missing cell, say) is nobody.
    """

    @property
    def people(self) -> int | None:
        """Of the rows that it holds, or of the reports that the last ``gather`` took; None while only a ``gather`` can
        tell."""
        ...


@runtime_checkable
class Pooling(Protocol):
    """A population that pools the rows of parties, none of whom can read another's. Only it answers trust Aggregated.

    Laws: ``check(most_rows)`` is every party's own.
    """

    @property
    def simulated(self) -> bool:
        """Whether all parties are in this process, so that whoever runs it sees all rows."""
        ...


@runtime_checkable
class Joining(Protocol):
    """A population whose other rows are elsewhere."""

    def join(self) -> None:
        """Meet the others: once its own rows are checked and paid for, and before the first round is opened."""
        ...


@runtime_checkable
class NeedsHonestUsers(Protocol):
    """A channel whose guarantee needs others: a Shuffled one.

    Laws: its events hold if at least ``min_honest_users`` people, herself among them, follow the protocol and their
    messages are shuffled together, whoever else there is. Events say by ``epsilon_without_shuffler`` what holds
    otherwise.
    """

    @property
    def min_honest_users(self) -> int: ...


@runtime_checkable
class MultiMessageChannel(Protocol):
    """A Shuffled channel of several messages per user: only their multiset means something. Everybody is asked: her
    share of the noise is owed whatever her role is, so such a question is never put to a share of the users.

    Laws: a report has one entry per message, ``messages`` for every user, those of one user together and in the order
    of users; its ``columns()`` have no "users". ``absorb`` takes messages in any order and in any pieces, and refuses
    those that no encoder sends; ``decode`` refuses a summary that is not of whole users. Whatever her row is, any two
    of a user's messages are independent, but for what is public of their places (which slot, which level): nothing
    tells that they are hers. No kind of message, by any of its fields together, is sent by users in some bucket alone:
    she hides it among ``min_honest_users`` others'.
    """

    @property
    def messages(self) -> int:
        """That every user sends."""
        ...

    def pooled(self, items: Any, users: Ids, rng: NoiseRng) -> Any:
        """The ideal functionality: in law what ``absorb`` makes of the shuffled messages of these users, drawn at once.
        Where the noise of a sum is drawn at once too, the summary may owe it and ``decode`` draws it."""
        ...


@runtime_checkable
class ChecksWholeReports(Protocol):
    """A ``MultiMessageChannel`` that can tell whose messages would spoil the others': what a shuffler asks before it
    forgets the senders."""

    def whole(self, report: Any) -> Bools:
        """Which users (n,) could have sent their messages, given n x ``messages`` entries, user by user, in any order
        within a user.

        Raises:
            Refused: they cannot be told apart: the shuffler then asks about fewer.
        """
        ...


@runtime_checkable
class PredictsError(Protocol):
    """A method that can say beforehand how well it will do: what a plan warns by."""

    def expected_error(self, problem: Problem) -> float:
        """v: the mean squared distance that noise alone puts between a row's centre and where it should be, over the
        squared radius of the domain (half its diameter), for k tight clusters of one size. At v >= 1 expect no better
        than one centre.
        """
        ...


@runtime_checkable
class HasCutBoundaries(Protocol):
    """A tree whose cells have borders that a centre can be too near to."""

    def badly_cut(self, centers: Floats, margin: float) -> Bools:
        """Which centres (m,) are nearer to a cut than ``margin`` times the side of the cell that it cuts."""
        ...


@runtime_checkable
class HasCostCurve(Protocol):
    """A solver that can say what fewer centres would have cost, for the curve of cost against k. ``power``: z of its
    distances^z."""

    power: int

    def costs(self, coreset: Released[Coreset], k: int) -> Floats:
        """Cost (k,) of the best 1 .. k centres, over the released weights."""
        ...


@runtime_checkable
class IsRandomisedResponse(Protocol):
    """A local channel whose report may be plain randomised response."""

    @property
    def values(self) -> int | None:
        """k, if each report is, given public coins, one answer of k-ary randomised response (of at least k values; at
        no input is an answer more than e^epsilon times as likely as any other); else None."""
        ...


@runtime_checkable
class Dividing(Protocol):
    """A channel of users that may divide them over its levels, evenly, by a public coin of each one's number.

    What a liar who chooses her number could choose by (see ``core.shares``).
    """

    def answered(self, summary: Any) -> tuple[int, ...]:
        """How many users answered each level; empty where all of them answer every level."""
        ...
