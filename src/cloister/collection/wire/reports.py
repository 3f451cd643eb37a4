"""Reports on their way from people to the server: one row per person, in Parquet or Arrow.

``user`` is her public number. For question j of the round and each column c of its reports, ``q{j}.{c}`` holds what she says,
and is null where she is not asked question j: who is asked is public. A column of one dimension has its own unsigned type; one of
width w is ``fixed_size_binary(w * itemsize)``, little-endian. The schema's metadata names the plan.

The shape of a round is found from the reports of nobody, so that no component says it twice. What is imported here is light;
pyarrow is loaded by the functions that need it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from cloister.core.encoding import encode_lattice
from cloister.core.errors import InvalidInput, MissingExtra, Refused
from cloister.core.questions import Round
from cloister.core.randomness import NoiseRng
from cloister.core.trust import Shuffled
from cloister.core.types import AnyArray, Bools, Ids

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = "1"
PLAN_KEY, FORMAT_KEY = b"cloister.plan", b"cloister.format"
USER = "user"

Packed = NDArray[np.uint8]
"""(n, bytes): the columns of n reports or messages, side by side."""


@final
@attrs.frozen
class Column:
    """One thing that a report says. Args: name, dtype (unsigned, little-endian), width (numbers per person; None for one of its own)."""

    name: str
    dtype: str
    width: int | None

    @property
    def bytes(self) -> int:
        """Per person who is asked."""
        return np.dtype(self.dtype).itemsize * (1 if self.width is None else self.width)


@final
@attrs.frozen
class ReportType:
    """The reports of one question. Args: load (columns to reports), columns, in order."""

    load: Any
    columns: tuple[Column, ...]

    @property
    def bytes(self) -> int:
        """Per person who is asked."""
        return sum(column.bytes for column in self.columns)

    def packed(self, columns: Mapping[str, AnyArray]) -> Packed:
        """Columns with n entries side by side: (n, bytes)."""
        rows = len(columns[self.columns[0].name])
        records, start = np.empty((rows, self.bytes), np.uint8), 0
        for column in self.columns:
            values = np.ascontiguousarray(columns[column.name], np.dtype(column.dtype))
            records[:, start : start + column.bytes] = values.reshape(rows, column.width or 1).view(np.uint8)
            start += column.bytes
        return records

    def unpacked(self, records: Packed) -> dict[str, AnyArray]:
        """Columns from what ``packed`` made, in this machine's byte order."""
        columns, start = dict[str, AnyArray](), 0
        for column in self.columns:
            part = np.ascontiguousarray(records[:, start : start + column.bytes]).view(np.dtype(column.dtype))
            values = part.reshape(-1) if column.width is None else part
            columns[column.name] = values.astype(values.dtype.newbyteorder("="), copy=False)
            start += column.bytes
        return columns


@lru_cache(maxsize=4)
def report_types(round: Round[Any]) -> tuple[ReportType, ...]:
    """What the reports of each question look like; of Shuffled trust, each of its messages, private number included.

    Raises:
        InvalidInput: some report does not travel.
    """
    nobody = np.empty((0, round.domain.dimension), np.int64), np.empty(0, np.uint64)
    reports = encode_lattice(round, *nobody, NoiseRng.secret())
    left_out = () if round.trust is Shuffled else ("users",)
    return tuple(_type_of(number, report, left_out) for number, report in enumerate(reports))


def _type_of(number: int, report: Any, left_out: tuple[str, ...]) -> ReportType:
    if not (hasattr(report, "columns") and hasattr(type(report), "load")):
        raise InvalidInput(
            f"the reports of question {number + 1} do not travel: {type(report).__name__} has no columns"
        )
    columns = list[Column]()
    for name, values in report.columns().items():
        if values.dtype.kind != "u" or values.ndim not in (1, 2):
            raise InvalidInput(
                f"column '{name}' of question {number + 1} has type {values.dtype}: reports are unsigned integers"
            )
        if name not in left_out:
            columns.append(
                Column(name, values.dtype.newbyteorder("<").str, values.shape[1] if values.ndim == 2 else None)
            )
    return ReportType(type(report).load, tuple(columns))


def asked(round: Round[Any], users: Ids) -> list[Bools]:
    """Who of the users (n,) is asked each question: public."""
    return [np.ones(len(users), bool) if part.among is None else part.among.holds(users) for part in round.parts]


def schema(round: Round[Any], plan_hash: str) -> pa.Schema:
    """The schema of every report file of a plan."""
    pa = with_arrow()
    fields = [pa.field(USER, pa.uint64(), nullable=False)]
    for j, kind in enumerate(report_types(round)):
        fields += [pa.field(f"q{j}.{c.name}", arrow_type(c), nullable=True) for c in kind.columns]
    return pa.schema(fields, metadata={PLAN_KEY: plan_hash.encode(), FORMAT_KEY: FORMAT.encode()})


def plan_of(schema: pa.Schema) -> str | None:
    """The hash of the plan that a file says it answers; None if it is no report file of this format."""
    found: Mapping[bytes, bytes] = schema.metadata or {}
    if found.get(FORMAT_KEY) != FORMAT.encode() or PLAN_KEY not in found:
        return None
    return found[PLAN_KEY].decode("ascii", "replace")


