"""Passes over rows on several cores of one process: NumPy, SciPy and BLAS let other threads run while they compute."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from numbers import Integral
from typing import Any, TypeVar, final

import attrs

from cloister.core.errors import InvalidInput

P = TypeVar("P")
V = TypeVar("V")

MAX_THREADS = 1024


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def allowed() -> int:
    """How many threads a pass takes unless somebody says otherwise: as many as BLAS may take on this process's cores
    (``OMP_NUM_THREADS`` and its like, ``threadpoolctl.threadpool_limits``)."""
    return min([cores(), *(int(pool["num_threads"]) for pool in _blas().info())])


@cache
def _blas() -> Any:
    """The BLAS libraries of this process, NumPy's among them. To look for them takes 10 ms, longer than a pass over few
    rows; those that are loaded later have no part in a pass."""
    import numpy as np  # noqa: F401  # whose library is to be found
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def _checked(_: object, __: object, many: Any) -> None:
    if many is not None and (
        isinstance(many, bool) or not isinstance(many, Integral) or not 1 <= int(many) <= MAX_THREADS
    ):
        raise InvalidInput(f"threads is {many!r}: it must be a whole number between 1 and {MAX_THREADS}")


@final
@attrs.frozen
class Threads:
    """Works on parts in as many threads. Each computes on one core: products of blocks that stay in its cache are not
    divided further, which would take many times as long, also where there is one thread.

    Args: many (None: ``allowed``).
    """

    many: int | None = attrs.field(default=None, validator=_checked)

    def run(self, fn: Callable[[P], V], parts: Iterable[P]) -> Iterator[V]:
        """The value of each part, in order: what order parts were worked on in shows nowhere.

        Parts are taken in this thread, few ahead, so that memory does not grow with their number. What ``fn`` or the
        taking of a part raises is raised here, and nothing more is begun.
        """
        many = 1 if isinstance(parts, Sized) and len(parts) < 2 else self.many or allowed()
        if many == 1:
            with _blas().limit(limits=1):
                yield from map(fn, parts)
            return
        begun = deque[Future[V]]()
        with _blas().limit(limits=1), ThreadPoolExecutor(many, "cloister") as pool:
            try:
                for part in parts:
                    begun.append(pool.submit(fn, part))
                    if len(begun) > 2 * many:
                        yield begun.popleft().result()
                while begun:
                    yield begun.popleft().result()
            finally:
                for future in begun:
                    future.cancel()
