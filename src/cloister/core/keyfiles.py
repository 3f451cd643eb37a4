"""Files of private keys, whatever they are for: none is used that others could have read."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from cloister.core.errors import Refused


def check_own(path: Path, group: bool = False) -> None:
    """Check that nobody but its owner can read a key. One of root's may be read by a group, by which services are given
    certificates' keys; Windows keeps other permissions, which are not looked at.

    Args: group (its group may use it: that of a ledger which was opened to one).

    Raises: Refused: others can read it. OSError: there is none.
    """
    facts = path.stat()
    if os.name == "posix" and facts.st_mode & (0o007 if group else 0o077 if facts.st_uid else 0o037):
        raise Refused(f"others on this machine can read {path}, a secret key: chmod 600 {shlex.quote(str(path))}")
