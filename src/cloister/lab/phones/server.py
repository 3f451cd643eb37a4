"""Server of the demonstration: a plan and reports in a temporary folder, a collector, the page and a crowd."""

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
from cloister.lab.phones.app import Demonstration
from cloister.lab.phones.crowd import Numbers, SimulatedCrowd, plan_of
from cloister.lab.phones.reader import Reader

if TYPE_CHECKING:
    from starlette.applications import Starlette

HOST = "127.0.0.1"
"""Address of the server: this machine only."""


@final
@attrs.frozen
class Scale:
    """Size of a demonstration.

    Args:
        people: planned number of people.
        here: number of them that the page simulates.
        visitors: user numbers reserved for people who open the page.
        seconds: until all others have reported.
    """

    people: int = 100_000
    here: int = 1_000
    visitors: int = 100
    seconds: float = 40.0


@contextmanager
def demonstration(epsilon: float, url: str, size: Scale = Scale()) -> Iterator[Starlette]:
    """Yield the application to serve at an address. Its files are removed at the end.

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
        collector, reader = app.state.collector, Reader(plan, reports)
        pages = Demonstration(size.people, size.here, numbers, crowd, reader, lambda: collector.reports)
        app.router.routes[:0] = pages.routes()
        try:
            yield app
        finally:
            crowd.stop()


def send(url: str, batch: bytes) -> None:
    """Send reports to a collector. Raises: OSError: it is not there, or rejects them."""
    with urlopen(Request(url, batch, {"Content-Type": CONTENT}, method="POST"), timeout=60) as answer:
        answer.read()


def run(epsilon: float, port: int, started: Callable[[str], None]) -> None:
    """Serve until Ctrl-C. Args: epsilon, port (0: a free one), started (called with the page's address)."""
    with listening(HOST, port) as listener:
        url = f"http://{HOST}:{listener.getsockname()[1]}"
        with demonstration(epsilon, url) as app:
            serve(app, listener, started=lambda address: started(f"{address}/"))
