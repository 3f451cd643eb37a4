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
from cloister.collection.service.app import CONTENT, create_app
from cloister.collection.service.running import listening, serve
from cloister.lab.phones.app import Demonstration, Reader
from cloister.lab.phones.crowd import Numbers, SimulatedCrowd, plan_of

if TYPE_CHECKING:
    from starlette.applications import Starlette

HOST = "127.0.0.1"
"""The page is for this machine alone."""


@final
@attrs.frozen
class Scale:
    """How large a demonstration is. Args: people (planned), here (of them, simulated by the page), visitors (numbers
    that are kept for people who open the page), seconds (that the others take to report)."""

    people: int = 100_000
    here: int = 1_000
    visitors: int = 100
    seconds: float = 40.0


@contextmanager
def demonstration(epsilon: float, url: str, size: Scale = Scale()) -> Iterator[Starlette]:
    """The application, to be run at this address as the collector's are. All its files are removed in the end.

    Raises: CloisterError: no plan has this epsilon, or starlette is not installed.
    """
    plan, numbers = plan_of(size.people, epsilon), Numbers(size.people)
    crowd = SimulatedCrowd(
        plan,
        numbers,
        size.people - size.here - size.visitors,
        lambda batch: send(f"{url}/reports", batch),
        size.seconds,
    )
    with TemporaryDirectory(prefix="cloister-phones-") as folder:
        published, reports = Path(folder, "plan"), Path(folder, "reports")
        bundle_folder.write(plan, published, words(plan, plan.rounds()))
        app = create_app(published, reports)
        desk, reader = app.state.collector, Reader(plan, reports)
        pages = Demonstration(size.people, size.here, numbers, crowd, reader, lambda: desk.reports)
        app.router.routes[:0] = pages.routes()
        try:
            yield app
        finally:
            crowd.stop()


def send(url: str, batch: bytes) -> None:
    """Send reports. Raises: OSError: no collector is there, or it does not take them."""
    with urlopen(Request(url, batch, {"Content-Type": CONTENT}, method="POST"), timeout=60) as answer:
        answer.read()


def run(epsilon: float, port: int, started: Callable[[str], None]) -> None:
    """Run until Ctrl-C. Args: port (0: any that is free), started (called with the page's address)."""
    with listening(HOST, port) as listener:
        url = f"http://{HOST}:{listener.getsockname()[1]}"
        with demonstration(epsilon, url) as app:
            serve(app, listener, started=lambda address: started(f"{address}/"))
