"""Intake of untrusted reports: the rules shared by users' reports, users' messages and shuffled messages.

* Every complete batch counts, up to the first bytes that are none of this round; an incomplete end of a file or stream
  is ignored, since it may still be written.
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

from cloister.collection.intake.sources import FileRange, ReportInput, Sources, Stream, changed_message
from cloister.collection.wire.batches import STAMP, BatchForm, Parsed, form_of, parse_file
from cloister.collection.wire.user_set import UserSet, first_of
from cloister.core.encoding import Progress
from cloister.core.errors import InvalidInput, Refused
from cloister.core.questions import Round
from cloister.core.types import Bools, Ids, Ints
from cloister.rows.workers.engine import Engine, Serial


@final
@attrs.frozen
class InputKind:
    """Kind of input.

    Args:
        name: reports or messages.
        reasons: what each reason refuses.
        errors: ends of the messages of a strict intake, per reason.
    """

    name: str
    reasons: Mapping[str, str]
    errors: Mapping[str, str]


def _errors(reasons: Mapping[str, str]) -> dict[str, str]:
    return {
        r: f" is one of the {description}" if description.startswith("files") else f" has {description}"
        for r, description in reasons.items()
    }


_REPORTS = {
    "another plan": "files or batches of reports that answer another plan",
    "no reports": "files without reports of this form",
    "damaged": "files or batches that are damaged or cut short",
    "out of range": "reports of user numbers that the plan does not have",
    "not as asked": "reports that answer a question their user is not asked, or omit one she is asked",
    "impossible": "reports with an answer that no encoder of this plan sends",
    "duplicate": "reports of users who have reported already",
}
_SHUFFLED = {
    **_REPORTS,
    "not as asked": "messages that answer no question, or more than one",
    "impossible": "messages with an answer that no encoder of this plan sends",
}
_MESSAGES = {
    "another plan": "files or batches that answer another plan",
    "no messages": "files without messages of this form",
    "damaged": "files or batches that are damaged or cut short",
    "out of range": "people whose numbers the plan does not have",
    "not as asked": "people who sent too few messages, too many, or some that answer no question",
    "impossible": "people with a message that no encoder of this plan sends",
    "duplicate": "people who have sent messages already",
}
REPORTS = InputKind("reports", _REPORTS, _errors(_REPORTS))
SHUFFLED = InputKind("messages", _SHUFFLED, _errors(_SHUFFLED))
MESSAGES = InputKind(
    "messages", _MESSAGES, {reason: f": refused {description}" for reason, description in _MESSAGES.items()}
)
"""Reports of users; messages released by a shuffler; messages of users on their way to the shuffler."""


@final
@attrs.define
class Intake:
    """Counts of accepted and refused input. They are public: so are reports, and messages have no sender here.

    Args:
        kind: kind of input.
        strict: raise at the first refusal.
        files: number of files read.
        other_files: number of files with another extension in the folders; skipped.
        earlier: number of files of closed rounds; skipped, and not in ``files``.
        unfinished: number of bytes at the ends of files that are no complete batch.
        accepted: number of users who count.
        questions: accepted reports or messages per question.
        refused: number of files, reports, messages or users refused, per reason.
        first: first file with each reason.
        doubts: deviations beyond chance that were accepted all the same (``server.laws``, ``server.shares``).
        withstands: share of malicious reports that decoding assumed (``server.robust``); None: none.
    """

    kind: InputKind
    strict: bool = False
    files: int = 0
    other_files: int = 0
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
        """Add another worker's counts; ``files`` are all files in order, for the first with each reason.

        Raises: Refused: the worker refused something, and the intake is strict.
        """
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
        """Return plain data; ``planned`` is the plan's number of users."""
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
        """Return lines for people: one per reason, kind of skipped file and doubt."""
        reasons, skipped = self.kind.reasons, {"of another kind": self.other_files, "of closed rounds": self.earlier}
        text = [f"refused {n:,} {reasons[r]} (the first: '{self.first[r]}')" for r, n in self.reasons.items() if n]
        text += [f"skipped {count:,} files {kind}" for kind, count in skipped.items() if count]
        if self.unfinished:
            text.append(f"skipped {self.unfinished:,} bytes at the ends of files: no complete batch (yet)")
        if self.withstands is not None:
            text.append(f"assumed {self.withstands:.3g} of the reports malicious, and left out what they can fabricate")
        return text + [f"WARNING: {doubt}" for doubt in self.doubts]


T = TypeVar("T")
Origin: TypeAlias = str | Callable[[int], str]
"""File that all rows came from, or a function from a row to its file."""

SPLIT = 4
"""Parts that a refused batch is divided into; more save checks if most rows are invalid, and cost sums if few are."""

TRIES = 64
"""Maximum number of invalid entries per user number that are checked one by one in a batch.

It keeps the cost of a flood of forgeries linear. An attacker who sends that many before the user could as well send one
that counts.
"""


