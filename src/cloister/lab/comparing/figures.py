"""The figures of a comparison. **NOT private**: all are computed from the rows themselves."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any, final

import attrs

from cloister.lab.comparing.conditions import Conditions
from cloister.lab.comparing.study_file import NOTE
from cloister.metrics import Mean, mean_interval

REFERENCE, MIDPOINT, MEAN = "k-means++ of scikit-learn", "midpoint of the bounds", "mean of the rows"

BASELINES = {
    REFERENCE: "NOT private: the best of 10 starts",
    MIDPOINT: "no data: a single centre",
    MEAN: "NOT private: a single centre",
}


@final
@attrs.frozen
class Cell:
    """One contender under one budget.

    Args:
        label: the contender's text, or a rival's name.
        epsilon: nats.
        trust: the trust model by name; None: any, or a rival.
        private: whether its runs protect anybody.
        picked: the method that ``auto`` picked.
        asked: how many runs were wanted.
        nicv, seconds: of each finished run.
        refused: why there are no figures, if there are none.
        unclipped: NICV of the rows as they are, of each finished run; empty where none lies outside the bounds.
    """

    label: str
    epsilon: float
    trust: str | None
    private: bool
    picked: str | None
    asked: int
    nicv: tuple[float, ...] = ()
    seconds: tuple[float, ...] = ()
    refused: str | None = None
    unclipped: tuple[float, ...] = ()

    @property
    def mean_unclipped(self) -> float | None:
        """Mean NICV of the rows as they are; None where none lies outside the bounds."""
        return sum(self.unclipped) / len(self.unclipped) if self.unclipped else None

    @property
    def mean(self) -> Mean | None:
        """Mean NICV with its standard error; None without a finished run."""
        return mean_interval(self.nicv) if self.nicv else None

    @property
    def time(self) -> float | None:
        """Mean seconds of a run."""
        return sum(self.seconds) / len(self.seconds) if self.seconds else None


@attrs.frozen
class Figures:
    """The figures of a comparison. NOT private.

    NICV is the mean squared distance of the rows to the nearest centre, in the conditions' units of distance.

    Args: conditions, costs (NICV of what needs no run, by ``BASELINES``' names), cells (by budget, then contender).
    """

    conditions: Conditions
    costs: dict[str, float]
    cells: tuple[Cell, ...]

    def baseline(self, name: str) -> str:
        """What a cost without a run is: whether it is private, and of what. Bounds that were read off rows are not."""
        text = BASELINES[name]
        return text.replace("no data", "NOT private") if self.conditions.read else text

    @property
    def epsilons(self) -> tuple[float, ...]:
        """The budgets, in the order asked."""
        return tuple(dict.fromkeys(cell.epsilon for cell in self.cells))

    def at(self, epsilon: float) -> list[Cell]:
        """The cells of a budget."""
        return [cell for cell in self.cells if cell.epsilon == epsilon]

    def ratio(self, nicv: float) -> float | None:
        """A cost over non-private k-means++'s; None where that is 0."""
        return nicv / self.costs[REFERENCE] if self.costs[REFERENCE] > 0 else None

    def records(self) -> list[dict[str, Any]]:
        """A flat record per cell and baseline, for a data frame or CSV."""
        found = [_record(self, cell) for cell in self.cells]
        for epsilon in self.epsilons:
            for name, cost in self.costs.items():
                facts = {"epsilon": epsilon, "method": name, "nicv": cost, "ratio": self.ratio(cost)}
                found.append({**dict.fromkeys(found[0]), **facts, "note": self.baseline(name), "figures": NOTE})
        return found

    def as_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON, with every run's figures."""
        cells = [
            {**_record(self, cell), "all_nicv": list(cell.nicv), "all_seconds": list(cell.seconds)}
            for cell in self.cells
        ]
        return {
            "private": False,
            "note": NOTE,
            "conditions": self.conditions.as_dict(),
            "baselines": dict(self.costs),
            "cells": cells,
        }

    def csv(self) -> str:
        """The records as CSV."""
        import csv

        text, records = io.StringIO(newline=""), self.records()
        writer = csv.DictWriter(text, list(records[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)
        return text.getvalue()


def labels_of(cells: Sequence[Cell]) -> list[str]:
    """The contenders, in order."""
    return list(dict.fromkeys(cell.label for cell in cells))


def _record(study: Figures, cell: Cell) -> dict[str, Any]:
    mean = cell.mean
    error = None if mean is None or len(cell.nicv) < 2 else mean.standard_error
    return {
        "epsilon": cell.epsilon,
        "method": cell.label,
        "trust": cell.trust,
        "private": cell.private,
        "picked": cell.picked,
        "nicv": None if mean is None else mean.value,
        "standard_error": error,
        "unclipped_nicv": cell.mean_unclipped,
        "ratio": None if mean is None else study.ratio(mean.value),
        "runs": len(cell.nicv),
        "runs_asked": cell.asked,
        "seconds": cell.time,
        "note": cell.refused,
        "figures": NOTE,
    }
