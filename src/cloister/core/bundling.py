"""What a round's public objects tell devices that run no Python: plain data for a client bundle.

An object that a device needs (a bucketing, vectors, a channel) describes itself by ``bundled``: a JSON object whose
``kind`` names one of the forms in the specification (``docs/reference/format.md``), with everything public already
worked out. Arrays go beside the JSON, into one binary file; 64-bit integers are decimal text, since many JSON readers
round them; keys are what ``PublicRng.of_users`` uses of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, final, runtime_checkable

import numpy as np

from cloister.core.errors import Refused
from cloister.core.randomness import PublicRng
from cloister.core.types import AnyArray

ALIGNED = 8
"""Every array starts at a multiple of so many bytes."""


@final
class BundleArrays:
    """The binary arrays of a bundle, little-endian, one after the other. ``content``: the file so far."""

    def __init__(self) -> None:
        self.content = bytearray()
        self._known = dict[tuple[str, bytes], int]()

    def add(self, values: AnyArray) -> dict[str, Any]:
        """Store an array; what the JSON says in its place: {"at": first byte, "type": "i4", "i8" or "f8", "shape":
        [...]}. Integers take 4 bytes each where all of them fit; what is stored already is not stored again."""
        if values.dtype.kind == "f":
            kind = "f8"
        else:
            fits = not values.size or (int(values.min()) >= -(2**31) and int(values.max()) < 2**31)
            kind = "i4" if fits else "i8"
        content = np.ascontiguousarray(values, f"<{kind}").tobytes()
        at = self._known.setdefault((kind, content), len(self.content))
        if at == len(self.content):
            self.content += content + bytes(-len(content) % ALIGNED)
        return {"at": at, "type": kind, "shape": list(values.shape)}


@runtime_checkable
class Bundled(Protocol):
    """An object that devices in any language can be told of."""

    def bundled(self, arrays: BundleArrays) -> Mapping[str, Any]:
        """Its description, with "kind". Args: arrays (takes what is no plain data)."""
        ...


def key(rng: PublicRng) -> str:
    """The 16 bytes of a public key that ``PublicRng.of_users`` uses, in hex: what is added, what flips."""
    return rng.key[:16].hex()


EXACT_JSON = 2**53
"""From here on an integer of JSON is decimal text: many readers hold numbers in float64."""


def integers(values: Iterable[int]) -> list[int | str]:
    """Integers of which few are large: JSON integers below 2^53, decimal text from there on."""
    return [value if abs(value) < EXACT_JSON else str(value) for value in map(int, values)]


def described(part: object, arrays: BundleArrays) -> Mapping[str, Any]:
    """A public object's description. Raises: Refused if its class has none: it is of a plugin that predates bundles."""
    if not isinstance(part, Bundled):
        raise Refused(
            f"{type(part).__name__} cannot be described to devices that run no Python: ask the author of its plugin "
            f"for a method 'bundled' (cloister.core.bundling)"
        )
    return part.bundled(arrays)
