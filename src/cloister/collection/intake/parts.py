"""Reading untrusted reports in parts, on the workers of an engine, with the same outcome as one pass.

Of several reports with one number the first possible one counts, and they may stand in different parts. So the user
numbers are read first, alone: each part gives the set of its numbers, a bit for each planned user, and those that it
holds twice. Numbers that stand more than once are *contested*. Then the parts are read for all but the contested ones,
whose numbers stand nowhere else; and these go through the laws of one pass, in one process, in pieces with the same
bounds as there. So a flood of repeated numbers costs time in one process, and never memory.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any, Protocol, final

import attrs
import numpy as np

from cloister.collection.intake.sources import Stretch
from cloister.collection.wire.batches import BatchForm
from cloister.collection.wire.blocks import stretches
from cloister.collection.wire.listing import changed
from cloister.collection.wire.user_set import UserSet
from cloister.core.encoding import keep_memory
from cloister.core.errors import InvalidInput
from cloister.core.randomness import PublicRng
from cloister.core.types import Bools, Ids
from cloister.rows.workers.engine import Engine

PART = 2**26
"""Bytes of files in a part, at least, if there are so many: seven million reports of one byte."""


class PartReader(Protocol):
    """Reads the reports of a round."""

    @property
    def users(self) -> int:
        """Planned number of users."""
        ...

    @property
    def form(self) -> BatchForm: ...

    def afresh(self) -> Any:
        """A reader of the same round that has counted nothing yet, and refuses without failing."""
        ...

    def numbers(self, where: Stretch) -> Iterator[tuple[Ids, Bools]]:
        """The user numbers (n,) of everything that is read there, and which of them the plan has."""
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

    reader: PartReader

    def __call__(self, part: ReportPart) -> PartUsers:
        keep_memory()
        reader, users, again, read = self.reader.afresh(), UserSet(self.reader.users), list[Ids](), Read()
        for where in part.stretches:
            for numbers, within in reader.numbers(where):
                again.append(users.mark(numbers[within]))
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
    def made(cls, engine: Engine, reader: PartReader, files: list[str]) -> Partition:
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


def among(numbers: UserSet | None, users: Ids, within: Bools) -> Bools:
    """Which users (n,) are in a set of numbers; None: the empty set. Args: within (which of them the plan has)."""
    found = np.zeros(len(users), bool)
    if numbers is not None:
        found[within] = numbers.has(users[within])
    return found


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
