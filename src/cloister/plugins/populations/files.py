"""Population of rows in files, read a chunk at a time in every round, by this process or by many."""

from __future__ import annotations

import codecs
import operator
import os
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

import attrs
import numpy as np
from numpy.typing import NDArray

from cloister.plugin import (
    CAP,
    Floats,
    Ints,
    InvalidInput,
    NoiseRng,
    Progress,
    PublicRng,
    Round,
    UnknownName,
    chunk_rows,
    fingerprint,
    fingerprint_of,
    map_merge,
    merge_summaries,
)
from cloister.rows.columns import select
from cloister.rows.files.csv_form import Form
from cloister.rows.files.parts import Done, Part, Path, expand_paths, identity, merge_results, part_owners, run_pass
from cloister.rows.files.sources import File, is_csv
from cloister.rows.options import Missing, Reading
from cloister.rows.reading import (
    Chunk,
    Place,
    TableRows,
    check_dimension,
    checked_first,
    reading_fingerprints,
    refuse_before_keep,
    refuse_too_many,
    refuse_unfit,
)
from cloister.rows.selection import Selection
from cloister.rows.users import Owners
from cloister.rows.workers.engine import Engine, engine_of
from cloister.rows.workers.threads import Threads

V = TypeVar("V")


class Files(TableRows):
    """Rows of a curator in files, read once per round, a chunk at a time: memory does not grow with the files.

    User i is the row's position, over the files in their order, plus ``first``. The same numbers give the same answers
    whatever file they are in.

    A pass is spread over threads, or by an engine over processes: a part is a file, or about a million rows of a
    Parquet file with several row groups. Parts are the same whoever works on them, and their exact summaries are
    merged here as they come, so the answer is the same too. Where there are fewer parts than threads, several threads
    work on one part's chunks while it is read. One file that cannot be read, or that changed since this object was
    made, fails the whole pass.

    Args:
        paths: a file, a glob pattern (sorted), or several of them, in a format of ``rows.files.sources`` (of an NPZ
            the array 'X' or the only two-dimensional one).
        reading: ``columns`` are names or patterns, in this order. Files that name their columns use those alone, or
            else those that ``bounded`` and ``categories`` name (``rows.columns``). Columns of NPY and NPZ are called
            '0', '1', ...; by default all are used. CSV's names of users are text. Where workers read rows,
            ``progress`` is called part by part.
        first: number of the first user.
        engine: one that is shared and that somebody else closes, in place of the reading's.

    Raises:
        UnknownName: there is no such file, column or engine.
        InvalidInput: a file or column cannot be used, or nothing says which columns to use. No message quotes a row.
        MissingExtra: pyarrow or Dask is needed and not installed.
    """

    def __init__(
        self,
        paths: Path | Sequence[Path],
        reading: Reading | None = None,
        first: int = 0,
        engine: Engine | None = None,
    ) -> None:
        reading = Reading() if reading is None else reading
        self._first = checked_first(first)
        name = "serial" if reading.engine is None else reading.engine
        self._engine = engine_of(name, reading.workers, reading.scheduler) if engine is None else engine
        self._mine, self.apart = engine is None, self._engine.apart
        if reading.threads is not None and self._engine.apart:
            raise InvalidInput("threads go with engine 'serial': other engines have workers, each with one thread")
        self._threads = Threads(1 if self._engine.apart else reading.threads)
        self._owners: dict[Place, Owners] | None = None
        self._kept: dict[Place, NDArray[np.uint8]] = {}
        names = expand_paths(paths)
        if (reading.delimiter, reading.encoding) != (None, None) and not any(is_csv(path) for path in names):
            raise InvalidInput("delimiter and encoding are for CSV files: leave them out")
        self._form = Form(
            "," if reading.delimiter is None else reading.delimiter,
            "utf-8" if reading.encoding is None else reading.encoding,
        )
        self._files = [File(os.path.abspath(path) if self._engine.elsewhere else path, self._form) for path in names]
        first_file = self._files[0]
        super().__init__(select(first_file.known, reading, everything=not first_file.by_name), reading)
        for file in self._files[1:]:
            file.match(self.selection, reading)

    def check(self, most_rows: int = CAP) -> None:
        if self._users is None:
            used = self._count_rows(self.missing)
        else:
            self._owners = self._read_owners(self.missing)
            used = sum(owners.rows for owners in self._owners.values())
        refuse_unfit(used, most_rows)
        refuse_too_many(self.rows)

    @property
    def by(self) -> str:
        return type(self._engine).__name__.lower() if self.apart else self._threads.words

    @property
    def people(self) -> int:
        """Number of rows, counted unless the files state it, or ``check`` has counted."""
        return sum(self._rows(file) for file in self._files)

    def fingerprints(self, key: bytes) -> dict[str, bytes]:
        """Return the fingerprints of these rows, without reading them all.

        A copied file has another time. A file passes that has as many other bytes in its middle and its old time.
        """
        sizes, times = zip(*(file.facts for file in self._files), strict=True)
        return {
            "the number of files": fingerprint_of(key, [len(self._files)]),
            "the names of files, or their order": fingerprint_of(
                key, [os.path.basename(file.path) for file in self._files]
            ),
            "the sizes of files": fingerprint_of(key, sizes),
            "the times of their last change": fingerprint_of(key, times),
            "how files begin and end": fingerprint(key, (some for file in self._files for some in file.ends())),
            "the number of the first user": fingerprint_of(key, [self._first]),
        } | reading_fingerprints(
            self.selection,
            attrs.evolve(
                self._reading, delimiter=self._form.delimiter, encoding=codecs.lookup(self._form.encoding).name
            ),
        )

    def keep(self, max_rows: int, rng: PublicRng) -> None:
        """Read at most so many rows of each user from now on: takes a pass over the rows unless ``check`` made it."""
        owners = self._read_owners("drop") if self._owners is None else self._owners
        places = sorted(owners)
        kept_rows = Owners.joined([owners[place] for place in places]).kept(max_rows, rng)
        ends = np.cumsum([len(owners[place].of) for place in places])
        self._kept = {p: np.packbits(rows) for p, rows in zip(places, np.split(kept_rows, ends[:-1]), strict=True)}
        self._owners = None

    def users_of_rows(self) -> Ints | None:
        if not self.has_users:
            return None
        owners = self._read_owners("drop") if self._owners is None else self._owners
        of = Owners.joined([owners[place] for place in sorted(owners)]).of
        return of[of >= 0].astype(np.int64)

    def gather(self, round: Round[Any], rng: NoiseRng) -> tuple[Any, ...]:
        """Return the merged summaries of all parts.

        Raises:
            InvalidInput: a file cannot be read to its end, or has changed.
            Refused: rows are of users, and ``keep`` has not been called.
        """
        refuse_before_keep(self.has_users and not self._kept)
        check_dimension(round.domain, self.columns)
        summary = partial(Chunk.summary, round=round, rng=rng, first=self._first)
        return self._run_pass(summary, merge_summaries, self._parts(numbered=True), self.selection.needed(round.domain))

    def aggregate(self, fn: Callable[[Chunk], V], merge: Callable[[V, V], V]) -> V:
        return self._run_pass(fn, merge, self._parts(numbered=False), self.selection)

    def chunks(self) -> Generator[Chunk]:
        for part in self._parts(numbered=True):
            yield from part.chunks(self.selection)

    @property
    def paths(self) -> list[str]:
        """Paths of the files, in order."""
        return [file.path for file in self._files]

    @property
    def origins(self) -> frozenset[Hashable]:
        return frozenset(identity(path) for path in self.paths)

    @property
    def rows(self) -> int:
        """Number of rows, as files state it; negative while it is not known."""
        return sum(file.rows for file in self._files)

    def unchanged(self) -> None:
        """Raise InvalidInput if a file has changed."""
        for file in self._files:
            file.unchanged()

    def beside(self, extra: Sequence[str]) -> Iterator[tuple[Floats, list[Any]]]:
        """Yield all rows for their holder's own use, a bounded number at a time, with the cells of other columns.

        Those are as they are: arrays of Arrow, or of NumPy.

        Args:
            extra: names of the other columns.

        Raises:
            UnknownName: some file has no such column, or two.
        """
        for file in self._files:
            names = [column.name for column in file.known]
            for name in extra:
                if names.count(name) != 1:
                    raise UnknownName("column", name, names)
        for file in self._files:
            for features, cells in file.beside(self.selection, extra):
                yield np.column_stack([np.asarray(feature, np.float64) for feature in features]), cells

    def close(self) -> None:
        """End the workers of an engine that is not shared; they start again when they are needed."""
        if self._mine:
            self._engine.close()

    def _count_rows(self, missing: Missing) -> int:
        count = partial(Chunk.usable, missing=missing)
        add: Callable[[int, int], int] = operator.add
        return self._run_pass(count, add, self._parts(numbered=False), self.selection.needed(None), silent=True)

    def _read_owners(self, missing: Missing) -> dict[Place, Owners]:
        read = partial(part_owners, chosen=self.selection, users=self._users or "", missing=missing)
        add: Callable[[dict[Place, Owners], dict[Place, Owners]], dict[Place, Owners]] = operator.or_
        return self._run_parts(list(self._parts(numbered=False)), read, add)

    def _run_pass(
        self,
        fn: Callable[[Chunk], V],
        merge: Callable[[V, V], V],
        divided: Iterable[Part],
        chosen: Selection,
        silent: bool = False,
    ) -> V:
        """Make one pass that reports progress: by chunks of the only part here, or by parts that are done."""
        parts, progress = list(divided), None if silent else self._reading.progress
        here = len(parts) == 1 and not self._engine.apart
        threads = Threads(max(1, self._threads.count // len(parts)))
        over = partial(run_pass, chosen=chosen, fn=fn, merge=merge, tell=progress if here else None, threads=threads)
        return self._run_parts(parts, over, merge, None if here else progress)

    def _run_parts(
        self,
        parts: list[Part],
        fn: Callable[[Part], Done[V]],
        merge: Callable[[V, V], V],
        progress: Progress | None = None,
    ) -> V:
        """Return the merged values of all parts."""
        add = partial(merge_results, merge=merge)
        total: Done[V] = map_merge(parts, fn, add, partial(self._run, progress=progress))
        self.unchanged()  # one that was read long ago may have changed since
        return total.value

    def _run(
        self, fn: Callable[[Part], Done[V]], parts: Iterable[Part], progress: Progress | None
    ) -> Iterator[Done[V]]:
        run = self._engine.run if self._engine.apart else self._threads.run
        for done in run(fn, parts):
            if self._engine.apart:
                self._files[done.number].check_row_count(done.rows, done.only)
            if progress is not None:
                progress(done.rows)
            yield done

    def _parts(self, numbered: bool) -> Iterator[Part]:
        """Yield the parts that the files are divided into; at least one.

        Args:
            numbered: whether users need their numbers. Files of a format that does not state its number of rows are
                then counted first, unless they have been read before.
        """
        start = 0
        for number, file in enumerate(self._files):
            for only, offset in file.stretches():
                part = Part(number, file, only, start + offset)
                yield attrs.evolve(part, kept=self._kept.get(part.place)) if numbered else part
                refuse_too_many(start + offset)
            if numbered:
                start += self._rows(file)

    def _rows(self, file: File) -> int:
        if file.rows < 0:
            for _ in file.chunks(self.selection.needed(None), chunk_rows(self.dimension)):
                pass
        return file.rows
