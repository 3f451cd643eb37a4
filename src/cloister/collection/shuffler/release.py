"""What a shuffler releases: all messages in uniformly random order, in files of fixed shape (``wire.messages``).

There may be more messages than fit into memory. Every message goes to one of B files, each with the same probability
and independently; then each file is read and permuted uniformly in memory, and the files follow one another. All n!
orders are equally likely (Rao 1961; Sandelius 1962): an order comes out if, for some sizes n_1 + .. + n_B = n, its
first n_1 messages went to the first file and so on, which has probability B^-n, and each file was put in just that
order, which has probability 1 / (n_1! .. n_B!). The sum over the sizes does not depend on the order.

Exact: B is a power of two, so that bits of a secret word choose the file; within a file, messages are sorted by secret
64-bit words, drawn anew if two are equal; distinct words are in uniform order.

On the workers of an engine every order is as likely as on one:

1. Each part of the input is read by a worker, which takes the senders off and scatters the accepted messages over B
   files of its own, each message to one of the B with the same probability and independently, by words of that worker's
   own entropy. Messages of contested senders (``intake.parts``) are scattered by the process that asked.
2. File i of all of them together is permuted uniformly by a worker, for each i.
3. Each file of the release is a range of the permuted ones, one after the other, and is written by a worker.

The proof needs of each message only that its file is uniform, independently of all others, and of each file that its
order is uniform, independently of all else; it does not matter who drew for which message, or in which order messages
were read. A task whose worker ends early is done again with
fresh words, into a new file; what the first attempt left is not read.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, final

import attrs
import numpy as np

from cloister.collection.intake.parts import counted_apart
from cloister.collection.plan.canonical_json import flush, sync
from cloister.collection.shuffler.intake import Senders
from cloister.collection.wire.answers import Packed
from cloister.collection.wire.messages import Messages, ReleasedFile, ReleaseForm, records_of
from cloister.core.errors import InvalidInput
from cloister.core.randomness import NoiseRng
from cloister.core.types import Ids, Ints
from cloister.rows.workers.engine import Engine

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


@final
@attrs.frozen
class Scatter:
    """Scatters the messages of a part over files. Args: folder (to make new ones in), width (bytes of a record), rng
    (secret, except in tests)."""

    folder: Path
    width: int
    rng: NoiseRng

    def __call__(self, number: int, found: Iterable[Messages]) -> Path:
        """The folder of the part's files."""
        place = self.folder / secrets.token_hex(8)
        place.mkdir()
        scattered = Scattered(place, self.width, self.rng.child("part", number))
        for messages in found:
            scattered.add(records_of(messages))
        scattered.close()
        return place


@final
@attrs.frozen
class Permute:
    """Permutes one of the B files. Args: folders (which have one each), out (folder), width, rng."""

    folders: tuple[Path, ...]
    out: Path
    width: int
    rng: NoiseRng

    def __call__(self, number: int) -> tuple[int, Path, int]:
        """The file's number, its permuted records, and how many there are."""
        data = np.concatenate([np.fromfile(folder / f"{number:04}", np.uint8) for folder in self.folders])
        records = data.reshape(-1, self.width)
        path = self.out / f"{number:04}-{secrets.token_hex(8)}"
        records[uniform_order(self.rng, len(records), number)].tofile(path)
        return number, path, len(records)


@final
@attrs.frozen
class Write:
    """Writes a file of the release. Args: release, permuted (files of records, with their lengths, in order), width."""

    release: Release
    permuted: tuple[tuple[Path, int], ...]
    width: int

    def __call__(self, number: int) -> tuple[int, Path, int]:
        """The file's number, its content, and how many messages it has."""
        path = self.release.folder / f".{number:06}-{secrets.token_hex(8)}.tmp"
        return number, path, self.release.write(path, number, self._records(*self.release.span(number)))

    def _records(self, start: int, stop: int) -> Iterator[Packed]:
        """Records from one position to another, of all files one after the other."""
        at = 0
        for path, count in self.permuted:
            low, high = max(start - at, 0), min(stop - at, count)
            if low < high:
                data = np.fromfile(path, np.uint8, (high - low) * self.width, offset=low * self.width)
                yield data.reshape(-1, self.width)
            at += count


def scattered_apart(
    engine: Engine, senders: Senders, folder: Path, width: int, rng: NoiseRng, told: Callable[[int], None]
) -> tuple[Path, ...]:
    """Scatter all accepted messages; the folders of their files. Raises: InvalidInput, Refused: as for
    ``Senders.accepted``."""
    return tuple(sorted(counted_apart(engine, senders.validator, senders.files, Scatter(folder, width, rng), told)))


def released_apart(
    engine: Engine,
    folders: tuple[Path, ...],
    folder: Path,
    width: int,
    rng: NoiseRng,
    release: Callable[[int], Release],
    told: Callable[[int], None],
) -> tuple[int, int]:
    """Permute and write what was scattered. Args: folder (empty, to work in), release (of so many messages). Returns:
    the number of messages and of files."""
    found: dict[int, tuple[Path, int]] = {}
    for number, path, count in engine.run(Permute(folders, folder, width, rng), range(FILES)):
        found[number] = path, count
        for place in folders:
            (place / f"{number:04}").unlink()
    messages = sum(count for _, count in found.values())
    made = release(messages)
    write: Any = Write(made, tuple(found[number] for number in range(FILES)), width)
    for number, path, count in engine.run(write, range(made.files)):
        path.rename(made.path(number))
        told(count)
    for left in made.folder.glob(".*.tmp"):  # of a worker that ended early
        left.unlink()
    sync(made.folder)
    return messages, made.files
