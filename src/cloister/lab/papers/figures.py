"""Measured figures beside the published ones: means, ratios and verdicts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, final

import attrs
import numpy as np

from cloister.lab.papers.cells import Headline, PaperCell, Verdict
from cloister.lab.papers.published import Place, Published
from cloister.metrics import Mean, mean_interval

CLOSE = 0.05
"""Difference within which a ratio counts as met."""


@final
@attrs.frozen(eq=False)
class Figures:
    """Figures of a paper.

    Args:
        values: of each finished run, by cell.
        published: by place.
    """

    values: Mapping[PaperCell, Sequence[float]]
    published: Mapping[Place, Published]

    def mean(self, cell: PaperCell) -> Mean | None:
        """Return the mean of a cell's runs; None without one."""
        runs = self.values.get(cell)
        return mean_interval(runs) if runs else None

    def of(self, table: str, series: str) -> dict[tuple[str, float], Mean]:
        """Return the measured means of a line by panel and x."""
        cells = [cell for cell in self.values if (cell.table, cell.series) == (table, series)]
        means = {(cell.panel, cell.x): self.mean(cell) for cell in cells}
        return {place: mean for place, mean in means.items() if mean is not None}

    def stated(self, table: str, series: str) -> dict[tuple[str, float], Published]:
        """Return the published figures of a line by panel and x."""
        return {(p, x): value for (t, p, s, x), value in self.published.items() if (t, s) == (table, series)}

    def against(self, claim: str, table: str, series: str, rival: str) -> Headline:
        """Judge a measured line against a published one, by the geometric mean of their ratios."""
        ours, theirs = self.of(table, series), self.stated(table, rival)
        return judged(claim, {place: (ours[place].value, theirs[place].value) for place in ours if place in theirs})

    def between(self, claim: str, table: str, series: str, rival: str) -> Headline:
        """Judge a measured line against another measured one."""
        ours, theirs = self.of(table, series), self.of(table, rival)
        return judged(claim, {place: (ours[place].value, theirs[place].value) for place in ours if place in theirs})


def judged(claim: str, pairs: Mapping[tuple[str, float], tuple[float, float]]) -> Headline:
    """Judge pairs of our figure and another one, of which the lower is the better."""
    logs = [math.log(ours / theirs) for ours, theirs in pairs.values() if ours > 0 and theirs > 0]
    if not logs:
        return Headline(claim, "", "no figure", "not measured")
    ratio, better = math.exp(float(np.mean(logs))), sum(one < 0 for one in logs)
    text = f"{ratio:.3g} times, lower in {better} of {len(logs)}"
    return Headline(claim, "1", text, verdict(ratio))


def verdict(ratio: float) -> Verdict:
    """Judge a ratio of costs, ours over another one."""
    if ratio < 1 - CLOSE:
        return "beaten"
    return "met" if ratio <= 1 + CLOSE else "missed"


def slope(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Fit log y against log x: return the slope and half its 95% interval of Student's t (inf: two points)."""
    from scipy.stats import linregress, t

    x, y = np.log(np.array(points)).T
    fitted: Any = linregress(x, y)
    half = float(t.ppf(0.975, len(x) - 2)) * float(fitted.stderr) if len(x) > 2 else math.inf
    return float(fitted.slope), half
