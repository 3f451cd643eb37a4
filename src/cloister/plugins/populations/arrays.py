"""Rows in memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, final

import attrs
import numpy as np
from numpy.typing import NDArray

from cloister.core.domains import Lattice
from cloister.core.encoding import (
    Progress,
    chunk_rows,
    everybody_reports,
    finite,
    keep_memory,
    map_merge,
    merge_summaries,
    summarise_lattice,
)
from cloister.core.errors import InvalidInput
from cloister.core.fingerprints import fingerprint, fingerprint_of
from cloister.core.lattice import CAP
from cloister.core.questions import Round
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.types import AnyArray, Bools, Floats, Ids, Ints
from cloister.rows.categories import Category
from cloister.rows.columns import TableColumn, select
from cloister.rows.frames import column_of, frame_of, refuse_structured
from cloister.rows.reading import (
    Chunk,
    Missing,
    Piece,
    TableRows,
    as_first,
    encoded,
    fit,
    piece_rows,
    reading_fingerprints,
    refuse_all,
    refuse_missing,
    refuse_too_many,
    refuse_unfit,
    regroup,
    usable,
    user_numbers,
)
from cloister.rows.selection import Selection
from cloister.rows.users import MISSING, Names, Owners
from cloister.rows.words import Texts
from cloister.rows.workers.machine import Threads

if TYPE_CHECKING:
    from narwhals.typing import IntoDataFrame

V = TypeVar("V")

SHORT = {"float32", "float", "halffloat", "float16"}
"""What libraries of data frames call floats of up to 32 bits, in lower case."""


@final
@attrs.frozen(eq=False)
class _Chunk:
    """Rows that are encoded at once.

    Args:
        start: position of its first row in the table, and of the first that can be used in the lattice.
        rows: how many rows of the table it covers.
        used: positions in the chunk of those that can be used; None if all can.
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

        Args: points (m, d), of the rows that can be used.
        """
        if self.used is None:
            return points, self, None
        every, nowhere = np.zeros((self.rows, points.shape[1]), np.int64), np.ones(self.rows, bool)
        every[self.used], nowhere[self.used] = points, False
        return every, attrs.evolve(self, used=None), nowhere

    @property
    def lattice(self) -> slice:
        """Where those that can be used are in the lattice."""
        return slice(self.start, self.start + (self.rows if self.used is None else len(self.used)))


class Arrays(TableRows):
    """A curator's or a simulator's rows, put on the lattice once and kept there (int32, half of float64's size).

    Rows with a missing or infinite cell are dropped, or in no bucket (``core.encoding.everybody_reports``), by a rule
    that looks at each row alone; whether ``check`` lets them pass is said by ``missing``. User i is the row's position
    plus ``first``. Numbers are integers, floats, booleans and decimals.

    Args:
        rows: an array (n, d), or a data frame of pandas, polars or pyarrow.
        columns: names (of a frame) or positions (in an array) to use, in this order; by default those that ``bounded``
            and ``categories`` name, or else all, each of which must hold numbers or categories, by its declared type:
            objects are no numbers. A frame's types may come from its cells, as those of a CSV file that a library has
            read, and a column that is passed over for its type would tell that one row's cell is no number.
        missing: 'refuse' or 'drop'.
        first: number of the first user.
        progress: told how many more rows of a round are done.
        threads: how many work on a pass; by default one per core.
        users: names of the rows' users (n,), or the column that names them, by whole numbers or text (``users``).
        categories: public values by column, as ``rows.categories`` takes them.
        bounded: names of columns that have bounds: which to use, where ``columns`` does not say.
        described: names of columns that groups are described by; as ``Texts``, of one whose words are counted.

    Attributes: as of ``TableRows``. The columns of an array are called '0', '1', ...; where rows name their users,
    ``keep`` comes before ``gather``.

    Raises:
        UnknownName, InvalidInput: these are no rows of numbers, there is no such column, or not all hold numbers and
            none was chosen.
    """

    def __init__(
        self,
        rows: AnyArray | IntoDataFrame,
        columns: Sequence[str | int] | str | None = None,
        missing: Missing = "refuse",
        first: int = 0,
        progress: Progress | None = None,
        threads: int | None = None,
        users: Any = None,
        categories: Mapping[str, Any] | None = None,
        bounded: Sequence[str] | None = None,
        described: Sequence[str | Texts] | None = None,
    ) -> None:
        self._threads = Threads(threads)
        self._table = _Array(rows) if isinstance(rows, np.ndarray) else _Frame(rows)
        self._owners: Owners | None = None
        self._kept: Bools | None = None
        column = users if isinstance(users, str) else None
        chosen = select(self._table.known, columns, categories, bounded, column, True, described)
        super().__init__(chosen, missing, users, progress)
        self._first = as_first(first)
        self._domain: Lattice | None = None
        self._lattice = np.empty((0, 0), np.int32)
        self._parts: list[_Chunk] = []

    def check(self, most_rows: int = CAP) -> None:
        """The validation pass, for the data holder's eyes: rows outside the bounds are fine.

        Args:
            most_rows: how many rows can be used at most, for one of several parties.

        Raises:
            InvalidInput: there are no rows, too many, or missing or infinite cells that were not to be dropped.
        """
        refuse_too_many(self._table.length)
        if not self.has_users:
            refuse_unfit(self._counted(self._missing), most_rows)
            return
        self._owners = self._owned()
        if self._missing == "refuse" and self._owners.rows < self._table.length:
            refuse_missing()
        refuse_unfit(self._owners.rows, most_rows)

    def keep(self, most: int, rng: PublicRng) -> None:
        """Read at most so many rows of each user from now on."""
        owners = self._owned() if self._owners is None else self._owners
        self._kept, self._domain, self._owners = owners.kept(most, rng), None, None

    def _owned(self) -> Owners:
        """Whose the usable rows are."""
        usable = np.concatenate([np.empty(0, bool), *(finite(chunk) for chunk in self._chunks())])
        column = isinstance(self._users, str)
        named = self._table.names(self._users) if column else [_listed(self._users)]
        owners = Owners.joined([Owners.read([]), *(Owners.read(names) for names in named)])
        if len(owners.of) != len(usable):
            raise InvalidInput("there is not one user per row: give as many names of users as there are rows")
        return owners.counted(usable)

    def users_of_rows(self) -> Ints | None:
        """Number (n,) of each usable row's user, in order, for their holder; None if rows name none. NOT private."""
        owners = self._owned() if self.has_users else None
        return None if owners is None else owners.of[owners.of >= 0].astype(np.int64)

    @property
    def origins(self) -> frozenset[Hashable]:
        return frozenset([self._table.origin])

    @property
    def by(self) -> str:
        return self._threads.words

    @property
    def people(self) -> int:
        """How many rows there are, those that cannot be used too."""
        return self._table.length

    def _counted(self, missing: Missing) -> int:
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
        """All rows (n, d) as they would be clustered, those that cannot be used too, for the data holder. NOT
        private."""
        return np.concatenate([np.empty((0, self.dimension)), *(chunk.copy() for chunk in self._chunks())])

    def fingerprints(self, key: bytes) -> dict[str, bytes]:
        """By which a run that goes on knows these rows again: ``core.record``."""
        pieces = self._chunks(max(256, min(16_384, 131_072 // self.dimension)))  # as runs that go on marked them
        columns = (np.ascontiguousarray(piece.T) for piece in pieces)
        return {
            "the number of rows": fingerprint_of(key, [self._table.length]),
            "the rows": fingerprint(key, (column for piece in columns for column in piece)),
            "the number of the first user": fingerprint_of(key, [self._first]),
        } | (
            reading_fingerprints(self.selection, self._missing, self._users if isinstance(self._users, str) else None)
            | self._user_fingerprints(key)
        )

    def _user_fingerprints(self, key: bytes) -> dict[str, bytes]:
        if not self.has_users:
            return {}
        owners = self._owned()
        return {"the users": fingerprint(key, [owners.names.view(np.uint8), owners.of])}

    def gather(self, round: Round[Any], rng: NoiseRng) -> tuple[Any, ...]:
        refuse_all(self.has_users and self._kept is None)
        keep_memory()
        self._snap(round.domain)
        lattice, everybody = self._lattice, everybody_reports(round)

        def encoded(part: _Chunk) -> tuple[Any, ...]:
            some, nowhere = lattice[part.lattice].astype(np.int64), None
            if everybody:
                some, part, nowhere = part.with_unused(some)
            return summarise_lattice(round, some, part.users(self._first), rng.child("chunk", part.start), nowhere)

        return map_merge(self._parts, encoded, merge_summaries, self._run)

    def _run(self, fn: Callable[[_Chunk], tuple[Any, ...]], parts: Iterable[_Chunk]) -> Iterator[tuple[Any, ...]]:
        for part, summary in zip(self._parts, self._threads.run(fn, parts), strict=True):
            self._tell(part.rows)
            yield summary

    def _snap(self, domain: Lattice) -> None:
        """Put the rows on this domain's lattice, unless they are there."""
        if self._domain == domain:
            return
        fit(domain, self.columns)
        refuse_too_many(self._table.length)
        self._domain, self._parts, self._lattice = None, [], np.empty((0, 0), np.int32)
        width, chosen = domain.snap(np.empty((0, self.dimension))).shape[1], self.selection.needed(domain)
        lattice = np.empty((self._table.length, width), np.int32)

        def snapped(start: int) -> _Chunk:
            chunk = self._chunk(start, chosen)
            whole = finite(chunk)
            if self._kept is not None:
                whole &= self._kept[start : start + len(chunk)]
            used = None if whole.all() else np.flatnonzero(whole).astype(np.uint16)
            part = _Chunk(start, len(chunk), used)
            points = domain.snap(chunk if used is None else chunk[used])
            # before it is put in another order, which takes half the time
            lattice[part.lattice] = points.astype(np.int32)
            return part

        self._parts = list(self._over_chunks(snapped)) or [_Chunk(0, 0, None)]
        self._lattice, self._domain = lattice, domain

    def _over_chunks(self, fn: Callable[[int], V]) -> Iterator[V]:
        """What is made of each chunk, in order. Args: fn (of the position of its first row)."""
        return self._threads.run(fn, range(0, self._table.length, chunk_rows(self.dimension)))

    def _chunk(self, start: int, chosen: Selection) -> Floats:
        """The rows of the chunk that begins here."""
        size = chunk_rows(self.dimension)
        return next(regroup(self._table.pieces(chosen, slice(start, start + size)), self.dimension, size))

    def _chunks(self, size: int = 0) -> Iterator[Floats]:
        """All rows, so many at a time (0: a chunk)."""
        pieces = self._table.pieces(self.selection, slice(None))
        return regroup(pieces, self.dimension, size or chunk_rows(self.dimension))


class _Array:
    """An array as a table whose columns are called by their positions."""

    def __init__(self, rows: AnyArray) -> None:
        if isinstance(rows, np.ma.MaskedArray):
            raise InvalidInput("rows are a masked array: fill masked cells with NaN, as in rows.filled(numpy.nan)")
        refuse_structured(rows)
        if rows.ndim != 2:
            advice = "use rows.reshape(-1, 1) for a single column" if rows.ndim == 1 else "it needs two dimensions"
            raise InvalidInput(f"rows are an array of shape (rows, columns), not {rows.ndim}-dimensional: {advice}")
        if rows.dtype.kind not in "biuf":
            raise InvalidInput(
                f"rows are an array of {rows.dtype.name}: convert it to numbers, as in rows.astype(float)"
            )
        self._rows, self.length = np.asarray(rows), len(rows)
        place, _ = self._rows.__array_interface__["data"]
        self.origin: Hashable = (place, rows.shape, rows.strides) if rows.size else id(self)
        self.known = [TableColumn(str(j), "numbers") for j in range(rows.shape[1])]

    def pieces(self, chosen: Selection, only: slice) -> Iterable[Piece]:
        rows = self._rows[only]
        if list(chosen.used) == [column.name for column in self.known]:
            return [encoded(rows.T, chosen)]
        return [encoded([rows[:, int(name)] for name in chosen.used], chosen)]

    def names(self, column: str) -> Iterable[Names]:
        return [self._rows[:, int(column)]]


class _Frame:
    """A data frame, converted a piece of its columns at a time."""

    def __init__(self, rows: Any) -> None:
        self._frame, self._given = frame_of(rows), rows
        if self._frame is None:
            raise InvalidInput(
                f"rows are a {type(rows).__qualname__}: give a NumPy array (rows, columns), or a data frame of pandas, "
                "polars or pyarrow that is in memory"
            )
        schema = self._frame.schema
        self.length = len(self._frame)
        self._names = {str(name): name for name in schema}
        self.known = [column_of(self._frame.get_column(name), str(name), kind) for name, kind in schema.items()]

    @property
    def origin(self) -> Hashable:
        """Which object it is: it is held, so that no other one has its number."""
        return id(self._given)

    def pieces(self, chosen: Selection, only: slice) -> Iterator[Piece]:
        size = piece_rows(len(chosen.used))
        low, high, _ = only.indices(self.length)
        for start in range(low, high, size):
            some = self._frame[start : min(start + size, high)]
            words = [_words(texts, some.get_column(self._names[texts.column])) for texts in chosen.texts]
            yield chosen.spread([*(self._read(some, name, chosen.category(name)) for name in chosen.used), *words])

    def _read(self, some: Any, name: str, category: Category | None) -> Floats:
        column = some.get_column(self._names[name])
        return _numbers(column) if category is None else category.codes(column.to_list())

    def names(self, column: str) -> Iterable[Names]:
        return [_listed(self._frame.get_column(self._names[column]).to_native())]


def _words(texts: Texts, column: Any) -> Floats:
    return texts.halves(len(column), lambda some: column[some].to_list())


def _listed(users: Any) -> Names:
    """Names of users: an array of numbers, or a list."""
    kind = getattr(users, "dtype", getattr(users, "type", None))
    if isinstance(kind, np.dtype) and kind.kind in "iuf":
        return np.asarray(users)
    way = next((way for way in ("tolist", "to_list", "to_pylist") if hasattr(users, way)), None)
    listed = list(users if way is None else getattr(users, way)())
    if str(kind).lower() not in SHORT:
        return listed
    named = [type(name).__name__ not in MISSING for name in listed]  # as numbers again, so that their size is known
    return np.array([name if there else math.nan for name, there in zip(listed, named, strict=True)], np.float32)


def _numbers(column: Any) -> Floats:
    """A column in float64, each number rounded correctly; nulls become NaN."""
    import narwhals as nw

    if column.implementation.is_pyarrow():  # whose own cast refuses large integers, and quotes them
        from cloister.rows.files.arrow import numbers_of

        return np.asarray(numbers_of(column.to_native()), np.float64)
    if column.dtype == nw.Decimal:
        column = column.cast(nw.String)
    values: Floats = column.cast(nw.Float64).to_numpy()
    return values
