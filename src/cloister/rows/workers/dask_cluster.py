"""Workers of a Dask cluster: one that is started here, or a running one."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar, final

import dask.config
import distributed
from distributed.client import FutureCancelledError

from cloister.core.errors import InvalidInput, PrivacyWarning
from cloister.rows.workers.processes import GUARD
from cloister.rows.workers.work import attempt, packed, result_of, warn_lost

P = TypeVar("P")
V = TypeVar("V")

PATIENCE, GREETING = 30, 2
"""Seconds to wait for a scheduler's first worker, and for the scheduler to answer at all."""

CLUSTER: dict[str, Any] = {
    "distributed.scheduler.http.routes": [],  # pages over HTTP ask for no key
    "distributed.worker.http.routes": [],
    # nobody looks at what a worker's watchers find, and they take a tenth of its time or more
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "10s",
    # Dask makes glibc give memory back at once, which doubles the time of chunks: they need it again (see
    # ``keep_memory``)
    "distributed.nanny.pre-spawn-environ": {
        "MALLOC_TRIM_THRESHOLD_": 2**26,
        "MALLOC_MMAP_THRESHOLD_": 2**25,
        "OMP_NUM_THREADS": 1,
        "MKL_NUM_THREADS": 1,
        "OPENBLAS_NUM_THREADS": 1,
    },
}
"""Settings of a cluster that is started here, besides Dask's own."""


@final
class Dask:
    """Workers under a Dask scheduler.

    It repeats the tasks of a worker that ends early, also those that were done and whose results had not been fetched;
    a task on which four workers ended is given up, and the question with it.

    Args:
        workers: processes of a cluster on this machine, which is started at first use. Its ports answer this process
            only (TLS with keys made for the occasion), and its memory is never spilled to disk: summaries are exact.
        scheduler: address of a running scheduler instead. Its workers need the same version of cloister and the same
            files under the same absolute paths.
    """

    apart = True

    def __init__(self, workers: int, scheduler: str | None = None) -> None:
        self._workers, self._scheduler = workers, scheduler
        self.elsewhere = scheduler is not None
        self._cluster: distributed.LocalCluster | None = None
        self._client: distributed.Client | None = None

    def run(self, fn: Callable[[P], V], parts: Iterable[P]) -> Iterator[V]:
        """Yield the value of each part. Raises: InvalidInput: a part fails, or scheduler or workers are gone."""
        client, work = self.client(), packed(fn)
        client.subscribe_topic("all", _warn_lost_worker)
        # not pure: a key that follows from the arguments would bring back what an earlier run left
        futures = client.map(partial(attempt, work), list(parts), pure=False)
        unfinished = set(futures)
        del futures
        try:
            # fetched as soon as they are there, since a worker's death costs those that it still has
            for future, value in distributed.as_completed(
                list(unfinished), loop=client.loop, with_results=True, raise_errors=False
            ):
                result = value if future.status == "finished" else _result_or_raise(future)
                unfinished.discard(future)
                del future
                yield result_of(result)
        finally:
            with contextlib.suppress(Exception):  # the scheduler may be what failed
                client.unsubscribe_topic("all")
                if unfinished:
                    client.cancel(list(unfinished))

    def client(self) -> distributed.Client:
        """Return the connection, made when it is first needed."""
        if self._client is None:
            # it logs tracebacks of its own about what is raised here as one line
            logging.getLogger("distributed").setLevel(logging.CRITICAL)
            if self._scheduler is not None and in_clear(self._scheduler):
                words = (
                    f"exact sums of rows travel in clear between here and the Dask cluster at '{self._scheduler}', and "
                    f"whoever is on the way can change what is run: give it TLS, and its address as tls://..."
                )
                warnings.warn(PrivacyWarning(words), stacklevel=2)
            self._client = self._started() if self._scheduler is None else self._connected(self._scheduler)
        return self._client

    def _started(self) -> distributed.Client:
        settings: dict[str, Any] = {
            "n_workers": self._workers,
            "threads_per_worker": 1,
            "processes": True,
            "memory_limit": 0,
            "security": True,
            "silence_logs": logging.CRITICAL,
            "scheduler_kwargs": {"dashboard": False, "dashboard_address": "127.0.0.1:0"},
        }
        try:
            with dask.config.set(CLUSTER):
                self._cluster = distributed.LocalCluster(**settings)
        except RuntimeError as error:
            raise InvalidInput(f"no Dask cluster could be started: {GUARD}") from error
        return distributed.Client(self._cluster, set_as_default=False)

    def _connected(self, address: str) -> distributed.Client:
        try:
            with ThreadPoolExecutor(1) as apart:  # a notebook has a running loop already
                apart.submit(asyncio.run, _shake_hands(address)).result()
            client = distributed.Client(address, timeout=PATIENCE, set_as_default=False)
        except Exception:
            # of any kind: what another service says on that port is read as lengths and messages of Dask's
            raise InvalidInput(
                f"no Dask scheduler answers at '{address}': give the address that the scheduler prints, not "
                f"that of its dashboard"
            ) from None
        try:
            client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError:
            client.close()
            raise InvalidInput(f"the Dask scheduler at '{address}' has no workers") from None
        return client

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None


def in_clear(address: str) -> bool:
    """Return True if others can read what is sent to a Dask address: it has no TLS, and is on another machine."""
    kind, _, place = address.rpartition("://")
    host = place.rpartition(":")[0].strip("[]")
    with contextlib.suppress(ValueError):
        return kind not in ("tls", "wss", "inproc") and not ipaddress.ip_address(host).is_loopback
    return kind not in ("tls", "wss", "inproc") and host != "localhost"


async def _shake_hands(address: str) -> None:
    """Shake hands with a scheduler and leave.

    A ``Client`` that fails at this reports it once more, at length, when it is thrown away.
    """
    from distributed.comm.core import connect

    arguments = distributed.Security().get_connection_args("client")
    await (await connect(address, timeout=GREETING, **arguments)).close()


def _warn_lost_worker(event: tuple[float, Any]) -> None:
    """Warn that a worker ended early with something to do. Args: event (of the scheduler, with its time)."""
    fields = event[1]
    if fields.get("action") == "remove-worker" and not fields["expected"] and fields["processing-tasks"]:
        warn_lost(f"Dask's at {fields['worker']}")


def _result_or_raise(future: Any) -> Any:
    """Raise InvalidInput where Dask itself failed.

    What a part's own code raises is a defect, unless it is an error of cloister.
    """
    try:
        return future.result()
    except distributed.KilledWorker as error:
        last = getattr(error.last_worker, "address", error.last_worker)
        raise InvalidInput(
            f"four Dask workers in a row ended on the same part (killed, or out of memory?), at last {last}: nothing "
            f"was answered"
        ) from None
    except ImportError as error:
        raise InvalidInput(
            f"a Dask worker lacks what this run needs ({error}): install the same packages there"
        ) from None
    except (OSError, TimeoutError, FutureCancelledError) as error:
        raise InvalidInput(
            f"the Dask cluster went away while it worked ({type(error).__name__}): nothing was answered"
        ) from None
