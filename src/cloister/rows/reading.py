"""Rows of a table, wherever it is: cut into chunks, and one pass over them, from which all who need rows get theirs.

A pass calls a pure function on every chunk and merges what it makes of them: the summaries of a round, how many rows
can be used, costs, samples. Where the chunks come from, and how many work on them, is a population's own affair.

Of a data frame a column is known by its name as text: 0 is '0'. Names that pandas keeps in several levels, and one that
is not the only one of its kind, are no names.
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
from cloister.core.types import AnyArray, Bools, Floats, Ids
from cloister.rows.options import Missing, Reading, as_missing
from cloister.rows.selection import Selection

V = TypeVar("V")

Place: TypeAlias = tuple[int, int]
"""Place of a part of the rows: position of its file, and of its first block there."""

Piece: TypeAlias = Sequence[AnyArray] | AnyArray
"""Some rows, column by column: d numeric arrays (m,), or one array (d, m). A missing cell is NaN."""


@final
@attrs.frozen(eq=False)
class Chunk:
    """Rows that are read at once: gone when the next ones are asked for.

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
        """The rows' summaries in a round, one per question. Args: first (number of the user of row 0)."""
        users = user_numbers(first + self.start, len(self.rows)) if self.users is None else self.users
        rows, users = (self.rows, users) if self.kept is None else (self.rows[self.kept], users[self.kept])
        return summarise_rows(round, rows, users, rng.child("chunk", self.start))

    def usable(self, missing: Missing) -> int:
        """How many rows can be used. Raises: InvalidInput: some cannot, and that was not allowed."""
        return usable([self.rows], missing)

    def copied(self) -> Self:
        """The same in memory of its own, for another thread."""
        return attrs.evolve(self, rows=self.rows.copy(order="K"))


LOTS = PublicRng(bytes(32)).child("rows that are drawn")


@final
@attrs.frozen(eq=False)
class DrawnRows:
    """At most so many rows, drawn alike whatever chunks they come in and whoever reads them: those with the least words
    of a public key at their places.

    Args: most, words (m,), rows (m, d).
    """

    most: int
    words: Ids
    held: Floats

    @classmethod
    def of(cls, most: int, chunk: Chunk, numbers: Ids, rows: Floats) -> Self:
        """Those of a chunk's rows (m, d). Args: numbers (m,) of these in their part."""
        return cls(most, LOTS.child(*chunk.part).of_users(numbers), rows)._least()

    def merge(self, other: Self) -> Self:
        """Those of the rows of both."""
        near = other
        if len(self.words) == self.most:
            few = other.words < self.words.max()
            near = attrs.evolve(other, words=other.words[few], held=other.held[few])
        words, held = np.concatenate([self.words, near.words]), np.concatenate([self.held, near.held])
        return attrs.evolve(self, words=words, held=held)._least()

    def _least(self) -> Self:
        if len(self.words) <= self.most:
            return self
        kept = np.argpartition(self.words, self.most - 1)[: self.most]
        return attrs.evolve(self, words=self.words[kept], held=self.held[kept])

    @property
    def rows(self) -> Floats:
        """Those drawn (m, d), in an order that depends on nothing but them."""
        return self.held[np.argsort(self.words)]


