"""Names and files that both ends of a mutually authenticated connection need; imports no library."""

from __future__ import annotations

from pathlib import Path
from typing import final

import attrs

from cloister.core.errors import InvalidInput

SERVICE, METHOD = "cloister.Pool", "Exchange"
PATH = f"/{SERVICE}/{METHOD}"
ALIVE = 20
"""Seconds between a party's keep-alive pings: firewalls forget connections that are silent for long."""


@final
@attrs.frozen
class Credentials:
    """Contents of PEM files. Args: authority (issuer of others' certificates), certificate, key (its private key)."""

    authority: bytes
    certificate: bytes
    key: bytes = attrs.field(repr=False)

    @classmethod
    def read(cls, certificate: Path, key: Path | None = None, authority: Path | None = None) -> Credentials:
        """Read the files; by default the key is beside the certificate (``.key``), and the authority in its folder
        (``ca.pem``).

        Raises: InvalidInput: one of them cannot be read.
        """
        paths = (authority or certificate.with_name("ca.pem"), certificate, key or certificate.with_suffix(".key"))
        return cls(*(read_file(path) for path in paths))


def read_file(path: Path) -> bytes:
    """A file's content. Raises: InvalidInput: it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror or error}") from error
