"""Release of a shuffler: all messages in uniformly random order, in files of fixed shape (``wire.messages``).

There may be more messages than fit into memory. Every message goes to one of B files, with equal probabilities and
independently; then each file is read and permuted uniformly in memory, and the files are concatenated. All n! orders
are equally likely (Rao 1961; Sandelius 1962): an order arises if, for some sizes n_1 + .. + n_B = n, its first n_1
messages went to the first file and so on, with probability B^-n, and each file was put in just that order, with
probability 1 / (n_1! .. n_B!). The sum over the sizes does not depend on the order.

Exactness: B is a power of two, so that bits of a secret word choose the file; within a file, messages are sorted by
secret 64-bit words, drawn anew if two are equal; distinct words are in uniform order.

On the workers of an engine every order is equally likely, too:

1. A worker reads a part of the input, removes the senders and scatters the accepted messages over B files of its own,
   with equal probabilities and independently, by words of its own entropy. Messages of contested senders
   (``intake.parts``) are scattered by the calling process.
2. For each i, a worker permutes files i of all parts together, uniformly.
3. Each file of the release is a range of the concatenated permuted files, and is written by a worker.

The proof needs only that the file of each message is uniform and independent of all others, and that the order of each
file is uniform and independent of all else; it does not matter who drew for which message, or in which order messages
were read. A task whose worker ends early is repeated with fresh words, into a new file; remains of the first attempt
are not read.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, final

import attrs
import numpy as np

from cloister.collection.intake.parts import read_in_parts
from cloister.collection.plan.durable_files import flush, sync
from cloister.collection.shuffler.intake import Senders
from cloister.collection.wire.answers import Packed
from cloister.collection.wire.messages import Messages, ReleasedFile, ReleaseForm, records_of
from cloister.core.errors import InvalidInput
from cloister.core.randomness import NoiseRng
from cloister.core.types import Ids, Ints
from cloister.rows.workers.engine import Engine

FILES = 128
"""B: with 1e8 messages a file holds 800,000, and some systems let a process open no more than 256 files."""


@final
class Scattered:
    """Records of one width, scattered over files.

    Args:
        folder: empty folder that nobody else writes. Its content nearly reveals the order of arrival: remove it
            afterwards.
        width: bytes of a record.
        rng: generator, secret except in tests.
        files: B, a power of two.
    """

    def __init__(self, folder: Path, width: int, rng: NoiseRng, files: int = FILES) -> None:
        if not 1 <= files <= 2**16 or files & (files - 1):
            raise InvalidInput(f"the number of scatter files must be a power of two up to 2^16, not {files}")
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
        """Yield all records in uniformly random order, a file at a time, and remove each file."""
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
    """Return a uniformly random permutation of the ``size`` records in file ``number``."""
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
"""Maximum number of messages in a batch, and number of messages in a file."""


@final
@attrs.frozen
class Release:
    """Files of shuffled messages.

    Args:
        folder: folder of the files.
        form: binary form of the files.
        name: name of the shuffle, 16 bytes.
        messages: number of messages in all files.
    """

    folder: Path
    form: ReleaseForm
    name: bytes
    messages: int

    @property
    def files(self) -> int:
        """Number of files."""
        return -(-self.messages // FILE)

    def span(self, number: int) -> tuple[int, int]:
        """Return the range (start, stop) of a file's messages among all."""
        return number * FILE, min((number + 1) * FILE, self.messages)

    def path(self, number: int) -> Path:
        """Return the path of a file."""
        return self.folder / f"part-{number:06}.messages"

    def write_all(self, records: Iterable[Packed], progress: Callable[[int], None]) -> None:
        """Write all records, in order; ``progress`` is called with the number of messages just written."""
        pieces = cut(records, self._batch)
        for number in range(self.files):
            self.write(self.path(number), number, islice(pieces, -(-FILE // self._batch)), progress)

    def write(
        self, path: Path, number: int, records: Iterable[Packed], progress: Callable[[int], None] = lambda n: None
    ) -> int:
        """Write the records of one file, in order, to a new path; return their number."""
        start, stop = self.span(number)
        place, missing = ReleasedFile(self.name, number, self.files, stop - start), stop - start
        with path.open("xb") as file:
            file.write(self.form.begin(place))
            for index, piece in enumerate(cut(records, self._batch)):
                file.write(self.form.batch(place, index, piece))
                missing -= len(piece)
                progress(len(piece))
            assert not missing, "a file of the release lacks messages"
            flush(file)
        return stop - start

    @property
    def _batch(self) -> int:
        """Messages of a batch: a power of two, so that files end where batches do."""
        limit = min(GROUP, self.form.max_records)
        return 1 << (limit.bit_length() - 1)


def cut(pieces: Iterable[Packed], size: int) -> Iterator[Packed]:
    """Yield the same records in pieces of one size, the last one perhaps shorter."""
    pending, count = list[Packed](), 0
    for piece in pieces:
        pending.append(piece)
        count += len(piece)
        if count >= size:
            records = np.concatenate(pending)
            for start in range(0, count - size + 1, size):
                yield records[start : start + size]
            pending = [records[count - count % size :]]
            count %= size
    if count:
        yield np.concatenate(pending)


@final
@attrs.frozen
class Scatter:
    """Function that scatters the messages of a part over files in a new folder inside ``folder``."""

    folder: Path
    width: int
    rng: NoiseRng

    def __call__(self, number: int, messages: Iterable[Messages]) -> Path:
        """Scatter the messages; return the folder of the files."""
        folder = self.folder / secrets.token_hex(8)
        folder.mkdir()
        scattered = Scattered(folder, self.width, self.rng.child("part", number))
        for batch in messages:
            scattered.add(records_of(batch))
        scattered.close()
        return folder


@final
@attrs.frozen
class Permute:
    """Task that permutes one of the B files, read from each of the ``folders``, into a file in ``out``."""

    folders: tuple[Path, ...]
    out: Path
    width: int
    rng: NoiseRng

    def __call__(self, number: int) -> tuple[int, Path, int]:
        """Return the file's number, the path of its permuted records, and their number."""
        data = np.concatenate([np.fromfile(folder / f"{number:04}", np.uint8) for folder in self.folders])
        records = data.reshape(-1, self.width)
        path = self.out / f"{number:04}-{secrets.token_hex(8)}"
        records[uniform_order(self.rng, len(records), number)].tofile(path)
        return number, path, len(records)


@final
@attrs.frozen
class Write:
    """Task that writes a file of the release from the permuted files, given in order with their lengths."""

    release: Release
    permuted: tuple[tuple[Path, int], ...]
    width: int

    def __call__(self, number: int) -> tuple[int, Path, int]:
        """Return the file's number, its temporary path, and the number of its messages."""
        path = self.release.folder / f".{number:06}-{secrets.token_hex(8)}.tmp"
        return number, path, self.release.write(path, number, self._records(*self.release.span(number)))

    def _records(self, start: int, stop: int) -> Iterator[Packed]:
        """Yield the records from one position to another of the concatenated permuted files."""
        at = 0
        for path, count in self.permuted:
            low, high = max(start - at, 0), min(stop - at, count)
            if low < high:
                data = np.fromfile(path, np.uint8, (high - low) * self.width, offset=low * self.width)
                yield data.reshape(-1, self.width)
            at += count


def scatter_in_parts(
    engine: Engine, senders: Senders, folder: Path, width: int, rng: NoiseRng, progress: Callable[[int], None]
) -> tuple[Path, ...]:
    """Scatter all accepted messages; return the folders of their files.

    Raises: InvalidInput, Refused: as for ``Senders.accepted``.
    """
    return tuple(sorted(read_in_parts(engine, senders.validator, senders.files, Scatter(folder, width, rng), progress)))


def release_in_parts(
    engine: Engine,
    folders: tuple[Path, ...],
    folder: Path,
    width: int,
    rng: NoiseRng,
    new_release: Callable[[int], Release],
    progress: Callable[[int], None],
) -> tuple[int, int]:
    """Permute and write scattered messages, working in the empty ``folder``; return the numbers of messages and files.

    ``new_release`` makes a release of a number of messages.
    """
    permuted: dict[int, tuple[Path, int]] = {}
    for number, path, count in engine.run(Permute(folders, folder, width, rng), range(FILES)):
        permuted[number] = path, count
        for scattered in folders:
            (scattered / f"{number:04}").unlink()
    messages = sum(count for _, count in permuted.values())
    release = new_release(messages)
    write: Any = Write(release, tuple(permuted[number] for number in range(FILES)), width)
    for number, path, count in engine.run(write, range(release.files)):
        path.rename(release.path(number))
        progress(count)
    for remains in release.folder.glob(".*.tmp"):  # of a worker that ended early
        remains.unlink()
    sync(release.folder)
    return messages, release.files
