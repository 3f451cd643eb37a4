"""Both ends of a connection over mutual TLS: a party's line to the coordinator, and the coordinator on a port.

One method takes a message and gives the reply. A sender's name is the common name of its certificate, which the agreed
authority has signed; no message's own claim about its sender is believed.

While the coordinator cannot be reached (it restarts, the network is down), a line sends the same message again: the
coordinator accepts nothing twice.

Each reply says what the coordinator's clock shows, and a line warns if its own differs. Nothing else depends on it.
"""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, final

from cloister.core.errors import InvalidInput, MissingExtra, Refused
from cloister.federated.protocol.agreement import COORDINATOR_NAME
from cloister.federated.transport.certificates import KEEPALIVE, METHOD, PATH, SERVICE, Credentials
from cloister.federated.transport.service import CoordinatorService, Stopped
from cloister.federated.transport.signatures import certificate_problem

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # its own log lines are not ours: errors arrive as exceptions

try:
    import grpc
except ImportError as error:
    raise MissingExtra("grpcio", "grpc", "joining or coordinating parties") from error


MAX_CLOSED = 5
"""Number of connections closed at once after which the coordinator is taken not to accept our certificate."""

CLOCK = "cloister-clock"
"""Name of a reply's metadata: when it was made, in milliseconds since 1970 by the coordinator's clock."""

MAX_CLOCK_DIFFERENCE = 60.0
"""Seconds by which two clocks may differ without a warning."""

HANDSHAKE_TIMEOUT = 10.0
"""Seconds in which whoever connects must have shown a certificate; gRPC would wait for two minutes."""

CERTIFICATE_TIMEOUT = 5.0
"""Seconds for a look at the certificate that a coordinator shows."""


def clock_difference(ahead: float) -> str:
    """Return how far a clock is from another one, which is ``ahead`` by so many seconds, in words."""
    return f"{abs(ahead):,.1f} seconds {'behind' if ahead > 0 else 'ahead of'}"


FULL = "concurrent rpc limit"
"""gRPC's words for a coordinator that is at work on as many messages as it takes at once."""


class Unreachable(Refused):
    """Raised when the coordinator did not answer in time. Nothing is lost: join again with the same journal."""


@final
class Line:
    """Channel to one coordinator.

    Args:
        target: "host:port".
        credentials: this party's.
        patience: seconds to keep trying, and to wait for one reply.
        max_bytes: largest message.
        on_warning: called once if the coordinator's clock differs.

    Attributes:
        ahead: seconds that the coordinator's clock was ahead of this machine's at the last reply; 0 before.
    """

    def __init__(
        self,
        target: str,
        credentials: Credentials,
        patience: float = 600.0,
        max_bytes: int = 2**26,
        on_warning: Callable[[str], None] = lambda words: None,
    ) -> None:
        secure = grpc.ssl_channel_credentials(credentials.authority, credentials.key, credentials.certificate)
        options = [
            ("grpc.ssl_target_name_override", COORDINATOR_NAME),
            ("grpc.max_receive_message_length", max_bytes),
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 2000),
            ("grpc.keepalive_time_ms", 1000 * KEEPALIVE),
            ("grpc.keepalive_timeout_ms", 500 * KEEPALIVE),
            ("grpc.http2.ping_timeout_ms", 500 * KEEPALIVE),
            ("grpc.http2.max_pings_without_data", 0),
        ]
        self._target, self._patience, self._credentials, self._on_warning = target, patience, credentials, on_warning
        self._channel = grpc.secure_channel(target, secure, options)
        self._call: Any = self._channel.unary_unary(PATH)
        self.sent, self.received, self._closed, self.ahead = 0, 0, 0, 0.0

    def exchange(self, data: bytes) -> bytes:
        """Send a message and return the coordinator's reply.

        Raises:
            Unreachable: there is none.
            Refused: one of the certificates is not accepted.
        """
        deadline, pause = time.monotonic() + self._patience, 0.1
        while True:
            try:
                reply: bytes
                reply, call = self._call.with_call(data, timeout=max(0.1, deadline - time.monotonic()))
            except grpc.RpcError as error:
                self._raise_if_final(error, deadline)
                time.sleep(pause)
                pause = min(2.0, 2 * pause)
                continue
            self.sent, self.received = self.sent + len(data), self.received + len(reply)
            self._compare_clocks(dict(call.trailing_metadata()).get(CLOCK, ""))
            return reply

    def close(self) -> None:
        self._channel.close()

    def _compare_clocks(self, clock: str) -> None:
        """Compare the clocks, where the coordinator says what its own shows."""
        warned_before = abs(self.ahead) > MAX_CLOCK_DIFFERENCE
        with suppress(ValueError, OverflowError):  # of no number, which has no say here
            self.ahead = int(clock) / 1000 - time.time()
            if abs(self.ahead) > MAX_CLOCK_DIFFERENCE and not warned_before:
                self._on_warning(
                    f"this machine's clock is {clock_difference(self.ahead)} the coordinator's: set the wrong one "
                    f"right, since each end checks certificates by its own"
                )

    def _rejection_reason(self) -> str:
        """Return why the certificates do not fit, by the one that the coordinator shows to whoever connects."""
        host, _, port = self._target.rpartition(":")
        try:
            shown = ssl.get_server_certificate((host.strip("[]"), int(port)), timeout=CERTIFICATE_TIMEOUT)
            why = certificate_problem(shown, self._credentials.authority)
        except (OSError, ValueError, InvalidInput):
            return "compare the authorities, the names and the dates"
        return why or (
            f"the coordinator's is valid here, so it must be refusing this party's: compare the authority's file and "
            f"the clock there (here it is {time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC)"
        )

    def _raise_if_final(self, error: Any, deadline: float) -> None:
        """Return only if trying again can help.

        Once a first reply arrived the certificates are in order: any later failure, as when a coordinator dies in the
        middle of a handshake, may pass.
        """
        code, words = error.code(), str(error.details() or "").lower()
        self._closed = self._closed + 1 if "socket closed" in words else 0
        signs = any(sign in words for sign in ("certificate", "handshake", "verification"))
        wrong = self.received == 0 and (signs or self._closed >= MAX_CLOSED)
        if code is grpc.StatusCode.UNAUTHENTICATED or wrong:
            raise Refused(
                f"the coordinator at {self._target} and this party do not accept each other's certificates: "
                f"{self._rejection_reason()}. Nothing was sent"
            ) from error
        passing = code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED) or FULL in words
        if not passing or time.monotonic() >= deadline:
            raise Unreachable(
                f"the coordinator at {self._target} did not answer within {self._patience:g} seconds "
                f"({code.name.lower()}): is it running, and is this its address?"
            ) from error


