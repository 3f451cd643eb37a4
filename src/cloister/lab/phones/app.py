"""The demonstration's server: a collector, and beside it what the page and the simulated phones need.

What the server of the demonstration reads: in one report, and in all that have come.
"""

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


PAGE = Path(__file__).with_name("page")
SAFE = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""Headers that the page, and each of its files, are sent with: it can ask this server for anything, and nobody else."""


def client() -> Path:
    """The JavaScript client's modules: beside this file where cloister is installed, in the repository otherwise."""
    installed = Path(__file__).with_name("client")
    return installed if installed.is_dir() else Path(__file__).parents[4] / "clients" / "javascript" / "src"


@final
@attrs.frozen(eq=False)
class Demonstration:
    """What the page asks for. Args: people (how many are planned for), here (phones that the page itself simulates),
    numbers, crowd, reader, count (how many reports the collector has)."""

    people: int
    here: int
    numbers: Numbers
    crowd: SimulatedCrowd
    reader: Reader
    count: Callable[[], int]

    def routes(self) -> list[BaseRoute]:
        """To stand before the collector's own."""
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
        """The page itself."""
        from starlette.responses import FileResponse

        return FileResponse(PAGE / "index.html", headers=SAFE)

    def facts(self, request: Request) -> Response:
        """Facts that only a simulation can say."""
        return _json({"people": self.people, "here": self.here, "groups": GROUPS, "spread": SPREAD})

    def number(self, request: Request) -> Response:
        """A visitor's user number, given out blindly; null when there is none left."""
        return _json({"number": next(iter(self.numbers.take(1)), None)})

    def start(self, request: Request) -> Response:
        """Let the crowd report. The page that does so first gets the numbers of the phones that it simulates."""
        return _json({"numbers": self.numbers.take(self.here) if self.crowd.start() else []})

    def likely(self, request: Request) -> Response:
        """The server's reading of one report, which is given in hex."""
        try:
            report = bytes.fromhex(request.query_params.get("report", ""))
            return _json(self.reader.likely(report))
        except (ValueError, CloisterError) as error:
            return _json({"error": str(error)}, 400)

    def found(self, request: Request) -> Response:
        """The centres of all that have reported so far."""
        return _json(self.reader.found(self.count()))


def _json(values: Any, status: int = 200) -> Response:
    from starlette.responses import JSONResponse

    return JSONResponse(values, status, headers={"Cache-Control": "no-store"})
