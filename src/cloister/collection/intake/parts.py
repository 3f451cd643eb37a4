"""Reading untrusted reports in parts, on the workers of an engine, with the same outcome as one pass.

Of several reports with one number the first possible one counts, and they may stand in different parts. So the user
numbers are read first, alone: each part gives the set of its numbers, a bit for each planned user, and those that it
holds twice. Numbers that stand more than once are *contested*. Then the parts are read for all but the contested ones,
whose numbers stand nowhere else; and these go through the laws of one pass, in one process, in pieces with the same
bounds as there. So a flood of repeated numbers costs time in one process, and never memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, Protocol, Self, TypeVar, final

import attrs
import numpy as np

from cloister.collection.intake.sources import Stretch, changed
from cloister.collection.intake.validator import Intake, Origin
from cloister.collection.wire.batches import BatchForm, Parsed, stretches
from cloister.collection.wire.user_set import UserSet
from cloister.core.encoding import keep_memory
from cloister.core.errors import InvalidInput
from cloister.core.randomness import PublicRng
from cloister.core.types import Bools, Ids, Ints
from cloister.rows.workers.engine import Engine

PART = 2**26
"""Bytes of files in a part, at least, if there are so many: seven million reports of one byte."""


class Piece(Protocol):
    """Some of what was read. ``users``: (n,) the number of each sender."""

    @property
    def users(self) -> Ids: ...

    def some(self, who: Bools) -> Self:
        """What these of the senders (n,) sent."""
        ...


P = TypeVar("P", bound=Piece)
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class PartReader(Protocol[P, T_co]):
    """Reads the reports of a round, and yields what those say that count.

    Attributes: users (planned number), form (of the reports), intake (what was accepted and refused).
    """

    users: int
    intake: Intake

    @property
    def form(self) -> BatchForm: ...

    def afresh(self) -> Self:
        """A reader of the same round that has counted nothing yet, and refuses without failing."""
        ...

    def parsed(self, where: Stretch) -> Iterator[Parsed]:
        """Reports as bytes, a bounded number at a time."""
        ...

    def pieces(self, some: Iterable[Stretch]) -> Iterator[tuple[P, Origin]]:
        """The same reports in pieces, and where each of them is from."""
        ...

    def counted(self, piece: P, origin: Origin, seen: UserSet | None, /) -> Iterator[T_co]:
        """What those reports of a piece say that count. Args: seen (user numbers that count already; None: no number
        of these reports stands anywhere else)."""
        ...


@final
@attrs.frozen
class ReportPart:
    """What one worker reads at once. Args: number (of the part), stretches (of files, in order)."""

    number: int
    stretches: tuple[Stretch, ...]


MIXED = PublicRng.from_seed(0)
"""Words of user numbers: sums of other numbers come out alike, of their words they do not."""


@final
@attrs.frozen
class Read:
    """Fingerprint of what was read, which shows whether files changed between two readings, however they were divided.
    Args: reports (their number), numbers (sum of a word of each user number, modulo 2^64)."""

    reports: int = 0
    numbers: int = 0

    def more(self, users: Ids) -> Read:
        """The fingerprint with the reports of these users (n,) added."""
        return self + Read(len(users), int(MIXED.of_users(users).sum(dtype=np.uint64)))

    def __add__(self, other: Read) -> Read:
        return Read(self.reports + other.reports, (self.numbers + other.numbers) % 2**64)


@final
@attrs.frozen(eq=False)
class PartUsers:
    """The user numbers of a part. Args: number (of the part), users, again (standing twice), read."""

    number: int
    users: UserSet
    again: Ids
    read: Read


@final
@attrs.frozen
class UserNumbers:
    """Reads the user numbers of parts. Args: reader (it is not changed)."""

    reader: PartReader[Any, Any]

    def __call__(self, part: ReportPart) -> PartUsers:
        keep_memory()
        reader, users, again, read = self.reader.afresh(), UserSet(self.reader.users), list[Ids](), Read()
        for where in part.stretches:
            for numbers in (found.users for found in reader.parsed(where)):
                again.append(users.mark(numbers[numbers < reader.users]))
                read = read.more(numbers)
        return PartUsers(part.number, users, np.concatenate([*again, np.empty(0, np.uint64)]), read)


@final
@attrs.frozen(eq=False)
class Partition:
    """How reports are read in parts. Args: files (as workers find them), parts, read (each when it was first read),
    contested (numbers that stand more than once; None: none does)."""

    files: list[str]
    parts: list[ReportPart]
    read: dict[int, Read]
    contested: UserSet | None

    @classmethod
    def made(cls, engine: Engine, reader: PartReader[Any, Any], files: list[str]) -> Partition:
        """Divide the files, and read the user numbers. Raises: InvalidInput: a file cannot be read."""
        if engine.elsewhere:
            files = [os.path.abspath(path) for path in files]
        parts = list(divided(files, reader.form, max(PART, reader.users // 2)))
        numbers, several, read = UserSet(reader.users), UserSet(reader.users), dict[int, Read]()
        for found in engine.run(UserNumbers(reader.afresh()), parts):
            several.join(numbers.join(found.users))
            several.mark(found.again)
            read[found.number] = found.read
        return cls(files, parts, read, several if several.count else None)

    def check(self, number: int, read: Read) -> None:
        """Raises: InvalidInput: the part is not what it was."""
        if self.read[number] != read:
            raise InvalidInput(changed(self.parts[number].stretches[0].name))

    def check_all(self, read: Read) -> None:
        """Raises: InvalidInput: all parts together are not what they were."""
        if sum(self.read.values(), Read()) != read:
            raise InvalidInput(changed(self.files[0]))

    @property
    def stretches(self) -> Iterator[Stretch]:
        """All that is read, in order, a file in one: where its pieces end says which of many lies are looked at."""
        ends = {where.name: where.stop for part in self.parts for where in part.stretches}
        return (Stretch(name, 0, stop) for name, stop in ends.items())


@final
class SecondReading(Generic[P, T]):
    """A second reading of reports: either of the contested numbers, or of all others. Args: reader (of bytes),
    contested (None: the empty set). Attributes: read (the fingerprint of what was read so far)."""

    def __init__(self, reader: PartReader[P, T], contested: UserSet | None) -> None:
        self._reader, self._contested, self.read = reader, contested, Read()

    def counted(
        self, some: Iterable[Stretch], by: PartReader[P, T], seen: UserSet | None, contested: bool
    ) -> Iterator[T]:
        """What the reports say that count. Args: by (counts them), seen (as for it), contested (whose)."""
        for piece, origin in self._reader.pieces(some):
            self.read = self.read.more(piece.users)
            who = self._among(piece.users) == contested
            rows = np.flatnonzero(who)
            yield from by.counted(piece.some(who), _at(origin, rows), seen)

    def _among(self, users: Ids) -> Bools:
        """Which users (n,) are contested."""
        found = np.zeros(len(users), bool)
        if self._contested is not None:
            within = users < self._reader.users
            found[within] = self._contested.has(users[within])
        return found


@final
@attrs.frozen
class Uncontested(Generic[T]):
    """Reads the reports of parts whose numbers stand nowhere else. Args: reader, contested, kept (what is made of a
    part, given its number and what its reports say)."""

    reader: PartReader[Any, Any]
    contested: UserSet | None
    kept: Callable[[int, Iterator[Any]], T]

    def __call__(self, part: ReportPart) -> tuple[int, T, Intake, Read]:
        """The part's number, what was made of it, what was accepted and refused, and what was read."""
        keep_memory()
        reader = self.reader.afresh()
        reading = SecondReading(reader, self.contested)
        found = self.kept(part.number, reading.counted(part.stretches, reader, None, contested=False))
        return part.number, found, reader.intake, reading.read


