"""Descriptions of groups in words, and as one picture: what the rows of each hold, beside all rows."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, Any, final

import attrs
import numpy as np

from cloister.core.errors import InvalidInput
from cloister.run.estimates import Estimate, told_apart
from cloister.run.layers.histograms import DescribedColumn, Descriptions, descriptions_of
from cloister.run.result import Result
from cloister.showing.frame import GRID, clean, frame, group_colour, printable, words
from cloister.showing.lines import ABREAST, NAME, WIDE
from cloister.showing.plot_data import Heading

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMED = 3
"""Most values of a column that are named."""

COARSE = ", of which one holds half of the rows or more (closer bounds would tell more)"
"""Words on median and quartiles within one part of a range, which are then those of rows spread evenly over it."""

LINES = 4
"""Most lines that a column's values take below a picture."""

DRAWN = 30
"""Most groups that are drawn: the largest."""


def held(told: Descriptions, group: int) -> dict[str, str]:
    """Words on what a group holds, by column: of categories the values whose shares differ most from all rows', with
    their standard errors; of numbers the median and the quartiles, with theirs, and how fine these can be."""
    found, telling = dict[str, str](), told.telling(group)
    for each in told.columns:
        if each.edges is None:
            clear = [i for column, i in telling if column is each and (i == 0 or len(each.labels) > 2)]
            found[each.name] = ", ".join(_share(each, group, i) for i in clear[:NAMED]) or "as in all rows"
        else:
            whole = attrs.evolve(each, shares=each.whole[None], errors=each.whole_errors[None])
            low, middle, high = (_quantile(each, group, share) for share in (0.25, 0.5, 0.75))
            first, last = np.searchsorted(each.edges, [low.value, high.value])
            found[each.name] = (
                f"median {middle.text}, quartiles {low.text} to {high.text} "
                f"(all rows {_quantile(whole, 0, 0.5).text}), "
                f"told by parts of {each.edges[1] - each.edges[0]:.3g}{COARSE if first == last else ''}"
            )
    return found


def _quantile(column: DescribedColumn, group: int, share: float) -> Estimate:
    return Estimate(column.quantile(group, share), column.quantile_error(group, share))


def _share(column: DescribedColumn, group: int, i: int) -> str:
    own = Estimate.of_share(float(column.shares[group, i]), float(column.errors[group, i]))
    whole = Estimate.of_share(float(column.whole[i]), float(column.whole_errors[i]))
    return f"{column.labels[i]} {own.text} (all rows {whole.text})"


@final
@attrs.frozen(eq=False)
class Histograms:
    """A row per group, the largest first, and a histogram per described column. Args: heading, told, called (names of
    the groups)."""

    heading: Heading
    told: Descriptions
    called: list[str]

    @classmethod
    def of(cls, result: Result) -> Histograms:
        """Those of a result. Raises: InvalidInput: its groups are not described."""
        told = descriptions_of(result)
        if told is None:
            raise InvalidInput("this result does not describe its groups: fit with --describe")
        return cls(Heading.of(result, "What the groups hold"), told, result.called)

    def as_dict(self) -> dict[str, Any]:
        """The picture's numbers as plain data."""
        return {"title": self.heading.title, **self.told.as_dict()}

    def text(self) -> str:
        """The picture in one line, for people."""
        return f"{len(self.told.sizes)} groups over {len(self.told.columns)} columns, each with a scale of its own"


def histograms_figure(shown: Histograms, bare: bool) -> Figure:
    """Draw shares of each group's rows over those of all rows."""
    columns, groups, labels = shown.told.columns, np.argsort(-shown.told.sizes)[:DRAWN], list[str]()
    figure, axes = frame(0.1 + 0.1 * len(groups), bare, WIDE)
    for j, each in enumerate(columns):
        x, tall = np.linspace(j, j + 0.9, len(each.labels) + 1), 0.85 / max(each.whole.max(), each.shares.max())
        for y, group in enumerate(groups):
            colour, own = group_colour(int(group)), tall * each.shares[group] - y
            axes.stairs(tall * each.whole - y, x, baseline=-y, fill=True, color=GRID, label="of all rows")
            axes.stairs(own, x, baseline=-y, color=colour, linewidth=1.4, label="of the group")
        ends = (
            each.labels
            if each.edges is None
            else [" to ".join(told_apart([float(each.edges[0]), float(each.edges[-1])]))]
        )
        room = max(4, ABREAST // len(columns))
        values = wrap(printable(", ".join(ends)), room, max_lines=LINES, placeholder="...")
        labels.append("\n".join(clean(text, room) for text in (each.name, *values)))
    axes.set_xticks(np.arange(len(columns)) + 0.45, labels)
    axes.set_yticks(-np.arange(len(groups)), [clean(f"cluster {shown.called[group]}", NAME) for group in groups])
    axes.tick_params(length=0)
    words(figure, None if bare else shown.heading, shown.text())
    return figure
