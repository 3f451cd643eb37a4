"""What the server of the demonstration reads: in one report, and in all that have come."""

from __future__ import annotations

import math
from pathlib import Path
from threading import Lock
from typing import Any, final

import numpy as np

from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.server.aggregator import decode
from cloister.collection.wire.answers import form_of, layout_of
from cloister.core.errors import InvalidInput
from cloister.core.randomness import NoiseRng


@final
class Reader:
    """Reads reports under a plan whose one question is a count on a grid. Everything it says is computed from reports,
    which anybody may see: asking often costs nobody anything.

    Args: plan, folder (where the collector keeps the reports).
    """

    def __init__(self, plan: CollectionPlan, folder: Path) -> None:
        self._plan, self._folder = plan, folder
        self._round = plan.round()
        self._form = form_of(plan.hash, self._round)
        self._least = math.ceil(plan.rows * plan.outlook.error) if plan.outlook is not None else 1
        self._latest: dict[str, Any] = {"reports": 0, "centers": []}
        self._lock = Lock()

    def likely(self, report: bytes) -> dict[str, Any]:
        """The cells of the grid, as pairs of steps along the columns, from which this very report is the likelier one,
        and how many times: the whole of what it says about its person.

        Raises: CloisterError: these bytes are no report of this round that a phone could have sent.
        """
        parsed = self._form.parse(report)
        if len(parsed.users) != 1 or parsed.end != len(report):
            raise InvalidInput("these bytes are not one report of this plan")
        (part,) = self._round.parts
        (counted,) = layout_of(self._round).reports(parsed.users, parsed.answers)
        table: Any = part.channel.decode(part.channel.absorb(counted), NoiseRng.secret())
        tree: Any = part.cells
        values = table.at(np.arange(tree.side**2))
        steps = np.divmod(np.flatnonzero(values > values.mean()), tree.side)
        return {"cells": np.transpose(steps).tolist(), "side": tree.side, "times": math.exp(self._plan.total.epsilon)}

    def found(self, reports: int) -> dict[str, Any]:
        """The centres, of so many reports or more: decoded anew where there are more than the last time. No centres of
        so few that one centre would be as good. For any thread."""
        if reports < self._least:
            return {"reports": reports, "centers": []}
        with self._lock:
            if reports > self._latest["reports"]:
                done = decode(self._plan, self._folder)
                self._latest = {"reports": done.intake.accepted, "centers": done.result.centers.tolist()}
            return self._latest
