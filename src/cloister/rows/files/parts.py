"""Parts that a pass over files is divided into, and the work on one: by this process, or by a worker."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar, final

import attrs
import numpy as np
from numpy.typing import NDArray

from cloister.core.encoding import Progress, chunk_rows, keep_memory, map_merge, merge_summaries, summarise_rows
from cloister.core.questions import Round
from cloister.core.randomness import NoiseRng
from cloister.core.types import Floats
from cloister.rows.columns import Selection
from cloister.rows.files.sources import File
from cloister.rows.reading import Missing, finite, refuse_missing, refuse_too_many, usable, user_numbers
from cloister.rows.users import Owners
from cloister.rows.workers.machine import Threads

V = TypeVar("V")


@final
@attrs.frozen(eq=False)
class Part:
    """Some rows of a file: what travels to a worker instead of rows.

    Args:
        number: position of the file among the files.
        file: which, as it was when the run began.
        only: its blocks; None for all.
        start: position of the first row among all rows.
        kept: bits of the rows that are read, where users have so many that not all are; None for all.
    """

    number: int
    file: File
    only: range | None
    start: int
    kept: NDArray[np.uint8] | None = None

    def chunks(self, chosen: Selection) -> Iterator[tuple[int, Floats]]:
        """The rows, each chunk with the position of its first; at least one chunk, which may be empty."""
        start, dimension = self.start, len(chosen.features)
        for rows in self.file.chunks(chosen, chunk_rows(dimension), self.only):
            refuse_too_many(start + len(rows))
            yield start, rows
            start += len(rows)
        if start == self.start:
            yield start, np.empty((0, dimension))


@final
@attrs.frozen(eq=False)
class Done(Generic[V]):
    """Outcome of a part: how many rows it had, and their value. Args: number, only as of the part; counts (as
    progress)."""

    number: int
    only: range | None
    rows: int
    value: V
    counts: bool


Place: TypeAlias = tuple[int, int]
"""Place of a part: position of its file, and of its first block there."""


def place_of(number: int, only: range | None) -> Place:
    return number, only.start if only else 0


def owned(part: Part, chosen: Selection, users: str, missing: Missing) -> Done[dict[Place, Owners]]:
    """In a worker: whose the usable rows of a part are, and the validation pass over them."""
    keep_memory()
    usable = np.concatenate([finite(rows) for _, rows in part.chunks(chosen)])
    owners = part.file.owners(users, part.only).counted(usable)
    if missing == "refuse" and owners.rows < len(usable):
        refuse_missing()
    return Done(part.number, part.only, len(usable), {place_of(part.number, part.only): owners}, False)


def joined(one: Done[V], other: Done[V], merge: Callable[[V, V], V]) -> Done[V]:
    return Done(-1, None, one.rows + other.rows, merge(one.value, other.value), False)


def counted(part: Part, chosen: Selection, missing: Missing) -> Done[int]:
    """In a worker: the validation pass over a part."""
    keep_memory()
    seen = 0

    def read() -> Iterator[Floats]:
        nonlocal seen
        for _, rows in part.chunks(chosen):
            seen += len(rows)
            yield rows

    used = usable(read(), missing)
    return Done(part.number, part.only, seen, used, False)


def summed(
    part: Part,
    chosen: Selection,
    round: Round[Any],
    rng: NoiseRng,
    first: int,
    tell: Progress | None,
    threads: Threads,
) -> Done[tuple[Any, ...]]:
    """In a worker: a part's rows encoded and added up, a chunk at a time."""
    keep_memory()
    kept = None if part.kept is None else np.unpackbits(part.kept).view(bool)

    def encoded(chunk: tuple[int, Floats]) -> Done[tuple[Any, ...]]:
        start, rows = chunk
        read = len(rows)
        users = user_numbers(first + start, len(rows))
        if kept is not None:
            some = kept[start - part.start :][: len(rows)]
            rows, users = rows[some], users[some]
        summary = summarise_rows(round, rows, users, rng.child("chunk", start))
        return Done(part.number, part.only, read, summary, False)

    def told(fn: Callable[[Any], Done[V]], chunks: Iterable[Any]) -> Iterator[Done[V]]:
        for done in threads.run(fn, chunks):
            if tell is not None:
                tell(done.rows)
            yield done

    chunks = part.chunks(chosen)
    if threads.many != 1:  # the next chunk takes the memory of this one
        chunks = ((start, rows.copy(order="K")) for start, rows in chunks)
    total = map_merge(chunks, encoded, partial(joined, merge=merge_summaries), told)
    return Done(part.number, part.only, total.rows, total.value, True)
