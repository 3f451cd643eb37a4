"""Collector on a port: uvicorn with TLS and signals, and without logs of requests.

uvicorn and asyncio log through ``logging``, sometimes with addresses. While a collector runs, ``logging`` is disabled;
events go, without a sender, to ``Collector``'s ``on_event``.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import re
import signal
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, final

from cloister.collection.service.collector import Collector
from cloister.collection.service.connections import FILES, Listener, bounded
from cloister.collection.service.limits import Limits, ServiceCounts
from cloister.collection.service.supervisor import notify
from cloister.core.errors import InvalidInput, MissingExtra, Refused, cause
from cloister.core.keyfiles import check_own

try:
    import uvicorn
except ImportError as error:
    raise MissingExtra("uvicorn and httptools", "serve", "collecting reports") from error

IDLE = 5
"""Seconds for which a connection may be idle between two requests."""

END = 10
"""Seconds for which pending requests may go on after a signal to end."""


def serve(
    app: Any,
    listener: Listener,
    *,
    metrics: socket.socket | None = None,
    tls: ssl.SSLContext | None = None,
    started: Callable[[str], None] = lambda address: None,
    tick: Callable[[], None] | None = None,
    interval: float = 10.0,
) -> None:
    """Run an application of ``create_app`` until SIGTERM, SIGINT, SIGHUP or SIGQUIT.

    Args:
        app: the application.
        listener: socket from ``listening``.
        metrics: socket for /metrics alone, which then answers while all other connections are in use.
        tls: context from ``certificate``; None: plain HTTP.
        started: called with the address once requests are accepted.
        tick: called every ``interval`` seconds.
        interval: seconds.
    """
    collector: Collector = app.state.collector
    listener.limits, listener.counts = collector.limits, collector.counts
    _raise_file_limit(collector.limits.connections + FILES)
    with _logging_disabled():
        config = _config(app, collector.limits, collector.counts, tls)
        server = _Server(config, lambda: started(address_of(listener, tls)))
        beside = _MetricsServer(_config(app.state.metrics, collector.limits, ServiceCounts(), tls))
        asyncio.run(_run(server, listener, beside, metrics, tick, interval, collector.limits.seconds))


def address_of(listener: socket.socket, tls: ssl.SSLContext | None) -> str:
    """Return the URL that a socket listens on."""
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
    """Bind a socket; port 0 picks a free one. Raises: InvalidInput: no such address, or its port is taken.

    ``options`` is the prefix of the options for host and port, for the message.
    """
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
    """Load a server's certificate chain and private key from PEM files; by default the key is in the same file.

    Raises: InvalidInput: they cannot be used. Refused: other users can read the key.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        check_own(key or cert)
        context.load_cert_chain(cert, key, password=lambda: b"")  # else OpenSSL asks on the terminal
    except ssl.SSLError:
        raise InvalidInput(
            f"{cert} and {key or 'the key in it'} must be a certificate and its private key, in PEM without a password"
        ) from None
    except OSError as error:
        raise InvalidInput(f"cannot read {cert}{f' and {key}' if key else ''}: {cause(error)}") from error
    return context


def check_plain(host: str) -> None:
    """Raise Refused unless plain HTTP to this address stays on this machine."""
    with suppress(ValueError):
        if ipaddress.ip_address(host).is_loopback:
            return
    if host != "localhost":
        raise Refused(
            f"plain HTTP to {host} could be read and changed on the network: give --cert and --key, or --plain-http if "
            f"a proxy in front of it has TLS"
        )


def check_origin(origin: str) -> None:
    """Raise InvalidInput unless browsers name an origin in this form; another form would match no page."""
    if origin == "*":
        return
    if not re.fullmatch(r"https?://[^/\s?#@A-Z\x80-\U0010ffff]+", origin):
        raise InvalidInput(
            f"--origin takes an origin as browsers send it, as in https://example.org (lower case, no path, other "
            f"scripts as in xn--...), or '*', not '{origin}'"
        )
    if re.fullmatch(r"http:.*:80|https:.*:443", origin):
        raise InvalidInput(f"browsers omit the default port: give --origin {origin.rpartition(':')[0]}, not '{origin}'")


@final
class _Server(uvicorn.Server):
    """uvicorn's server, which reports that it has started and ends gracefully on every signal."""

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

    # a second Ctrl-C must not force an exit: files would keep the time of a report
    def handle_exit(self, sig: int, frame: object) -> None:
        self.should_exit = True

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        optional = [getattr(signal, name) for name in ("SIGHUP", "SIGQUIT") if hasattr(signal, name)]
        signals = [signal.SIGINT, signal.SIGTERM, *(one for one in optional if signal.getsignal(one) != signal.SIG_IGN)]
        handlers = [signal.signal(one, self.handle_exit) for one in signals]
        try:
            yield
        finally:
            for one, handler in zip(signals, handlers, strict=True):
                signal.signal(one, handler)


@final
class _MetricsServer(uvicorn.Server):
    """Server of /metrics; signals belong to the collector's own server."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _run(
    server: _Server,
    listener: socket.socket,
    beside: _MetricsServer,
    metrics: socket.socket | None,
    tick: Callable[[], None] | None,
    interval: float,
    seconds: float,
) -> None:
    async def repeat() -> None:
        while tick is not None:
            await asyncio.sleep(interval)
            tick()

    if server.config.ssl is not None:  # uvicorn has no setting for this, and asyncio's default is a minute
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
def _logging_disabled() -> Iterator[None]:
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(level)


def _raise_file_limit(needed: int) -> None:
    """Let the process open ``needed`` files, as far as the system allows."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    if soft != resource.RLIM_INFINITY and soft < limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
