"""A small plan, reports under it, and collectors: in the process of the tests, and in processes of their own."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, final

import httpx
import numpy as np

from cloister.collection.plan import bundle_folder
from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.wire.answers import layout_of
from cloister.collection.wire.batches import BatchForm
from cloister.core.types import Ids
from tests.collection.plans import local_plan
from tests.waiting import PATIENCE

USERS, D = 10_000, 3
OCTETS = {"content-type": "application/octet-stream"}


def plan_in(folder: Path, **changes: Any) -> CollectionPlan:
    """A published plan of one round, which takes a collector no time to read (k-means would load scikit-learn)."""
    given = {"k": 2, "method": "tree-coreset-median", "trust": "local", "epsilon": 1.0, "rows": USERS}
    plan = local_plan(D, **{**given, **changes})
    bundle_folder.write(plan, folder, "in words")
    return plan


def form_of(plan: CollectionPlan, tickets: bool = False) -> BatchForm:
    """The form of the first round's reports."""
    return BatchForm(plan.hash, 1, layout_of(plan.round()).bytes, tickets)


def report(form: BatchForm, user: int, answer: int = 0) -> bytes:
    """One user's report."""
    return form.report(user, bytes([answer]) * form.width)


def batch(form: BatchForm, *users: int) -> bytes:
    """A batch of these users."""
    return form.batch(np.array(users, np.uint64), np.zeros((len(users), form.width), np.uint8))


def on_disk(out: Path, form: BatchForm) -> Ids:
    """User numbers in all files of a round, in order."""
    files = sorted(out.glob(f"round-{form.round:03}-*.reports"))
    found = [form.parse(path.read_bytes()) for path in files]
    assert all(one.error is None and not one.damaged and one.end == one.size for one in found)
    return np.concatenate([np.empty(0, np.uint64), *(one.users for one in found)])


SERVE = (sys.executable, "-m", "cloister", "serve", "plan", "--out", "reports", "--port", "0", "--json")


@final
class Process:
    """``cloister serve`` as a program of its own. Attributes: said (its lines), address, port, metrics (address of
    /metrics, if that is apart), stderr (once it has ended)."""

    def __init__(self, folder: Path, *options: str, command: Sequence[str] = SERVE) -> None:
        self._process = subprocess.Popen(
            [*command, *options], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.said, self.stderr = list[str](), ""
        event = self._listening()
        self.address, self.metrics = str(event["address"]), event.get("metrics")
        self.port = int(self.address.rpartition(":")[2])

    def _listening(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.said.append(line)
            event = json.loads(line)
            if event["event"] == "listening":
                return dict(event)
        raise AssertionError(f"it does not listen: {self._process.communicate()[1]}")

    @property
    def memory(self) -> float:
        """Most memory that it has had so far, MB."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024

    def send(self, by: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send_signal(by)

    def end(self, by: signal.Signals = signal.SIGTERM) -> int:
        """End it as one does; its exit code."""
        self.send(by)
        out, self.stderr = self._process.communicate(timeout=PATIENCE)
        self.said += out.splitlines(keepends=True)
        return self._process.returncode

    def kill(self) -> None:
        """kill -9, if it still runs."""
        if self._process.poll() is None:
            self.end(signal.SIGKILL)


@contextmanager
def collecting(folder: Path, *options: str, command: Sequence[str] = SERVE) -> Iterator[Process]:
    """A collector of ``folder/plan``, ended with the block if it still runs."""
    process = Process(folder, *options, command=command)
    try:
        yield process
    finally:
        process.kill()


@final
class Client:
    """Speaks to an application in the process of the tests, whose lifespan it runs. Args: app, client (the peer's
    address and port)."""

    def __init__(self, app: Any, client: tuple[str, int] = ("203.0.113.5", 4711)) -> None:
        self._app, self._runner = app, asyncio.Runner()
        transport = httpx.ASGITransport(app, client=client, raise_app_exceptions=False)
        self._client = httpx.AsyncClient(transport=transport, base_url="http://collector")

    def __enter__(self) -> Client:
        self._lifespan = self._app.router.lifespan_context(self._app)
        self._runner.run(self._lifespan.__aenter__())
        return self

    def __exit__(self, *error: Any) -> None:
        self._runner.run(self._client.aclose())
        self._runner.run(self._lifespan.__aexit__(None, None, None))
        self._runner.close()

    def request(self, method: str, path: str, **settings: Any) -> httpx.Response:
        """One request."""
        return self._runner.run(self._client.request(method, path, **settings))

    def get(self, path: str, **settings: Any) -> httpx.Response:
        """The answer to a GET."""
        return self.request("GET", path, **settings)

    def wait(self, seconds: float) -> None:
        """Let the application run."""
        self._runner.run(asyncio.sleep(seconds))

    def send(self, body: bytes, **headers: str) -> tuple[int, dict[str, Any]]:
        """Status and JSON of the answer to reports."""
        found = self.request("POST", "/reports", content=body, headers={**OCTETS, **headers})
        return found.status_code, found.json()

    def refused(self, reason: str) -> int:
        """How often something was refused for a reason."""
        return refused_in(self.get("/metrics").text, reason)


def refused_in(metrics: str, reason: str) -> int:
    """How often something was refused for a reason, as the metrics have it."""
    return int(metrics.partition(f'refused_total{{reason="{reason}"}} ')[2].split()[0])


def post(address: str, body: bytes, **headers: str) -> httpx.Response:
    """Send what is to be a report."""
    return httpx.post(f"{address}/reports", content=body, headers={**OCTETS, **headers}, timeout=PATIENCE)
