"""Search for the least epsilon, and the least number of rows, for which a request predicts at most a target error.

Forecasts under many budgets, from public figures alone: no row is read and nothing is spent. Predicted errors fall with
epsilon and with rows, but for steps where ``auto`` takes another candidate, or zoom begins to pay. The bisection
therefore starts above the table's largest figure that misses the target, and ends within a hundredth; each reported
figure was itself forecast.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, final

import attrs

from cloister.core.capabilities import loss_upper_bound
from cloister.core.errors import CloisterError, InvalidInput
from cloister.rows.selection import Selection
from cloister.run.method_selection import PREDICTED
from cloister.run.request import Request, prepare
from cloister.run.warnings import before

EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
"""Epsilons of the table and the plot."""

ROWS = (0.25, 1.0, 4.0)
"""Numbers of rows of the table and the plot, as multiples of the request's."""

LEAST_EPSILON, MOST_EPSILON = 1e-3, 16.0
"""Range of the search for epsilon: above it, little is promised."""

MOST_ROWS = 2 * 10**9

STEPS = 1.01
"""Factor within which the bisection ends."""


@final
@attrs.frozen
class Forecast:
    """Predicted error, in parts of one centre's cost (None: no method can run or predict), by rows and epsilon."""

    rows: int
    epsilon: float
    error: float | None


@final
@attrs.frozen(eq=False)
class RequiredBudget:
    """Epsilon, and number of rows, that a target error requires.

    Args:
        error: the target, as a fraction of the cost of one centre at the middle of the bounds.
        asked: the request's own forecast.
        epsilon: the least for the request's rows; None: none up to ``MOST_EPSILON``.
        rows: the least for the request's epsilon; None: none up to ``MOST_ROWS``.
        table: forecasts for other rows and epsilons.
        warnings: of the request itself.
    """

    error: float
    asked: Forecast
    epsilon: Forecast | None
    rows: Forecast | None
    table: tuple[Forecast, ...]
    warnings: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Summary for people."""
        budget = f"no epsilon up to {MOST_EPSILON:g}" if self.epsilon is None else f"epsilon = {self.epsilon.epsilon:g}"
        rows = f"no number up to {MOST_ROWS:,}" if self.rows is None else f"{self.rows.rows:,}"
        exists = self.epsilon is not None or self.rows is not None
        numbers = sorted({forecast.rows for forecast in self.table})
        lines = [
            f"A predicted error of at most {self.error:g} of a single centre's cost takes {budget} with "
            f"{self.asked.rows:,} rows; with epsilon = {self.asked.epsilon:g} it takes {rows} rows."
            + (f" In nine data sets of ten at most {loss_upper_bound(self.error):.2g} is then lost." if exists else ""),
            "epsilon   " + "".join(f"{n:>14,} rows" for n in numbers),
        ]
        for epsilon in EPSILONS:
            row = (forecast for forecast in self.table if forecast.epsilon == epsilon)
            lines.append(f"{epsilon:<10g}" + "".join(f"{_shown(forecast.error):>19}" for forecast in row))
        lines += [f"WARNING: {text}." for text in self.warnings]
        return "\n".join([*lines, f"No row was read and nothing was spent. {PREDICTED}."])

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, for programs."""
        return attrs.asdict(self) | {"at_most": loss_upper_bound(self.error)}


def _enough(forecast: Forecast, error: float) -> bool:
    return forecast.error is not None and forecast.error <= error


def _shown(error: float | None) -> str:
    return "-" if error is None else f"{error:.3g}"


def needs(request: Request, columns: Sequence[str], error: float, chosen: Selection | None = None) -> RequiredBudget:
    """Return the budget and the rows that a target error requires; columns and chosen are as for ``explain``.

    Raises:
        InvalidInput: the error is not between 0 and 1, or the number of rows is not given; as ``prepare``, for the
            request itself.
    """
    if not 0 < error < 1:
        raise InvalidInput(f"error is {error}: give a part of a single centre's cost, between 0 and 1, such as 0.01")
    if request.rows is None:
        raise InvalidInput("no public number of rows: give --rows N (rows=N), a round figure of the right size")

    def at(rows: int, epsilon: float) -> Forecast:
        variant = attrs.evolve(request, rows=rows, epsilon=epsilon)
        with suppress(CloisterError):
            return Forecast(rows, epsilon, prepare(variant, columns, chosen_columns=chosen).error)
        return Forecast(rows, epsilon, None)

    plan = prepare(request, columns, chosen_columns=chosen)
    base = Forecast(request.rows, request.epsilon, plan.error)
    if base.error is None:
        raise InvalidInput(
            f"'{request.method.spec.name}' predicts no error: leave the method to auto, or name one that does"
        )
    fewest_rows = max(request.most, 2)
    table = tuple(at(max(fewest_rows, round(part * base.rows)), epsilon) for epsilon in EPSILONS for part in ROWS)
    poor = [forecast for forecast in (base, *table) if not _enough(forecast, error)]
    epsilons = [LEAST_EPSILON, *(forecast.epsilon for forecast in poor if forecast.rows == base.rows)]
    numbers = [fewest_rows, *(forecast.rows for forecast in poor if forecast.epsilon == base.epsilon)]
    return RequiredBudget(
        error,
        base,
        _least(lambda x: at(base.rows, _two_digits(x)), max(epsilons), MOST_EPSILON, error),
        _least(lambda x: at(round(_two_digits(x)), base.epsilon), max(numbers), MOST_ROWS, error),
        table,
        tuple(map(str, before(plan))),
    )


def _two_digits(x: float) -> float:
    """Return a number rounded up to two digits."""
    unit = 10.0 ** (math.floor(math.log10(x)) - 1)
    return float(f"{math.ceil(round(x / unit, 6)) * unit:.2g}")


def _least(at: Callable[[float], Forecast], low: float, high: float, error: float) -> Forecast | None:
    """Return the forecast at the least figure in the range that meets the target, by bisection, or None."""
    best = at(high)
    if not _enough(best, error):
        return None
    while high > low * STEPS:
        middle = math.sqrt(low * high)
        if _enough(candidate := at(middle), error):
            high, best = middle, candidate
        else:
            low = middle
    return best
