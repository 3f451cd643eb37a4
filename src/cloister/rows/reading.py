"""Chunks of a table's rows, and passes over them, wherever the table is.

A pass calls a pure function on every chunk and merges the results: the summaries of a round, the number of usable
rows, costs, samples. Where the chunks come from, and how many workers there are, is up to the population.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any, NoReturn, Self, TypeAlias, TypeVar, final

import attrs
import numpy as np

from cloister.core.domains import Lattice
from cloister.core.encoding import finite, map_merge, summarise_rows
from cloister.core.errors import InvalidInput, Refused
from cloister.core.fingerprints import option_fingerprints
from cloister.core.lattice import CAP
from cloister.core.questions import Round
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.types import AnyArray, Bools, Floats, Ids, Ints
from cloister.rows.options import Missing, Reading, as_missing, options_of_rows
from cloister.rows.selection import Selection

V = TypeVar("V")

Place: TypeAlias = tuple[int, int]
"""Place of a part of the rows: position of its file, and of its first block there."""

Piece: TypeAlias = Sequence[AnyArray] | AnyArray
"""Some rows, column by column: d numeric arrays (m,), or one array (d, m). A missing cell is NaN."""


@final
@attrs.frozen(eq=False)
class Chunk:
    """Rows that are read at once: their memory is reused for the next chunk.

    Args:
        start: position of the first row, among all or in its part.
        rows: (m, d), with NaN where a cell is missing.
        part: where rows are read in parts, which one.
        users: (m,) numbers of the rows' users; None: they count up from ``start``.
        kept: (m,) which rows rounds read; None: all.
    """

    start: int
    rows: Floats
    part: Place = (0, 0)
    users: Ids | None = None
    kept: Bools | None = None

    def summary(self, round: Round[Any], rng: NoiseRng, first: int = 0) -> tuple[Any, ...]:
        """Return the rows' summaries in a round, one per question. Args: first (number of the user of row 0)."""
        users = user_numbers(first + self.start, len(self.rows)) if self.users is None else self.users
        rows, users = (self.rows, users) if self.kept is None else (self.rows[self.kept], users[self.kept])
        return summarise_rows(round, rows, users, rng.child("chunk", self.start))

    def usable(self, missing: Missing) -> int:
        """Return the number of usable rows. Raises: InvalidInput: some cannot be used, and ``missing`` is refuse."""
        return usable([self.rows], missing)

    def copied(self) -> Self:
        """Return a copy in memory of its own, for another thread."""
        return attrs.evolve(self, rows=self.rows.copy(order="K"))


LOTS = PublicRng(bytes(32)).child("rows that are drawn")


@final
@attrs.frozen(eq=False)
class DrawnRows:
    """A sample of at most so many rows, the same whatever chunks they come in and whoever reads them.

    Those are drawn whose positions have the smallest words under a public key.

    Args:
        most: size of the sample.
        words: (m,) of the rows.
        held: (m, d), the rows.
    """

    most: int
    words: Ids
    held: Floats

    @classmethod
    def of(cls, max_rows: int, chunk: Chunk, numbers: Ids, rows: Floats) -> Self:
        """Return the sample of a chunk's rows (m, d). Args: numbers (m,), their positions in their part."""
        return cls(max_rows, LOTS.child(*chunk.part).of_users(numbers), rows)._least()

    def merge(self, other: Self) -> Self:
        """Return the sample of the rows of both."""
        candidates = other
        if len(self.words) == self.most:
            smaller = other.words < self.words.max()
            candidates = attrs.evolve(other, words=other.words[smaller], held=other.held[smaller])
        words, held = np.concatenate([self.words, candidates.words]), np.concatenate([self.held, candidates.held])
        return attrs.evolve(self, words=words, held=held)._least()

    def _least(self) -> Self:
        if len(self.words) <= self.most:
            return self
        smallest = np.argpartition(self.words, self.most - 1)[: self.most]
        return attrs.evolve(self, words=self.words[smallest], held=self.held[smallest])

    @property
    def rows(self) -> Floats:
        """The sample (m, d), in an order that depends on the sample alone."""
        return self.held[np.argsort(self.words)]


