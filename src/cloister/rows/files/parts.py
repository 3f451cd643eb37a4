"""Division of a pass over files into parts, and the work of a process or worker on one part."""

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


def expand_paths(paths: Path | Sequence[Path]) -> list[str]:
    """Expand paths and patterns to a list of files; the matches of a pattern are sorted.

    Raises:
        InvalidInput: there is no file, one is a folder, or one is given twice, so that its rows would count twice.
    """
    patterns = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    files = [path for one in patterns for path in _matched(os.fspath(one))]
    if not files:
        raise InvalidInput("no file was given")
    identities = set[Hashable]()
    for path in files:
        if os.path.isdir(path):
            raise InvalidInput(f"'{path}' is a folder: give its files, as in '{os.path.join(path, '*.parquet')}'")
        if identity(path) in identities:
            raise InvalidInput(f"'{path}' was given twice: its rows would count twice")
        identities.add(identity(path))
    return files


def identity(path: str) -> Hashable:
    """Return a key that is equal for all names of one file, including links and bind mounts.

    It is the device and inode number, or the resolved path where there is none (a deleted file, some network drives).
    """
    try:
        facts = os.stat(path)
    except OSError:
        return os.path.realpath(path)
    return (facts.st_dev, facts.st_ino) if facts.st_ino else os.path.realpath(path)


def _matched(path: str) -> list[str]:
    if os.path.exists(path) or not glob.has_magic(path):
        return [path]
    matches = sorted(glob.glob(path, recursive=True))
    if not matches:
        raise InvalidInput(f"no file matches '{path}'")
    return matches


@final
@attrs.frozen(eq=False)
class Part:
    """Range of rows of a file, sent to a worker in place of the rows.

    Args:
        number: index of the file.
        file: as it was when the run began.
        only: its blocks; None for all.
        start: index of the first row among all rows.
        kept: packed bits of the rows kept by contribution bounding; None for all.
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
        """Yield the rows; at least one chunk, possibly empty."""
        start, dimension = self.start, len(chosen.features)
        kept_rows = None if self.kept is None else np.unpackbits(self.kept).view(bool)
        for rows in self.file.chunks(chosen, chunk_rows(dimension), self.only):
            refuse_too_many(start + len(rows))
            chunk_kept = None if kept_rows is None else kept_rows[start - self.start :][: len(rows)]
            yield Chunk(start, rows, self.place, kept=chunk_kept)
            start += len(rows)
        if start == self.start:
            yield Chunk(start, np.empty((0, dimension)), self.place)


@final
@attrs.frozen(eq=False)
class Done(Generic[V]):
    """Result of a part.

    Args:
        number, only: as of the part.
        rows: number of rows.
        value: merged value of the rows.
    """

    number: int
    only: range | None
    rows: int
    value: V


def part_owners(part: Part, chosen: Selection, users: str, missing: Missing) -> Done[dict[Place, Owners]]:
    """Return the owners of the usable rows of a part, after validating the rows (runs in a worker)."""
    keep_memory()
    usable = np.concatenate([finite(chunk.rows) for chunk in part.chunks(chosen)])
    owners = part.file.owners(users, part.only).counted(usable)
    if missing == "refuse" and owners.rows < len(usable):
        refuse_missing()
    return Done(part.number, part.only, len(usable), {part.place: owners})


def merge_results(one: Done[V], other: Done[V], merge: Callable[[V, V], V]) -> Done[V]:
    """Merge the results of two parts."""
    return Done(-1, None, one.rows + other.rows, merge(one.value, other.value))


def run_pass(
    part: Part,
    chosen: Selection,
    fn: Callable[[Chunk], V],
    merge: Callable[[V, V], V],
    tell: Progress | None,
    threads: Threads,
) -> Done[V]:
    """Run one pass over a part and return the merged values of its chunks (runs in a worker)."""
    keep_memory()

    def work_on(chunk: Chunk) -> Done[V]:
        return Done(part.number, part.only, len(chunk.rows), fn(chunk))

    def reported(work: Callable[[Chunk], Done[V]], chunks: Iterable[Chunk]) -> Iterator[Done[V]]:
        for done in threads.run(work, chunks):
            if tell is not None:
                tell(done.rows)
            yield done

    chunks = part.chunks(chosen)
    if threads.count != 1:  # the next chunk reuses this one's memory
        chunks = (chunk.copied() for chunk in chunks)
    total = map_merge(chunks, work_on, partial(merge_results, merge=merge), reported)
    return Done(part.number, part.only, total.rows, total.value)