class ReportValidator:
    """Validator of the reports of one round.

    Args:
        intake: counts of accepted and refused input.
        round: the round.
        head: the round's name.
        earlier: names of the earlier rounds.
    """

    def __init__(self, intake: Intake, round: Round[Any], head: str, earlier: Collection[str] = ()) -> None:
        self.intake, self.round, self.head, self.earlier = intake, round, head, frozenset(earlier)
        self._stamps = {name[: 2 * STAMP] for name in earlier}

    def fresh_copy(self) -> Self:
        """Return a validator of the same round with empty counts, which is not strict."""
        fresh = copy(self)
        fresh.intake = Intake(self.intake.kind, questions=[0] * len(self.intake.questions))
        return fresh

    @property
    def form(self) -> BatchForm:
        """Binary form of the round's reports."""
        return form_of(self.head, self.round)

    def parse(self, source: FileRange | Stream) -> Iterator[Parsed]:
        """Yield the reports of a source, a bounded number at a time."""
        last, count = None, 0
        with source.open() as file:
            for last in parse_file(file, self.form, source.size, source.start > 0):
                if last.damaged:
                    self.intake.refuse("damaged", last.damaged, source.name)
                count += len(last.users)
                yield last
            short = isinstance(source, FileRange) and file.tell() < source.stop and (last is None or last.error is None)
        if short:
            raise InvalidInput(changed_message(source.name))
        if last is not None:
            self._count_end(source, last, count)

    def _count_end(self, source: FileRange | Stream, last: Parsed, count: int) -> None:
        """Count what the end of a source holds, after its last piece and ``count`` reports."""
        if last.stamp in self._stamps:
            self.intake.earlier += 1
            self.intake.files -= isinstance(source, FileRange) and source.start == count == 0
        elif last.error is not None or (isinstance(source, Stream) and source.complete and last.unread):
            reason = last.error or "damaged"
            self.intake.refuse(reason if reason in self.intake.kind.reasons else "no messages", 1, source.name)
        else:
            self.intake.unfinished += last.unread

    def filter_rows(self, rows: Ints, good: Bools, reason: str, origin: Origin) -> Ints:
        """Return the good rows (n,), and count the others as refused."""
        if not good.all():
            path = origin if isinstance(origin, str) else origin(int(rows[~good][0]))
            self.intake.refuse(reason, int((~good).sum()), path)
        return rows[good]

    def first_per_user(
        self,
        counted_users: UserSet | None,
        users: Ids,
        pending: Ints,
        possible: Callable[[Ints], Iterable[tuple[Ints, T]]],
        origin: Origin,
    ) -> Iterator[T]:
        """Yield results for the first possible row of each user number.

        Args:
            counted_users: user numbers that count already; a number is added before further rows are checked. None: no
                number of these rows occurs anywhere else.
            users: (n,) user number of every row.
            pending: rows to check.
            possible: function from rows of different users to those that an encoder could have sent, with a result;
                it refuses the others.
            origin: file of each row.
        """
        if counted_users is None:
            for rows, result in possible(pending) if len(pending) else ():
                self.intake.accepted += len(rows)
                yield result
            return
        for _ in range(TRIES):
            if not len(pending):
                break
            pending = self.filter_rows(pending, ~counted_users.has(users[pending]), "duplicate", origin)
            first = first_of(users[pending])
            candidates, pending = pending[first], pending[~first]
            for rows, result in possible(candidates) if len(candidates) else ():
                counted_users.add(users[rows])
                self.intake.accepted += len(rows)
                yield result
        # what is pending after all tries
        pending = self.filter_rows(pending, ~counted_users.has(users[pending]), "duplicate", origin)
        self.filter_rows(pending, np.zeros(len(pending), bool), "impossible", origin)


class SentFiles:
    """Untrusted reports or messages, in files or streams.

    Args:
        reports: folders, files or patterns; open binary files, bytes, or any number of these (``Sources``).
        head: name of the round: hash of the plan, or of the last published answers.
        users: planned number of users; their numbers are 0 <= user < users.
        strict: fail at the first refusal.
        progress: called with the number of reports or messages just read.
        earlier: names of the earlier rounds.
        engine: engine that reads files; default: this process.

    Attributes:
        intake: counts of accepted and refused input.

    Raises: InvalidInput: there are no such files.
    """

    kind: InputKind

    def __init__(
        self,
        reports: ReportInput,
        head: str,
        users: int,
        strict: bool = False,
        progress: Progress | None = None,
        earlier: Collection[str] = (),
        engine: Engine | None = None,
    ) -> None:
        self._sources, self._engine = Sources.of(reports), Serial() if engine is None else engine
        if self._engine.apart and not self._sources.only_files:
            raise InvalidInput(
                "engine, workers and scheduler apply to files only: streams and bytes are read in this process"
            )
        self._head, self._users, self._strict, self._earlier = head, users, strict, frozenset(earlier)
        self._progress = progress or (lambda n: None)
        self.intake = self._new_intake(0)

    @property
    def people(self) -> int | None:
        """Number of users who count, or None while there are none."""
        return self.intake.accepted or None

    def _new_intake(self, questions: int) -> Intake:
        """Return the counts before the first file is read."""
        files, other_files = len(self._sources.files), self._sources.other_files
        return Intake(self.kind, self._strict, files, other_files, questions=[0] * questions)


def isolate_refused(rows: Ints, read: Callable[[Ints], T]) -> Iterator[tuple[Ints, T | None]]:
    """Yield parts of the rows with the result of ``read``; refused parts are divided, and a refused row gives None."""
    result: T | None = None
    with suppress(Refused):
        result = read(rows)
    if result is not None or len(rows) <= 1:
        yield rows, result
        return
    for part in np.array_split(rows, min(SPLIT, len(rows))):
        yield from isolate_refused(part, read)