def counted_apart(
    engine: Engine,
    reader: PartReader[Any, Any],
    files: list[str],
    kept: Callable[[int, Iterator[Any]], T],
    told: Callable[[int], None],
) -> Iterator[T]:
    """Yield what is made of each part, and at last of the contested numbers, in this process. The reader's intake says
    what was refused. Args: kept (as for ``Uncontested``; it reads all that it is given), told (called with the number
    of reports just read). Raises: InvalidInput: a file changes while it is read, or a part fails."""
    plan = Partition.made(engine, reader, files)
    for number, found, intake, read in engine.run(Uncontested(reader.afresh(), plan.contested, kept), plan.parts):
        plan.check(number, read)
        reader.intake.add(intake, plan.files)
        told(read.reports)
        yield found
    if plan.contested is not None:
        reading = SecondReading(reader.afresh(), plan.contested)
        yield kept(len(plan.parts), reading.counted(plan.stretches, reader, UserSet(reader.users), contested=True))
        plan.check_all(reading.read)


def _at(origin: Origin, rows: Ints) -> Origin:
    """Where the entries at these positions are from."""
    return origin if isinstance(origin, str) else lambda row: origin(int(rows[row]))


def divided(files: Iterable[str], form: BatchForm, most: int) -> Iterator[ReportPart]:
    """Parts of about ``most`` bytes: several small files, or a stretch of a large one."""
    held, size, number = list[Stretch](), 0, 0
    for path in files:
        for stretch in _stretches(path, form, most):
            held.append(stretch)
            size += stretch.size
            if size >= most:
                yield ReportPart(number, tuple(held))
                held, size, number = [], 0, number + 1
    if held:
        yield ReportPart(number, tuple(held))


def _stretches(path: str, form: BatchForm, most: int) -> Iterator[Stretch]:
    whole = Stretch.whole(path)
    if whole.size <= most:
        yield whole
        return
    with whole.opened() as file:
        for start, stop in stretches(file, form, whole.size, most):
            yield Stretch(path, start, stop)
