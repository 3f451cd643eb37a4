"""Work that travels to a worker pickled, and its result or failure on the way back.

Failures come back as text: a foreign error may quote rows.
"""

from __future__ import annotations

import functools
import importlib.metadata
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import attrs

from cloister.core.errors import CloisterError, InvalidInput, WorkerWarning


@attrs.frozen
class Failure:
    """Text of why a part failed: not every error can be pickled."""

    text: str


@functools.cache
def own_version() -> str:
    """Return the version of cloister in this process."""
    return importlib.metadata.version("cloister")


def packed(fn: Callable[[Any], Any]) -> bytes:
    """Return a function with all that it needs, pickled once for all parts.

    Raises:
        InvalidInput: some component cannot be pickled.
    """
    try:
        return pickle.dumps((own_version(), fn), pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise InvalidInput(f"a round of this method cannot be sent to workers: {error}. Use engine 'serial'") from None


@functools.lru_cache(maxsize=1)
def _unpacked(work: bytes) -> Any:
    """Return a packed function, once per worker and round: what bucketings compute at first use is then kept."""
    return pickle.loads(work)


def attempt(work: bytes, part: Any) -> Any:
    """Return a part's value, or a ``Failure``; runs in a worker."""
    try:
        version, fn = _unpacked(work)
    except (ImportError, AttributeError) as error:
        return Failure(f"a worker lacks what this run needs ({error}): install the same packages there")
    if version != own_version():
        return Failure(
            f"a worker runs cloister {own_version()}, this process {version}: install the same version there"
        )
    try:
        return fn(part)
    except CloisterError as error:
        return Failure(str(error))


def warn_lost(how: str) -> None:
    """Warn that a worker ended early. Args: how (it did)."""
    warnings.warn(WorkerWarning(f"a worker ended early ({how}): its part alone is done again"), stacklevel=3)


def result_of(result: Any) -> Any:
    """Return a value. Raises: InvalidInput: it is a ``Failure``."""
    if isinstance(result, Failure):
        raise InvalidInput(result.text)
    return result
