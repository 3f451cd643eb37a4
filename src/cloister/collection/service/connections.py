"""Limits on connections: time, size of a head, queued requests, and connections per address.

uvicorn waits for ever for the rest of a request, and stores a head of any size. Here the time to receive a request, the
time to answer it, the size of its head and the number of requests waiting on a connection (``QUEUED``) are limited, and
connections beyond the limit are asked to retry later.
"""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import Callable
from typing import Any, final

from cloister.collection.service.limits import DEFAULT, Limits, ServiceCounts, peer_of
from cloister.core.errors import MissingExtra

try:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
except ImportError as error:
    raise MissingExtra("uvicorn and httptools", "serve", "collecting reports") from error

FILES = 256
"""Maximum number of open files besides connections."""

QUEUED = 8
"""Maximum number of requests on a connection that wait for an earlier one."""

DRAINED = 8
"""Bytes read and dropped after the answer, in multiples of the largest body.

A client that still sends would otherwise see only the end of the connection, and not the reason.
"""

GRACE = 1.0
"""Seconds by which the connection outlives the application's time limit, whose answer is kinder than a reset."""

_BUSY = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 5\r\nconnection: close\r\ncontent-length: 5\r\n\r\nbusy\n"


class BoundedProtocol(HttpToolsProtocol):
    """Protocol of one connection; subclasses made by ``bounded`` have limits and counts."""

    limits: Limits
    counts: ServiceCounts

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._deadline: asyncio.TimerHandle | None = None
        self._in_body, self._outside_body, self._dropped = False, 0, 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the deadline, or refuse a connection above the limit."""
        super().connection_made(transport)
        self.counts.connections = len(self.connections)
        self._set_deadline(self.limits.seconds + GRACE)
        if len(self.connections) > self.limits.connections:
            self.counts.refused["busy"] += 1
            transport.write(_BUSY)
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the deadline."""
        self._set_deadline(None)
        super().connection_lost(exc)
        self.counts.connections = len(self.connections)

    def data_received(self, data: bytes) -> None:
        """Read bytes; refuse an endless head or trailer, and too many queued requests."""
        self._outside_body += len(data)
        super().data_received(data)
        if self._outside_body > self.limits.head and not self.transport.is_closing():
            self.send_400_response("the head or trailer of this request is too long")
        if len(self.pipeline) > QUEUED:
            self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        """Refuse a request that is not HTTP."""
        self.counts.refused["no HTTP"] += 1
        super().send_400_response(msg)

    def on_message_begin(self) -> None:
        """Reset the counts for a new request."""
        super().on_message_begin()
        self._in_body, self._outside_body, self._dropped = False, 0, 0
        self._set_deadline(self.limits.seconds + GRACE)

    def on_headers_complete(self) -> None:
        """Reset the count of bytes outside the body."""
        self._in_body, self._outside_body = True, 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Read a piece of the body, or drop it if the request is answered already."""
        self._outside_body = 0  # trailers are kept in memory as headers are, so they have the same limit
        if self.cycle.response_complete:
            self._dropped += len(body)
            if self._dropped > DRAINED * self.limits.body:
                self.transport.abort()
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Start the deadline for the answer, both to be computed and to be read."""
        super().on_message_complete()
        self._in_body, self._outside_body = False, 0
        self._set_deadline(2 * self.limits.seconds)

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection, also one that does not read its answer."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            super().timeout_keep_alive_handler()

    def _set_deadline(self, seconds: float | None) -> None:
        """Abort the connection after ``seconds``; None: cancel the deadline."""
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self.loop.call_later(seconds, self._time_out)

    def _time_out(self) -> None:
        if not self._in_body and (self.cycle is None or self.cycle.response_complete):
            self.counts.refused["too slow"] += 1
        self.transport.abort()


def bounded(limits: Limits, counts: ServiceCounts) -> type[BoundedProtocol]:
    """Return the protocol class with these limits; ``counts`` holds refusals and open connections."""
    return type("CollectorProtocol", (BoundedProtocol,), {"limits": limits, "counts": counts})


@final
class Listener(socket.socket):
    """Listening socket with limits per address and on all connections, at most what the process has files for.

    uvicorn does not see connections before their TLS handshake; here they count. Excess ones are closed silently.
    ``serve`` sets ``limits`` and ``counts`` to the collector's.
    """

    limits, counts = DEFAULT, ServiceCounts()

    def __init__(self, *of: int) -> None:
        super().__init__(*of)
        self.peers = Counter[str | None]()

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept a connection. Raises: ConnectionAbortedError: above a limit; asyncio ignores it."""
        connection, address = super().accept()
        full = (peer := peer_of(address[0])) is not None and self.peers[peer] >= self.limits.connections_per_peer
        if full or self.peers.total() >= self.limits.connections + FILES // 2:
            self.counts.refused["busy"] += 1
            connection.close()
            raise ConnectionAbortedError
        self.peers[peer] += 1
        return _CountedConnection(connection, lambda: self._forget(peer)), address

    def _forget(self, peer: str | None) -> None:
        self.peers[peer] -= 1
        if not self.peers[peer]:
            del self.peers[peer]


@final
class _CountedConnection(socket.socket):
    """Connection that takes the place of a plain one, and calls ``on_close`` once when it is closed."""

    def __init__(self, plain: socket.socket, on_close: Callable[[], None]) -> None:
        super().__init__(plain.family, plain.type, plain.proto, plain.detach())
        self._on_close: Callable[[], None] | None = on_close

    def close(self) -> None:
        super().close()
        on_close, self._on_close = self._on_close, None
        if on_close is not None:
            on_close()
