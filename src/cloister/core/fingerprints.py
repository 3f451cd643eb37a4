"""Fingerprints of rows, by which a resumed run checks that its rows are those it began with.

Another data set, or a row that moved between the buckets of a round, would be counted twice under one charge. A
fingerprint is a keyed hash (BLAKE2b; the key is a run's own secret), so that without the key it reveals nothing of the
rows, not even whether two runs had the same. Like the validation pass, fingerprints are for the data holder alone:
never released, and outside the guarantee.

The same bytes are other rows under another encoding, delimiter or list of values, so that every option on how rows are
read has a fingerprint too. Options are public: these fingerprints need no secret, and can be compared if it is lost.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

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
