"""The intake of untrusted reports: the laws shared by users' reports, users' messages and shuffled messages.

* Every batch counts that is whole, to the first bytes that are none of this round; what is cut short at the end of a
  file or stream is left alone, since it may still be written.
* Refusals are counted per reason, with the first file that caused each. A strict intake fails at the first.
* Invalid rows do not stop valid ones: a refused batch is divided until each invalid row is alone.
* A user number counts once, for its first possible entry; files are read in the order of their names. A refused entry
  does not use the number up, unless ``TRIES`` of that number are sent at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from typing import Any, Self, TypeAlias, TypeVar, final

import attrs
import numpy as np

from cloister.collection.intake.sources import Given, Sources, Stream, Stretch, changed
from cloister.collection.wire.batches import STAMP, BatchForm, Parsed, form_of, parsed
from cloister.collection.wire.user_set import UserSet, first_of
from cloister.core.encoding import Progress
from cloister.core.errors import InvalidInput, Refused
from cloister.core.questions import Round
from cloister.core.types import Bools, Ids, Ints
from cloister.rows.workers.engine import Engine, Serial


@final
@attrs.frozen
class InputKind:
    """A kind of input. Args: name, reasons (what each refuses), errors (ends of the error texts of a strict intake)."""

    name: str
    reasons: Mapping[str, str]
    errors: Mapping[str, str]


def _errors(reasons: Mapping[str, str]) -> dict[str, str]:
    return {r: f" is one of the {what}" if what.startswith("files") else f" has {what}" for r, what in reasons.items()}


_REPORTS = {
    "another plan": "files or batches of reports that answer another plan",
    "no reports": "files that hold no reports of this form",
    "damaged": "files or batches that are damaged or cut short",
    "out of range": "reports of user numbers that the plan does not have",
    "not as asked": "reports that answer what their user is not asked, or leave out what she is asked",
    "impossible": "reports with an answer that no encoder of this plan sends",
    "duplicate": "reports of users who have reported already",
}
_SHUFFLED = {
    "not as asked": "messages that answer no question, or more than one",
    "impossible": "messages with an answer that no encoder of this plan sends",
}
_MESSAGES = {
    "another plan": "files or batches that answer another plan",
    "no messages": "files that hold no messages of this form",
    "damaged": "files or batches that are damaged or cut short",
    "out of range": "people whose numbers the plan does not have",
    "not as asked": "people who sent too few messages, too many, or such as answer no question",
    "impossible": "people with a message that no encoder of this plan sends",
    "duplicate": "people who have sent messages already",
}
REPORTS = InputKind("reports", _REPORTS, _errors(_REPORTS))
SHUFFLED = InputKind("messages", _REPORTS, _errors(_SHUFFLED))
MESSAGES = InputKind("messages", _MESSAGES, {reason: f": refused {what}" for reason, what in _MESSAGES.items()})
"""Reports of users; messages released by a shuffler; messages of users on their way to the shuffler."""


@final
@attrs.define
class Intake:
    """How much of an input was accepted and refused. All of it is public: reports are, messages have no sender here.

    Args:
        kind: what was sent.
        strict: raise at the first refusal.
        files: number of files read.
        others: files in the folders with another extension; skipped.
        earlier: files of reports of closed rounds; skipped, and not in ``files``.
        accepted: number of users who count.
        questions: accepted reports or messages per question.
        refused: number of files, reports, messages or users refused, per reason.
        first: the first file with each reason.
        doubts: shares that chance does not explain (``collection.server.laws``), accepted all the same.
        withstands: the share of lies that answers were read for (``collection.server.robust``); None: as they are.
    """

    kind: InputKind
    strict: bool = False
    files: int = 0
    others: int = 0
    earlier: int = 0
    unfinished: int = 0
    accepted: int = 0
    questions: list[int] = attrs.field(factory=list)
    refused: Counter[str] = attrs.field(factory=Counter)
    first: dict[str, str] = attrs.field(factory=dict)
    doubts: list[str] = attrs.field(factory=list)
    withstands: float | None = None

    def refuse(self, reason: str, count: int, path: str) -> None:
        """Count refusals. Raises: Refused: the intake is strict."""
        self.refused[reason] += count
        self.first.setdefault(reason, path)
        if self.strict:
            raise Refused(f"'{path}'{self.kind.errors[reason]}")

    def add(self, other: Intake, files: Sequence[str]) -> None:
        """Add what was read elsewhere. Args: files (all that are read, in order, for the first with each reason).
        Raises: Refused: something was refused there, and the intake is strict."""
        self.files, self.accepted = self.files + other.files, self.accepted + other.accepted
        self.earlier, self.unfinished = self.earlier + other.earlier, self.unfinished + other.unfinished
        self.questions = [a + b for a, b in zip(self.questions, other.questions, strict=True)]
        self.refused += other.refused
        for reason, path in other.first.items():
            self.first[reason] = min(path, self.first.get(reason, path), key=files.index)
        if self.strict and other.first:
            reason, path = next(iter(other.first.items()))
            raise Refused(f"'{path}'{self.kind.errors[reason]}")

    @property
    def reasons(self) -> dict[str, int]:
        """Number of refusals for every reason, zeros included."""
        return {reason: self.refused[reason] for reason in self.kind.reasons}

    def as_dict(self, planned: int) -> dict[str, Any]:
        """Plain data. Args: planned (number of users in the plan)."""
        return {
            "accepted": self.accepted,
            "share of the planned users": self.accepted / planned,
            "per question": self.questions,
            "files": self.files,
            "refused": self.reasons,
            **({"doubts": self.doubts} if self.doubts else {}),
            **({} if self.withstands is None else {"withstands": self.withstands}),
        }

    def lines(self) -> list[str]:
        """For people: a line for each reason, kind of skipped file and doubt."""
        words, left = self.kind.reasons, {"of another kind": self.others, "of rounds that are closed": self.earlier}
        found = [f"refused {n:,} {words[r]} (the first: '{self.first[r]}')" for r, n in self.reasons.items() if n]
        found += [f"left alone {count:,} files {what}" for what, count in left.items() if count]
        if self.unfinished:
            found.append(f"left alone {self.unfinished:,} bytes at the ends of files: no whole batch, or not yet")
        if self.withstands is not None:
            found.append(f"read as if {self.withstands:.3g} of the reports lied: what these can invent is left out")
        return found + [f"WARNING: {doubt}" for doubt in self.doubts]


T = TypeVar("T")
Origin: TypeAlias = str | Callable[[int], str]
"""The file that all rows came from, or a function from a row to its file."""

SPLIT = 4
"""Parts that a refused batch is divided into. More: fewer checks if most rows are invalid, more sums if few are."""

TRIES = 64
"""Most invalid entries per user number that are checked one by one in a batch: the cap keeps a flood of forgeries
linear in cost. An attacker who can send that many before the user could as well send one that counts."""


class ReportValidator:
    """What counts, and what is refused. Args: intake (counts it), round, head (its name), earlier (names of the earlier
    rounds)."""

    def __init__(self, intake: Intake, round: Round[Any], head: str, earlier: Collection[str] = ()) -> None:
        self.intake, self.round, self.head, self.earlier = intake, round, head, frozenset(earlier)
        self._stamps = {name[: 2 * STAMP] for name in earlier}

    def afresh(self) -> Self:
        """A sieve of the same round that has counted nothing yet, and refuses without failing."""
        again = copy(self)
        again.intake = Intake(self.intake.kind, questions=[0] * len(self.intake.questions))
        return again

    @property
    def form(self) -> BatchForm:
        """The form of the round's reports as bytes."""
        return form_of(self.head, self.round)

    def parsed(self, where: Stretch | Stream) -> Iterator[Parsed]:
        """Reports as bytes, a bounded number at a time."""
        last, told = None, 0
        with where.opened() as file:
            for last in parsed(file, self.form, where.size, where.start > 0):
                if last.damaged:
                    self.intake.refuse("damaged", last.damaged, where.name)
                told += len(last.users)
                yield last
            short = isinstance(where, Stretch) and file.tell() < where.stop and (last is None or last.wrong is None)
        if short:
            raise InvalidInput(changed(where.name))
        if last is not None:
            self._ended(where, last, told)

    def _ended(self, where: Stretch | Stream, last: Parsed, told: int) -> None:
        """Count what stands at the end of some bytes. Args: last (that was read), told (how many reports were)."""
        if last.stamp in self._stamps:
            self.intake.earlier += 1
            self.intake.files -= isinstance(where, Stretch) and where.start == told == 0
        elif last.wrong is not None or (isinstance(where, Stream) and where.whole and last.left):
            reason = last.wrong or "damaged"
            self.intake.refuse(reason if reason in self.intake.kind.reasons else "no messages", 1, where.name)
        else:
            self.intake.unfinished += last.left

    def kept(self, rows: Ints, good: Bools, reason: str, origin: Origin) -> Ints:
        """The good rows (n,); the others are counted as refused."""
        if not good.all():
            path = origin if isinstance(origin, str) else origin(int(rows[~good][0]))
            self.intake.refuse(reason, int((~good).sum()), path)
        return rows[good]

    def once(
        self,
        seen: UserSet | None,
        users: Ids,
        left: Ints,
        possible: Callable[[Ints], Iterable[tuple[Ints, T]]],
        origin: Origin,
    ) -> Iterator[T]:
        """Yield what the possible ones among the remaining rows say, each user number once.

        Args:
            seen: user numbers that count already; a number is added before further rows are checked. None: no number
                of these rows stands anywhere else.
            users: (n,) user number of every row.
            left: the remaining rows.
            possible: given rows of different users, yields those that an encoder could have sent, with what they say,
                and refuses the others.
        """
        if seen is None:
            for rows, found in possible(left) if len(left) else ():
                self.intake.accepted += len(rows)
                yield found
            return
        for _ in range(TRIES):
            if not len(left):
                break
            left = self.kept(left, ~seen.has(users[left]), "duplicate", origin)
            first = first_of(users[left])
            now, left = left[first], left[~first]
            for rows, found in possible(now) if len(now) else ():
                seen.add(users[rows])
                self.intake.accepted += len(rows)
                yield found
        left = self.kept(left, ~seen.has(users[left]), "duplicate", origin)  # what remains after all tries
        self.kept(left, np.zeros(len(left), bool), "impossible", origin)


