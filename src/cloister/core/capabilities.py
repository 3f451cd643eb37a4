"""Optional abilities of a component, besides its role.

A Protocol here is tested by ``isinstance``, which looks at the names of its members alone: names that nothing else has.
An ability of one attribute is read by a function. Facts of report channels are in ``reports``, channels of several
messages in ``shuffling``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from cloister.core.clustering import Coreset, Problem, Released
from cloister.core.errors import InvalidInput, plugin_errors
from cloister.core.randomness import PublicRng
from cloister.core.types import Bools, Floats, Ints


@runtime_checkable
class HoldsUsers(Protocol):
    """Population that may know which rows are one user's, and then reads a bounded number of rows of each.

    Laws: after ``keep`` every round reads at most ``max_rows_per_user`` rows of each user, the same in every round;
    where rows name users it refuses every round before. Which rows of a user are read depends on her name, on the
    number and order of her usable rows, and on the key: never on another user's rows, nor on where hers are among them.
    """

    has_users: bool

    def keep(self, max_rows_per_user: int, rng: PublicRng) -> None:
        """Bound the rows read of each user."""
        ...


@runtime_checkable
class NumbersByName(Protocol):
    """Population whose rows have no order (an engine's), so that only a column of names can number the users.

    Laws: a user's number is a function of her name alone. (A number by her row's place among the others, sorted by
    their cells say, would move with every row that is replaced, and with it the questions that she is asked and her
    answers.) Where rows name no users it answers no round in which users have numbers: under Local and Shuffled trust,
    and for a share of the users. ``number_by_name`` checks, before such a round, that every row names another user.
    """

    has_users: bool

    def number_by_name(self) -> None:
        """Check that every row names another user.

        Raises:
            InvalidInput: rows name no users, or two rows name the same one.
        """
        ...


@runtime_checkable
class Joining(Protocol):
    """Population that needs other parties, who hold the remaining rows; its session may outlive a process."""

    @property
    def opened(self) -> bool:
        """Whether all have joined, so that a round may be open."""
        ...

    @property
    def payer(self) -> tuple[str, str] | None:
        """Data set and id of the ledger's run that pays for the session, if one is known."""
        ...

    def paid_by(self, dataset: str, run: str) -> None:
        """Remember the run that pays, before the ledger reserves its budget, so that a resumed session uses it."""
        ...

    def join(self) -> None:
        """Meet the other parties, after the own rows are checked and paid for and before the first round is opened."""
        ...

    def agree(self, after: int, number: int, values: Ints) -> Ints:
        """Return the integers that all parties go on from: those that one of them computed from the answers so far.

        Args:
            after: the last round.
            number: number of earlier agreements after that round.
            values: the party's own integers, of norm at most twice ``REACH``.
        """
        ...


@runtime_checkable
class TakesTotals(Protocol):
    """Channel whose summary is exact totals: an engine may sum the rows instead of ``encode`` and ``absorb``.

    Laws: ``totalled`` of the totals of any rows equals ``absorb`` of their report.
    """

    def totalled(self, levels: Sequence[tuple[Ints, Ints]], rows: int) -> Any:
        """Return the summary of so many rows, in a bucket or not.

        Args:
            levels: occupied buckets of each level that is counted (of a nested space the deepest alone): ids (m,),
                ascending, and counts (m,) or sums of vectors (m, dimension).
            rows: number of rows.

        Raises:
            Refused: a bucket does not exist.
        """
        ...


@runtime_checkable
class PredictsError(Protocol):
    """Method that can predict its error: ``auto`` selects by it, plans warn by it.

    Laws: it depends on the problem and the method's options and oracles alone, draws nothing and reads nothing. Errors
    of methods for one objective are comparable: they are for the same clusters, and include a method's other known
    losses (a bad start, cells that are too wide) by constants that its docstring derives or measures.
    """

    def expected_error(self, problem: Problem) -> float:
        """Return v, the mean squared error of a row's centre over the squared radius of the domain.

        The radius is half the diameter; the clusters are k tight ones of equal size. At v >= 1 expect no better than
        one centre.

        Raises:
            InvalidInput: the method cannot solve the problem (too many columns, say).
        """
        ...


