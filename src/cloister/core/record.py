"""The record of a run's releases, and the journal that holds them before anybody sees them.

Marks of rows: a resumed run checks by them that its rows are those it began with.

Another data set, or a row that moved between the buckets of a round, would be counted twice under one charge. A mark is
a keyed hash (BLAKE2b; the key is a run's own secret), so that whoever sees marks without the key learns nothing of the
rows, not even whether two runs had the same. Marks are the data holder's, as is the validation pass: they are never
released, and outside the guarantee.

The same bytes are other rows under another encoding, delimiter or list of values, so that everything that says how
rows are read has a mark too, by the option that says it. Options are public: these marks need no secret, and can be
compared where it was lost.
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
"""Bytes of a key, and of a mark."""

OPTION = "--"
"""Begins the name of a mark of how rows are read: '--encoding (encoding=)'."""

ENGINE = "the engine"
"""The mark of the engine that rows are in."""

HOW_HASHED = "how rows are hashed"
"""The mark of the hash by which rows in a database are known again. Runs that began before it was mixed after a row's
last cell have none."""

Fingerprinter: TypeAlias = Callable[[bytes], Mapping[str, bytes]]
"""From a key to marks, each under the name of what it marks: 'the number of rows', 'the sizes of its files'."""


def fingerprinter(population: object) -> Fingerprinter:
    """A population's marks: its method ``fingerprints``; none of one whose rows cannot be recognised.

    Laws: the same rows in the same place give the same marks under one key, in any process; no message quotes a row.
    """
    found: Fingerprinter = getattr(population, "fingerprints", lambda key: {})
    return found


def fingerprint(key: bytes, pieces: Iterable[Any]) -> bytes:
    """A mark of a sequence of bytes or contiguous arrays; it depends on where each ends."""
    hasher = hashlib.blake2b(key=key, digest_size=SIZE)
    for piece in pieces:
        data = memoryview(piece).cast("B") if len(piece) else memoryview(b"")
        hasher.update(len(data).to_bytes(8, "little"))
        hasher.update(data)
    return hasher.digest()


def fingerprint_of(key: bytes, values: Iterable[str | int]) -> bytes:
    """A mark of names or numbers, in their order."""
    return fingerprint(key, (str(value).encode() for value in values))


def option_fingerprints(options: Mapping[str, Sequence[str | int]]) -> dict[str, bytes]:
    """Marks of how rows are read. Args: said, what each option says, by a name that begins with ``OPTION``.

    An option that says nothing leaves no mark: so a run of before there was the option goes on without it.
    """
    return {name: fingerprint_of(bytes(SIZE), [name, *values]) for name, values in options.items() if values}


def inside(key: bytes, name: str) -> bytes:
    """The key of a part: one party's rows, one run of a ledger."""
    return fingerprint_of(key, ("part", name))


@attrs.frozen(eq=False)
class Lookup:
    """One look at a table: the bucket ids asked for, and the answers.

    Args:
        round, question, level: which table and level; a flat bucketing has level 0 only. With ``AGREED``
            for a question, the level counts what was agreed after the round; with ``LISTED`` less the question, it
            was listed.
        error: whether standard errors were asked for instead of values.
        ids: bucket ids (m,).
        values: (m,) counts or errors, or (m, dim) sums.
    """

    round: int
    question: int
    level: int
    error: bool
    ids: Ints
    values: Floats


AGREED = -1
"""The question of a ``Lookup`` that is none: what a run found from released values, as ``Session.agreed`` says."""

LISTED = -2
"""Less a question, the question of a ``Lookup`` at nothing: this level was listed, so that 0 was said of all others."""


class Journal(Protocol):
    """Durable memory of a run. Each call returns only after the entry would survive a crash."""

    def open_round(self, index: int, digest: str) -> None:
        """Round ``index`` is charged and about to be asked."""
        ...

    def close_round(self, index: int) -> None:
        """The answers of round ``index`` are in: it is never asked of anybody again, except to look further."""
        ...

    def write(self, lookup: Lookup) -> None:
        """These values are about to be released."""
        ...


@attrs.define
class Record:
    """Everything released so far: the digest of each round, how many rounds are closed, every look in order.

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
    """Recorded values as the integers that they stand for: lattice points, whose norm is at most ``REACH`` (exact
    distances rest on it), or single steps. Args: computed (what they replace: their shape).

    Raises: Refused: they are none.
    """
    fits = values.size == computed.size and len(values) == len(computed) and bool((np.abs(values) <= 2 * REACH).all())
    if fits:
        points: Ints = np.rint(values).astype(np.int64).reshape(computed.shape)
        if computed.ndim == 1 or bool(((points * points).sum(axis=1) <= REACH**2).all()):
            return points
    raise Refused(f"cannot go on: the record does not hold {len(computed)} points on the lattice where the run has them")
