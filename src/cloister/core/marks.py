"""Marks of rows: by which a run that goes on knows whether its rows are those that it began with.

Another data set, or a row that moved between the buckets of a round, would be counted twice under one charge. A mark is
a keyed hash (BLAKE2b; the key is a run's own secret), so that whoever sees marks without the key learns nothing of the
rows, not even whether two runs had the same. Marks are the data holder's, as is the validation pass: they are never
released, and outside the guarantee.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, TypeAlias, runtime_checkable

SIZE = 32
"""Bytes of keys and of marks."""

Marking: TypeAlias = Callable[[bytes], Mapping[str, bytes]]
"""From a key to marks, by what they are marks of, in words: 'the number of rows', 'the sizes of its files'."""


@runtime_checkable
class Marked(Protocol):
    """A population that can be known again.

    Laws: the same rows in the same place give the same marks under one key, in another process too; no message quotes a
    row.
    """

    def marks(self, key: bytes) -> Mapping[str, bytes]: ...


def marking(population: Any) -> Marking:
    """How a population is known again: not at all, unless it says how."""
    return population.marks if isinstance(population, Marked) else lambda key: {}


def mark(key: bytes, pieces: Iterable[Any]) -> bytes:
    """A mark of bytes, or of arrays (contiguous), one after the other; where one ends and the next begins is part of
    it."""
    found = hashlib.blake2b(key=key, digest_size=SIZE)
    for piece in pieces:
        data = memoryview(piece).cast("B") if len(piece) else memoryview(b"")
        found.update(len(data).to_bytes(8, "little"))
        found.update(data)
    return found.digest()


def mark_of(key: bytes, values: Iterable[str | int]) -> bytes:
    """A mark of names or numbers, in their order."""
    return mark(key, (str(value).encode() for value in values))


def inside(key: bytes, name: str) -> bytes:
    """The key of a part: one party's rows, one run of a ledger."""
    return mark_of(key, ("part", name))