def predicted_error(method: Any, problem: Problem) -> float:
    """Return the error v that a method predicts.

    Raises:
        InvalidInput: it predicts none, or cannot solve the problem.
    """
    if not isinstance(method, PredictsError):
        raise InvalidInput(f"{type(method).__name__} does not predict its error")
    with plugin_errors(f"{type(method).__name__} does not predict its error"):
        error = float(method.expected_error(problem))
    if not 0 <= error < math.inf:
        raise InvalidInput(f"the expected error of {type(method).__name__} must be finite and >= 0, not {error}")
    return error


TYPICAL, TYPICAL_MEDIAN, SPREAD = 0.15, 0.085, 4.0
"""Cost of one centre at the middle of the bounds over the squared radius of the domain, for k-means and for k-median,
and the factor on the odds of a predicted loss below which nine of ten data sets lie.

Fitted so that half of the measured losses lie above the prediction (``benchmarks/predicted.py --forecasts``); for most
rows the cost is 0.1 to 0.3. Groups that are far apart lose much less."""


def predicted_loss(method: Any, problem: Problem, objective: str | None) -> float:
    """Return the predicted loss as a fraction of the loss of one centre at the middle of the bounds.

    Both losses are in excess of the cost of as many centres found without privacy.

    Args:
        method: predicts its error.
        problem: the public frame.
        objective: the objective that the method minimises.

    Raises:
        InvalidInput: as ``predicted_error``.
    """
    return relative_loss(predicted_error(method, problem), objective)


def relative_loss(error: float, objective: str | None = None) -> float:
    """Return the fraction v / (v + ``TYPICAL``) for a predicted error v; of roots for k-median, a cost of distances."""
    lost, typical = (math.sqrt(error), math.sqrt(TYPICAL_MEDIAN)) if objective == "k-median" else (error, TYPICAL)
    return lost / (lost + typical)


def loss_upper_bound(part: float) -> float:
    """Return the fraction below which nine of ten data sets lie: ``SPREAD`` times the odds of the predicted one.

    The true one depends on the shape of the groups, which no public figure reveals.
    """
    return SPREAD * part / (SPREAD * part + 1 - part)


@runtime_checkable
class HasCutBoundaries(Protocol):
    """Tree whose cells have borders that a centre can be too near to."""

    def badly_cut(self, centers: Floats, margin: float) -> Bools:
        """Return a mask (m,) of the centres nearer to a cut than ``margin`` times the side of the cell that it cuts."""
        ...


@runtime_checkable
class HasCostCurve(Protocol):
    """Solver that can price fewer centres, for the curve of cost against k.

    Attributes:
        power: z of its distances^z.
    """

    power: int

    def costs(self, coreset: Released[Coreset], k: int) -> Floats:
        """Return the cost (k,) of the best 1 .. k centres, over the released weights."""
        ...


def chooses_k(method: object) -> bool:
    """Return True if a method, with the components in its slots, can choose k itself: its attribute ``chooses_k``.

    Laws: given a range (``Problem.fewest``), it chooses by released values. It plans for the largest, ``problem.k``:
    rounds, events, and the shapes of all questions are those of the forecast, whatever it chooses. It returns as many
    centres as it chose, and ``details["curve"]`` as plain data: candidates ("k"), their costs per row ("costs"), the
    chosen one ("suggested") and "why".
    """
    return bool(getattr(method, "chooses_k", False))


def slack(method: object) -> float:
    """Return how many times wider than the rows bounds may be, in every column, at a tenth more error or less.

    A method that measures where the rows are has an attribute ``slack``; for any other it is 1.
    """
    return float(getattr(method, "slack", 1.0))


def tells_narrow_columns(method: object) -> bool:
    """Return True if a method finds groups that differ only in a column much narrower than others, as a category's.

    Cells of a grid are as wide in every column: such a method sets its attribute ``tells_narrow_columns`` to False.
    """
    return bool(getattr(method, "tells_narrow_columns", True))
