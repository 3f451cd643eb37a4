"""The demonstration as a whole: a plan in a folder of its own, a collector with the page beside it, and a crowd."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, final
from urllib.request import Request, urlopen

import attrs

from cloister.collection.plan import bundle_folder
from cloister.collection.plan.publish import words
from cloister.collection.service.app import CONTENT, collector
from cloister.collection.service.running import serve
from cloister.phones.app import Demonstration
from cloister.phones.crowd import Crowd
from cloister.phones.people import Numbers, plan_of
from cloister.phones.reading import Reader

if TYPE_CHECKING:
    from starlette.applications import Starlette


@final
@attrs.frozen
class Scale:
    """How large a demonstration is. Args: people (planned), here (of them, simulated by the page), visitors (numbers
    that are kept for people who open the page), seconds (that the others take to report)."""

    people: int = 100_000
    here: int = 1_000
    visitors: int = 100
    seconds: float = 40.0


@final
class Address:
    """Where the collector is, once it runs; the crowd sends its batches there."""

    def __init__(self) -> None:
        self.url = ""

    def send(self, batch: bytes) -> None:
        """Raises: OSError: the collector is not there, or does not take the batch."""
        request = Request(f"{self.url}/reports", batch, {"Content-Type": CONTENT}, method="POST")
        with urlopen(request, timeout=60) as answer:
            answer.read()


@contextmanager
def demonstration(epsilon: float, size: Scale = Scale()) -> Iterator[tuple[Starlette, Address]]:
    """The application, to be run as the collector's are, and where to write its address once it is up. All its files
    are removed in the end.

    Raises: CloisterError: no plan has this epsilon, or starlette is not installed.
    """
    plan, numbers, address = plan_of(size.people, epsilon), Numbers(size.people), Address()
    crowd = Crowd(plan, numbers, size.people - size.here - size.visitors, address.send, size.seconds)
    with TemporaryDirectory(prefix="cloister-phones-") as folder:
        published, reports = Path(folder, "plan"), Path(folder, "reports")
        bundle_folder.write(plan, published, words(plan, plan.rounds()))
        app = collector(published, reports)
        desk, reader = app.state.desk, Reader(plan, reports)
        pages = Demonstration(size.people, size.here, numbers, crowd, reader, lambda: desk.reports)
        app.router.routes[:0] = pages.routes()
        try:
            yield app, address
        finally:
            crowd.stop()


def run(epsilon: float, port: int, started: Callable[[str], None]) -> None:
    """Run until Ctrl-C. Args: port (0: any that is free), started (called with the page's address)."""
    with demonstration(epsilon) as (app, address):

        def up(url: str) -> None:
            address.url = url
            started(f"{url}/")

        serve(app, port=port, started=up)
