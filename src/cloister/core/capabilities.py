"""Abilities that a component may have besides its role.

A Protocol here is tested by ``isinstance``, which looks at the names of its members alone: they are names that nothing
else has. What one attribute says is asked by a function. What channels of
reports may know is ``reports.ReportFacts``; channels of several messages are in ``shuffling``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from cloister.core.clustering import Coreset, Problem, Released
from cloister.core.errors import InvalidInput, theirs
from cloister.core.randomness import PublicRng
from cloister.core.types import Bools, Floats, Ints


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
    the users. ``number_by_name`` makes sure, before such a round, that every row names another user.
    """

    has_users: bool

    def number_by_name(self) -> None:
        """Raises: InvalidInput: rows name no users, or two rows one."""
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
    with theirs(f"{type(method).__name__} does not predict its error"):
        error = float(method.expected_error(problem))
    if not 0 <= error < math.inf:
        raise InvalidInput(f"the expected error of {type(method).__name__} must be finite and >= 0, not {error}")
    return error


TYPICAL, TYPICAL_MEDIAN, SPREAD = 0.15, 0.085, 4.0
"""What one centre at the middle of the bounds loses over the squared radius of the domain (0.1 to 0.3 of most rows), so
that half of what was measured lies above what v says, for k-means and for k-median; and the factor of the odds below
which nine of ten lie (``benchmarks/predicted.py --forecasts``). Groups that are far apart lose much less."""


def predicted_part(method: Any, problem: Problem, objective: str | None) -> float:
    """What is predicted to be lost, of what one centre at the middle of the bounds loses, both beyond what as many
    centres cost that were found without privacy. Args: objective (that the method makes small). Raises: as
    ``predicted_error``."""
    return part_lost(predicted_error(method, problem), objective)


def part_lost(error: float, objective: str | None = None) -> float:
    """The part of a predicted error v: v / (v + ``TYPICAL``); for k-median, whose cost is a distance, of roots."""
    lost, typical = (math.sqrt(error), math.sqrt(TYPICAL_MEDIAN)) if objective == "k-median" else (error, TYPICAL)
    return lost / (lost + typical)


def at_most(part: float) -> float:
    """The part below which nine of ten data sets lie: ``SPREAD`` times the odds that were predicted. What groups look
    like decides, and no public figure tells."""
    return SPREAD * part / (SPREAD * part + 1 - part)


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


def chooses_k(method: object) -> bool:
    """Whether a method, with what is in its slots, can be given a range of numbers of centres (``Problem.fewest``), and
    then chooses one by what it has released: if it has an attribute ``chooses_k`` that is True.

    Laws: it plans for the largest, ``problem.k``: rounds, events, and the shapes of all questions are those of the
    forecast, whatever is chosen. It returns as many centres as it chose, and says in ``details["curve"]``, as plain
    data, which numbers ("k") cost how much per row ("costs"), which one it chose ("suggested") and "why".
    """
    return bool(getattr(method, "chooses_k", False))


def slack(method: object) -> float:
    """How many times wider a method's bounds may be than the rows, in every column, so that its error grows by less
    than a tenth: its attribute ``slack``, if it measures itself where rows are; 1 of any other method."""
    return float(getattr(method, "slack", 1.0))


def tells_narrow_columns(method: object) -> bool:
    """Whether a method finds groups that differ only in a column much narrower than others, such as one of a category:
    unless its attribute ``tells_narrow_columns`` is False (cells of a grid are as wide in every column)."""
    return bool(getattr(method, "tells_narrow_columns", True))
