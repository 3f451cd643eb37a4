"""Plot of the predicted error against epsilon, with a line per number of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloister.run.required_budget import EPSILONS, RequiredBudget
from cloister.showing.frame import COLOURS, FAINT, GRID, MARKERS, frame, settings, write_text
from cloister.showing.plot_data import Heading

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Predicted error against privacy budget"


def figure_of(needs: RequiredBudget) -> Figure:
    """Return the figure, without a window or global state. Raises: MissingExtra."""
    with settings():
        figure, axes = frame(0.6)
        for number, rows in enumerate(sorted({entry.rows for entry in needs.table})):
            entries = [entry for entry in needs.table if entry.rows == rows and entry.error is not None]
            axes.plot(
                [entry.epsilon for entry in entries],
                [entry.error or 0.0 for entry in entries],
                label=f"{rows:,} rows",
                color=COLOURS[number],
                marker=MARKERS[number],
                markersize=5,
            )
        axes.axhline(needs.error, color=FAINT, linewidth=0.9, linestyle="--", label=f"target error {needs.error:g}")
        axes.set(
            xscale="log", yscale="log", xlabel="epsilon", ylabel="predicted error, as a fraction of the one-centre cost"
        )
        axes.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
        axes.minorticks_off()
        axes.grid(color=GRID, linewidth=0.6)
        heading = Heading(TITLE, "From public figures: no row was read, and no budget was spent", True)
        write_text(figure, heading, "On nine of ten data sets the error is at most four times the prediction.")
    return figure
