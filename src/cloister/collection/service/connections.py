"""Connections that cannot hold a collector up: uvicorn's HTTP protocol with limits of time, size and number.

uvicorn waits for ever for a request that began, and keeps whatever head comes. Here a request has so many seconds to
arrive and as many to be answered, its head so many bytes, and a connection at most ``QUEUED`` requests that wait for
the one before; more connections than allowed are told to come later.
"""

from __future__ import annotations

import asyncio
from typing import Any

from cloister.collection.service.limits import Limits, ServiceCounts
from cloister.core.errors import MissingExtra

try:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
except ImportError as error:
    raise MissingExtra("uvicorn and httptools", "serve", "collecting reports") from error

QUEUED = 8
"""Most requests of a connection that wait for an earlier one of it."""

DRAINED = 8
"""Times the largest body that are read, and dropped, of a request that has its answer: who still sends would otherwise
learn of the end of the connection only, and not why."""

GRACE = 1.0
"""Seconds after the application's own time limit, whose answer is kinder than the end of the connection."""

_BUSY = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 5\r\nconnection: close\r\ncontent-length: 5\r\n\r\nbusy\n"


class BoundedProtocol(HttpToolsProtocol):
    """One connection. Subclasses (``bounded``) have limits and counts."""

    limits: Limits
    counts: ServiceCounts

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._deadline: asyncio.TimerHandle | None = None
        self._head: int | None = 0
        self._dropped = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, or refuse one connection too many."""
        super().connection_made(transport)
        self.counts.connections = len(self.connections)
        self._within(self.limits.seconds + GRACE)
        if len(self.connections) > self.limits.connections:
            self.counts.refused["busy"] += 1
            transport.write(_BUSY)
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._within(None)
        super().connection_lost(exc)
        self.counts.connections = len(self.connections)

    def data_received(self, data: bytes) -> None:
        """Take bytes, but no head without an end, and no queue of requests."""
        if self._head is not None:
            self._head += len(data)
        super().data_received(data)
        if self._head is not None and self._head > self.limits.head and not self.transport.is_closing():
            self.send_400_response("the head of this request is too long")
        if len(self.pipeline) > QUEUED:
            self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP."""
        self.counts.refused["no HTTP"] += 1
        super().send_400_response(msg)

    def on_message_begin(self) -> None:
        """Count a head's bytes from its first chunk on."""
        super().on_message_begin()
        self._head, self._dropped = 0, 0
        self._within(self.limits.seconds + GRACE)

    def on_headers_complete(self) -> None:
        """Count no more."""
        self._head = None
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body, or drop it if the request has its answer."""
        if self.cycle.response_complete:
            self._dropped += len(body)
            if self._dropped > DRAINED * self.limits.body:
                self.transport.abort()
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Wait for the application, and for a reader of its answer."""
        super().on_message_complete()
        self._head = 0
        self._within(2 * self.limits.seconds)

    def timeout_keep_alive_handler(self) -> None:
        """End an idle connection, also one that does not read what it was sent."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            super().timeout_keep_alive_handler()

    def _within(self, seconds: float | None) -> None:
        """Abort the connection after so many seconds; None: no more."""
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self.loop.call_later(seconds, self._late)

    def _late(self) -> None:
        if self._head is not None and (self.cycle is None or self.cycle.response_complete):
            self.counts.refused["too slow"] += 1
        self.transport.abort()


def bounded(limits: Limits, counts: ServiceCounts) -> type[BoundedProtocol]:
    """The protocol with these limits. Args: limits, counts (of refusals and open connections)."""
    return type("CollectorProtocol", (BoundedProtocol,), {"limits": limits, "counts": counts})
