"""The collector on a port: uvicorn, TLS, signals, and limits; and nothing that anybody wrote about a request.

uvicorn and asyncio log through ``logging``, sometimes with addresses. While a collector runs, the process logs nothing;
events go, without a sender, to ``Collector``'s ``told``.

uvicorn waits for ever for a request that began, and keeps whatever head comes. Here a request has so many seconds to
arrive and as many to be answered, its head so many bytes, and a connection at most ``QUEUED`` requests that wait for
the one before; more connections are told to come later."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import re
import signal
import socket
import ssl
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, final

from cloister.collection.service.collector import Collector
from cloister.collection.service.limits import DEFAULT, Limits, ServiceCounts, peer_of
from cloister.collection.service.supervisor import notify
from cloister.core.errors import InvalidInput, MissingExtra, Refused, cause
from cloister.core.keyfiles import check_own

try:
    import uvicorn
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
        self._in_body, self._beside, self._dropped = False, 0, 0

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
        """Take bytes, but no head or trailer without an end, and no queue of requests."""
        self._beside += len(data)
        super().data_received(data)
        if self._beside > self.limits.head and not self.transport.is_closing():
            self.send_400_response("the head of this request, or what follows its body, is too long")
        if len(self.pipeline) > QUEUED:
            self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP."""
        self.counts.refused["no HTTP"] += 1
        super().send_400_response(msg)

    def on_message_begin(self) -> None:
        """Count a head's bytes from its first chunk on."""
        super().on_message_begin()
        self._in_body, self._beside, self._dropped = False, 0, 0
        self._within(self.limits.seconds + GRACE)

    def on_headers_complete(self) -> None:
        """Begin the body."""
        self._in_body, self._beside = True, 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a piece of the body, or drop it if the request has its answer."""
        self._beside = 0  # what follows is bounded as a head is: trailers are kept in memory as headers are
        if self.cycle.response_complete:
            self._dropped += len(body)
            if self._dropped > DRAINED * self.limits.body:
                self.transport.abort()
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Wait for the application, and for a reader of its answer."""
        super().on_message_complete()
        self._in_body, self._beside = False, 0
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
        if not self._in_body and (self.cycle is None or self.cycle.response_complete):
            self.counts.refused["too slow"] += 1
        self.transport.abort()


def bounded(limits: Limits, counts: ServiceCounts) -> type[BoundedProtocol]:
    """The protocol with these limits. Args: limits, counts (of refusals and open connections)."""
    return type("CollectorProtocol", (BoundedProtocol,), {"limits": limits, "counts": counts})


@final
class Listener(socket.socket):
    """A listening socket with which nobody has all connections, nor more than the process has files for: also where
    TLS has not shaken hands yet, of which uvicorn knows nothing. Those beyond end without a word.

    Attributes: limits, counts (``serve`` gives the collector's)."""

    limits, counts = DEFAULT, ServiceCounts()

    def __init__(self, *of: int) -> None:
        super().__init__(*of)
        self.peers = Counter[str | None]()

    def accept(self) -> tuple[socket.socket, Any]:
        """Raises: ConnectionAbortedError: one too many came, and is gone; for asyncio it never was."""
        line, address = super().accept()
        alone = (peer := peer_of(address[0])) is not None and self.peers[peer] >= self.limits.alone
        if alone or self.peers.total() >= self.limits.connections + FILES // 2:
            self.counts.refused["busy"] += 1
            line.close()
            raise ConnectionAbortedError
        self.peers[peer] += 1
        return _Line(line, lambda: self._left(peer)), address

    def _left(self, peer: str | None) -> None:
        self.peers[peer] -= 1
        if not self.peers[peer]:
            del self.peers[peer]


@final
class _Line(socket.socket):
    """One connection, in place of a plain one. Args: plain, ended (called once, when it is closed)."""

    def __init__(self, plain: socket.socket, ended: Callable[[], None]) -> None:
        super().__init__(plain.family, plain.type, plain.proto, plain.detach())
        self._ended: Callable[[], None] | None = ended

    def close(self) -> None:
        super().close()
        ended, self._ended = self._ended, None
        if ended is not None:
            ended()


IDLE = 5
"""Seconds that a connection may be idle between two requests."""

END = 10
"""Seconds that requests under way have when the collector is told to end."""

FILES = 256
"""Files that the process has open besides connections, at most."""


def serve(
    app: Any,
    listener: Listener,
    *,
    metrics: socket.socket | None = None,
    tls: ssl.SSLContext | None = None,
    started: Callable[[str], None] = lambda address: None,
    each: Callable[[], None] | None = None,
    every: float = 10.0,
) -> None:
    """Run an application of ``create_app`` until a signal asks it to end (SIGTERM, SIGINT, SIGHUP, SIGQUIT): what was
    acknowledged then is on the disk.

    Args:
        listener: from ``listening``.
        metrics: the same, for /metrics, which has connections of its own: it answers while all others are in use.
        tls: from ``certificate``; None: plain HTTP.
        started: called with the address once requests are taken.
        each: called every ``every`` seconds.
    """
    collector: Collector = app.state.collector
    listener.limits, listener.counts = collector.limits, collector.counts
    _raise_files(collector.limits.connections + FILES)
    with _silent():
        config = _config(app, collector.limits, collector.counts, tls)
        server = _Server(config, lambda: started(address_of(listener, tls)))
        beside = _Beside(_config(app.state.metrics, collector.limits, ServiceCounts(), tls))
        asyncio.run(_run(server, listener, beside, metrics, each, every, collector.limits.seconds))


