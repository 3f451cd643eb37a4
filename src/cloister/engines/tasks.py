"""What travels to an engine's workers, and how its failures come back: as text, since a foreign error may quote
rows."""

from __future__ import annotations

import functools
import importlib.metadata
import pickle
from collections.abc import Callable
from typing import Any

import attrs

from cloister.core.errors import CloisterError, InvalidInput


@attrs.frozen
class Failure:
    """Why a part failed, as text: not every error can be pickled, and a foreign one may quote rows."""

    text: str


@functools.cache
def own_version() -> str:
    """Of cloister, in this process."""
    return importlib.metadata.version("cloister")


def packed(fn: Callable[[Any], Any]) -> bytes:
    """A function with all that it needs, pickled once for all parts.

    Raises:
        InvalidInput: some component cannot travel.
    """
    try:
        return pickle.dumps((own_version(), fn), pickle.HIGHEST_PROTOCOL)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise InvalidInput(f"a round of this method cannot be sent to workers: {error}. Use engine 'serial'") from None


@functools.lru_cache(maxsize=1)
def _unpacked(work: bytes) -> Any:
    """Once per worker and round: what bucketings compute when they are first used is then kept."""
    return pickle.loads(work)


def attempt(work: bytes, part: Any) -> Any:
    """In a worker: the part's value, or a ``Failure``."""
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


def settled(result: Any) -> Any:
    """Raises: InvalidInput in place of a ``Failure``."""
    if isinstance(result, Failure):
        raise InvalidInput(result.text)
    return result
