"""Reader of the demonstration's reports, one by one and all together."""

from __future__ import annotations

import math
from pathlib import Path
from threading import Lock
from typing import Any, final

import numpy as np

from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.server.aggregator import decode
from cloister.collection.wire.answers import layout_of
from cloister.collection.wire.batches import form_of
from cloister.core.errors import InvalidInput
from cloister.core.randomness import NoiseRng


@final
class Reader:
    """Reader of reports under a plan whose one question is a count on a grid.

    Its answers are post-processing of reports, which are public: asking often costs no budget.

    Args:
        plan: of the collection.
        folder: where the collector stores the reports.
    """

    def __init__(self, plan: CollectionPlan, folder: Path) -> None:
        self._plan, self._folder = plan, folder
        self._round = plan.round()
        self._form = form_of(plan.hash, self._round)
        self._least = math.ceil(plan.rows * plan.outlook.error) if plan.outlook is not None else 1
        self._latest: dict[str, Any] = {"reports": 0, "centers": []}
        self._lock = Lock()

    def likely(self, report: bytes) -> dict[str, Any]:
        """Return the cells of the grid in which a report is likelier than elsewhere, and how many times.

        This is all that a report reveals about its sender.

        Args: report (its bytes).

        Returns:
            ``cells``: pairs of steps along the columns; ``side``: steps per column; ``times``: the likelihood ratio.

        Raises: CloisterError: the bytes are no report of this round that a phone could have sent.
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
        """Return the centres of at least so many reports, decoded anew if there are more than last time. Thread-safe.

        There are no centres yet if one centre would be as good.
        """
        if reports < self._least:
            return {"reports": reports, "centers": []}
        with self._lock:
            if reports > self._latest["reports"]:
                done = decode(self._plan, self._folder)
                self._latest = {"reports": done.intake.accepted, "centers": done.result.centers.tolist()}
            return self._latest
