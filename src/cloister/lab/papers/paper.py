"""Protocol of a paper, as each paper's module declares it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import final

import attrs

from cloister.lab.papers.cells import Headline, PaperCell, PaperTable
from cloister.lab.papers.figures import Figures


@final
@attrs.frozen
class Paper:
    """Protocol of a paper.

    Args:
        name: on the command line; API.
        title: authors, title, year.
        protocol: data sets, parameters and what is compared, in a few sentences.
        tables: in the paper's order.
        cells: returns all figures; of True those of the quick form.
        measure: returns the figure of one run, by its number from 0.
        headlines: returns the claims, judged.
        missing: returns why a cell's rows cannot be had, or None.
    """

    name: str
    title: str
    protocol: str
    tables: tuple[PaperTable, ...]
    cells: Callable[[bool], Iterable[PaperCell]]
    measure: Callable[[PaperCell, int], float]
    headlines: Callable[[Figures], list[Headline]]
    missing: Callable[[PaperCell], str | None]

    def table(self, name: str) -> PaperTable:
        """Return the table of a name."""
        return next(table for table in self.tables if table.name == name)
