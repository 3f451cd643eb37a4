"""Optional Protocols, tested by ``isinstance``: abilities that a component may have besides its role."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from cloister.core.clustering import Coreset, Problem, Released
from cloister.core.errors import InvalidInput
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.reports import Gain, ReportLaw
from cloister.core.types import Bools, Floats, Ids, Ints


@runtime_checkable
class Counted(Protocol):
    """A population that reports how many people answered. Shuffled trust requires it: neighbours replace a row, so the
    number of people is public, and the guarantee needs a minimum.

    Laws: a row that no answer counts (it has a missing cell, say) is nobody.
    """

    @property
    def people(self) -> int | None:
        """Number of people whose rows it holds, or whose reports the last ``gather`` took; None if only a ``gather``
        can tell."""
        ...


@runtime_checkable
class HoldsUsers(Protocol):
    """A population that may know which rows are one user's: then it answers only about some rows of each.

    Laws: after ``keep`` every round reads at most ``most`` rows of each user, the same in every round; where rows name
    users it refuses every round before. Which rows of a user are read depends on her name, on how many rows of hers can
    be used, on their order and on the key: never on another user's rows, nor on where hers are among them.
    """

    has_users: bool

    def keep(self, most: int, rng: PublicRng) -> None: ...


@runtime_checkable
class NumbersByName(Protocol):
    """A population whose rows have no places of their own (an engine holds them in any order): nothing but a column
    that names her can give a user her number.

    Laws: a user's number is a function of her name alone. A number that follows from where her row stands among others,
    by their cells say, moves with every row that is replaced, and with it what she is asked and what she answers. Where
    rows name no users it answers no round in which they have numbers: under trust Local and Shuffled, and of a share of
    the users. ``number`` makes sure, before such a round, that every row names another user.
    """

    has_users: bool

    def number(self) -> None:
        """Raises: InvalidInput: rows name no users, or two rows one."""
        ...


@runtime_checkable
class Pooling(Protocol):
    """A population that pools the rows of parties, none of whom can read another's. Only it answers Aggregated trust.

    Laws: ``check(most_rows)`` is every party's own.
    """

    @property
    def simulated(self) -> bool:
        """Whether all parties are in this process, so that whoever runs it sees all rows."""
        ...


@runtime_checkable
class Joining(Protocol):
    """A population that needs others, who hold the remaining rows. It may outlive a process: then it knows who pays.

    Attributes: opened (whether all have joined, so that a round may be open), payer (data set and id of the run in a
    ledger that pays for the session; None: nobody knows of one).
    """

    @property
    def opened(self) -> bool: ...

    @property
    def payer(self) -> tuple[str, str] | None: ...

    def paid_by(self, dataset: str, run: str) -> None:
        """Remember the run that pays, before the ledger reserves its budget: whoever comes back goes on with it."""
        ...

    def join(self) -> None:
        """Meet the others: after its own rows are checked and paid for, before the first round is opened."""
        ...

    def settle(self, after: int, number: int, found: Ints) -> Ints:
        """The integers that all go on from: of what each of them found from the answers so far, one's.

        Args: after (the last round), number (of what was settled after it before), found (numbers of norm at most
        twice ``REACH``).
        """
        ...


@runtime_checkable
class NeedsHonestUsers(Protocol):
    """A channel whose guarantee needs other users: every Shuffled one.

    Laws: its events hold if at least ``min_honest_users`` people, the user included, follow the protocol and their
    messages are shuffled together, whoever else takes part. An event's ``epsilon_without_shuffler`` holds otherwise.
    """

    @property
    def min_honest_users(self) -> int: ...


@runtime_checkable
class MultiMessageChannel(Protocol):
    """A Shuffled channel of several messages per user: only their multiset carries information. It asks all users,
    since each owes a share of the noise whatever their role, so such a question is never put to a share of the users.

    Laws: a report has ``messages`` entries for every user, those of one user together and in the order of users; its
    ``columns()`` have no "users". ``absorb`` takes messages in any order and any split, and refuses those that no
    encoder sends; ``decode`` refuses a summary that is not of whole users. Whatever the row is, any two messages of a
    user are independent, except for the public part of their places (which slot, which level): nothing links them to
    one user. No kind of message, by any combination of its fields, is sent only by users in some bucket: each is hidden
    among those of ``min_honest_users`` others.
    """

    @property
    def messages(self) -> int:
        """How many messages every user sends."""
        ...

    def pooled(self, items: Any, users: Ids, rng: NoiseRng) -> Any:
        """The ideal functionality: one draw from the law of the summary that ``absorb`` makes of these users' shuffled
        messages. If the noise of a sum can be drawn at once too, the summary may leave it to ``decode``."""
        ...


@runtime_checkable
class TakesTotals(Protocol):
    """A channel whose summary is exact totals: an engine may add up the rows in place of ``encode`` and ``absorb``.

    Laws: ``totalled`` of the totals of any rows is what ``absorb`` makes of their report.
    """

    def totalled(self, levels: Sequence[tuple[Ints, Ints]], rows: int) -> Any:
        """A summary of so many rows, in a bucket or not.

        Args: levels, the occupied buckets of each level that is counted (of a nested space the deepest alone): ids
            (m,), ascending, and counts (m,) or sums of vectors (m, dimension).

        Raises: Refused: there is no such bucket.
        """
        ...


@runtime_checkable
class ChecksWholeReports(Protocol):
    """A ``MultiMessageChannel`` that can tell whose messages would spoil the others', for a shuffler to ask before it
    forgets the senders."""

    def whole(self, report: Any) -> Bools:
        """Which users (n,) could have sent their messages, given n x ``messages`` entries, user by user, in any order
        within a user. Raises: Refused if they cannot be told apart: the shuffler then asks about fewer."""
        ...


@runtime_checkable
class PredictsError(Protocol):
    """A method that can predict its error: ``auto`` picks by it, plans warn by it.

    Laws: it depends on the problem and the method's options and oracles alone, draws nothing and reads nothing. Errors
    of methods for one objective are comparable: they are of the same clusters, and what a method is known to lose
    besides (a bad start, cells that are too wide) is in them, by constants that its docstring derives or measures.
    """

    def expected_error(self, problem: Problem) -> float:
        """v: mean squared distance by which a row's centre is off, over the squared radius of the domain (half its
        diameter), for k tight clusters of equal size. At v >= 1 expect no better than one centre.

        Raises: InvalidInput: the method cannot solve the problem (too many columns, say).
        """
        ...


def predicted_error(method: Any, problem: Problem) -> float:
    """The error that a method predicts. Raises: InvalidInput: it predicts none, or cannot solve the problem."""
    if not isinstance(method, PredictsError):
        raise InvalidInput(f"{type(method).__name__} does not predict its error")
    error = float(method.expected_error(problem))
    if not 0 <= error < math.inf:
        raise InvalidInput(f"the expected error of {type(method).__name__} must be finite and >= 0, not {error}")
    return error


@runtime_checkable
class HasCutBoundaries(Protocol):
    """A tree whose cells have borders that a centre can be too near to."""

    def badly_cut(self, centers: Floats, margin: float) -> Bools:
        """Which centres (m,) are nearer to a cut than ``margin`` times the side of the cell that it cuts."""
        ...


@runtime_checkable
class HasCostCurve(Protocol):
    """A solver that can price fewer centres, for the curve of cost against k. ``power``: z of its distances^z."""

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
    """A channel that may divide its users evenly over its levels, by a public coin of each user number.

    A cheater who chooses a number can thereby choose a level (see ``collection.server.laws``).
    """

    def answered(self, summary: Any) -> tuple[int, ...]:
        """How many users answered each level; empty if all users answer every level."""
        ...


@runtime_checkable
class BoundsLiars(Protocol):
    """A channel that bounds what one person who lies can do to its answers.

    Laws: whatever reports are absorbed, one more that ``absorb`` takes changes no value of the answer by more than its
    level's ``Gain`` says, times ``factor``. It holds for every report of that level, not on average: it is the law of
    the estimator, not of the people.
    """

    @property
    def gains(self) -> tuple[Gain, ...]:
        """Gains of each level; empty where nothing bounds them."""
        ...

    def reported(self, summary: Any) -> tuple[int, ...]:
        """How many reports of each level a summary holds."""
        ...


@runtime_checkable
class KnowsLaws(Protocol):
    """A channel that knows how often honest reports say a thing, whatever the rows are: ``collection.server.laws``.

    Laws: a portion's number is that of independent coins, one per report, whose probabilities are within its bounds for
    every row, over the secret coins of its user and the public ones of her number. Or it is so given how many coins
    there are (``among``).
    """

    def laws(self, summary: Any) -> tuple[ReportLaw, ...]:
        """Laws of all levels; empty where nothing is known."""
        ...


@runtime_checkable
class TakesWideBounds(Protocol):
    """A method that measures itself where rows are: its bounds may be wider than the rows at hardly any cost."""

    @property
    def slack(self) -> float:
        """So many times wider, in every column, that its error grows by less than a tenth."""
        ...


@runtime_checkable
class ChoosesK(Protocol):
    """A method that may be given a range of numbers of centres (``Problem.fewest``), and then chooses one by what it
    has released.

    Laws: it plans for the largest, ``problem.k``: rounds, events, and the shapes of all questions are those of the
    forecast, whatever is chosen. It returns as many centres as it chose, and says in ``details["curve"]``, as plain
    data, which numbers ("k") cost how much per row ("costs"), which one it chose ("suggested") and "why".
    """

    @property
    def chooses_k(self) -> bool:
        """Whether it does, with what is in its slots."""
        ...


def chooses_k(method: Any) -> bool:
    """Whether a method can be given a range of numbers of centres."""
    return isinstance(method, ChoosesK) and method.chooses_k


@runtime_checkable
class Zooming(Protocol):
    """A method that may first pay to find where the rows are, and says beforehand whether, at what price, and what it
    may miss."""

    def share_of(self, problem: Problem) -> float:
        """The share of the budget that this takes, by public figures; 0 if it does not pay.

        Raises: InvalidInput: it must be done, and cannot."""
        ...

    def unseen_of(self, problem: Problem) -> float:
        """But in one run of 1,000, no group of this share of the rows has its middle outside what is found; 1: nothing
        is promised; 0: nothing is looked for."""
        ...
