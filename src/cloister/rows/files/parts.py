"""Files that paths and patterns mean, the parts that a pass over them is divided into, and the work on one: by this
process, or by a worker."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import partial
from typing import Generic, TypeAlias, TypeVar, final

import attrs
import numpy as np
from numpy.typing import NDArray

from cloister.core.encoding import Progress, chunk_rows, finite, keep_memory, map_merge
from cloister.core.errors import InvalidInput
from cloister.rows.files.sources import File
from cloister.rows.options import Missing
from cloister.rows.reading import Chunk, Place, refuse_missing, refuse_too_many
from cloister.rows.selection import Selection
from cloister.rows.users import Owners
from cloister.rows.workers.threads import Threads

V = TypeVar("V")


Path: TypeAlias = str | os.PathLike[str]


def listed(paths: Path | Sequence[Path]) -> list[str]:
    """Files in order; a pattern's in sorted order.

    Raises:
        InvalidInput: there is none, it is a folder, or one is given twice, so that its rows would count twice.
    """
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    found = [path for one in given for path in _matched(os.fspath(one))]
    if not found:
        raise InvalidInput("no file was given")
    seen = set[Hashable]()
    for path in found:
        if os.path.isdir(path):
            raise InvalidInput(f"'{path}' is a folder: give its files, as in '{os.path.join(path, '*.parquet')}'")
        if identity(path) in seen:
            raise InvalidInput(f"'{path}' was given twice: its rows would count twice")
        seen.add(identity(path))
    return found


def identity(path: str) -> Hashable:
    """Return what two names of one file have in common, be they links of either kind or places in a bind mount: its
    device and number, or where there is none (a file that is gone, some network drives) its resolved path."""
    try:
        facts = os.stat(path)
    except OSError:
        return os.path.realpath(path)
    return (facts.st_dev, facts.st_ino) if facts.st_ino else os.path.realpath(path)


def _matched(path: str) -> list[str]:
    if os.path.exists(path) or not glob.has_magic(path):
        return [path]
    found = sorted(glob.glob(path, recursive=True))
    if not found:
        raise InvalidInput(f"no file matches '{path}'")
    return found


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

    @property
    def place(self) -> Place:
        return self.number, self.only.start if self.only else 0

    def chunks(self, chosen: Selection) -> Iterator[Chunk]:
        """The rows; at least one chunk, which may be empty."""
        start, dimension = self.start, len(chosen.features)
        kept = None if self.kept is None else np.unpackbits(self.kept).view(bool)
        for rows in self.file.chunks(chosen, chunk_rows(dimension), self.only):
            refuse_too_many(start + len(rows))
            some = None if kept is None else kept[start - self.start :][: len(rows)]
            yield Chunk(start, rows, self.place, kept=some)
            start += len(rows)
        if start == self.start:
            yield Chunk(start, np.empty((0, dimension)), self.place)


@final
@attrs.frozen(eq=False)
class Done(Generic[V]):
    """Outcome of a part: how many rows it had, and their value. Args: number, only as of the part."""

    number: int
    only: range | None
    rows: int
    value: V


def owned(part: Part, chosen: Selection, users: str, missing: Missing) -> Done[dict[Place, Owners]]:
    """In a worker: whose the usable rows of a part are, and the validation pass over them."""
    keep_memory()
    usable = np.concatenate([finite(chunk.rows) for chunk in part.chunks(chosen)])
    owners = part.file.owners(users, part.only).counted(usable)
    if missing == "refuse" and owners.rows < len(usable):
        refuse_missing()
    return Done(part.number, part.only, len(usable), {part.place: owners})


def joined(one: Done[V], other: Done[V], merge: Callable[[V, V], V]) -> Done[V]:
    return Done(-1, None, one.rows + other.rows, merge(one.value, other.value))


def passed(
    part: Part,
    chosen: Selection,
    fn: Callable[[Chunk], V],
    merge: Callable[[V, V], V],
    tell: Progress | None,
    threads: Threads,
) -> Done[V]:
    """In a worker: one pass over a part, the merged values of its chunks."""
    keep_memory()

    def worked(chunk: Chunk) -> Done[V]:
        return Done(part.number, part.only, len(chunk.rows), fn(chunk))

    def told(work: Callable[[Chunk], Done[V]], chunks: Iterable[Chunk]) -> Iterator[Done[V]]:
        for done in threads.run(work, chunks):
            if tell is not None:
                tell(done.rows)
            yield done

    chunks = part.chunks(chosen)
    if threads.count != 1:  # the next chunk takes the memory of this one
        chunks = (chunk.copied() for chunk in chunks)
    total = map_merge(chunks, worked, partial(joined, merge=merge), told)
    return Done(part.number, part.only, total.rows, total.value)
