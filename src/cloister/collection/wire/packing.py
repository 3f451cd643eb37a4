"""How the reports of a question are packed: their columns side by side, in a fixed number of bytes.

A column is one unsigned integer per report, or a row of them; little-endian. The columns of a round are derived from
its reports for zero users, so that no component declares them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any, final

import attrs
import numpy as np
from numpy.typing import NDArray

from cloister.core.encoding import encode_lattice
from cloister.core.errors import InvalidInput
from cloister.core.questions import Round
from cloister.core.randomness import NoiseRng
from cloister.core.trust import Shuffled
from cloister.core.types import AnyArray

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


@lru_cache(maxsize=4)
def report_types(round: Round[Any]) -> tuple[ReportType, ...]:
    """The report type of each question; under Shuffled trust, that of one message, private number included. Raises:
    InvalidInput: some report cannot be sent."""
    nobody = np.empty((0, round.domain.dimension), np.int64), np.empty(0, np.uint64)
    reports = encode_lattice(round, *nobody, NoiseRng.secret())
    left_out = () if round.trust is Shuffled else ("users",)
    return tuple(type_of(number, report, left_out) for number, report in enumerate(reports))


def type_of(number: int, report: Any, left_out: tuple[str, ...]) -> ReportType:
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
