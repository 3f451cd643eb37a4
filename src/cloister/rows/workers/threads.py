"""Threads of this process that work on parts of a pass, and the cores that they may use.

NumPy, SciPy and BLAS let other threads run while they compute.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from functools import cache
from numbers import Integral
from threading import Event, local
from typing import Any, TypeVar, final

import attrs

from cloister.core.errors import InvalidInput

P = TypeVar("P")
V = TypeVar("V")

MAX_THREADS = 1024

SLICE = 0.1
"""Seconds between two checks for Ctrl-C."""


def cores() -> int:
    """Return how many cores this process may use, the default number of workers.

    Those are the cores that it is bound to, and no more than its container's share of time is worth. For threads see
    ``default_threads``.
    """
    from joblib import cpu_count

    return int(cpu_count())


def default_threads() -> int:
    """Return the default number of threads of a pass: one per core, or ``OMP_NUM_THREADS`` if that is fewer.

    Variables of BLAS libraries limit those alone.
    """
    limit = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    return min(cores(), int(limit)) if limit.isdecimal() and int(limit) else cores()


@cache
def _blas() -> Any:
    """Return the BLAS libraries of this process, NumPy's among them.

    Looking for them takes 10 ms, longer than a pass over few rows. Those that are loaded later have no part in a pass.
    """
    import numpy as np  # noqa: F401  # whose library is to be found
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def _checked(_: object, __: object, count: Any) -> None:
    if count is not None and (
        isinstance(count, bool) or not isinstance(count, Integral) or not 1 <= int(count) <= MAX_THREADS
    ):
        raise InvalidInput(f"threads is {count!r}: it must be a whole number between 1 and {MAX_THREADS}")


@final
@attrs.frozen
class Threads:
    """Threads that work on parts.

    Each computes on one core: products of blocks that stay in its cache are not divided further, which would take many
    times as long, also where there is one thread. A thread may work on a part's own parts by ``Threads``, too: it ends
    before the next of them once the whole has failed, or was interrupted.

    Args:
        many: number of threads; None: ``default_threads``.
    """

    many: int | None = attrs.field(default=None, validator=_checked)

    @property
    def count(self) -> int:
        """Number of threads."""
        return self.many or default_threads()

    @property
    def words(self) -> str:
        return f"{self.count} thread{'s' * (self.count > 1)}"

    def run(self, fn: Callable[[P], V], parts: Iterable[P]) -> Iterator[V]:
        """Yield the value of each part, in order: the order in which parts were worked on shows nowhere.

        Parts are taken in this thread, few ahead, so that memory does not grow with their number. What ``fn`` or the
        taking of a part raises is raised here, and nothing more is begun.
        """
        count = 1 if isinstance(parts, Sized) and len(parts) < 2 else self.count
        if count == 1:
            with _blas().limit(limits=1):
                for part in parts:
                    _whole.raise_if_over()
                    yield fn(part)
            return
        begun, over = deque[Future[V]](), Event()
        with _blas().limit(limits=1), ThreadPoolExecutor(count, "cloister", _whole.join, (over,)) as pool:
            try:
                for part in parts:
                    _whole.raise_if_over()
                    begun.append(pool.submit(fn, part))
                    if len(begun) > 2 * count:
                        yield _wait_for(begun.popleft())
                while begun:
                    yield _wait_for(begun.popleft())
            finally:
                over.set()
                for future in begun:
                    future.cancel()


class _Whole(local):
    """Work that this thread does a part of."""

    over: Event | None = None

    def join(self, over: Event) -> None:
        self.over = over

    def raise_if_over(self) -> None:
        """Raise CancelledError once the whole is over."""
        if self.over is not None and self.over.is_set():
            raise CancelledError


_whole = _Whole()


def _wait_for(future: Future[V]) -> V:
    """Return the result of a thread."""
    # in slices: a library that handles signals too, as Polars does, lets the system take up an endless wait again, and
    # Python never learns of a Ctrl-C
    while wait([future], SLICE).not_done:
        pass
    return future.result()
