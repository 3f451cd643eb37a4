"""Public buckets: how many there are, which one a row falls in, and which (private) vectors are summed in each.

Devices that run no Python get them as a client bundle. Each object that a device needs (a bucketing, vectors, a
channel) describes itself by ``bundled``: a JSON object whose ``kind`` names one of the forms in the specification
(``docs/reference/format.md``), with everything public already worked out. Arrays go into one binary file beside the
JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Protocol, final, runtime_checkable

import attrs
import numpy as np

from cloister.core.errors import InvalidInput, Refused
from cloister.core.lattice import Bound
from cloister.core.randomness import PublicRng
from cloister.core.types import AnyArray, Ints

ALIGNED = 8
"""Alignment of the arrays in a bundle, in bytes."""


@final
class BundleArrays:
    """Binary arrays of a bundle, little-endian, one after the other.

    Attributes:
        content: the file so far.
    """

    def __init__(self) -> None:
        self.content = bytearray()
        self._stored = dict[tuple[str, bytes], int]()

    def add(self, values: AnyArray) -> dict[str, Any]:
        """Store an array once, integers in 4 bytes each if all fit, and return its reference for the JSON.

        Returns:
            {"at": first byte, "type": "i4", "i8" or "f8", "shape": [...]}.
        """
        if values.dtype.kind == "f":
            kind = "f8"
        else:
            fits = not values.size or (int(values.min()) >= -(2**31) and int(values.max()) < 2**31)
            kind = "i4" if fits else "i8"
        content = np.ascontiguousarray(values, f"<{kind}").tobytes()
        at = self._stored.setdefault((kind, content), len(self.content))
        if at == len(self.content):
            self.content += content + bytes(-len(content) % ALIGNED)
        return {"at": at, "type": kind, "shape": list(values.shape)}


@runtime_checkable
class Bundled(Protocol):
    """Object that can be described to devices in any language."""

    def bundled(self, arrays: BundleArrays) -> Mapping[str, Any]:
        """Return its description, with "kind"; store its arrays in ``arrays``."""
        ...


def hex_key(rng: PublicRng) -> str:
    """Return the 16 bytes of a public key that ``PublicRng.of_users`` uses, in hex: 8 to add, 8 to flip bits by."""
    return rng.key[:16].hex()


EXACT_JSON = 2**53
"""Bound from which an integer is written as decimal text: many JSON readers hold numbers in float64."""


def json_integers(values: Iterable[int]) -> list[int | str]:
    """Return JSON integers below 2^53, and decimal text from there on."""
    return [value if abs(value) < EXACT_JSON else str(value) for value in map(int, values)]


def describe_part(part: object, arrays: BundleArrays) -> Mapping[str, Any]:
    """Return a public object's description.

    Raises:
        Refused: its class has no ``bundled``.
    """
    if not isinstance(part, Bundled):
        raise Refused(
            f"{type(part).__name__} cannot be described to devices that run no Python: ask the author of its plugin "
            f"for a method 'bundled' (cloister.plugin.Bundled)"
        )
    return part.bundled(arrays)


@final
@attrs.frozen
class Space:
    """Numbers of buckets: ids of level l are 0 <= id < sizes[l]; -1 means 'in no bucket'.

    Args:
        sizes: buckets per level, coarse levels first.
        nested: each level halves the next one: a row's id at level l is its id at level l + 1, shifted right by one bit
            (and -1 at all levels or none). Counting rows at the deepest level is then enough.

    Raises:
        InvalidInput: a nested level does not have half as many buckets as the next one, rounded up.
    """

    sizes: tuple[int, ...]
    nested: bool = False

    def __attrs_post_init__(self) -> None:
        halves = tuple((size + 1) // 2 for size in self.sizes[1:])
        if self.nested and self.sizes[:-1] != halves:
            raise InvalidInput(f"each level of a nested space must have half the next one's buckets, not {self.sizes}")

    @property
    def levels(self) -> int:
        return len(self.sizes)


@final
@attrs.frozen
class QuestionContext:
    """Public facts about one question, the same on every machine.

    Args:
        rows: public number of rows (users) asked; for a share of the users, the expected number.
        unit: the lattice's spacing in the caller's units.
        seed: the public key of this question alone.
        people: public number of users of the round, asked this question or not (default: ``rows``). If a shuffler mixes
            their messages and roles are private, all of them hide each other.
    """

    rows: int
    unit: float
    seed: PublicRng
    people: int = attrs.field(default=attrs.Factory(lambda self: self.rows, takes_self=True))


class Bucketing(Protocol):
    """Public map from a row to its bucket on each level, made of the plan and of answers, never of rows.

    Laws: a row's bucket is a function of that row alone, on exact integers, ties to the lowest id: the same alone, in
    any batch and in any order, on every machine (a floating-point matrix product is not). A bucketing is plain data
    with a digest: a frozen attrs class of numbers, text, arrays and such classes. It is thread-safe. Ids outside its
    space are refused, whichever oracle is asked (``core.encoding``).

    To serve devices without Python, bucketings and vectors also implement ``Bundled``.
    """

    @property
    def space(self) -> Space:
        """Number of buckets of each level."""
        ...

    def locate(self, rows: Ints) -> Ints:
        """Return the bucket ids (n, levels), int64, of lattice rows (n, d); -1 for none."""
        ...


class Vectors(Protocol):
    """Map from a row to a vector, to be summed per bucket of ``cells``; vectors beyond ``bound`` are clipped to it."""

    @property
    def cells(self) -> Bucketing: ...

    @property
    def bound(self) -> Bound: ...

    def values(self, rows: Ints, buckets: Ints) -> Ints:
        """Return the vectors (n, dimension) of lattice rows (n, d), given their bucket ids (n, levels)."""
        ...


@final
@attrs.frozen(eq=False)
class FinestLevel:
    """Last level of a bucketing, alone: levels that nobody asks about cost nothing. Args: levels."""

    levels: Bucketing

    digest_tag: ClassVar = "cloister.Finest"

    @property
    def space(self) -> Space:
        return Space(self.levels.space.sizes[-1:])

    def locate(self, rows: Ints) -> Ints:
        return self.levels.locate(rows)[:, -1:]

    def bundled(self, arrays: BundleArrays) -> Mapping[str, Any]:
        return {"kind": "last", "sizes": json_integers(self.space.sizes), "of": describe_part(self.levels, arrays)}


@final
@attrs.frozen(eq=False)
class BucketedVectors:
    """Vectors (n, dimension) with the buckets (n, levels) that they are added to."""

    buckets: Ints = attrs.field(repr=False)
    values: Ints = attrs.field(repr=False)