@final
class Server:
    """Coordinator that listens on a port.

    Args:
        service: makes the replies.
        listen: "host:port"; port 0 takes any that is free.
        credentials: the coordinator's.
        parties: number of parties, which may all wait at once.
        max_bytes: largest message.

    Attributes:
        port: the port that it listens on.

    Raises:
        InvalidInput: the port is not available, or the certificates cannot be used.
    """

    def __init__(
        self, service: CoordinatorService, listen: str, credentials: Credentials, parties: int, max_bytes: int
    ) -> None:
        self._service = service
        options = [
            ("grpc.max_receive_message_length", max_bytes),
            ("grpc.so_reuseport", 0),
            ("grpc.server_handshake_timeout_ms", int(1000 * HANDSHAKE_TIMEOUT)),
            ("grpc.http2.min_recv_ping_interval_without_data_ms", 500 * KEEPALIVE),
        ]
        self._server = grpc.server(
            ThreadPoolExecutor(2 * parties + 4, "cloister"),
            options=options,
            maximum_concurrent_rpcs=4 * parties + 8,  # more messages of whoever has a certificate fill no memory
        )
        handler = grpc.unary_unary_rpc_method_handler(self._exchange)
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {METHOD: handler}),))
        secure = grpc.ssl_server_credentials(
            [(credentials.key, credentials.certificate)],
            root_certificates=credentials.authority,
            require_client_auth=True,
        )
        _check_address(listen)
        try:
            self.port = int(self._server.add_secure_port(listen, secure))
        except RuntimeError:
            self.port = 0
        if not self.port:
            raise InvalidInput(f"cannot listen on {listen}: is the port taken, are the certificate and its key a pair?")

    def start(self) -> None:
        self._server.start()

    def stop(self, grace: float = 1.0) -> None:
        """Stop listening, with ``grace`` seconds for replies that are on their way."""
        self._server.stop(grace).wait()

    def _exchange(self, data: bytes, context: Any) -> bytes:
        names = context.auth_context().get("x509_common_name", [])
        if len(names) != 1:
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "a certificate with one common name is needed")
        try:
            reply = self._service.handle(names[0].decode(errors="replace"), data, context.time_remaining())
            context.set_trailing_metadata(((CLOCK, str(time.time_ns() // 10**6)),))
            return reply
        except Stopped:
            context.abort(grpc.StatusCode.UNAVAILABLE, "the coordinator is going away")
            raise  # abort has raised already


def _check_address(listen: str) -> None:
    """Refuse anything but host:port: gRPC takes a port modulo 65536, and 443 where there is none.

    Raises:
        InvalidInput: it is anything else.
    """
    host, _, port = listen.rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise InvalidInput(
            f"cannot listen on '{listen}': give host:port, with a port from 0 (any that is free) to 65535"
        )
