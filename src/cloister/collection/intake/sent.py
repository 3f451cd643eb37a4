"""How files that anybody may have sent are taken in: what reports, people's messages and shuffled ones have in common.

* A file counts only if it can be read to its end and answers this plan.
* What is refused is counted, by reason, with the file where it was met first; where nothing may be refused, the first refusal ends it all.
* Nobody's nonsense stops the others: what cannot be read together is divided until what is impossible is alone.
* A user number counts once: for the first that is sent of it and possible, files being read in the order of their names. What is refused
  does not use the number up, unless ``TRIES`` of it are sent at once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np

from cloister.collection.intake.refusals import Intake, Kind
from cloister.collection.wire.user_set import Roll, first_of
from cloister.core.encoding import Progress
from cloister.core.errors import MissingExtra, Refused
from cloister.core.types import Bools, Ids, Ints

if TYPE_CHECKING:
    import pyarrow as pa

    from cloister.collection.wire.files import Path

T = TypeVar("T")
Origin: TypeAlias = str | Callable[[int], str]
"""The file that all rows came from, or that of each."""

SPLIT = 4
"""Into how many parts rows are divided, one of which is impossible. Many are fewer looks where most are such, and more sums where few are."""

TRIES = 64
"""Most of what one user number sends in a piece that is checked, where none of it is possible: a flood of forgeries must not take time
that grows with its square. Whoever can send so much before her could send what counts."""


class SentFiles:
    """Files that were sent.

    Args:
        paths: folders, files or patterns; .parquet and .arrow.
        plan: name of the round, as files bear it: the plan's hash, or that of the answers that were published last.
        users: how many are planned; numbers are 0 <= user < users.
        strict: fail at the first refusal.
        progress: told how many more reports or messages were looked at.
        earlier: names of the rounds before.

    Attributes:
        intake: what became of them.

    Raises:
        InvalidInput: there are no such files. MissingExtra: pyarrow is not installed.
    """

    kind: Kind

    def __init__(
        self, paths: Path | Sequence[Path], plan: str, users: int, strict: bool = False, progress: Progress | None = None,
        earlier: Collection[str] = (),
    ) -> None:  # fmt: skip
        try:
            from cloister.collection.wire.files import listed
        except ImportError as error:
            raise MissingExtra("pyarrow", "files", f"reading {self.kind.name}") from error
        self._files, self._others = listed(paths)
        self._plan, self._users, self._strict, self._earlier = plan, users, strict, frozenset(earlier)
        self._progress = progress or (lambda n: None)
        self.intake = self._nothing(0)

    @property
    def people(self) -> int | None:
        """Who count, once there are any."""
        return self.intake.accepted or None

    def _nothing(self, questions: int) -> Intake:
        """What is known before the first file is read."""
        return Intake(self.kind, self._strict, len(self._files), self._others, questions=[0] * questions)

    def _batches(self, path: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """A file's rows, a bounded number at a time; none of a file that does not count."""
        from cloister.collection.wire.files import Unusable, batches

        try:
            yield from batches(path, schema)
        except Unusable as error:
            if error.plan in self._earlier:
                self.intake.earlier += 1
                self.intake.files -= 1
            else:
                self.intake.refuse(error.reason if error.reason in self.kind.reasons else "no messages", 1, path)

    def _kept(self, rows: Ints, good: Bools, reason: str, origin: Origin) -> Ints:
        """The good rows (n,); the others are refused."""
        if not good.all():
            path = origin if isinstance(origin, str) else origin(int(rows[~good][0]))
            self.intake.refuse(reason, int((~good).sum()), path)
        return rows[good]

    def _once(
        self, seen: Roll, users: Ids, left: Ints, possible: Callable[[Ints], Iterable[tuple[Ints, T]]], origin: Origin
    ) -> Iterator[T]:
        """What is possible of the rows that are left, each user number once; it is entered before the next is looked at.

        Args:
            seen: numbers that count already.
            users: (n,) of all rows.
            possible: of rows of different users, those that an encoder could have sent, and what they say; it refuses the others.
        """
        for _ in range(TRIES):
            if not len(left):
                break
            left = self._kept(left, ~seen.has(users[left]), "duplicate", origin)
            first = first_of(users[left])
            now, left = left[first], left[~first]
            for rows, found in possible(now) if len(now) else ():
                seen.add(users[rows])
                self.intake.accepted += len(rows)
                yield found
        left = self._kept(left, ~seen.has(users[left]), "duplicate", origin)  # of more than there are tries
        self._kept(left, np.zeros(len(left), bool), "impossible", origin)


def isolated(rows: Ints, read: Callable[[Ints], T]) -> Iterator[tuple[Ints, T | None]]:
    """Rows with what is read of them together; where that is refused they are divided, until what stays refused is alone, with None."""
    found: T | None = None
    with suppress(Refused):
        found = read(rows)
    if found is not None or len(rows) <= 1:
        yield rows, found
        return
    for part in np.array_split(rows, min(SPLIT, len(rows))):
        yield from isolated(part, read)
