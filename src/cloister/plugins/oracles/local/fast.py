"""The same bytes, sooner: compiled kernels for what every user costs, where the extra ``fast`` (numba) is installed.

Law: a kernel does in integers, or in single correctly rounded operations on floats, what the plain NumPy code beside
its call does, so that reports and sums are the same to the last byte. Tests compare them. Nothing else in cloister
knows whether numba is there; where it is not, or does not compile, or for ``CLOISTER_PLAIN=1``, the NumPy code runs,
without a word.

numba takes half a second to import, and a few seconds to compile what its cache does not have yet: as long as NumPy
takes for several 100,000 users. So every kernel starts to be used when ``ENOUGH`` users have passed by it in this
process. Only speed depends on that count.

Kernels run on the thread that calls them and let others run: encode or absorb parts of the users on several threads.
"""

from __future__ import annotations

import os
from collections import Counter
from functools import cache
from typing import Any

import numpy as np

from cloister.core.randomness import PublicRng
from cloister.core.types import Ids

PLAIN = "CLOISTER_PLAIN"
"""Set this environment variable (to anything) to keep to NumPy. It is looked at in every call."""

ENOUGH = 100_000
"""Users after which a kernel is compiled, or read from numba's cache."""


_passed: Counter[str] = Counter()
_broken: set[str] = set()


def ran(name: str, users: int, *arguments: Any) -> bool:
    """Whether a kernel of ``fast_kernels`` was run on these arguments, some of which it fills. If not, nothing has
    happened.

    Args:
        users: how many the call is for.
    """
    if os.environ.get(PLAIN) or name in _broken:
        return False
    _passed[name] += users
    kernels = _kernels() if _passed[name] >= ENOUGH else None
    if kernels is None:
        return False
    try:
        getattr(kernels, name)(*arguments)
    except Exception:  # numba compiles before it runs, and what is compiled does not raise: nothing was filled
        _broken.add(name)
        return False
    return True


@cache
def _kernels() -> Any:
    """The module of kernels, None if numba cannot be used."""
    try:
        from cloister.plugins.oracles.local import fast_kernels
    except Exception:
        return None
    return fast_kernels


def states(seeds: list[PublicRng]) -> Ids:
    """Words that ``PublicRng.of_users`` adds before it mixes and flips after that, for each seed: (2, seeds)."""
    return np.frombuffer(b"".join(seed.key[:16] for seed in seeds), "<u8").astype(np.uint64).reshape(-1, 2).T.copy()
