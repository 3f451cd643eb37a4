"""The demonstration's server: a collector, and beside it what the page and the simulated phones need."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import attrs

from cloister.core.errors import CloisterError
from cloister.phones.crowd import SimulatedCrowd
from cloister.phones.people import GROUPS, SPREAD, Numbers
from cloister.phones.reading import Reader

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
"""What the page is sent with: it can ask this server for anything, and nobody else."""


def client() -> Path:
    """The JavaScript client's modules: beside this file where cloister is installed, in the repository otherwise."""
    installed = Path(__file__).with_name("client")
    return installed if installed.is_dir() else Path(__file__).parents[3] / "clients" / "javascript" / "src"


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

        return [
            Route("/", self.page),
            Route("/demo/facts", self.facts),
            Route("/demo/number", self.number, methods=["POST"]),
            Route("/demo/start", self.start, methods=["POST"]),
            Route("/demo/likely", self.likely),
            Route("/demo/found", self.found),
            Mount("/client", StaticFiles(directory=client())),
            Mount("/page", StaticFiles(directory=PAGE)),
        ]

    def page(self, request: Request) -> Response:
        """The page itself."""
        from starlette.responses import FileResponse

        return FileResponse(PAGE / "index.html", headers=SAFE)

    def facts(self, request: Request) -> Response:
        """What only a simulation can say."""
        return _json({"people": self.people, "here": self.here, "groups": GROUPS, "spread": SPREAD})

    def number(self, request: Request) -> Response:
        """A visitor's user number, given out blindly; null when there is none left."""
        return _json({"number": next(iter(self.numbers.take(1)), None)})

    def start(self, request: Request) -> Response:
        """Let the crowd report. The page that does so first gets the numbers of the phones that it simulates."""
        return _json({"numbers": self.numbers.take(self.here) if self.crowd.start() else []})

    def likely(self, request: Request) -> Response:
        """What the server reads in one report, which is given in hex."""
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