class TableRows(ABC):
    """Base of populations whose rows are a table's.

    Attributes:
        selection: which columns are used, and which were left out, and why.
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

    def _tell(self, rows: int) -> None:
        """So many more rows are done."""
        if self._reading.progress is not None:
            self._reading.progress(rows)

    def _telling(self, fn: Callable[[Chunk], V]) -> Callable[[Chunk], V]:
        """The same function, after which its chunk's rows are told of as done."""

        def told(chunk: Chunk) -> V:
            value = fn(chunk)
            self._tell(len(chunk.rows))
            return value

        return told

    @property
    def dimension(self) -> int:
        """How many features there are."""
        return len(self.columns)

    @property
    def origins(self) -> frozenset[Hashable]:
        """What the rows come from (files, arrays, tables), by which a pool sees that it was given the same twice."""
        return frozenset()

    @property
    def by(self) -> str:
        """Who works on a pass, in words."""
        return "the database"

    @abstractmethod
    def chunks(self) -> Generator[Chunk]:
        """All rows for their holder's own use, those that cannot be used too; at least one chunk, which may be
        empty."""

    def added_up(self, fn: Callable[[Chunk], V], merge: Callable[[V, V], V]) -> V:
        """One pass over all rows for their holder's own use: the merged values of its chunks. NOT private.

        Args: fn, merge (as of ``core.encoding.map_merge``; ``fn`` keeps no rows, whose memory the next chunk takes).
        """
        with closing(self.chunks()) as chunks:  # also where it fails: an engine answers one question at a time
            return map_merge(chunks, self._telling(fn), merge)

    def table(self) -> Floats:
        """The usable rows (n, d) themselves, all in memory, for their holder. NOT private."""
        return collected((chunk.rows for chunk in self.chunks()), self.dimension)

    def close(self) -> None:  # noqa: B027  # rows in memory need nothing
        """End what reading the rows has begun. It is begun again when it is needed."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def encoded(piece: Piece, chosen: Selection) -> Piece:
    """The features of rows whose columns in use are arrays of plain numbers."""
    if not chosen.categories:
        return piece

    def read(column: str, cells: AnyArray) -> AnyArray:
        category = chosen.category(column)
        return cells if category is None else category.codes(cells.tolist())

    return chosen.spread([read(column, cells) for column, cells in zip(chosen.used, piece, strict=True)])


def reading_fingerprints(chosen: Selection, reading: Reading) -> dict[str, bytes]:
    """Marks of all that says what rows are made of a table's cells (``core.record``), by the option that says it."""
    categories: list[list[str | int]] = [
        [category.column, len(category.values), *category.values] for category in chosen.categories
    ]
    return option_fingerprints(
        {
            "--columns (columns=)": chosen.used,
            "--category (categories=)": [each for category in categories for each in category],
            "--describe-words (describe_words=)": [
                each for texts in chosen.texts for each in (texts.column, texts.most)
            ],
            "--missing (missing=)": [as_missing(reading.missing or "refuse")],
            "--user-column (user_column=)": [] if reading.user_column is None else [reading.user_column],
            "--delimiter (delimiter=)": [reading.delimiter] if reading.delimiter else [],
            "--encoding (encoding=)": [reading.encoding] if reading.encoding else [],
        }
    )


UNUSABLE = (
    "some cells are missing or infinite: fill them in by a public constant, or leave such rows out with --missing drop "
    "(missing='drop')"
)


def refuse_missing() -> NoReturn:
    """Raises: InvalidInput: some row cannot be used, and that was not allowed. It does not say how many, which or
    what."""
    raise InvalidInput(UNUSABLE)


def refuse_all(unlimited: bool) -> None:
    """Raises: Refused where rows are users' and nobody has said how many of each may be read."""
    if unlimited:
        raise Refused("rows are of users, and how many of each are read was not said: keep(most, rng) comes first")


def as_first(value: int) -> int:
    """Raises: InvalidInput unless the rows of one population get numbers of 64 bits."""
    if 0 <= value <= 2**64 - CAP:
        return value
    raise InvalidInput(f"the first user's number is {value}: it must be between 0 and {2**64 - CAP}")


def fit(domain: Lattice, columns: Sequence[str]) -> None:
    """Raises: InvalidInput unless the domain bounds these columns; NumPy would stretch a single one over all bounds."""
    if domain.dimension != len(columns):
        raise InvalidInput(
            f"there are bounds for {domain.dimension} columns, but the rows have {len(columns)} "
            f"({', '.join(columns[:8])}{', ...' if len(columns) > 8 else ''}): give one pair of bounds per column"
        )


def user_numbers(first: int, n: int) -> Ids:
    """The public numbers (n,) of rows that follow each other."""
    return np.arange(n, dtype=np.uint64) + np.uint64(first)


def regroup(pieces: Iterable[Piece], dimension: int, size: int) -> Iterator[Floats]:
    """Pieces of any length to chunks (at most ``size``, d) of float64.

    A chunk's columns are contiguous, which makes the lattice several times faster than rows would. All chunks share one
    memory: a chunk is gone when the next one is asked for.
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
    """How many rows can be used.

    Raises:
        InvalidInput: some cell is missing or infinite and that was not allowed. No message says how many, which or
            what.
    """
    used = 0
    for chunk in chunks:
        whole = int(finite(chunk).sum())
        used += whole
        if whole < len(chunk) and missing == "refuse":
            refuse_missing()
    return used


def refuse_none() -> NoReturn:
    """Raises: InvalidInput: no row can be used."""
    raise InvalidInput(
        "there are no rows to use: the table is empty, or every row has a missing or infinite cell in a column that is "
        "used, as where a column has no values at all"
    )


def refuse_unfit(used: int, most_rows: int = CAP) -> None:
    """Refusal by the validation pass of the number of rows that can be used (law 7).

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
    """All usable rows (n, d) at once: for figures that are not private anyway."""
    whole = [chunk[finite(chunk)] for chunk in chunks]
    return np.concatenate([np.empty((0, dimension)), *whole])


def piece_rows(dimension: int) -> int:
    """How many rows of this dimension to convert at once: 8 MB."""
    return max(1024, min(65_536, 2**20 // dimension))


def refuse_too_many(rows: int) -> None:
    """Raises: InvalidInput beyond the number of rows for which sums cannot overflow."""
    if rows > CAP:
        raise InvalidInput(f"there are more than {CAP} rows: one run reads no more")
