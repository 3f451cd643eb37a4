"""Histograms of described columns, per cluster and over all rows: as text and as a plot."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, Any, final

import attrs
import numpy as np

from cloister.core.errors import InvalidInput
from cloister.run.estimates import Estimate, distinct_texts
from cloister.run.layers.histograms import DescribedColumn, Descriptions, descriptions_of
from cloister.run.result import Result
from cloister.showing.frame import GRID, clean, frame, group_colour, printable, write_text
from cloister.showing.parallel import ABREAST, NAME, WIDE
from cloister.showing.plot_data import Heading

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMED = 3
"""Maximum number of a column's values in a text."""

COARSE = ", one of which has half of the rows or more (closer bounds would tell more)"
"""Note on a median and quartiles in one bin, where they are those of a uniform distribution."""

LINES = 4
"""Maximum number of lines for a column's values below the plot."""

DRAWN = 30
"""Maximum number of clusters drawn, the largest ones."""


def contents_of(descriptions: Descriptions, group: int) -> dict[str, str]:
    """Describe a cluster's rows, by column, with standard errors.

    A category is described by the values whose shares differ most from those of all rows, a number by its median and
    quartiles, with the width of the bins.
    """
    texts, telling = dict[str, str](), descriptions.telling(group)
    for column in descriptions.columns:
        if column.edges is None:
            clear = [i for described, i in telling if described is column and (i == 0 or len(column.labels) > 2)]
            texts[column.name] = ", ".join(_share(column, group, i) for i in clear[:NAMED]) or "as in all rows"
        else:
            all_rows = attrs.evolve(column, shares=column.whole[None], errors=column.whole_errors[None])
            low, middle, high = (_quantile(column, group, share) for share in (0.25, 0.5, 0.75))
            first, last = np.searchsorted(column.edges, [low.value, high.value])
            texts[column.name] = (
                f"median {middle.text}, quartiles {low.text} to {high.text} "
                f"(all rows {_quantile(all_rows, 0, 0.5).text}), "
                f"in bins of {column.edges[1] - column.edges[0]:.3g}{COARSE if first == last else ''}"
            )
    return texts


def _quantile(column: DescribedColumn, group: int, share: float) -> Estimate:
    return Estimate(column.quantile(group, share), column.quantile_error(group, share))


def _share(column: DescribedColumn, group: int, i: int) -> str:
    group_share = Estimate.of_share(float(column.shares[group, i]), float(column.errors[group, i]))
    overall_share = Estimate.of_share(float(column.whole[i]), float(column.whole_errors[i]))
    return f"{column.labels[i]} {group_share.text} (all rows {overall_share.text})"


@final
@attrs.frozen(eq=False)
class Histograms:
    """Histograms of each described column, with a row per cluster, the largest first.

    Args:
        heading: text above the plot.
        descriptions: shares of values, per cluster and over all rows.
        called: numbers of the clusters, with their names if they have any.
    """

    heading: Heading
    descriptions: Descriptions
    called: list[str]

    @classmethod
    def of(cls, result: Result) -> Histograms:
        """Return the histograms of a result. Raises: InvalidInput: it has none."""
        descriptions = descriptions_of(result)
        if descriptions is None:
            raise InvalidInput("this result has no histograms: fit with --describe")
        return cls(Heading.of(result, "What the clusters contain"), descriptions, result.called)

    def as_dict(self) -> dict[str, Any]:
        """Return the plot's facts as plain data."""
        return {"title": self.heading.title, **self.descriptions.as_dict()}

    def text(self) -> str:
        """Describe the plot in one line."""
        sizes, columns = self.descriptions.sizes, self.descriptions.columns
        return f"{len(sizes)} clusters over {len(columns)} columns, each with its own scale"


def histograms_figure(shown: Histograms, bare: bool) -> Figure:
    """Draw the shares of each cluster's rows over those of all rows."""
    columns, groups, labels = shown.descriptions.columns, np.argsort(-shown.descriptions.sizes)[:DRAWN], list[str]()
    figure, axes = frame(0.1 + 0.1 * len(groups), bare, WIDE)
    for j, column in enumerate(columns):
        x, tall = np.linspace(j, j + 0.9, len(column.labels) + 1), 0.85 / max(column.whole.max(), column.shares.max())
        for y, group in enumerate(groups):
            colour, heights = group_colour(int(group)), tall * column.shares[group] - y
            axes.stairs(tall * column.whole - y, x, baseline=-y, fill=True, color=GRID, label="all rows")
            axes.stairs(heights, x, baseline=-y, color=colour, linewidth=1.4, label="cluster")
        ends = (
            column.labels
            if column.edges is None
            else [" to ".join(distinct_texts([float(column.edges[0]), float(column.edges[-1])]))]
        )
        room = max(4, ABREAST // len(columns))
        values = wrap(printable(", ".join(ends)), room, max_lines=LINES, placeholder="...")
        labels.append("\n".join(clean(text, room) for text in (column.name, *values)))
    axes.set_xticks(np.arange(len(columns)) + 0.45, labels)
    axes.set_yticks(-np.arange(len(groups)), [clean(f"cluster {shown.called[group]}", NAME) for group in groups])
    axes.tick_params(length=0)
    write_text(figure, None if bare else shown.heading, shown.text())
    return figure
