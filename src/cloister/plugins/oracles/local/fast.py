"""Optional compiled kernels for per-user work, which give the same bytes as the NumPy code.

They need the extra ``fast`` (numba). Without it, or if a kernel does not compile, or with ``CLOISTER_PLAIN=1``, the
NumPy code runs silently; nothing else in cloister knows whether numba is there.

Law: a kernel does in integers, or in single correctly rounded operations on floats, what the NumPy code beside its call
does, so that reports and sums are equal to the last byte. Tests compare them.

numba takes half a second to import, and a few seconds to compile what it has not cached: as long as NumPy takes for
several 100,000 users. So a kernel is used only after ``ENOUGH`` users of its own in this process. Only speed depends on
that count.

Kernels release the interpreter's lock: encode or absorb parts of the users on several threads.
"""

from __future__ import annotations

import os
from collections import Counter
from functools import cache
from typing import Any

import numpy as np

from cloister.plugin import Ids, PublicRng

PLAIN = "CLOISTER_PLAIN"
"""Environment variable that, set to anything, disables kernels. Read in every call."""

ENOUGH = 100_000
"""Users after which a kernel is compiled, or read from numba's cache."""

_passed: Counter[str] = Counter()
_broken: set[str] = set()


def run_kernel(name: str, users: int, *arguments: Any) -> bool:
    """Run a kernel of ``fast_kernels`` and return True, or return False with the arguments untouched.

    Args:
        name: of the kernel.
        users: number of users that the call is for.
        arguments: of the kernel, which writes its result into some of them.
    """
    if os.environ.get(PLAIN) or name in _broken:
        return False
    _passed[name] += users
    kernels = _kernels() if _passed[name] >= ENOUGH else None
    if kernels is None:
        return False
    try:
        getattr(kernels, name)(*arguments)
    except Exception:  # compilation failed: compiled kernels do not raise, so nothing was written
        _broken.add(name)
        return False
    return True


@cache
def _kernels() -> Any:
    """Return the module of kernels, or None if numba cannot be used."""
    try:
        from cloister.plugins.oracles.local import fast_kernels
    except Exception:
        return None
    return fast_kernels


def states(seeds: list[PublicRng]) -> Ids:
    """Return the words (2, seeds) that ``PublicRng.of_users`` adds before and xors after mixing, for each seed."""
    return np.frombuffer(b"".join(seed.key[:16] for seed in seeds), "<u8").astype(np.uint64).reshape(-1, 2).T.copy()
