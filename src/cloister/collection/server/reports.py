"""People who have sent reports: files of them are all that the server has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, final

import attrs
import numpy as np

from cloister.collection.wire import reports as wire
from cloister.collection.wire.user_set import TRIES, Roll, first_of
from cloister.core.encoding import Progress, absorb, keep_memory, merge_summaries
from cloister.core.errors import InvalidInput, MissingExtra, Refused
from cloister.core.questions import Round
from cloister.core.randomness import NoiseRng
from cloister.core.types import Bools, Ids, Ints

if TYPE_CHECKING:
    import pyarrow as pa

    from cloister.collection.wire.files import Path

PIECE = 2**17
"""Reports that are added up at once, whatever files they are in: a summary costs K d, however few its reports are."""

SPLIT = 4
"""Into how many parts reports are divided, one of which no encoder sends. Many are fewer looks where most are such, and more sums
where few are."""

REASONS = {
    "another plan": "files of reports that answer another plan",
    "no reports": "files that hold no reports of this form",
    "damaged": "files that are damaged or cut short",
    "out of range": "reports of user numbers that the plan does not have",
    "not as asked": "reports that answer what their user is not asked, or leave out what she is asked",
    "impossible": "reports with an answer that no encoder of this plan sends",
    "duplicate": "reports of users who have reported already",
}
"""Why something is refused, and what it then is."""


@final
@attrs.define
class Intake:
    """What became of what was sent. All of it is public: reports are.

    Args:
        accepted: reports that count.
        questions: how many of them answer each question.
        refused: files or reports per reason, see ``REASONS``.
        first: the file where each reason was met first.
        files: how many were read.
        others: files in the folders that have another extension; they were left alone.
        earlier: files of reports of rounds that are closed; they were left alone too, and are not in ``files``.
        doubts: what of the accepted ones chance does not explain (``core.shares``), and was accepted all the same.
    """

    accepted: int = 0
    questions: list[int] = attrs.field(factory=list)
    refused: Counter[str] = attrs.field(factory=Counter)
    first: dict[str, str] = attrs.field(factory=dict)
    files: int = 0
    others: int = 0
    earlier: int = 0
    doubts: list[str] = attrs.field(factory=list)

    def as_dict(self, planned: int) -> dict[str, Any]:
        """Plain data. Args: planned (users of the plan)."""
        return {
            "accepted": self.accepted, "share of the planned users": self.accepted / planned, "per question": self.questions,
            "files": self.files, "refused": {reason: self.refused[reason] for reason in REASONS},
            **({"doubts": self.doubts} if self.doubts else {}),
        }  # fmt: skip

    def lines(self) -> list[str]:
        """One line per reason, for people."""
        found = [
            f"refused {self.refused[r]:,} {words} (the first: '{self.first[r]}')"
            for r, words in REASONS.items()
            if self.refused[r]
        ]
        alone = {"of another kind": self.others, "of rounds that are closed": self.earlier}
        found += [f"left alone {count:,} files {what}" for what, count in alone.items() if count]
        return found + [f"WARNING: {doubt}" for doubt in self.doubts]


@final
class Collected:
    """Users' reports in files, added up as they are read: memory does not grow with the files.

    Memory: what the oracles' summaries take, which is O(K d) for those that can list their buckets, one bit per planned user, and a
    bounded number of reports. Oracles that cannot list their buckets (explicit-histogram) keep every report.

    Guarantee: a file counts only if it can be read to its end; a report counts only if an encoder of this round could have sent it, and
    at most one per user does. Summaries are exact integers, so the result does not depend on the order of files or reports, or on how
    these are divided over files, as long as two reports of one user are equal. Where they differ, the first possible one counts,
    files being read in the order of their names: somebody else used her number, and nobody can tell who. A refused report does not
    use her number up, unless there are ``TRIES`` of them at once.

    Parquet pages have their checksums checked if they were written with them. Arrow files have none: there, a flipped bit inside an
    answer is another answer.

    Args:
        paths: folders, files or patterns; .parquet and .arrow.
        plan: name of the round, as reports bear it: the plan's hash, or that of the answers that were published last.
        users: how many are planned; numbers are 0 <= user < users.
        strict: fail at the first refusal.
        progress: told how many more reports were looked at.
        earlier: names of the rounds before.

    Attributes:
        intake: what the last ``gather`` met.

    Raises:
        InvalidInput: there are no such files. MissingExtra: pyarrow is not installed.
    """

    def __init__(
        self, paths: Path | Sequence[Path], plan: str, users: int, strict: bool = False, progress: Progress | None = None,
        earlier: Collection[str] = (),
    ) -> None:  # fmt: skip
        try:
            from cloister.collection.wire.files import listed
        except ImportError as error:
            raise MissingExtra("pyarrow", "files", "reading reports") from error
        self._files, self._others = listed(paths)
        self._plan, self._users, self._strict, self._earlier = plan, users, strict, frozenset(earlier)
        self._progress = progress or (lambda n: None)
        self.intake = Intake()

    def gather(self, round: Round[Any], rng: NoiseRng) -> tuple[Any, ...]:
        """Draws nothing.

        Raises:
            InvalidInput: no report can be used; or a file changes while it is read.
            Refused: something was refused, and ``strict`` does not allow that.
        """
        keep_memory()
        self.intake = Intake(questions=[0] * len(round.parts), files=len(self._files), others=self._others)
        schema, seen = wire.schema(round, self._plan), Roll(self._users)
        nothing = absorb(round, wire.from_batch(_empty(schema), round))
        summaries = (
            one for piece, origins in self._pieces(schema) for one in self._counted(round, piece, origins, seen)
        )
        total = reduce(merge_summaries, summaries, nothing)
        if not self.intake.accepted:
            raise InvalidInput("; ".join(["no report can be used", *self.intake.lines()]))
        return total

    def _pieces(self, schema: pa.Schema) -> Iterator[tuple[pa.RecordBatch, Origins]]:
        """Batches of files put together to pieces, with the files that they came from."""
        from cloister.collection.wire.files import Unusable, batches

        held, names, count = list[Any](), list[str](), 0
        for path in self._files:
            try:
                for batch in batches(path, schema):
                    held.append(batch)
                    names.append(path)
                    count += batch.num_rows
                    if count >= PIECE:
                        yield _joined(held), Origins.of(names, held)
                        held, names, count = [], [], 0
            except Unusable as error:
                if error.plan in self._earlier:
                    self.intake.earlier += 1
                    self.intake.files -= 1
                else:
                    self._refuse(error.reason, 1, path)
        if count:
            yield _joined(held), Origins.of(names, held)

    def _counted(
        self, round: Round[Any], piece: pa.RecordBatch, origins: Origins, seen: Roll
    ) -> Iterator[tuple[Any, ...]]:
        """Summaries of the reports of a piece that count, each of which is entered before the next is looked at."""
        users, left = _numbers(piece), np.arange(piece.num_rows)
        present = np.asarray(piece.column(0).is_valid().to_numpy(zero_copy_only=False), bool)
        left = self._kept(left, present & (users < self._users), "out of range", origins)
        left = self._kept(left, wire.sound(_taken(piece, left), round), "not as asked", origins)
        for _ in range(TRIES):
            if not len(left):
                break
            left = self._kept(left, ~seen.has(users[left]), "duplicate", origins)
            first = first_of(users[left])
            now, left = left[first], left[~first]
            for rows, summary in self._absorbed(round, piece, now, origins):
                seen.add(users[rows])
                self.intake.accepted += len(rows)
                yield summary
        left = self._kept(left, ~seen.has(users[left]), "duplicate", origins)  # of more than there are tries
        self._kept(left, np.zeros(len(left), bool), "impossible", origins)
        self._progress(piece.num_rows)

    def _absorbed(
        self, round: Round[Any], piece: pa.RecordBatch, rows: Ints, origins: Origins
    ) -> Iterator[tuple[Ints, tuple[Any, ...]]]:
        """Summaries of these rows of different users, without those that no encoder sends."""
        if not len(rows):
            return
        some = _taken(piece, rows)
        try:
            reports = wire.from_batch(some, round)
            summary = absorb(round, reports)
        except Refused:
            good = _possible(round, some)
            if len(rows) == 1:
                good = np.zeros(1, bool)
            kept = self._kept(rows, good, "impossible", origins)
            for part in np.array_split(kept, SPLIT if len(kept) == len(rows) else 1):
                yield from self._absorbed(round, piece, part, origins)
            return
        for number, report in enumerate(reports):
            self.intake.questions[number] += len(report.columns()["users"])
        yield rows, summary

    def _kept(self, rows: Ints, good: Bools, reason: str, origins: Origins) -> Ints:
        """The good rows; the others are refused."""
        if good.shape != rows.shape:  # ``good`` is of the whole piece
            good = good[rows]
        if good.all():
            return rows
        self._refuse(reason, int((~good).sum()), origins.at(int(rows[~good][0])))
        return rows[good]

    def _refuse(self, reason: str, count: int, path: str) -> None:
        self.intake.refused[reason] += count
        self.intake.first.setdefault(reason, path)
        if self._strict:
            raise Refused(
                f"'{path}' has {REASONS[reason]}" if _of_rows(reason) else f"'{path}' is one of the {REASONS[reason]}"
            )


def _possible(round: Round[Any], batch: pa.RecordBatch) -> Bools:
    """Which rows (n,), of different users, an encoder could have sent. Question by question, since a round may have fifty and she answers
    one: each one's reports are divided until what is impossible is alone."""
    good, users = np.ones(batch.num_rows, bool), _numbers(batch)
    columns = wire.columns_of(batch, round)
    for part, kind, given in zip(round.parts, wire.report_types(round), columns, strict=True):
        bad, heap = list[Ints](), [np.arange(len(given["users"]))]
        while heap:
            some = heap.pop()
            try:
                part.channel.absorb(kind.load({name: values[some] for name, values in given.items()}))
            except Refused:
                if len(some) > 1:
                    heap += np.array_split(some, min(SPLIT, len(some)))
                else:
                    bad.append(some)
        if bad:
            good &= ~np.isin(users, given["users"][np.concatenate(bad)])
    return good


