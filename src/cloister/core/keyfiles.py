"""Check of private key files: none is used that others could have read."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from cloister.core.errors import Refused


def check_own(path: Path, group: bool = False) -> None:
    """Check that only its owner can read a key; Windows keeps other permissions, which are not checked.

    Args:
        path: the key's file.
        group: whether its group may read it too, as with a ledger that a group shares.

    Raises:
        Refused: others can read it.
        OSError: it does not exist.
    """
    facts = path.stat()
    # services get keys of certificates from root by a group
    if os.name == "posix" and facts.st_mode & (0o007 if group else 0o077 if facts.st_uid else 0o037):
        raise Refused(f"others on this machine can read {path}, a secret key: chmod 600 {shlex.quote(str(path))}")