def address_of(listener: socket.socket, tls: ssl.SSLContext | None) -> str:
    """Where a socket listens, as a URL."""
    host, port = listener.getsockname()[:2]
    return f"{'https' if tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"


def _config(app: Any, limits: Limits, counts: ServiceCounts, tls: ssl.SSLContext | None) -> uvicorn.Config:
    config = uvicorn.Config(
        app,
        http=bounded(limits, counts),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=IDLE,
        timeout_graceful_shutdown=END,
    )
    config.load()
    config.ssl = tls
    return config


@contextmanager
def listening(host: str, port: int, options: str = "-") -> Iterator[Listener]:
    """A bound socket; port 0 is any that is free. Args: options (beginning of those that host and port are from).
    Raises: InvalidInput: no such address, or its port is taken."""
    try:
        family, kind, proto, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = Listener(family, kind, proto)
    except OSError as error:
        raise InvalidInput(f"cannot listen on {host}: {cause(error)}") from error
    with listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(place)
        except OSError as error:
            raise InvalidInput(
                f"cannot listen on {host}, port {port}: {cause(error)}. Choose another {options}-port or {options}-host"
            ) from error
        yield listener


def certificate(cert: Path, key: Path | None) -> ssl.SSLContext:
    """A server's certificate chain and private key, in PEM files. Args: key (default: in the same file). Raises:
    InvalidInput: they cannot be used. Refused: others can read the key."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        check_own(key or cert)
        context.load_cert_chain(cert, key, password=lambda: b"")  # never asks on the terminal
    except ssl.SSLError:
        raise InvalidInput(
            f"{cert} and {key or 'the key in it'} are no certificate and its private key in PEM, without a password"
        ) from None
    except OSError as error:
        raise InvalidInput(f"cannot read {cert}{f' and {key}' if key else ''}: {cause(error)}") from error
    return context


def check_plain(host: str) -> None:
    """Raises: Refused: others could read what is sent to this address without TLS."""
    with suppress(ValueError):
        if ipaddress.ip_address(host).is_loopback:
            return
    if host != "localhost":
        raise Refused(
            f"whoever is on the way could read and change what is sent to {host} over plain HTTP: give --cert and "
            f"--key, or --plain-http if a proxy in front of it has TLS"
        )


def check_origin(given: str) -> None:
    """Raises: InvalidInput: no browser names a page's origin so; a collector that compares would let no page in."""
    if given == "*":
        return
    if not re.fullmatch(r"https?://[^/\s?#@A-Z\x80-\U0010ffff]+", given):
        raise InvalidInput(
            f"--origin takes what browsers say, as in https://example.org (small letters, no path, other scripts as "
            f"in xn--...), or '*', not '{given}'"
        )
    if re.fullmatch(r"http:.*:80|https:.*:443", given):
        raise InvalidInput(f"browsers leave the usual port out: --origin {given.rpartition(':')[0]}, not '{given}'")


@final
class _Server(uvicorn.Server):
    """Says when it has started, and ends on a signal as on any other wish."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._started()
        notify("READY=1")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        notify("STOPPING=1")
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: object) -> None:  # also the second Ctrl-C: files would keep a report's time
        self.should_exit = True

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        more = [getattr(signal, name) for name in ("SIGHUP", "SIGQUIT") if hasattr(signal, name)]
        signals = [signal.SIGINT, signal.SIGTERM, *(one for one in more if signal.getsignal(one) != signal.SIG_IGN)]
        before = [signal.signal(one, self.handle_exit) for one in signals]
        try:
            yield
        finally:
            for one, handler in zip(signals, before, strict=True):
                signal.signal(one, handler)


@final
class _Beside(uvicorn.Server):
    """Ends when it is told to; signals are the other one's."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _run(
    server: _Server,
    listener: socket.socket,
    beside: _Beside,
    metrics: socket.socket | None,
    each: Callable[[], None] | None,
    every: float,
    seconds: float,
) -> None:
    async def repeat() -> None:
        while each is not None:
            await asyncio.sleep(every)
            each()

    if server.config.ssl is not None:  # uvicorn has no setting for it, and asyncio waits for a minute
        loop: Any = asyncio.get_running_loop()
        limits = {"ssl_handshake_timeout": seconds, "ssl_shutdown_timeout": seconds}
        loop.create_server = partial(loop.create_server, **limits)
    repeating = asyncio.get_running_loop().create_task(repeat())
    counting = asyncio.create_task(beside.serve([metrics])) if metrics is not None else None
    try:
        await server.serve([listener])
    finally:
        repeating.cancel()
        beside.should_exit = True
        if counting is not None:
            await counting


@contextmanager
def _silent() -> Iterator[None]:
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


def _raise_files(needed: int) -> None:
    """Let the process open so many files, as far as the system allows it."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
