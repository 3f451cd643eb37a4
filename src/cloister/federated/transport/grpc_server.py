"""The coordinator on a port: one method that takes a message and gives the reply, over mutual TLS.

A sender's name is the common name of its certificate, which the agreed authority has signed; no message's own claim
about its sender is believed.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, final

from cloister.core.errors import InvalidInput, MissingExtra
from cloister.federated.transport.certificates import ALIVE, METHOD, SERVICE, Credentials
from cloister.federated.transport.service import CoordinatorService, Stopped

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # its own log lines are not ours: errors arrive as exceptions

try:
    import grpc
except ImportError as error:
    raise MissingExtra("grpcio", "grpc", "coordinating parties") from error


@final
class Server:
    """A listening coordinator.

    Args:
        service: makes the replies.
        listen: "host:port"; port 0 takes any that is free.
        credentials: the coordinator's.
        parties: number of parties, which may all wait at once.
        most: largest message in bytes.

    Attributes:
        port: the port that it listens on.

    Raises: InvalidInput: the port is not available, or the certificates cannot be used.
    """

    def __init__(
        self, service: CoordinatorService, listen: str, credentials: Credentials, parties: int, most: int
    ) -> None:
        self._service = service
        options = [
            ("grpc.max_receive_message_length", most),
            ("grpc.so_reuseport", 0),
            ("grpc.http2.min_recv_ping_interval_without_data_ms", 500 * ALIVE),
        ]
        self._server = grpc.server(ThreadPoolExecutor(2 * parties + 4, "cloister"), options=options)
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
            return self._service.handle(names[0].decode(errors="replace"), data, context.time_remaining())
        except Stopped:
            context.abort(grpc.StatusCode.UNAVAILABLE, "the coordinator is going away")
            raise  # abort has raised already


def _check_address(listen: str) -> None:
    """Refuse anything but host:port: gRPC takes a port modulo 65536, and 443 where there is none.

    Raises: InvalidInput.
    """
    host, _, port = listen.rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise InvalidInput(
            f"cannot listen on '{listen}': give host:port, with a port from 0 (any that is free) to 65535"
        )