class TableRows(ABC):
    """Base of populations whose rows are a table's.

    Rows with a missing or infinite cell are dropped, or in no bucket (``core.encoding.everybody_reports``), by a rule
    that looks at each row alone; ``missing`` decides whether ``check`` accepts them. Numbers are integers, floats,
    booleans and decimals. Where rows name their users, ``keep`` comes before ``gather``.

    Attributes:
        selection: columns in use, and those left out, with reasons.
        columns: names of the features: the columns in use, and the values of categories, as in 'ward=A'.
        has_users: whether rows name their users.
        missing: what is done with rows that have missing or infinite cells.
    """

    def __init__(self, selection: Selection, reading: Reading) -> None:
        self.selection, self.columns = selection, selection.features
        self.has_users = not (reading.user_column is None and reading.users is None)
        self.missing: Missing = as_missing(reading.missing or "refuse")
        self._reading = reading
        self._users = reading.user_column

    def _report(self, rows: int) -> None:
        """Report so many more rows as done."""
        if self._reading.progress is not None:
            self._reading.progress(rows)

    def _reporting(self, fn: Callable[[Chunk], V]) -> Callable[[Chunk], V]:
        """Return the function, after which its chunk's rows are reported as done."""

        def reporting(chunk: Chunk) -> V:
            value = fn(chunk)
            self._report(len(chunk.rows))
            return value

        return reporting

    @property
    def dimension(self) -> int:
        """Number of features."""
        return len(self.columns)

    @property
    def origins(self) -> frozenset[Hashable]:
        """Identities of the files, arrays or tables, by which a pool finds that one was given twice."""
        return frozenset()

    @property
    def by(self) -> str:
        """Description of what works on a pass."""
        return "the database"

    @property
    @abstractmethod
    def people(self) -> int:
        """Number of rows, also those that cannot be used; ``check`` may have to find it."""

    @abstractmethod
    def check(self, most_rows: int = CAP) -> None:
        """Make the validation pass, for the data holder's eyes: rows outside the bounds are fine.

        Args:
            most_rows: most usable rows, for one of several parties.

        Raises:
            InvalidInput: the rows cannot all be read, there are none, too many, or missing or infinite cells that were
                not to be dropped.
        """

    @abstractmethod
    def keep(self, max_rows: int, rng: PublicRng) -> None:
        """Read at most so many rows of each user from now on (``rows.users``)."""

    @abstractmethod
    def fingerprints(self, key: bytes) -> dict[str, bytes]:
        """Return the fingerprints by which a resumed run recognises these rows (``core.fingerprints``)."""

    def users_of_rows(self) -> Ints | None:
        """Return the number (n,) of each usable row's user, for their holder. NOT private.

        None where rows name no users, or have no order.
        """
        return None

    @abstractmethod
    def chunks(self) -> Generator[Chunk]:
        """Yield all rows for their holder's own use, also those that cannot be used; at least one chunk."""

    def aggregate(self, fn: Callable[[Chunk], V], merge: Callable[[V, V], V]) -> V:
        """Return the merged values of all chunks, for the rows' holder. NOT private.

        Args:
            fn: function of a chunk, which keeps no rows: the next chunk takes their memory.
            merge: as of ``core.encoding.map_merge``.
        """
        with closing(self.chunks()) as chunks:  # also where it fails: an engine answers one question at a time
            return map_merge(chunks, self._reporting(fn), merge)

    def table(self) -> Floats:
        """Return the usable rows (n, d), all in memory, for their holder. NOT private."""
        return collected((chunk.rows for chunk in self.chunks()), self.dimension)

    def close(self) -> None:  # noqa: B027  # rows in memory need nothing
        """End what reading the rows has begun; it begins again when it is needed."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def encoded(piece: Piece, chosen: Selection) -> Piece:
    """Return the features of rows whose columns in use are arrays of plain numbers."""
    if not chosen.categories:
        return piece

    def read(column: str, cells: AnyArray) -> AnyArray:
        category = chosen.category(column)
        return cells if category is None else category.codes(cells.tolist())

    return chosen.spread([read(column, cells) for column, cells in zip(chosen.used, piece, strict=True)])


def reading_fingerprints(chosen: Selection, reading: Reading) -> dict[str, bytes]:
    """Return fingerprints (``core.fingerprints``) of what decides how a table's cells become rows, by option."""
    categories: list[list[str | int]] = [
        [category.column, len(category.values), *category.values] for category in chosen.categories
    ]
    resolved: dict[str, Sequence[str | int]] = {
        "--columns (columns=)": chosen.used,
        "--category (categories=)": [value for category in categories for value in category],
        "--describe-words (describe_words=)": [value for texts in chosen.texts for value in (texts.column, texts.most)],
        "--missing (missing=)": [as_missing(reading.missing or "refuse")],
    }
    stated = {
        f"{option.flag} ({name}=)": getattr(reading, name)
        for name, option in options_of_rows().items()
        if option.decides_rows
    }
    others = {name: [] if value is None else [value] for name, value in stated.items() if name not in resolved}
    return option_fingerprints({**resolved, **others})