class SentFiles:
    """Untrusted reports or messages, in files or as they stream in.

    Args:
        given: folders, files or patterns; binary files that are open, bytes, or any number of these (``Sources``).
        head: name of the round that they must carry: hash of the plan, or of the last published answers.
        users: planned number of users; their numbers are 0 <= user < users.
        strict: fail at the first refusal.
        progress: called with the number of reports or messages just read.
        earlier: names of the earlier rounds.
        engine: where files are read; default: in this process.

    Attributes:
        intake: how much was accepted and refused.

    Raises: InvalidInput: there are no such files.
    """

    kind: InputKind

    def __init__(
        self,
        given: Given,
        head: str,
        users: int,
        strict: bool = False,
        progress: Progress | None = None,
        earlier: Collection[str] = (),
        engine: Engine | None = None,
    ) -> None:
        self._sources, self._engine = Sources.of(given), Serial() if engine is None else engine
        if self._engine.apart and not self._sources.only_files:
            raise InvalidInput(
                "engine, workers and scheduler apply to files only: streams and bytes are read in this process"
            )
        self._head, self._users, self._strict, self._earlier = head, users, strict, frozenset(earlier)
        self._progress = progress or (lambda n: None)
        self.intake = self._nothing(0)

    @property
    def people(self) -> int | None:
        """Number of users who count, or None while there are none."""
        return self.intake.accepted or None

    def _nothing(self, questions: int) -> Intake:
        """Statistics before the first file is read."""
        files, others = len(self._sources.files), self._sources.others
        return Intake(self.kind, self._strict, files, others, questions=[0] * questions)


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
