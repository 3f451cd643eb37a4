"""The columns shared by files of reports and of messages.

For question j of the round and each column c of its reports, ``q{j}.{c}`` holds the answer, and is null in rows that do
not answer question j. A one-dimensional column has its own unsigned type; a column of width w is little-endian
``fixed_size_binary(w * itemsize)``. The columns before these name the sender or the question (``reports``,
``messages``). The schema's metadata names the plan.

The columns of a round are derived from its reports for zero users, so that no component declares them. Importing this
module is light: pyarrow is loaded by the functions that need it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from cloister.core.encoding import encode_lattice
from cloister.core.errors import InvalidInput, MissingExtra, Refused
from cloister.core.questions import Round
from cloister.core.randomness import NoiseRng
from cloister.core.trust import Shuffled
from cloister.core.types import AnyArray, Bools, Ids, Ints

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = "1"
PLAN_KEY, FORMAT_KEY = b"cloister.plan", b"cloister.format"

STAMPED = "question"
"""Column, and attribute, of reports that repeat the stamp of the channel that they answer."""

Packed = NDArray[np.uint8]
"""(n, bytes): the columns of n reports or messages, side by side."""


@final
@attrs.frozen
class Column:
    """A column of a report. Args: name, dtype (unsigned, little-endian), width (numbers per report; None: a scalar)."""

    name: str
    dtype: str
    width: int | None

    @property
    def bytes(self) -> int:
        """Bytes per report."""
        return np.dtype(self.dtype).itemsize * (1 if self.width is None else self.width)

    @property
    def arrow_type(self) -> Any:
        """The Arrow type of this column in a file."""
        pa = with_arrow()
        kept = np.dtype(self.dtype).newbyteorder("=")
        return pa.from_numpy_dtype(kept) if self.width is None else pa.binary(self.bytes)

    def unpacked(self, data: Packed) -> AnyArray:
        """Numbers (n,) or (n, width) in native byte order, from their bytes in a file or record."""
        values = np.ascontiguousarray(data).view(np.dtype(self.dtype))
        values = values.reshape(-1) if self.width is None else values
        return values.astype(values.dtype.newbyteorder("="), copy=False)


@final
@attrs.frozen
class ReportType:
    """The form of one question's reports. Args: load (builds a report from columns), columns (in order), stamp (of the
    channel, the same number in the column ``question`` of all its reports; None: they have no such column)."""

    load: Any
    columns: tuple[Column, ...]
    stamp: int | None = None

    @property
    def bytes(self) -> int:
        """Bytes per report."""
        return sum(column.bytes for column in self.columns)

    @property
    def record(self) -> np.dtype[Any]:
        """A packed report as one value: NumPy moves whole numbers of it, not single bytes."""
        return np.dtype([(c.name, c.dtype, () if c.width is None else (c.width,)) for c in self.columns])

    @property
    def places(self) -> list[tuple[Column, slice]]:
        """Every column, with its byte range in a packed report."""
        ends = np.cumsum([0, *(column.bytes for column in self.columns)]).tolist()
        return [(column, slice(*ends)) for column, ends in zip(self.columns, pairwise(ends), strict=True)]

    def packed(self, columns: Mapping[str, AnyArray]) -> Packed:
        """Pack columns of n entries side by side: (n, bytes)."""
        sent = np.empty(len(columns[self.columns[0].name]), self.record)
        for column in self.columns:
            sent[column.name] = columns[column.name]
        return sent.view(np.uint8).reshape(-1, self.bytes)

    def unpacked(self, records: Packed) -> dict[str, AnyArray]:
        """The inverse of ``packed``."""
        return {column.name: column.unpacked(records[:, place]) for column, place in self.places}

    @property
    def body(self) -> ReportType:
        """The same without the stamp, which the name of the round implies."""
        left_out = () if self.stamp is None else (STAMPED,)
        return ReportType(self.load, tuple(c for c in self.columns if c.name not in left_out))

    def stamps(self, count: int) -> dict[str, AnyArray]:
        """The column that ``body`` leaves out, for so many reports; nothing if there is none."""
        return {} if self.stamp is None else {STAMPED: np.broadcast_to(np.uint64(self.stamp), count)}

    def to_arrow(self, packed: Packed, rows: Ints, count: int) -> list[Any]:
        """One Arrow array (count,) per column: packed values at the given rows, null elsewhere."""
        pa, where, arrays = with_arrow(), np.zeros(count, bool), list[Any]()
        where[rows] = True
        present = None if where.all() else pa.py_buffer(np.packbits(where, bitorder="little"))
        values = np.ascontiguousarray(packed).view(self.record)[:, 0]
        for column in self.columns:
            whole = np.zeros(count, self.record[column.name])
            whole[rows] = values[column.name]
            arrays.append(pa.Array.from_buffers(column.arrow_type, count, [present, pa.py_buffer(whole)]))
        return arrays


@lru_cache(maxsize=4)
def report_types(round: Round[Any]) -> tuple[ReportType, ...]:
    """The report type of each question; under Shuffled trust, that of one message, private number included. Raises:
    InvalidInput: some report cannot be sent."""
    nobody = np.empty((0, round.domain.dimension), np.int64), np.empty(0, np.uint64)
    reports = encode_lattice(round, *nobody, NoiseRng.secret())
    left_out = () if round.trust is Shuffled else ("users",)
    return tuple(type_of(number, report, left_out) for number, report in enumerate(reports))


def type_of(number: int, report: Any, left_out: tuple[str, ...] = ("users",)) -> ReportType:
    """The type of a question's report. Args: left_out (columns that are not sent). Raises: InvalidInput: the report
    cannot be sent."""
    if not (hasattr(report, "columns") and hasattr(type(report), "load")):
        raise InvalidInput(
            f"the reports of question {number + 1} cannot be sent: {type(report).__name__} lacks columns() or load()"
        )
    columns = list[Column]()
    for name, values in report.columns().items():
        if values.dtype.kind != "u" or values.ndim not in (1, 2):
            raise InvalidInput(
                f"column '{name}' of question {number + 1} has type {values.dtype}: give 1-d or 2-d unsigned integers"
            )
        if name not in left_out:
            width = values.shape[1] if values.ndim == 2 else None
            columns.append(Column(name, values.dtype.newbyteorder("<").str, width))
    stamp = getattr(report, STAMPED, None) if Column(STAMPED, "<u8", None) in columns else None
    return ReportType(type(report).load, tuple(columns), stamp if isinstance(stamp, int) else None)


def schema(round: Round[Any], plan_hash: str, heads: Mapping[str, Any]) -> pa.Schema:
    """The schema of a plan's files. Args: heads (names and types of the columns before the answers)."""
    pa = with_arrow()
    fields = [pa.field(name, kind, nullable=False) for name, kind in heads.items()]
    for j, kind in enumerate(report_types(round)):
        fields += [pa.field(f"q{j}.{c.name}", c.arrow_type, nullable=True) for c in kind.columns]
    return pa.schema(fields, metadata={PLAN_KEY: plan_hash.encode(), FORMAT_KEY: FORMAT.encode()})