UNUSABLE = (
    "some cells are missing or infinite: fill them in by a public constant, or leave such rows out with --missing drop "
    "(missing='drop')"
)


def refuse_missing() -> NoReturn:
    """Raise InvalidInput: some row cannot be used. The message does not say how many, which or what."""
    raise InvalidInput(UNUSABLE)


def refuse_before_keep(unlimited: bool) -> None:
    """Raise Refused if rows are of users and ``keep`` has not been called."""
    if unlimited:
        raise Refused("call keep(max_rows, rng) before gather(): rows have a user column")


def checked_first(value: int) -> int:
    """Raise InvalidInput unless a population's rows get numbers of 64 bits."""
    if 0 <= value <= 2**64 - CAP:
        return value
    raise InvalidInput(f"the first user's number is {value}: it must be between 0 and {2**64 - CAP}")


def check_dimension(domain: Lattice, columns: Sequence[str]) -> None:
    """Raise InvalidInput unless the domain bounds these columns: NumPy would stretch a single one over all bounds."""
    if domain.dimension != len(columns):
        raise InvalidInput(
            f"there are bounds for {domain.dimension} columns, but the rows have {len(columns)} "
            f"({', '.join(columns[:8])}{', ...' if len(columns) > 8 else ''}): give one pair of bounds per column"
        )


def user_numbers(first: int, n: int) -> Ids:
    """Return the public numbers (n,) of rows that follow each other."""
    return np.arange(n, dtype=np.uint64) + np.uint64(first)


def regroup(pieces: Iterable[Piece], dimension: int, size: int) -> Iterator[Floats]:
    """Yield pieces of any length as chunks (at most ``size``, d) of float64.

    A chunk's columns are contiguous: the lattice is then several times as fast as with contiguous rows. All chunks
    share one memory: a chunk is gone when the next one is asked for.
    """
    block, filled = np.empty((dimension, size)), 0
    for piece in pieces:
        taken, length = 0, len(piece[0])
        while taken < length:
            step = min(size - filled, length - taken)
            _copy(piece, slice(taken, taken + step), block[:, filled : filled + step])
            taken, filled = taken + step, filled + step
            if filled == size:
                yield block.T
                filled = 0
    if filled:
        yield block[:, :filled].T


def _copy(piece: Piece, rows: slice, out: Floats) -> None:
    with np.errstate(over="ignore"):  # a long double beyond float64 becomes infinite, and is treated as such
        if isinstance(piece, np.ndarray):
            out[:] = piece[:, rows]
        else:
            for row, column in zip(out, piece, strict=True):
                row[:] = column[rows]


def usable(chunks: Iterable[Floats], missing: Missing) -> int:
    """Return the number of usable rows.

    Raises:
        InvalidInput: some cell is missing or infinite, and ``missing`` is refuse. No message says how many, which or
            what.
    """
    used = 0
    for chunk in chunks:
        count = int(finite(chunk).sum())
        used += count
        if count < len(chunk) and missing == "refuse":
            refuse_missing()
    return used


def refuse_none() -> NoReturn:
    """Raise InvalidInput: no row can be used."""
    raise InvalidInput(
        "there are no rows to use: the table is empty, or every row has a missing or infinite cell in a column that is "
        "used, as where a column has no values at all"
    )


def refuse_unfit(used: int, most_rows: int = CAP) -> None:
    """Refuse the number of usable rows, in the validation pass (law 7).

    Raises:
        InvalidInput: there are none, or more than ``most_rows``. No message says how many.
    """
    if not used:
        refuse_none()
    if used > most_rows:
        raise InvalidInput(
            f"there are more rows than most_rows = {most_rows}, which the plan lets one party have: raise that option "
            f"in everybody's plan, or use fewer rows"
        )


def collected(chunks: Iterable[Floats], dimension: int) -> Floats:
    """Return all usable rows (n, d) at once: for figures that are not private anyway."""
    usable_rows = [chunk[finite(chunk)] for chunk in chunks]
    return np.concatenate([np.empty((0, dimension)), *usable_rows])


def piece_rows(dimension: int) -> int:
    """Return how many rows of this dimension to convert at once: 8 MB."""
    return max(1024, min(65_536, 2**20 // dimension))


def refuse_too_many(rows: int) -> None:
    """Raise InvalidInput beyond the number of rows for which sums cannot overflow."""
    if rows > CAP:
        raise InvalidInput(f"there are more than {CAP} rows, the most that one run reads: use fewer")
