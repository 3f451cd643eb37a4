"""What both ends of a mutually authenticated connection need: names and files, no library."""

from __future__ import annotations

from pathlib import Path
from typing import final

import attrs

from cloister.core.errors import InvalidInput

SERVICE, METHOD = "cloister.Pool", "Exchange"
PATH = f"/{SERVICE}/{METHOD}"
ALIVE = 20
"""Seconds after which a party asks whether a silent connection still stands: firewalls forget those on which others are
waited for."""


@final
@attrs.frozen
class Credentials:
    """Files' contents, in PEM. Args: authority (who signed the others), certificate, key (its private key)."""

    authority: bytes
    certificate: bytes
    key: bytes = attrs.field(repr=False)

    @classmethod
    def read(cls, certificate: Path, key: Path | None = None, authority: Path | None = None) -> Credentials:
        """From files; by default the key is beside the certificate (``.key``), and the authority in its folder
        (``ca.pem``).

        Raises:
            InvalidInput: one of them cannot be read.
        """
        paths = (authority or certificate.with_name("ca.pem"), certificate, key or certificate.with_suffix(".key"))
        return cls(*(read_file(path) for path in paths))


def read_file(path: Path) -> bytes:
    """A file's content.

    Raises:
        InvalidInput: it cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror or error}") from error