def plan_of(schema: pa.Schema) -> str | None:
    """The plan's hash in a file's metadata; None if the file has another format."""
    found: Mapping[bytes, bytes] = schema.metadata or {}
    if found.get(FORMAT_KEY) != FORMAT.encode() or PLAN_KEY not in found:
        return None
    return found[PLAN_KEY].decode("ascii", "replace")


def by_question(batch: pa.RecordBatch, round: Round[Any]) -> Iterator[tuple[ReportType, Sequence[Any]]]:
    """Yield every question's report type and its columns of a batch."""
    kinds = report_types(round)
    at = batch.num_columns - sum(len(kind.columns) for kind in kinds)
    for kind in kinds:
        yield kind, batch.columns[at : at + len(kind.columns)]
        at += len(kind.columns)


def valid(array: Any) -> Bools:
    """Which entries (n,) are not null."""
    if not array.null_count:
        return np.ones(len(array), bool)
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False), bool)


def numbers(array: Any, missing: int = 0) -> Ids:
    """Unsigned numbers (n,), with ``missing`` for null."""
    values = array.fill_null(0) if array.null_count else array
    wide = np.asarray(values.to_numpy(zero_copy_only=False), np.uint64)
    return np.where(valid(array), wide, np.uint64(missing)) if array.null_count else wide


def raw(array: Any, size: int) -> Packed:
    """The bytes (n, size) of every entry, arbitrary for null. Raises: Refused: the buffer is too short."""
    data, start = array.buffers()[1], array.offset * size
    if not len(array):  # pyarrow leaves the buffer of an empty array out
        return np.empty((0, size), np.uint8)
    if data is None or data.size < start + len(array) * size:
        raise Refused("a column is cut short")
    return np.frombuffer(data, np.uint8, len(array) * size, start).reshape(len(array), size)


def with_arrow() -> Any:
    """pyarrow. Raises: MissingExtra: it is not installed."""
    try:
        import pyarrow
    except ImportError as error:
        raise MissingExtra("pyarrow", "files", "reading and writing reports") from error
    return pyarrow
