"""Another process, with another hash seed: where public data must have the same digest."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

_SCRIPT = """
import pickle, sys
from cloister.core.digests import digest
print(digest(pickle.load(sys.stdin.buffer)))
"""


def digest_elsewhere(value: object) -> str:
    """The digest of a public value after it has travelled to a new process."""
    path = os.pathsep.join(part for part in sys.path if part)
    seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": seed}
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT], input=pickle.dumps(value), env=environment, capture_output=True, check=False
    )
    if done.returncode:
        last = done.stderr.decode().strip().splitlines()[-1:]
        raise RuntimeError(f"the value does not travel to another process: {' '.join(last)}")
    return done.stdout.decode().strip()
