"""Population of rows in memory."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar, final

import attrs
import numpy as np
from numpy.typing import NDArray

from cloister.core.encoding import everybody_reports, finite
from cloister.plugin import (
    CAP,
    AnyArray,
    Bools,
    Floats,
    Ids,
    Ints,
    InvalidInput,
    Lattice,
    NoiseRng,
    PublicRng,
    Round,
    chunk_rows,
    fingerprint,
    fingerprint_of,
    keep_memory,
    merge_summaries,
    summarise_lattice,
)
from cloister.rows.columns import select
from cloister.rows.memory import ArrayTable, FrameTable, listed
from cloister.rows.options import Missing, Reading
from cloister.rows.reading import (
    Chunk,
    TableRows,
    check_dimension,
    checked_first,
    reading_fingerprints,
    refuse_before_keep,
    refuse_missing,
    refuse_too_many,
    refuse_unfit,
    regroup,
    usable,
    user_numbers,
)
from cloister.rows.selection import Selection
from cloister.rows.users import Owners
from cloister.rows.workers.threads import Threads

if TYPE_CHECKING:
    from narwhals.typing import IntoDataFrame

V = TypeVar("V")


@final
@attrs.frozen(eq=False)
class _Chunk:
    """Rows that are encoded at once.

    Args:
        start: position of the first row in the table, and of the first usable one in the lattice.
        rows: number of rows of the table.
        used: positions in the chunk of usable rows; None if all are.
    """

    start: int
    rows: int
    used: NDArray[np.uint16] | None

    def users(self, first: int) -> Ids:
        if self.used is None:
            return user_numbers(first + self.start, self.rows)
        return self.used.astype(np.uint64) + np.uint64(first + self.start)

    def with_unused(self, points: Ints) -> tuple[Ints, _Chunk, Bools | None]:
        """Return the points of all rows, the chunk with all of them, and which of them are in no bucket.

        Args:
            points: (m, d), of the usable rows.
        """
        if self.used is None:
            return points, self, None
        all_points, nowhere = np.zeros((self.rows, points.shape[1]), np.int64), np.ones(self.rows, bool)
        all_points[self.used], nowhere[self.used] = points, False
        return all_points, attrs.evolve(self, used=None), nowhere

    @property
    def lattice(self) -> slice:
        """Place of the usable rows in the lattice."""
        return slice(self.start, self.start + (self.rows if self.used is None else len(self.used)))


class Arrays(TableRows):
    """Rows of a curator or a simulator, put on the lattice once and kept there (int32, half of float64's size).

    User i is the row's position plus ``first``.

    Args:
        rows: an array (n, d), or a data frame of pandas, polars or pyarrow.
        reading: ``columns`` are names (of a frame) or positions (in an array: '0', '1', ...), in this order; by
            default those that ``bounded`` and ``categories`` name, or else all, each of which must hold numbers or
            categories, by its declared type: objects are no numbers. A frame's types may come from its cells, as those
            of a CSV file that a library has read, and a column that is passed over for its type would tell that one
            row's cell is no number.
        first: number of the first user.

    Raises:
        UnknownName: there is no such column.
        InvalidInput: these are no rows of numbers, or not all columns hold numbers and none was chosen.
    """

    def __init__(self, rows: AnyArray | IntoDataFrame, reading: Reading | None = None, first: int = 0) -> None:
        reading = Reading() if reading is None else reading
        self._threads = Threads(reading.threads)
        self._table = ArrayTable(rows) if isinstance(rows, np.ndarray) else FrameTable(rows)
        self._owners: Owners | None = None
        self._kept: Bools | None = None
        super().__init__(select(self._table.known, reading, everything=True), reading)
        self._first = checked_first(first)
        self._domain: Lattice | None = None
        self._lattice = np.empty((0, 0), np.int32)
        self._parts: list[_Chunk] = []

    def check(self, most_rows: int = CAP) -> None:
        refuse_too_many(self._table.length)
        if not self.has_users:
            refuse_unfit(self._count_rows(self.missing), most_rows)
            return
        self._owners = self._read_owners()
        if self.missing == "refuse" and self._owners.rows < self._table.length:
            refuse_missing()
        refuse_unfit(self._owners.rows, most_rows)

    def keep(self, max_rows: int, rng: PublicRng) -> None:
        owners = self._read_owners() if self._owners is None else self._owners
        self._kept, self._domain, self._owners = owners.kept(max_rows, rng), None, None

    def _read_owners(self) -> Owners:
        """Return the owners of the usable rows."""
        usable = np.concatenate([np.empty(0, bool), *(finite(chunk) for chunk in self._chunks())])
        column = self._reading.user_column
        named = [listed(self._reading.users)] if column is None else self._table.names(column)
        owners = Owners.joined([Owners.read([]), *(Owners.read(names) for names in named)])
        if len(owners.of) != len(usable):
            raise InvalidInput("there is not one user per row: give as many names of users as there are rows")
        return owners.counted(usable)

    def users_of_rows(self) -> Ints | None:
        owners = self._read_owners() if self.has_users else None
        return None if owners is None else owners.of[owners.of >= 0].astype(np.int64)

    @property
    def origins(self) -> frozenset[Hashable]:
        return frozenset([self._table.origin])

    @property
    def by(self) -> str:
        return self._threads.words

    @property
    def people(self) -> int:
        return self._table.length

    def _count_rows(self, missing: Missing) -> int:
        chosen = self.selection.needed(None)
        return sum(self._over_chunks(lambda start: usable([self._chunk(start, chosen)], missing)))

    def chunks(self) -> Generator[Chunk]:
        start = 0
        for rows in self._chunks():
            yield Chunk(start, rows)
            start += len(rows)
        if not start:
            yield Chunk(0, np.empty((0, self.dimension)))

    def features(self) -> Floats:
        """Return all rows (n, d) as they would be clustered, also those that cannot be used, for their holder.

        NOT private.
        """
        return np.concatenate([np.empty((0, self.dimension)), *(chunk.copy() for chunk in self._chunks())])

    def fingerprints(self, key: bytes) -> dict[str, bytes]:
        pieces = self._chunks(max(256, min(16_384, 131_072 // self.dimension)))  # the size decides the fingerprint
        columns = (np.ascontiguousarray(piece.T) for piece in pieces)
        return {
            "the number of rows": fingerprint_of(key, [self._table.length]),
            "the rows": fingerprint(key, (column for piece in columns for column in piece)),
            "the number of the first user": fingerprint_of(key, [self._first]),
        } | (reading_fingerprints(self.selection, self._reading) | self._user_fingerprints(key))

    def _user_fingerprints(self, key: bytes) -> dict[str, bytes]:
        if not self.has_users:
            return {}
        owners = self._read_owners()
        return {"the users": fingerprint(key, [owners.names.view(np.uint8), owners.of])}

    def gather(self, round: Round[Any], rng: NoiseRng) -> tuple[Any, ...]:
        refuse_before_keep(self.has_users and self._kept is None)
        keep_memory()
        self._snap(round.domain)
        lattice, everybody = self._lattice, everybody_reports(round)

        def encoded(part: _Chunk) -> tuple[Any, ...]:
            points, nowhere = lattice[part.lattice].astype(np.int64), None
            if everybody:
                points, part, nowhere = part.with_unused(points)
            return summarise_lattice(round, points, part.users(self._first), rng.child("chunk", part.start), nowhere)

        total: tuple[Any, ...] | None = None
        for part, summary in zip(self._parts, self._threads.run(encoded, self._parts), strict=True):
            self._report(part.rows)
            total = summary if total is None else merge_summaries(total, summary)
        assert total is not None  # there is a part even if there are no rows
        return total

    def _snap(self, domain: Lattice) -> None:
        """Put the rows on this domain's lattice, unless they are there."""
        if self._domain == domain:
            return
        check_dimension(domain, self.columns)
        refuse_too_many(self._table.length)
        self._domain, self._parts, self._lattice = None, [], np.empty((0, 0), np.int32)
        width, chosen = domain.snap(np.empty((0, self.dimension))).shape[1], self.selection.needed(domain)
        lattice = np.empty((self._table.length, width), np.int32)

        def snapped(start: int) -> _Chunk:
            chunk = self._chunk(start, chosen)
            usable = finite(chunk)
            if self._kept is not None:
                usable &= self._kept[start : start + len(chunk)]
            used = None if usable.all() else np.flatnonzero(usable).astype(np.uint16)
            part = _Chunk(start, len(chunk), used)
            points = domain.snap(chunk if used is None else chunk[used])
            # cast before the assignment, which reorders: half the time
            lattice[part.lattice] = points.astype(np.int32)
            return part

        self._parts = list(self._over_chunks(snapped)) or [_Chunk(0, 0, None)]
        self._lattice, self._domain = lattice, domain

    def _over_chunks(self, fn: Callable[[int], V]) -> Iterator[V]:
        """Yield what is made of each chunk, in order. Args: fn (of the position of its first row)."""
        return self._threads.run(fn, range(0, self._table.length, chunk_rows(self.dimension)))

    def _chunk(self, start: int, chosen: Selection) -> Floats:
        """Return the rows of the chunk that begins here."""
        size = chunk_rows(self.dimension)
        return next(regroup(self._table.pieces(chosen, slice(start, start + size)), self.dimension, size))

    def _chunks(self, size: int = 0) -> Iterator[Floats]:
        """Yield all rows, so many at a time (0: a chunk)."""
        pieces = self._table.pieces(self.selection, slice(None))
        return regroup(pieces, self.dimension, size or chunk_rows(self.dimension))
