"""Both ends of a connection: certificates that last as long as they are to, and a desk on a port."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from cloister.federated.transport.certificates import Credentials, _certificate, write_secret
from cloister.federated.transport.service import CoordinatorService
from cloister.federated.transport.tls import Server


def new_key() -> Any:
    return ec.generate_private_key(ec.SECP256R1())


def certified(folder: Path, days: dict[str, int], authority_days: int = 30, key: Callable[[], Any] = new_key) -> Path:
    """Certificates that are over in so many days; 0: over since now. Args: key (makes those of all but the
    authority)."""
    folder.mkdir()
    authority = new_key()
    root = _certificate("an authority", authority, None, authority, authority_days)
    (folder / "ca.pem").write_bytes(root.public_bytes(Encoding.PEM))
    for name, left in days.items():
        own = key()
        (folder / f"{name}.pem").write_bytes(_certificate(name, own, root, authority, left).public_bytes(Encoding.PEM))
        write_secret(folder / f"{name}.key", own.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return folder


@contextmanager
def serving(here: CoordinatorService, certificate: Path, listen: str = "127.0.0.1:0") -> Iterator[str]:
    """The address of a desk; whoever waits there at the end is let go, so that no thread outlives a test that fails."""
    server = Server(here, listen, Credentials.read(certificate), 3, 2**20)
    server.start()
    try:
        yield f"127.0.0.1:{server.port}"
    finally:
        here.stop()
        server.stop()
