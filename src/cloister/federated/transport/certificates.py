"""Certificates and keys of both ends of a connection, and an authority that makes them for tests and trials.

The authority's folder holds everybody's keys. It is not for production, where no machine may hold two parties' keys.
"""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path
from typing import Any, final

import attrs

from cloister.core.errors import InvalidInput, MissingExtra, cause
from cloister.core.keyfiles import check_own
from cloister.federated.protocol.agreement import COORDINATOR_NAME

SERVICE, METHOD = "cloister.Pool", "Exchange"
PATH = f"/{SERVICE}/{METHOD}"
KEEPALIVE = 20
"""Seconds between a party's keep-alive pings: firewalls forget connections that are silent for long."""


@final
@attrs.frozen
class Credentials:
    """Contents of PEM files.

    Args:
        authority: issuer of others' certificates.
        certificate: one's own.
        key: its private key.
    """

    authority: bytes
    certificate: bytes
    key: bytes = attrs.field(repr=False)

    @classmethod
    def read(cls, certificate: Path, key: Path | None = None, authority: Path | None = None) -> Credentials:
        """Read the files.

        Args:
            certificate: its path.
            key: by default beside the certificate (``.key``).
            authority: by default in the certificate's folder (``ca.pem``).

        Raises:
            InvalidInput: one of them cannot be read.
            Refused: others can read the key.
        """
        hidden = read_file(key or certificate.with_suffix(".key"), secret=True)
        return cls(read_file(authority or certificate.with_name("ca.pem")), read_file(certificate), hidden)


def read_file(path: Path, secret: bool = False) -> bytes:
    """Return a file's content.

    Raises:
        InvalidInput: it cannot be read.
        Refused: it is ``secret``, a key, and others can read it.
    """
    try:
        if secret:
            check_own(path)
        return path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {cause(error)}") from error


try:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
except ImportError as error:
    raise MissingExtra("cryptography", "federated", "making certificates") from error

MAX_NAME = 64
"""Largest number of characters of a name in a certificate."""


def make_test_certificates(folder: Path, parties: tuple[str, ...], days: int = 30) -> None:
    """Write ca.pem, and for the coordinator and every party NAME.pem and NAME.key. The authority's own key is not kept.

    Raises:
        InvalidInput: a party cannot have this name, or the folder holds certificates already.
    """
    if (
        COORDINATOR_NAME in parties
        or len(set(parties)) != len(parties)
        or not all(n.isprintable() and 0 < len(n) <= MAX_NAME and "/" not in n and n != "ca" for n in parties)
    ):
        raise InvalidInput(
            f"parties need different names of up to {MAX_NAME} characters, none of them '{COORDINATOR_NAME}' or 'ca', "
            f"not {list(parties)}"
        )
    if (folder / "ca.pem").exists():
        raise InvalidInput(f"{folder} holds certificates already: choose another folder")
    folder.mkdir(parents=True, exist_ok=True)
    authority = ec.generate_private_key(ec.SECP256R1())
    root = _certificate("cloister test authority", authority, None, authority, days)
    (folder / "ca.pem").write_bytes(root.public_bytes(Encoding.PEM))
    for name in (COORDINATOR_NAME, *parties):
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = _certificate(name, key, root, authority, days)
        (folder / f"{name}.pem").write_bytes(certificate.public_bytes(Encoding.PEM))
        write_secret(folder / f"{name}.key", key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


def write_secret(path: Path, content: bytes) -> None:
    """Write a new file that only its owner can read.

    Raises:
        InvalidInput: it exists, or it cannot be written.
    """
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
    except OSError as error:
        raise InvalidInput(f"cannot write {path}: {cause(error)}") from error


def _certificate(name: str, key: Any, root: Any, authority: Any, days: int) -> Any:
    """Return a certificate for ``name``, self-signed if there is no root."""
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if root is None else root.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=root is None, path_length=None), critical=True)
    )
    if root is not None:
        made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName(_dns(name))]), critical=False)
    return made.sign(authority, SHA256())


def _dns(name: str) -> str:
    """Return a party's name as a host name, with the hex codes of its characters."""
    return name if name == COORDINATOR_NAME else "party-" + name.encode().hex()[:50]
