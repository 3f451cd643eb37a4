"""The files that a shuffler releases: of fixed shape (``wire.releases``), so that they reveal nothing.

Uniformly random permutation of more messages than fit into memory.

Every message goes to one of B files, each with the same probability and independently; then each file is read and
permuted uniformly in memory, and the files follow one another. All n! orders are equally likely (Rao 1961; Sandelius
1962): an order comes out if, for some sizes n_1 + .. + n_B = n, its first n_1 messages went to the first file and so
on, which has probability B^-n, and each file was put in just that order, which has probability 1 / (n_1! .. n_B!). The
sum over the sizes does not depend on the order.

Exact: B is a power of two, so that bits of a secret word choose the file; within a file, messages are sorted by secret
64-bit words, drawn anew if two are equal; distinct words are in uniform order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO, final

import attrs
import numpy as np

from cloister.collection.plan.canonical_json import flush
from cloister.collection.wire.packing import Packed
from cloister.collection.wire.releases import ReleasedFile, ReleaseForm
from cloister.core.errors import InvalidInput
from cloister.core.randomness import NoiseRng
from cloister.core.types import Ids, Ints

FILES = 128
"""B. With 1e8 messages a file holds 800,000. Some systems let a process open no more than 256 files."""


@final
class Scattered:
    """Records of one width, scattered over files.

    Args:
        folder: an empty folder that nobody else writes. Its content nearly reveals the order of arrival: remove it
            afterwards.
        width: bytes of a record.
        rng: secret, except in tests.
        files: B, a power of two.
    """

    def __init__(self, folder: Path, width: int, rng: NoiseRng, files: int = FILES) -> None:
        if not 1 <= files <= 2**16 or files & (files - 1):
            raise InvalidInput(f"the number of files to scatter over must be a power of two up to 2^16, not {files}")
        self.count, self.folder, self._width, self._files, self._rng = 0, folder, width, files, rng
        self._paths = [folder / f"{i:04}" for i in range(files)]
        self._open: list[BinaryIO] = [path.open("xb") for path in self._paths]

    def add(self, records: Packed) -> None:
        """Scatter records (n, width)."""
        words = _words(self._rng, "scatter", np.arange(self.count, self.count + len(records), dtype=np.uint64))
        target = (words & np.uint64(self._files - 1)).astype(np.uint16)
        order = np.argsort(target, kind="stable")
        ordered = np.ascontiguousarray(records[order])
        ends = np.cumsum(np.bincount(target, minlength=self._files)).tolist()
        start = 0
        for file, end in zip(self._open, ends, strict=True):
            if end > start:
                file.write(ordered[start:end].data)
            start = end
        self.count += len(records)

    def shuffled(self) -> Iterator[Packed]:
        """Yield all records in uniformly random order, one file's at a time; each file is removed once it is read."""
        self.close()
        for number, path in enumerate(self._paths):
            data = np.fromfile(path, np.uint8).reshape(-1, self._width)
            path.unlink()
            if len(data):
                yield data[uniform_order(self._rng, len(data), number)]

    def close(self) -> None:
        """Close the files."""
        for file in self._open:
            file.close()


def uniform_order(rng: NoiseRng, size: int, number: int) -> Ints:
    """A uniformly random permutation of ``size`` records. Args: number (of their file)."""
    for attempt in range(1000):
        keys = _words(rng, f"order {number} {attempt}", np.arange(size, dtype=np.uint64))
        order = np.argsort(keys)
        ascending = keys[order]
        if not (ascending[1:] == ascending[:-1]).any():
            return np.asarray(order, np.int64)
    raise AssertionError("secret words were equal 1000 times: they are not random")


def _words(rng: NoiseRng, purpose: str, positions: Ids) -> Ids:
    drawn: Ids = rng.child(purpose).words(positions, 1)[:, 0]
    return drawn


GROUP, FILE = 2**17, 2**23
"""Most messages of a batch, and messages of a file."""


@final
@attrs.frozen
class Release:
    """Files of shuffled messages. Args: folder, form, name (of the shuffle, 16 bytes), messages (in all files)."""

    folder: Path
    form: ReleaseForm
    name: bytes
    messages: int

    @property
    def files(self) -> int:
        """How many there are."""
        return -(-self.messages // FILE)

    def span(self, number: int) -> tuple[int, int]:
        """First position of a file's messages among all, and the first after them."""
        return number * FILE, min((number + 1) * FILE, self.messages)

    def path(self, number: int) -> Path:
        """Where a file belongs."""
        return self.folder / f"part-{number:06}.messages"

    def write_all(self, records: Iterable[Packed], told: Callable[[int], None]) -> None:
        """Write all files. Args: records (all, in order), told (called with the number of messages just written)."""
        pieces = cut(records, self._batch)
        for number in range(self.files):
            self.write(self.path(number), number, islice(pieces, -(-FILE // self._batch)), told)

    def write(
        self, path: Path, number: int, records: Iterable[Packed], told: Callable[[int], None] = lambda n: None
    ) -> int:
        """Write one of the files into a new one. Args: records (all of this file, in order). Returns: how many."""
        start, stop = self.span(number)
        place, left = ReleasedFile(self.name, number, self.files, stop - start), stop - start
        with path.open("xb") as file:
            file.write(self.form.begin(place))
            for index, piece in enumerate(cut(records, self._batch)):
                file.write(self.form.batch(place, index, piece))
                left -= len(piece)
                told(len(piece))
            assert not left, "a file of the release lacks messages"
            flush(file)
        return stop - start

    @property
    def _batch(self) -> int:
        """Messages of a batch: a power of two, so that files end where batches do."""
        most = min(GROUP, self.form.most)
        return 1 << (most.bit_length() - 1)


def cut(pieces: Iterable[Packed], size: int) -> Iterator[Packed]:
    """Yield the same records in pieces of one size, the last one perhaps shorter."""
    held, count = list[Packed](), 0
    for piece in pieces:
        held.append(piece)
        count += len(piece)
        if count >= size:
            whole = np.concatenate(held)
            for start in range(0, count - size + 1, size):
                yield whole[start : start + size]
            held = [whole[count - count % size :]]
            count %= size
    if count:
        yield np.concatenate(held)
