"""Parallel intake of untrusted reports, on the workers of an engine, with the same outcome as one pass.

Of several reports with one number the first possible one counts, and they may be in different parts. So the user
numbers are read first: each part gives the set of its numbers, a bit per planned user, and those that it holds twice.
Numbers that occur more than once are *contested*. Then the parts are read without the contested numbers, so that each
number occurs once; the contested ones go through a single pass, in one process, in the same pieces as there. So a flood
of repeated numbers costs time in one process, but never memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, Protocol, Self, TypeVar, final

import attrs
import numpy as np

from cloister.collection.intake.sources import FileRange, changed_message
from cloister.collection.intake.validator import Intake, Origin
from cloister.collection.wire.batches import BatchForm, Parsed, batch_ranges
from cloister.collection.wire.user_set import UserSet
from cloister.core.encoding import keep_memory
from cloister.core.errors import InvalidInput
from cloister.core.randomness import PublicRng
from cloister.core.types import Bools, Ids, Ints
from cloister.rows.workers.engine import Engine

PART = 2**26
"""Minimum bytes of files per part: seven million reports of one byte."""


class Piece(Protocol):
    """Piece of the input; ``users`` (n,) are the senders."""

    @property
    def users(self) -> Ids: ...

    def select(self, who: Bools) -> Self:
        """Return the part sent by a mask (n,) of the senders."""
        ...


P = TypeVar("P", bound=Piece)
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class PartReader(Protocol[P, T_co]):
    """Reader of a round's reports, which yields results of those that count.

    Attributes:
        users: planned number of users.
        form: form of the reports.
        intake: counts of accepted and refused input.
    """

    users: int
    intake: Intake

    @property
    def form(self) -> BatchForm: ...

    def fresh_copy(self) -> Self:
        """Return a reader of the same round with empty counts, which is not strict."""
        ...

    def parse(self, source: FileRange) -> Iterator[Parsed]:
        """Yield the reports of a file range, a bounded number at a time."""
        ...

    def pieces(self, sources: Iterable[FileRange]) -> Iterator[tuple[P, Origin]]:
        """Yield the reports of all sources in pieces, with their origin."""
        ...

    def accepted(self, piece: P, origin: Origin, counted_users: UserSet | None, /) -> Iterator[T_co]:
        """Yield results of the reports in a piece that count.

        ``counted_users`` are the user numbers that count already; None: no number of these reports occurs elsewhere.
        """
        ...


@final
@attrs.frozen
class ReportPart:
    """Input of one task: the part's number, and ranges of files, in order."""

    number: int
    ranges: tuple[FileRange, ...]


MIXED = PublicRng.from_seed(0)
"""Pseudo-random words of user numbers: other numbers may have the same sum, but their words do not."""


@final
@attrs.frozen
class ReadFingerprint:
    """Fingerprint of reports read, which reveals files that change between two readings, however they were divided.

    Args:
        reports: number of reports.
        numbers: sum of a word of each user number, modulo 2^64.
    """

    reports: int = 0
    numbers: int = 0

    def with_users(self, users: Ids) -> ReadFingerprint:
        """Return the fingerprint with the reports of users (n,) added."""
        return self + ReadFingerprint(len(users), int(MIXED.of_users(users).sum(dtype=np.uint64)))

    def __add__(self, other: ReadFingerprint) -> ReadFingerprint:
        return ReadFingerprint(self.reports + other.reports, (self.numbers + other.numbers) % 2**64)


@final
@attrs.frozen(eq=False)
class PartUsers:
    """User numbers of a part; ``repeated`` are those that it holds more than once."""

    number: int
    users: UserSet
    repeated: Ids
    fingerprint: ReadFingerprint


@final
@attrs.frozen
class UserNumbers:
    """Task that reads the user numbers of parts."""

    reader: PartReader[Any, Any]

    def __call__(self, part: ReportPart) -> PartUsers:
        keep_memory()
        reader, users, repeated = self.reader.fresh_copy(), UserSet(self.reader.users), [np.empty(0, np.uint64)]
        fingerprint = ReadFingerprint()
        for file_range in part.ranges:
            for parsed in reader.parse(file_range):
                repeated.append(users.update(parsed.users[parsed.users < reader.users]))
                fingerprint = fingerprint.with_users(parsed.users)
        return PartUsers(part.number, users, np.concatenate(repeated), fingerprint)


