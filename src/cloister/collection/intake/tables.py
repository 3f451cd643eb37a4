"""Reports and messages as a table, for people to look at: a Parquet file, which nothing reads as reports.

The first column is ``user``, of messages on their way to a shuffler ``sender``; messages have a column ``question``
(from 0). For question j and each column c of its reports, ``qj.c`` holds the answer, and is null in rows that do not
answer question j.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import attrs
import numpy as np

from cloister.collection.intake.sources import Given, Sources, Stream, Stretch
from cloister.collection.intake.validator import MESSAGES, REPORTS, Intake, ReportValidator
from cloister.collection.plan.canonical_json import appearing, writing
from cloister.collection.plan.transcript import Transcript
from cloister.collection.wire.answers import Column, Packed, layout_of
from cloister.collection.wire.messages import RELEASED, Messages, ReleaseForm, Unusable, from_answers, messages_of
from cloister.core.errors import InvalidInput, MissingExtra
from cloister.core.questions import Round
from cloister.core.trust import Shuffled
from cloister.core.types import AnyArray, Ids, Ints

if TYPE_CHECKING:
    import pyarrow as pa

PIECE = 2**17
"""Reports that become rows at once."""


@final
@attrs.frozen
class Tabled:
    """What became a table. Args: round (from 1), rows, intake (of what could not)."""

    round: int
    rows: int
    intake: Intake


def tabled(
    transcript: Transcript,
    given: Given,
    target: Path,
    number: int | None = None,
    progress: Callable[[int], None] = lambda n: None,
) -> Tabled:
    """Write reports, or a shuffler's messages, as they stand, with what no encoder sends among them.

    Args:
        transcript: of the plan that they answer.
        given: files, folders or streams, as for ``decode``.
        target: a Parquet file, replaced once it is whole; readable by its owner only.
        number: of the round, from 1; default: the open one, of a finished plan the last.

    Of a file that is damaged, what stands before is there. Raises: InvalidInput: no such round, or files; or a target
    that is no Parquet file, or one of them. MissingExtra: pyarrow is not installed.
    """
    last = min(transcript.index + 1, transcript.plan.length)
    chosen = last if number is None else number
    if not 1 <= chosen <= last:
        raise InvalidInput(f"round {chosen} is not one that was opened: choose 1 to {last}")
    at = attrs.evolve(transcript, closed=transcript.closed[: chosen - 1])
    table = _Table(at.round(), at.head, at.heads[:-1])
    pa, rows = _pyarrow(), 0
    sources = Sources.of(given)
    if target.suffix != ".parquet" or any(target.exists() and target.samefile(path) for path in sources.files):
        raise InvalidInput(f"the table would be {target}: give a Parquet file of its own, such as reports.parquet")
    intake = Intake(table.kind, False, len(sources.files), sources.others)
    with (
        writing(target),
        appearing(target, owners=True) as file,
        pa.parquet.ParquetWriter(file, table.schema, compression="zstd") as out,
    ):
        for batch in table.batches(sources, intake):
            out.write_batch(batch)
            rows += batch.num_rows
            progress(batch.num_rows)
    return Tabled(chosen, rows, intake)


@final
@attrs.frozen
class _Table:
    """The table of a round. Args: round, head (its name), earlier (names of the rounds before)."""

    round: Round[Any]
    head: str
    earlier: tuple[str, ...]

    @property
    def kind(self) -> Any:
        """What is read."""
        return MESSAGES if self.round.trust is Shuffled else REPORTS

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns; ``sender`` is null in messages that a shuffler released."""
        pa = _pyarrow()
        who = [("sender", pa.uint64()), ("question", pa.uint16())] if self.round.trust is Shuffled else []
        return pa.schema([*(who or [("user", pa.uint64())]), *((name, _type(c)) for name, c in self._columns())])

    def _columns(self) -> Iterator[tuple[str, Column]]:
        for j, body in enumerate(layout_of(self.round).bodies):
            for column in body.kind.body.columns:
                yield f"q{j}.{column.name}", column

    def batches(self, sources: Sources, intake: Intake) -> Iterator[pa.RecordBatch]:
        """All rows, a bounded number at a time. What holds none is counted."""
        validator = ReportValidator(intake, self.round, self.head, self.earlier)
        for where in sources.opened():
            if self._is_released(where):
                yield from self._released(where.name, intake)
                continue
            for found in validator.parsed(where):
                for start in range(0, len(found.users), PIECE):
                    some = slice(start, start + PIECE)
                    yield self._sent(found.users[some], found.answers[some])

    def _is_released(self, where: Stretch | Stream) -> bool:
        """Whether a file is one that a shuffler released."""
        if self.round.trust is not Shuffled or isinstance(where, Stream):
            return False
        with where.opened() as file:
            return file.read(1) == bytes([RELEASED])

    def _released(self, path: str, intake: Intake) -> Iterator[pa.RecordBatch]:
        try:
            with open(path, "rb") as file:
                for records in ReleaseForm(self.head, self.round).batches(file):
                    yield self._messages(messages_of(records))
        except Unusable as error:
            intake.refuse("no messages" if error.reason == "unshuffled" else error.reason, 1, path)

    def _sent(self, users: Ids, answers: Packed) -> pa.RecordBatch:
        if self.round.trust is Shuffled:
            return self._messages(from_answers(users, answers, self.round)[0])
        parts = [(rows, bodies) for _, rows, bodies in layout_of(self.round).parts(users, answers)]
        return self._batch({"user": users}, [(np.arange(len(users))[rows], bodies) for rows, bodies in parts])

    def _messages(self, some: Messages) -> pa.RecordBatch:
        rows = [np.flatnonzero(some.questions == j) for j in range(len(self.round.parts))]
        first = {"sender": some.senders, "question": some.questions}
        return self._batch(first, [(mine, some.bodies[mine]) for mine in rows], len(some))

    def _batch(self, first: Any, parts: list[tuple[Ints, Packed]], count: int | None = None) -> pa.RecordBatch:
        pa, schema = _pyarrow(), self.schema
        size = len(first["user"]) if count is None else count
        arrays = [
            pa.nulls(size, schema.field(name).type) if values is None else pa.array(values, schema.field(name).type)
            for name, values in first.items()
        ]
        for body, (rows, bodies) in zip(layout_of(self.round).bodies, parts, strict=True):
            kind = body.kind.body
            said = kind.unpacked(bodies[:, : kind.bytes])
            arrays += [_spread(said[column.name], rows, size, column) for column in kind.columns]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _type(column: Column) -> Any:
    pa = _pyarrow()
    number = pa.from_numpy_dtype(np.dtype(column.dtype).newbyteorder("="))
    return number if column.width is None else pa.list_(number)


def _spread(values: AnyArray, rows: Ints, size: int, column: Column) -> Any:
    """An Arrow array (size,): values at these rows, null elsewhere."""
    pa = _pyarrow()
    places = np.full(size, -1)
    places[rows] = np.arange(len(rows))
    flat = pa.array(np.ascontiguousarray(values).reshape(-1))
    dense = (
        flat
        if column.width is None
        else pa.ListArray.from_arrays(pa.array(np.arange(len(values) + 1) * column.width, pa.int32()), flat)
    )
    return dense.take(pa.array(places, pa.int64(), mask=places < 0))


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtra("pyarrow", "files", "a table of reports") from error
    return pyarrow
