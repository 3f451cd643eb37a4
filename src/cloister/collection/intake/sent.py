"""The intake of untrusted files: the laws shared by users' reports, users' messages and shuffled messages.

* A file counts only if it can be read to its end and answers this plan.
* Refusals are counted per reason, with the first file that caused each. A strict intake fails at the first.
* Invalid rows do not stop valid ones: a refused batch is divided until each invalid row is alone.
* A user number counts once, for its first possible entry; files are read in the order of their names. A refused entry
  does not use the number up, unless ``TRIES`` of that number are sent at once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np

from cloister.collection.intake.refusals import InputKind, Intake
from cloister.collection.wire.user_set import UserSet, first_of
from cloister.core.encoding import Progress
from cloister.core.errors import MissingExtra, Refused
from cloister.core.types import Bools, Ids, Ints

if TYPE_CHECKING:
    import pyarrow as pa

    from cloister.collection.wire.files import Path

T = TypeVar("T")
Origin: TypeAlias = str | Callable[[int], str]
"""The file that all rows came from, or a function from a row to its file."""

SPLIT = 4
"""Parts that a refused batch is divided into. More: fewer checks if most rows are invalid, more sums if few are."""

TRIES = 64
"""Most invalid entries per user number that are checked one by one in a batch: the cap keeps a flood of forgeries
linear in cost. An attacker who can send that many before the user could as well send one that counts."""


class SentFiles:
    """Files of untrusted reports or messages.

    Args:
        paths: folders, files or patterns; .parquet and .arrow.
        plan: name of the round that the files must carry: hash of the plan, or of the last published answers.
        users: planned number of users; their numbers are 0 <= user < users.
        strict: fail at the first refusal.
        progress: called with the number of reports or messages just read.
        earlier: names of the earlier rounds.

    Attributes:
        intake: how much was accepted and refused.

    Raises: InvalidInput: there are no such files. MissingExtra: pyarrow is not installed.
    """

    kind: InputKind

    def __init__(
        self, paths: Path | Sequence[Path], plan: str, users: int, strict: bool = False,
        progress: Progress | None = None, earlier: Collection[str] = (),
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
        """Number of users who count, or None while there are none."""
        return self.intake.accepted or None

    def _nothing(self, questions: int) -> Intake:
        """Statistics before the first file is read."""
        return Intake(self.kind, self._strict, len(self._files), self._others, questions=[0] * questions)

    def _batches(self, path: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """A file's rows, a bounded number at a time; none if the file is refused or of an earlier round."""
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
        """The good rows (n,); the others are counted as refused."""
        if not good.all():
            path = origin if isinstance(origin, str) else origin(int(rows[~good][0]))
            self.intake.refuse(reason, int((~good).sum()), path)
        return rows[good]

    def _once(
        self,
        seen: UserSet,
        users: Ids,
        left: Ints,
        possible: Callable[[Ints], Iterable[tuple[Ints, T]]],
        origin: Origin,
    ) -> Iterator[T]:
        """Yield what the possible ones among the remaining rows say, each user number once.

        Args:
            seen: user numbers that count already; a number is added before further rows are checked.
            users: (n,) user number of every row.
            left: the remaining rows.
            possible: given rows of different users, yields those that an encoder could have sent, with what they say,
                and refuses the others.
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
        left = self._kept(left, ~seen.has(users[left]), "duplicate", origin)  # what remains after all tries
        self._kept(left, np.zeros(len(left), bool), "impossible", origin)


def isolated(rows: Ints, read: Callable[[Ints], T]) -> Iterator[tuple[Ints, T | None]]:
    """Yield parts of the rows with what ``read`` made of each. Refused parts are divided; a refused row gives None."""
    found: T | None = None
    with suppress(Refused):
        found = read(rows)
    if found is not None or len(rows) <= 1:
        yield rows, found
        return
    for part in np.array_split(rows, min(SPLIT, len(rows))):
        yield from isolated(part, read)