@final
@attrs.frozen(eq=False)
class Partition:
    """Division of files into parts.

    Args:
        files: paths that workers can open.
        parts: parts of the files.
        fingerprints: fingerprint of each part's first reading.
        contested: numbers that occur more than once; None: none does.
    """

    files: list[str]
    parts: list[ReportPart]
    fingerprints: dict[int, ReadFingerprint]
    contested: UserSet | None

    @classmethod
    def create(cls, engine: Engine, reader: PartReader[Any, Any], files: list[str]) -> Partition:
        """Divide the files, and read the user numbers. Raises: InvalidInput: a file cannot be read."""
        if engine.elsewhere:
            files = [os.path.abspath(path) for path in files]
        parts = list(divide_files(files, reader.form, max(PART, reader.users // 2)))
        numbers, contested = UserSet(reader.users), UserSet(reader.users)
        fingerprints = dict[int, ReadFingerprint]()
        for part in engine.run(UserNumbers(reader.fresh_copy()), parts):
            contested.merge(numbers.merge(part.users))
            contested.update(part.repeated)
            fingerprints[part.number] = part.fingerprint
        return cls(files, parts, fingerprints, contested if contested.count else None)

    def check(self, number: int, fingerprint: ReadFingerprint) -> None:
        """Raise InvalidInput if a part changed since its first reading."""
        if self.fingerprints[number] != fingerprint:
            raise InvalidInput(changed_message(self.parts[number].ranges[0].name))

    def check_all(self, fingerprint: ReadFingerprint) -> None:
        """Raise InvalidInput if the parts as a whole changed since their first reading."""
        if sum(self.fingerprints.values(), ReadFingerprint()) != fingerprint:
            raise InvalidInput(changed_message(self.files[0]))

    @property
    def ranges(self) -> Iterator[FileRange]:
        """Ranges of whole files, in order: the ends of pieces decide which of many forgeries are checked."""
        ends = {file_range.name: file_range.stop for part in self.parts for file_range in part.ranges}
        return (FileRange(name, 0, stop) for name, stop in ends.items())


@final
class SecondReading(Generic[P, T]):
    """Second reading of reports, either of the contested numbers (None: none) or of all others.

    Attributes:
        fingerprint: fingerprint of the reports read so far.
    """

    def __init__(self, reader: PartReader[P, T], contested: UserSet | None) -> None:
        self._reader, self._contested, self.fingerprint = reader, contested, ReadFingerprint()

    def accepted(
        self, sources: Iterable[FileRange], counter: PartReader[P, T], counted_users: UserSet | None, contested: bool
    ) -> Iterator[T]:
        """Yield ``counter``'s results of the contested numbers, or of all others."""
        for piece, origin in self._reader.pieces(sources):
            self.fingerprint = self.fingerprint.with_users(piece.users)
            mask = self._is_contested(piece.users) == contested
            rows = np.flatnonzero(mask)
            yield from counter.accepted(piece.select(mask), _origin_of(origin, rows), counted_users)

    def _is_contested(self, users: Ids) -> Bools:
        """Return which users (n,) are contested."""
        mask = np.zeros(len(users), bool)
        if self._contested is not None:
            within = users < self._reader.users
            mask[within] = self._contested.has(users[within])
        return mask


@final
@attrs.frozen
class Uncontested(Generic[T]):
    """Task that reads the uncontested reports of parts, and applies ``reduce`` to a part's number and results."""

    reader: PartReader[Any, Any]
    contested: UserSet | None
    reduce: Callable[[int, Iterator[Any]], T]

    def __call__(self, part: ReportPart) -> tuple[int, T, Intake, ReadFingerprint]:
        """Return the part's number, its reduced result, its counts and its fingerprint."""
        keep_memory()
        reader = self.reader.fresh_copy()
        reading = SecondReading(reader, self.contested)
        result = self.reduce(part.number, reading.accepted(part.ranges, reader, None, contested=False))
        return part.number, result, reader.intake, reading.fingerprint


def read_in_parts(
    engine: Engine,
    reader: PartReader[Any, Any],
    files: list[str],
    reduce: Callable[[int, Iterator[Any]], T],
    progress: Callable[[int], None],
) -> Iterator[T]:
    """Yield a result per part, and at last one of the contested numbers, which this process reads.

    The reader's intake holds the counts.

    Args:
        engine: engine of the tasks.
        reader: reader of the reports.
        files: paths.
        reduce: function of a part's number and its results, all of which it must consume.
        progress: called with the number of reports just read.

    Raises:
        InvalidInput: a file changes while it is read, or a part fails.
    """
    plan = Partition.create(engine, reader, files)
    task = Uncontested(reader.fresh_copy(), plan.contested, reduce)
    for number, result, intake, fingerprint in engine.run(task, plan.parts):
        plan.check(number, fingerprint)
        reader.intake.add(intake, plan.files)
        progress(fingerprint.reports)
        yield result
    if plan.contested is not None:
        reading = SecondReading(reader.fresh_copy(), plan.contested)
        yield reduce(len(plan.parts), reading.accepted(plan.ranges, reader, UserSet(reader.users), contested=True))
        plan.check_all(reading.fingerprint)


def _origin_of(origin: Origin, rows: Ints) -> Origin:
    """Return the origin of the entries at these positions."""
    return origin if isinstance(origin, str) else lambda row: origin(int(rows[row]))


def divide_files(files: Iterable[str], form: BatchForm, part_size: int) -> Iterator[ReportPart]:
    """Yield parts of about ``part_size`` bytes: several small files, or a range of a large one."""
    ranges, size, number = list[FileRange](), 0, 0
    for path in files:
        for file_range in _file_ranges(path, form, part_size):
            ranges.append(file_range)
            size += file_range.size
            if size >= part_size:
                yield ReportPart(number, tuple(ranges))
                ranges, size, number = [], 0, number + 1
    if ranges:
        yield ReportPart(number, tuple(ranges))


def _file_ranges(path: str, form: BatchForm, size: int) -> Iterator[FileRange]:
    file_range = FileRange.of_file(path)
    if file_range.size <= size:
        yield file_range
        return
    with file_range.open() as file:
        for start, stop in batch_ranges(file, form, file_range.size, size):
            yield FileRange(path, start, stop)
