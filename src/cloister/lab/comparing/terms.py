"""Terms of a comparison: the arguments that all of its runs share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, final

import attrs

from cloister.core.registry.components import own_number
from cloister.core.trust import trust_named
from cloister.run.layers.warm_start import Start

READ = "rows"
"""Value of ``bounds`` for each column's minimum and maximum in the rows: for comparisons alone (law 1)."""


def _start_of(start: Any) -> Start | None:
    return None if start is None else Start.of(start)


@final
@attrs.frozen(kw_only=True)
class Terms:
    """Arguments that all runs of a comparison share, as in a fit.

    Args:
        k: number of centres, or a range for methods that can choose. Rivals and the reference use the largest.
        bounds: as in a fit (runs find unknown ones), or 'rows': each column's minimum and maximum in these rows. Costs
            are of rows clipped to the bounds, as in a run; unclipped ones are reported too if they differ.
        delta: 'auto': 1 / (n ln n) of the public number of rows.
        public_rows: number of rows stated to the runs; None: the true one.
        scale: units of distance, as in a fit and for all costs.
        rows_per_user: as in a fit, for rows with ``users``. Rivals read all rows, and costs are of all rows.
        zoom: as in a fit, for all contenders.
        trust: as in a fit, for all contenders without a trust model of their own.
        start: public centres, as in a fit. A result also gives bounds if none are stated.

    Raises:
        CloisterError: there is no such trust model, or the start cannot be read.
    """

    k: int | tuple[int, int] | str
    bounds: Any = READ
    delta: float | Literal["auto"] = "auto"
    public_rows: int | None = None
    scale: Any = None
    rows_per_user: int | None = None
    zoom: Any = attrs.field(default="auto", converter=own_number)
    trust: str | None = attrs.field(default=None, converter=trust_named)
    start: Start | None = attrs.field(default=None, converter=_start_of)

    def bounds_of(self, columns: Sequence[str]) -> Any:
        """Return the stated bounds, or if there are none those of the result that the runs start from."""
        if self.start is not None and self.start.result is not None and is_read(self.bounds):
            return self.start.bounds(columns, narrowed=False)
        return self.bounds


def is_read(bounds: Any) -> bool:
    """Return True if bounds are to be read off the rows."""
    return isinstance(bounds, str) and bounds.strip() == READ
