"""The public frame of a run: the problem, released points, and the clustering that comes out."""

from __future__ import annotations

from typing import Any, Generic, TypeVar, final

import attrs

from cloister.core.buckets import QuestionContext
from cloister.core.budget import Budget, Event
from cloister.core.domains import Domain
from cloister.core.errors import InvalidInput
from cloister.core.lattice import CAP
from cloister.core.randomness import ANY_KEY, PublicRng
from cloister.core.registry.components import own_number
from cloister.core.types import Floats, Ints

V_co = TypeVar("V_co", covariant=True)

MOST_CENTERS, MOST_NUMBERS = 2**16, 2**22
"""Limits on a run's centres, and on their coordinates: a method holds a few dozen tables of them at once."""


@final
@attrs.frozen
class Problem:
    """Public parameters of a run.

    Args:
        k: number of centres.
        domain: where rows can be.
        rows: the public number of rows. It enters formulas; the true number stays private under add-or-remove.
        budget: of the whole run, in the measure that the method's oracles share.
        fewest: least number of centres, if the method chooses between it and k (``chooses_k``); None: k centres.
    """

    k: int = attrs.field(converter=own_number)
    domain: Domain
    rows: int = attrs.field(converter=own_number)
    budget: Budget
    fewest: int | None = attrs.field(default=None, converter=own_number)

    def __attrs_post_init__(self) -> None:
        largest_k = min(MOST_CENTERS, max(1, MOST_NUMBERS // self.domain.dimension))
        if self.k > largest_k:
            k = str(self.k) if self.k < 10**18 else "larger than 10^18"
            raise InvalidInput(
                f"k is {k}, but a run finds {largest_k} centres at most in {self.domain.dimension} columns, as memory "
                f"is limited: ask for fewer centres"
            )
        if self.rows < 1 or self.rows > CAP:
            raise InvalidInput(f"the public number of rows must be between 1 and {CAP}, not {self.rows}")
        if self.k < 1:
            raise InvalidInput(f"k is {self.k}: ask for at least one centre")
        if self.k > self.rows:
            raise InvalidInput(f"k is {self.k}, but the public number of rows is {self.rows}: ask for fewer centres")
        if self.fewest is not None and not 2 <= self.fewest < self.k:
            raise InvalidInput(f"the least number of centres must be 2 to {self.k - 1}, not {self.fewest}")

    def context(self, spend: Budget, seed: PublicRng = ANY_KEY) -> QuestionContext:
        """Return the public facts of a question with this budget; one that is only priced needs no ``seed``."""
        return QuestionContext(max(1, round(self.rows * spend.fraction)), self.domain.unit, seed, self.rows)

    def split(self, share: float) -> tuple[Problem, Problem]:
        """Return the problems of a method's first part, with this share of the budget, and of the rest.

        With share 0 both have the whole budget: the first part asks nothing.
        """
        first, second = self.budget.split(share, 1 - share) if share > 0 else (self.budget, self.budget)
        return attrs.evolve(self, budget=first), attrs.evolve(self, budget=second)


@final
@attrs.frozen(eq=False)
class Released(Generic[V_co]):
    """Value that may be seen: computed from public and noised values only. Made by ``Session.release``.

    It guards against mistakes, not malice: a run's cost is stated by its session.
    """

    value: V_co
    events: tuple[Event, ...]


@final
@attrs.frozen(eq=False)
class TreeMetric:
    """Tree metric on a coreset's points: two points are as far apart as the diameter of the smallest node with both.

    Args:
        parents: (p,) with -1 at the root. Nodes 0 .. m - 1 are the points, the leaves of the tree; inner nodes follow.
        diameters: (p,) in the caller's units, none larger than its parent's.
    """

    parents: Ints
    diameters: Floats


@final
@attrs.frozen(eq=False)
class Leaves:
    """Buckets that a coreset's points stand for: levels (m,), and ids (m,) within their level."""

    levels: Ints
    ids: Ints


@final
@attrs.frozen(eq=False)
class Errors:
    """Standard errors of a coreset: of weights (m,) in rows, and of each coordinate of weight times point (m,)."""

    weights: Floats
    sums: Floats


@final
@attrs.frozen(eq=False)
class Coreset:
    """Weighted points that stand for the rows.

    Args:
        points: (m, d) in the caller's units.
        weights: (m,) in rows.
        tree: a metric over the points, if there is one.
        leaves: their buckets, if a tree grew them.
        errors: standard errors, for solvers that allow for noise.
        cells: lower and upper corners (m, 2, p) of the boxes that the points stand for, if they are boxes: for plots.
        frame: orthonormal directions (d, p) of the boxes, relative to the domain's middle; None: the columns (p = d).
    """

    points: Floats
    weights: Floats
    tree: TreeMetric | None = None
    leaves: Leaves | None = None
    errors: Errors | None = None
    cells: Floats | None = None
    frame: Floats | None = None


@final
@attrs.frozen(eq=False)
class Clustering:
    """Result of a method: released values only.

    Args:
        centers: (k, d) in the caller's units.
        weights: (k,) noisy rows per centre, if the method has them.
        details: other released figures, by name, for statements, plots and profiles. A profile reads ``weights_error``
            (k,) and ``centers_error`` (k, d), standard errors of the above; ``cells`` (m, 2, d), ``cell_weights`` and
            ``cell_errors`` (m,), boxes with noisy rows; or ``distances`` (``edges``, ``counts``, ``errors``), noisy
            rows by their distance from the nearest centre.
    """

    centers: Floats
    weights: Floats | None = None
    details: dict[str, Any] = attrs.field(factory=dict)
