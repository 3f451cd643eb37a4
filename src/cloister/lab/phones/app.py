"""Routes of the demonstration's page, which stand beside those of the collector."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import attrs

from cloister.core.errors import CloisterError
from cloister.lab.phones.crowd import GROUPS, SPREAD, Numbers, SimulatedCrowd
from cloister.lab.phones.reader import Reader

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute


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
