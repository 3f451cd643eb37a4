"""A shuffle on the workers of an engine: every order is as likely as on one.

1. Each part of the input is read by a worker, which takes the senders off and scatters the accepted messages over B
   files of its own, each message to one of the B with the same probability and independently, by words of that worker's
   own entropy. Messages of contested senders (``intake.parts``) are scattered by the process that asked.
2. File i of all of them together is permuted uniformly by a worker, for each i.
3. Each file of the release is a range of the permuted ones, one after the other, and is written by a worker.

All n! orders are equally likely: the proof in ``external_shuffle`` needs of each message only that its file is uniform,
independently of all others, and of each file that its order is uniform, independently of all else; it does not matter
who drew for which message, or in which order messages were read. A task whose worker ends early is done again with
fresh words, into a new file; what the first attempt left is not read.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, final

import attrs
import numpy as np

from cloister.collection.intake.parts import Partition, Read, ReportPart, among
from cloister.collection.intake.refusals import Intake
from cloister.collection.plan.canonical_json import sync
from cloister.collection.shuffler.intake import Senders, SenderSieve
from cloister.collection.shuffler.release import FILES, Release, Scattered, uniform_order
from cloister.collection.wire.packing import Packed
from cloister.collection.wire.releases import records_of
from cloister.collection.wire.user_set import UserSet
from cloister.core.encoding import keep_memory
from cloister.core.randomness import NoiseRng
from cloister.rows.workers.engine import Engine


@final
@attrs.frozen
class Scatter:
    """Scatters the messages of a part whose senders stand nowhere else. Args: sieve, contested, folder (to make new
    ones in), width (bytes of a record), rng (secret, except in tests)."""

    sieve: SenderSieve
    contested: UserSet | None
    folder: Path
    width: int
    rng: NoiseRng

    def __call__(self, part: ReportPart) -> tuple[int, Path, Intake, Read]:
        """The part's number, the folder of its files, what was accepted and refused, and what was read."""
        keep_memory()
        sieve, read, scattered = self.sieve.afresh(), Read(), self.files(part.number)
        for where in part.stretches:
            for sent in sieve.whole(where):
                read = read.more(sent.numbers)
                alone = ~among(self.contested, sent.numbers, sent.numbers < sieve.users)
                for messages in sieve.counted(sent.some(alone), where.name, None):
                    scattered.add(records_of(messages))
        scattered.close()
        return part.number, scattered.folder, sieve.intake, read

    def files(self, number: int) -> Scattered:
        """New files to scatter over."""
        place = self.folder / secrets.token_hex(8)
        place.mkdir()
        return Scattered(place, self.width, self.rng.child("part", number))


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
    sieve = senders.sieve
    plan, folders = Partition.made(engine, sieve, senders.files), list[Path]()
    scatter = Scatter(sieve.afresh(), plan.contested, folder, width, rng)
    for number, place, intake, read in engine.run(scatter, plan.parts):
        plan.check(number, read)
        sieve.intake.add(intake, plan.files)
        folders.append(place)
        told(read.reports)
    if plan.contested is not None:
        seen, mine, reading, again = UserSet(sieve.users), scatter.files(len(plan.parts)), sieve.afresh(), Read()
        for where in plan.stretches:
            for sent in reading.whole(where):
                again = again.more(sent.numbers)
                theirs = among(plan.contested, sent.numbers, sent.numbers < sieve.users)
                for messages in sieve.counted(sent.some(theirs), where.name, seen):
                    mine.add(records_of(messages))
        mine.close()
        plan.check_all(again)
        folders.append(mine.folder)
    return tuple(sorted(folders))


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
