"""A demonstration on a port of its own, in a thread, with every request that reaches it written down."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Thread
from typing import Any

import attrs
import numpy as np

from cloister.lab.phones.server import Scale, demonstration
from tests.waiting import PATIENCE

SMALL = Scale(people=4_000, here=60, visitors=10, seconds=2.0)


@attrs.frozen
class Asked:
    """A request. Args: path (with its query), headers, body."""

    path: str
    headers: bytes
    body: bytes

    @property
    def everything(self) -> bytes:
        return self.path.encode() + b"\n" + self.headers + b"\n" + self.body


class Recorder:
    """An application that writes down what it is asked, and hands it on. Attributes: asked, changed (what it answers
    itself, by path: functions of the true body)."""

    def __init__(self, app: Any) -> None:
        self._app, self.asked = app, list[Asked]()
        self.changed = dict[str, Callable[[bytes], bytes]]()

    def of(self, path: str) -> list[Asked]:
        return [asked for asked in self.asked if asked.path.partition("?")[0] == path]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = bytearray()

        async def receiving() -> Any:
            message = await receive()
            body.extend(message.get("body", b""))
            return message

        change = self.changed.get(scope["path"], bytes)

        async def sending(message: Any) -> None:
            await send({**message, "body": change(message["body"])} if message.get("body") else message)

        try:
            await self._app(scope, receiving, sending)
        finally:
            query = scope["query_string"].decode()
            own = [pair for pair in scope["headers"] if pair[0] != b"user-agent"]  # versions look like a row's numbers
            headers = b"\n".join(name + b": " + value for name, value in own)
            self.asked.append(Asked(f"{scope['path']}{'?' if query else ''}{query}", headers, bytes(body)))


@contextmanager
def serving(epsilon: float = 2.0, size: Scale = SMALL) -> Iterator[tuple[str, Recorder]]:
    """A running demonstration: its address without a slash, and what it was asked."""
    import uvicorn

    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with demonstration(epsilon, url, size) as app:
            recorder = Recorder(app)
            config = uvicorn.Config(recorder, log_config=None, access_log=False, ws="none", lifespan="on")
            server = uvicorn.Server(config)
            thread = Thread(target=server.run, kwargs={"sockets": [listener]})
            thread.start()
            while not server.started:
                assert thread.is_alive()
                time.sleep(0.01)
            try:
                yield url, recorder
            finally:
                server.should_exit = True
                thread.join(PATIENCE)
                assert not thread.is_alive()


def traces(row: Sequence[float], domain: Any) -> set[bytes]:
    """How numbers of a row could stand in a request: as text, as floats of either width and order, and as lattice
    integers, in text and in bytes."""
    found = set[bytes]()
    for value, whole in zip(row, domain.snap(np.array([row]))[0].tolist(), strict=True):
        found |= {f"{value:g}".encode(), str(whole).encode(), struct.pack("<i", whole), struct.pack(">i", whole)}
        found |= {struct.pack(form, value) for form in ("<d", ">d", "<f", ">f")}
    return found


def leaked(traces: set[bytes], requests: Sequence[Asked]) -> list[bytes]:
    """The traces that occur in some request, as they are or in hex."""
    said = [asked.everything for asked in requests]
    return [trace for trace in traces if any(trace in one or trace.hex().encode() in one for one in said)]