def _of_rows(reason: str) -> bool:
    return REASONS[reason].startswith("reports")


@final
@attrs.frozen
class Origins:
    """Which file each row of a piece came from. Args: paths, ends (the row after the last of each)."""

    paths: tuple[str, ...]
    ends: Ints

    @classmethod
    def of(cls, paths: Sequence[str], batches: Sequence[Any]) -> Origins:
        return cls(tuple(paths), np.cumsum([batch.num_rows for batch in batches]))

    def at(self, row: int) -> str:
        return self.paths[int(np.searchsorted(self.ends, row, side="right"))]


def _numbers(piece: Any) -> Ids:
    """User numbers (n,), whatever stands where there is none."""
    column = piece.column(0)
    return np.asarray((column.fill_null(0) if column.null_count else column).to_numpy(zero_copy_only=False), np.uint64)


def _taken(piece: Any, rows: Ints) -> Any:
    return piece if len(rows) == piece.num_rows else piece.take(rows)


def _joined(batches: Sequence[Any]) -> Any:
    import pyarrow

    if len(batches) == 1:
        return batches[0]
    plain = [pyarrow.RecordBatch.from_arrays(batch.columns, names=batch.schema.names) for batch in batches]
    return pyarrow.Table.from_batches(plain).combine_chunks().to_batches()[0]


def _empty(schema: Any) -> Any:
    import pyarrow

    return pyarrow.RecordBatch.from_arrays([pyarrow.array([], field.type) for field in schema], schema=schema)