def to_batch(reports: tuple[Any, ...], users: Ids, schema: pa.Schema) -> pa.RecordBatch:
    """Reports as one row per user.

    Args:
        reports: one per question, each of those users whom it was asked of, in any order.
        users: (n,) distinct; the rows come in this order.
        schema: the plan's.
    """
    pa = with_arrow()
    order, arrays = np.argsort(users, kind="stable"), [pa.array(users, pa.uint64())]
    for report in reports:
        columns = report.columns()
        rows = order[np.searchsorted(users, columns["users"], sorter=order)]
        where = np.zeros(len(users), bool)
        where[rows] = True
        for name, values in columns.items():
            if name != "users":
                arrays.append(filled(values, rows, where, schema.field(len(arrays)).type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def sound(batch: pa.RecordBatch, round: Round[Any]) -> Bools:
    """Which rows (n,) answer exactly the questions that their users are asked.

    Raises:
        Refused: the batch has other columns or types than this round's, or a row has no user.
    """
    _checked(batch, round)
    users = _values(batch.column(0), Column(USER, "<u8", None))
    good, at = np.ones(len(users), bool), 1
    for kind, who in zip(report_types(round), asked(round, users), strict=True):
        for _ in kind.columns:
            good &= valid(batch.column(at)) == who
            at += 1
    return good


def from_batch(batch: pa.RecordBatch, round: Round[Any]) -> tuple[Any, ...]:
    """Rows back to one report per question, by each report type's own ``load``. Whether an answer is possible is for ``absorb`` to say.

    Raises:
        Refused: no encoder of this round sends such rows.
    """
    found = zip(report_types(round), columns_of(batch, round), strict=True)
    return tuple(kind.load(columns) for kind, columns in found)


def columns_of(batch: pa.RecordBatch, round: Round[Any]) -> list[dict[str, AnyArray]]:
    """What each question's reports are loaded from, in the order of the rows.

    Raises:
        Refused: as for ``from_batch``, but for what ``load`` refuses.
    """
    if not sound(batch, round).all():
        raise Refused("a row answers a question that its user is not asked, or leaves one out: no encoder sends that")
    users = _values(batch.column(0), Column(USER, "<u8", None))
    found, at = list[dict[str, AnyArray]](), 1
    for kind, who in zip(report_types(round), asked(round, users), strict=True):
        columns = {"users": users if who.all() else users[who]}
        for column in kind.columns:
            columns[column.name] = _values(batch.column(at), column)
            at += 1
        found.append(columns)
    return found


def _checked(batch: pa.RecordBatch, round: Round[Any]) -> None:
    pa = with_arrow()
    expected = {USER: pa.uint64()}
    for j, kind in enumerate(report_types(round)):
        expected.update({f"q{j}.{c.name}": arrow_type(c) for c in kind.columns})
    if batch.schema.names != list(expected) or batch.schema.types != list(expected.values()):
        raise Refused("these reports have other columns than the plan's: another plan, or no reports at all")
    try:
        batch.validate(full=True)
    except pa.ArrowInvalid:
        raise Refused("a column of reports is damaged or cut short") from None
    if batch.column(0).null_count:
        raise Refused("a report has no user number: no encoder sends that")


def arrow_type(column: Column) -> Any:
    """The Arrow type of a column."""
    pa = with_arrow()
    return (
        pa.from_numpy_dtype(np.dtype(column.dtype).newbyteorder("="))
        if column.width is None
        else pa.binary(column.bytes)
    )


def filled(values: AnyArray, rows: AnyArray, where: Bools, kind: Any) -> Any:
    """An Arrow array (n,) with the values at their rows and null elsewhere."""
    pa = with_arrow()
    whole = np.zeros((len(where), *values.shape[1:]), values.dtype.newbyteorder("<"))
    whole[rows] = values
    present = None if where.all() else pa.py_buffer(np.packbits(where, bitorder="little"))
    return pa.Array.from_buffers(kind, len(where), [present, pa.py_buffer(whole)])


def valid(array: Any) -> Bools:
    """Which entries (n,) are not null."""
    if not array.null_count:
        return np.ones(len(array), bool)
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False), bool)


def _values(array: Any, column: Column) -> AnyArray:
    """The entries that are not null: (m,) or (m, width), in this machine's byte order."""
    kept = array.drop_null() if array.null_count else array
    width = 1 if column.width is None else column.width
    start, data = kept.offset * column.bytes, kept.buffers()[1]
    shape = (len(kept),) if column.width is None else (len(kept), width)
    if data is None:  # pyarrow leaves the buffer of an empty array out
        return np.empty(shape, np.dtype(column.dtype).newbyteorder("="))
    if data.size < start + len(kept) * column.bytes:
        raise Refused("a column of reports is cut short")
    flat = np.frombuffer(data, np.dtype(column.dtype), len(kept) * width, start)
    return flat.reshape(shape).astype(np.dtype(column.dtype).newbyteorder("="), copy=False)


def with_arrow() -> Any:
    """pyarrow.

    Raises:
        MissingExtra: it is not installed.
    """
    try:
        import pyarrow
    except ImportError as error:
        raise MissingExtra("pyarrow", "files", "reading and writing reports") from error
    return pyarrow
