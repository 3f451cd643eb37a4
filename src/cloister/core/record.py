"""Record of a run's releases, its durable journal, and fingerprints of the rows that it began with.

A resumed run compares fingerprints, since another data set, or a row that moved between the buckets of a round, would
be counted twice under one charge. A fingerprint is a keyed hash (BLAKE2b; the key is a run's own secret), so that
without the key it reveals nothing of the rows, not even whether two runs had the same. Like the validation pass,
fingerprints are for the data holder alone: never released, and outside the guarantee.

The same bytes are other rows under another encoding, delimiter or list of values, so that every option on how rows are
read has a fingerprint too. Options are public: these fingerprints need no secret, and can be compared if it is lost.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import attrs
import numpy as np

from cloister.core.domains import REACH
from cloister.core.errors import Refused
from cloister.core.types import Floats, Ints

SIZE = 32
"""Bytes of a key, and of a fingerprint."""

OPTION = "--"
"""Prefix of the names of options' fingerprints: '--encoding (encoding=)'."""

ENGINE = "the engine"
"""Name of the fingerprint of the engine that rows are in."""

HOW_HASHED = "how rows are hashed"
"""Name of the fingerprint of the hash by which rows in a database are recognised. Runs that began before it was mixed
after a row's last cell have none."""

Fingerprinter: TypeAlias = Callable[[bytes], Mapping[str, bytes]]
"""Function from a key to fingerprints by name: 'the number of rows', 'the sizes of its files'."""


def fingerprinter(population: object) -> Fingerprinter:
    """Return a population's method ``fingerprints``, or a function without any if its rows cannot be recognised.

    Laws: the same rows in the same place have the same fingerprints under one key, in any process; no message quotes a
    row.
    """
    fingerprints: Fingerprinter = getattr(population, "fingerprints", lambda key: {})
    return fingerprints


def fingerprint(key: bytes, pieces: Iterable[Any]) -> bytes:
    """Return the fingerprint of a sequence of bytes or contiguous arrays; it depends on where each ends."""
    hasher = hashlib.blake2b(key=key, digest_size=SIZE)
    for piece in pieces:
        data = memoryview(piece).cast("B") if len(piece) else memoryview(b"")
        hasher.update(len(data).to_bytes(8, "little"))
        hasher.update(data)
    return hasher.digest()


def fingerprint_of(key: bytes, values: Iterable[str | int]) -> bytes:
    """Return the fingerprint of names or numbers, in their order."""
    return fingerprint(key, (str(value).encode() for value in values))


def option_fingerprints(options: Mapping[str, Sequence[str | int]]) -> dict[str, bytes]:
    """Return the fingerprints of options on how rows are read, given values by names that begin with ``OPTION``.

    An option without values has none, so that runs from before the option existed can be resumed.
    """
    return {name: fingerprint_of(bytes(SIZE), [name, *values]) for name, values in options.items() if values}


def subkey(key: bytes, name: str) -> bytes:
    """Return the key of a part: one party's rows, one run of a ledger."""
    return fingerprint_of(key, ("part", name))


@attrs.frozen(eq=False)
class Lookup:
    """Look at a table: the bucket ids asked for, and the answers.

    Args:
        round, question, level: the table and its level; a flat bucketing has level 0 only. With the question
            ``AGREED``, the level counts the agreements after the round; with ``LISTED`` less the question, it was
            listed.
        error: whether standard errors were asked for instead of values.
        ids: bucket ids (m,).
        values: counts or errors (m,), or sums (m, dimension).
    """

    round: int
    question: int
    level: int
    error: bool
    ids: Ints
    values: Floats


AGREED = -1
"""Question of a ``Lookup`` that holds integers computed from released values (``Session.agreed``)."""

LISTED = -2
"""Less a question, the question of an empty ``Lookup``: the level was listed, which released 0 for other buckets."""


class Journal(Protocol):
    """Durable memory of a run. Each call returns only after the entry would survive a crash."""

    def open_round(self, index: int, digest: str) -> None:
        """Record that round ``index`` is charged and about to be asked."""
        ...

    def close_round(self, index: int) -> None:
        """Record that the answers of round ``index`` are in: it is asked again only to look further."""
        ...

    def write(self, lookup: Lookup) -> None:
        """Record values that are about to be released."""
        ...


@attrs.define
class Record:
    """Everything released so far: the digest of each round, the number of closed rounds, every look in order.

    A run that starts from a record replays it: the same public choices, the same values, nothing paid twice.
    """

    digests: list[str] = attrs.field(factory=list)
    closed: int = 0
    lookups: list[Lookup] = attrs.field(factory=list)

    def open_round(self, index: int, digest: str) -> None:
        if index == len(self.digests):
            self.digests.append(digest)

    def close_round(self, index: int) -> None:
        self.closed = max(self.closed, index + 1)

    def write(self, lookup: Lookup) -> None:
        self.lookups.append(lookup)


def checkpointed(values: Floats, computed: Ints) -> Ints:
    """Return recorded values as integers: single steps, or lattice points of norm at most ``REACH``.

    Args:
        values: recorded.
        computed: the integers that they replace, of the same shape.

    Raises:
        Refused: they are no such integers.
    """
    fits = values.size == computed.size and len(values) == len(computed) and bool((np.abs(values) <= 2 * REACH).all())
    if fits:
        points: Ints = np.rint(values).astype(np.int64).reshape(computed.shape)
        # the proof of exact distances needs norms of at most REACH
        if computed.ndim == 1 or bool(((points * points).sum(axis=1) <= REACH**2).all()):
            return points
    raise Refused(
        f"cannot go on: the record does not hold {len(computed)} points on the lattice where the run has them"
    )
