"""Routes of the demonstration's page, which stand beside those of the collector."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, final

import attrs
import numpy as np

from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.server.aggregator import decode
from cloister.collection.wire.answers import layout_of
from cloister.collection.wire.batches import form_of
from cloister.core.errors import CloisterError, InvalidInput
from cloister.core.randomness import NoiseRng
from cloister.lab.phones.crowd import GROUPS, SPREAD, Numbers, SimulatedCrowd

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute


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


PAGE = Path(__file__).with_name("page")
SAFE = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""Headers of the page and its files: they may send requests to this server only."""


def client() -> Path:
    """Return the folder of the JavaScript client: beside this file if installed, or else in the repository."""
    installed = Path(__file__).with_name("client")
    return installed if installed.is_dir() else Path(__file__).parents[4] / "clients" / "javascript" / "src"


@final
@attrs.frozen(eq=False)
class Demonstration:
    """Handlers of the page's requests.

    Args:
        people: planned number of people.
        here: number of phones that the page simulates.
        numbers: user numbers to hand out.
        crowd: phones that the server simulates.
        reader: of the reports.
        count: returns the number of reports that the collector has.
    """

    people: int
    here: int
    numbers: Numbers
    crowd: SimulatedCrowd
    reader: Reader
    count: Callable[[], int]

    def routes(self) -> list[BaseRoute]:
        """Return the routes, which come before the collector's."""
        from starlette.routing import Mount, Route
        from starlette.staticfiles import StaticFiles

        class Files(StaticFiles):
            def file_response(self, *args: Any, **named: Any) -> Response:
                answer = super().file_response(*args, **named)
                answer.headers.update(SAFE)
                return answer

        return [
            Route("/", self.page),
            Route("/demo/facts", self.facts),
            Route("/demo/number", self.number, methods=["POST"]),
            Route("/demo/start", self.start, methods=["POST"]),
            Route("/demo/likely", self.likely),
            Route("/demo/found", self.found),
            Mount("/client", Files(directory=client())),
            Mount("/page", Files(directory=PAGE)),
        ]

    def page(self, request: Request) -> Response:
        """Return the page."""
        from starlette.responses import FileResponse

        return FileResponse(PAGE / "index.html", headers=SAFE)

    def facts(self, request: Request) -> Response:
        """Return what only a simulation knows: the true groups, and the numbers of phones."""
        return _json({"people": self.people, "here": self.here, "groups": GROUPS, "spread": SPREAD})

    def number(self, request: Request) -> Response:
        """Return a random user number for a visitor, or null if none is left."""
        return _json({"number": next(iter(self.numbers.take(1)), None)})

    def start(self, request: Request) -> Response:
        """Start the crowd. The first page to do so gets the user numbers of the phones that it simulates."""
        return _json({"numbers": self.numbers.take(self.here) if self.crowd.start() else []})

    def likely(self, request: Request) -> Response:
        """Return what the server reads in one report, given in hex."""
        try:
            report = bytes.fromhex(request.query_params.get("report", ""))
            return _json(self.reader.likely(report))
        except (ValueError, CloisterError) as error:
            return _json({"error": str(error)}, 400)

    def found(self, request: Request) -> Response:
        """Return the centres of all reports so far."""
        return _json(self.reader.found(self.count()))


def _json(values: Any, status: int = 200) -> Response:
    from starlette.responses import JSONResponse

    return JSONResponse(values, status, headers={"Cache-Control": "no-store"})
