"""Reproduction of a paper: all its runs, judged, as records for programs. **NOT private**."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, final

import attrs

from cloister.lab.papers.cells import Headline, PaperCell
from cloister.lab.papers.figures import Figures
from cloister.lab.papers.paper import Paper
from cloister.lab.papers.papers import paper_of
from cloister.lab.papers.published import published
from cloister.lab.papers.runs import KeptRuns, outcomes


@final
@attrs.frozen(eq=False)
class Reproduction:
    """Figures of a paper, ours beside the published ones.

    Args:
        paper: its protocol.
        quick: whether it was measured in the quick form.
        figures: of all runs that ended.
        seconds: mean duration of a run, by cell.
        skipped: reason by data set that is missing.
        refused: reason by method and data set that refused to run.
    """

    paper: Paper
    quick: bool
    figures: Figures
    seconds: dict[PaperCell, float]
    skipped: dict[str, str]
    refused: dict[str, str]

    @property
    def headlines(self) -> list[Headline]:
        """The paper's claims, judged."""
        return self.paper.headlines(self.figures)

    def records(self) -> list[dict[str, Any]]:
        """Return a flat record per figure, measured or published, for CSV and JSON."""
        places = {cell.place: cell for cell in self.figures.values}
        both = list(dict.fromkeys([*places, *self.figures.published]))
        return [self._record(place, places.get(place)) for place in both if self._shown(place)]

    def _shown(self, place: tuple[str, str, str, float]) -> bool:
        """Return False for published figures of panels without any measured one."""
        return any(cell.table == place[0] and cell.panel == place[1] for cell in self.figures.values)

    def _record(self, place: tuple[str, str, str, float], cell: PaperCell | None) -> dict[str, Any]:
        table, panel, series, x = place
        mean = None if cell is None else self.figures.mean(cell)
        stated = self.figures.published.get(place)
        single = cell is None or len(self.figures.values[cell]) < 2
        return {
            "paper": self.paper.name,
            "table": table,
            "panel": panel,
            "series": series,
            "x": x,
            "data": None if cell is None else cell.data,
            "method": None if cell is None else cell.method,
            "options": "" if cell is None else ":".join(f"{name}={value}" for name, value in cell.options),
            "k": None if cell is None else cell.k,
            "epsilon": None if cell is None else cell.epsilon,
            "quantity": self.paper.table(table).quantity,
            "ours": None if mean is None else mean.value,
            "standard_error": None if mean is None or single else mean.standard_error,
            "runs": 0 if cell is None else len(self.figures.values[cell]),
            "seconds": None if cell is None else self.seconds[cell],
            "published": None if stated is None else stated.value,
            "published_error": None if stated is None else stated.error,
            "source": None if stated is None else stated.source,
        }

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        return {
            "paper": self.paper.name,
            "title": self.paper.title,
            "quick": self.quick,
            "headlines": [attrs.asdict(headline) for headline in self.headlines],
            "figures": self.records(),
            "skipped": dict(self.skipped),
            "refused": dict(self.refused),
        }


def reproduce(
    name: str,
    *,
    quick: bool = False,
    workers: int = 1,
    kept: Path | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Reproduction:
    """Measure a paper's tables and figures by its protocol.

    Args:
        name: of the paper.
        quick: fewer sets, budgets and runs, in minutes.
        workers: number of processes, each on one core.
        kept: .jsonl file of finished runs, which are not made again.
        progress: called with the number of finished runs and of all runs.

    Raises:
        UnknownName: there is no such paper.
        InvalidInput: the file holds something else, is in use, or cannot be written.
        Damaged: a line of the file is not as it was written.
    """
    paper, file = paper_of(name), KeptRuns(kept)
    cells, skipped = _available(paper, quick)
    runs = [(cell, number) for cell in cells for number in range(cell.runs)]
    known = {run: outcome for run in runs if (outcome := file.get(run)) is not None}
    progress(len(known), len(runs))
    with closing(file):
        for run, outcome in outcomes(name, [run for run in runs if run not in known], workers):
            file.keep(run, outcome)
            known[run] = outcome
            progress(len(known), len(runs))
    values, seconds, refused = defaultdict[PaperCell, list[float]](list), dict[PaperCell, float](), dict[str, str]()
    for (cell, number), outcome in ((run, known[run]) for run in runs):
        if outcome.refused is not None:
            refused.setdefault(f"{cell.method} on {cell.data}", outcome.refused)
            continue
        values[cell].append(outcome.value)
        seconds[cell] = (seconds.get(cell, 0.0) * number + outcome.seconds) / (number + 1)
    return Reproduction(paper, quick, Figures(dict(values), published(name)), seconds, skipped, refused)


def _available(paper: Paper, quick: bool) -> tuple[Sequence[PaperCell], dict[str, str]]:
    """Return the cells whose rows can be had, and the reason by data set that cannot."""
    cells, reasons = list(dict.fromkeys(paper.cells(quick))), dict[str, str | None]()
    for cell in cells:
        if cell.data not in reasons:
            reasons[cell.data] = paper.missing(cell)
    return (
        [cell for cell in cells if reasons[cell.data] is None],
        {data: reason for data, reason in reasons.items() if reason is not None},
    )
