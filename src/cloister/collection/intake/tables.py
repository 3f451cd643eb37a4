"""Table of reports or messages for inspection: a Parquet file, which is never read as reports.

The first column is ``user``, or ``sender`` for messages on their way to a shuffler; messages have a column ``question``
(from 0). For question j and each column c of its reports, "qj.c" holds the answer, or null in rows that do not answer
question j.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import attrs
import numpy as np

from cloister.collection.intake.sources import FileRange, ReportInput, Sources, Stream
from cloister.collection.intake.validator import MESSAGES, REPORTS, Intake, ReportValidator
from cloister.collection.plan.durable_files import atomic_file, writing
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
"""Reports converted at once."""


@final
@attrs.frozen
class ReportTable:
    """Outcome of ``write_table``: the round (from 1), the number of rows, and the counts of refused input."""

    round: int
    rows: int
    intake: Intake


def write_table(
    transcript: Transcript,
    reports: ReportInput,
    target: Path,
    number: int | None = None,
    progress: Callable[[int], None] = lambda n: None,
) -> ReportTable:
    """Write reports, or a shuffler's messages, as they are, including impossible ones, to a Parquet file.

    Of a damaged file, the rows before the damage are written.

    Args:
        transcript: transcript of the plan that they answer.
        reports: files, folders or streams, as for ``decode``.
        target: Parquet file, replaced once complete; readable by its owner only.
        number: number of the round, from 1; default: the open one, of a finished plan the last.
        progress: called with the number of rows just written.

    Raises:
        InvalidInput: no such round or files, or the target is no Parquet file, or one of the inputs.
        MissingExtra: pyarrow is not installed.
    """
    last = min(transcript.index + 1, transcript.plan.length)
    chosen = last if number is None else number
    if not 1 <= chosen <= last:
        raise InvalidInput(f"round {chosen} was never opened: choose 1 to {last}")
    at = attrs.evolve(transcript, closed=transcript.closed[: chosen - 1])
    table = _Table(at.round(), at.head, at.heads[:-1])
    pa, rows = _pyarrow(), 0
    sources = Sources.of(reports)
    if target.suffix != ".parquet" or any(target.exists() and target.samefile(path) for path in sources.files):
        raise InvalidInput(f"{target} cannot be the table: give another Parquet file, such as reports.parquet")
    intake = Intake(table.kind, False, len(sources.files), sources.other_files)
    with (
        writing(target),
        atomic_file(target, private=True) as file,
        pa.parquet.ParquetWriter(file, table.schema, compression="zstd") as out,
    ):
        for batch in table.batches(sources, intake):
            out.write_batch(batch)
            rows += batch.num_rows
            progress(batch.num_rows)
    return ReportTable(chosen, rows, intake)


@final
@attrs.frozen
class _Table:
    """Table of a round: the round, its name, and the names of the rounds before."""

    round: Round[Any]
    head: str
    earlier: tuple[str, ...]

    @property
    def kind(self) -> Any:
        """Kind of input."""
        return MESSAGES if self.round.trust is Shuffled else REPORTS

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns; ``sender`` is null in released messages."""
        pa = _pyarrow()
        shuffled = [("sender", pa.uint64()), ("question", pa.uint16())]
        first = shuffled if self.round.trust is Shuffled else [("user", pa.uint64())]
        return pa.schema([*first, *((name, _type(c)) for name, c in self._columns())])

    def _columns(self) -> Iterator[tuple[str, Column]]:
        for j, body in enumerate(layout_of(self.round).bodies):
            for column in body.kind.body.columns:
                yield f"q{j}.{column.name}", column

    def batches(self, sources: Sources, intake: Intake) -> Iterator[pa.RecordBatch]:
        """Yield all rows, a bounded number at a time, and count refused input."""
        validator = ReportValidator(intake, self.round, self.head, self.earlier)
        for source in sources.in_order():
            if self._is_released(source):
                yield from self._released(source.name, intake)
                continue
            for parsed in validator.parse(source):
                for start in range(0, len(parsed.users), PIECE):
                    piece = slice(start, start + PIECE)
                    yield self._sent(parsed.users[piece], parsed.answers[piece])

    def _is_released(self, source: FileRange | Stream) -> bool:
        """Return True for a file released by a shuffler."""
        if self.round.trust is not Shuffled or isinstance(source, Stream):
            return False
        with source.open() as file:
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

    def _messages(self, messages: Messages) -> pa.RecordBatch:
        rows = [np.flatnonzero(messages.questions == j) for j in range(len(self.round.parts))]
        first = {"sender": messages.senders, "question": messages.questions}
        return self._batch(first, [(positions, messages.bodies[positions]) for positions in rows], len(messages))

    def _batch(self, first: Any, parts: list[tuple[Ints, Packed]], count: int | None = None) -> pa.RecordBatch:
        pa, schema = _pyarrow(), self.schema
        size = len(first["user"]) if count is None else count
        arrays = [
            pa.nulls(size, schema.field(name).type) if values is None else pa.array(values, schema.field(name).type)
            for name, values in first.items()
        ]
        for body, (rows, bodies) in zip(layout_of(self.round).bodies, parts, strict=True):
            kind = body.kind.body
            columns = kind.unpack(bodies[:, : kind.bytes])
            arrays += [_spread(columns[column.name], rows, size, column) for column in kind.columns]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _type(column: Column) -> Any:
    pa = _pyarrow()
    number = pa.from_numpy_dtype(np.dtype(column.dtype).newbyteorder("="))
    return number if column.width is None else pa.list_(number)


def _spread(values: AnyArray, rows: Ints, size: int, column: Column) -> Any:
    """Return an Arrow array (size,) with values at these rows, and null elsewhere."""
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
