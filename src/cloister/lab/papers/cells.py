"""Contents of a paper's tables: what is run for each figure, and claims with a verdict."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, final

import attrs

Options: TypeAlias = tuple[tuple[str, Any], ...]
"""Values of options and names of parts, by path."""


@final
@attrs.frozen
class PaperCell:
    """Figure of a table, the mean of some runs.

    Args:
        table: name of a ``PaperTable`` of the paper.
        panel: part of it, such as a data set.
        series: line of the plot, such as a method.
        x: position on the horizontal axis.
        data: recipe of the rows, as ``sets.data_of`` reads it.
        method: registry name, or what else the paper's ``measure`` knows.
        k: number of centres.
        epsilon: budget in nats; 0: none is spent.
        runs: number of runs.
        options: of the method.
    """

    table: str
    panel: str
    series: str
    x: float
    data: str
    method: str
    k: int
    epsilon: float
    runs: int
    options: Options = ()

    @property
    def place(self) -> tuple[str, str, str, float]:
        """Place in the paper's tables."""
        return self.table, self.panel, self.series, self.x


@final
@attrs.frozen
class PaperTable:
    """Table or figure of a paper.

    Args:
        name: as the paper calls it; API.
        caption: one sentence.
        x: label of the horizontal axis.
        quantity: label of the figures.
        logarithmic: axes that are, of "x", "y" and "xy".
        source: where its published figures are from; empty: there are none.
    """

    name: str
    caption: str
    x: str
    quantity: str
    logarithmic: str = ""
    source: str = ""


Verdict: TypeAlias = Literal["beaten", "met", "missed", "not measured"]


@final
@attrs.frozen
class Headline:
    """Claim of a paper beside what was measured.

    Args:
        claim: one sentence.
        published: the paper's figure, as text.
        ours: the measured one, as text.
        verdict: which of them is better.
    """

    claim: str
    published: str
    ours: str
    verdict: Verdict
