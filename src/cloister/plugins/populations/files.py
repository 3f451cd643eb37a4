"""Rows in files, read a chunk at a time in every round, in this process or in many."""

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

from cloister.core.encoding import Progress, chunk_rows, map_merge, merge_summaries
from cloister.core.errors import InvalidInput, UnknownName
from cloister.core.fingerprints import fingerprint, fingerprint_of
from cloister.core.lattice import CAP
from cloister.core.questions import Round
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.types import Floats, Ints
from cloister.rows.columns import select
from cloister.rows.files.csv_form import Form
from cloister.rows.files.parts import Done, Part, Path, identity, joined, listed, owned, passed
from cloister.rows.files.sources import File, is_csv
from cloister.rows.options import Missing, Reading
from cloister.rows.reading import (
    Chunk,
    Place,
    TableRows,
    as_first,
    fit,
    reading_fingerprints,
    refuse_all,
    refuse_too_many,
    refuse_unfit,
)
from cloister.rows.selection import Selection
from cloister.rows.users import Owners
from cloister.rows.workers.engine import Engine, engine_of
from cloister.rows.workers.machine import Threads

V = TypeVar("V")


class Files(TableRows):
    """A curator's rows in files, read once per round, a chunk at a time: memory does not grow with the files.

    Rows with a missing or infinite cell are dropped, or in no bucket (``core.encoding.everybody_reports``), by a rule
    that looks at each row alone; whether ``check`` lets them pass is said by ``missing``. User i is the row's position,
    over the files in their order, plus ``first``. Numbers are integers, floats, booleans and decimals; the same numbers
    give the same answers whatever file they are in.

    A pass is spread over threads, or by an engine over processes: a part is a file, or about a million rows of a
    Parquet file with several row groups. Parts are the same whoever works on them, and their exact summaries are merged
    here as they come, so the answer is the same too. Where there are fewer parts than threads, several work on one
    part's chunks while it is read. One file that cannot be read, or that is not what it was when this object was made,
    fails the whole pass.

    Args:
        paths: a file, a glob pattern (sorted), or several of them, in a format of ``rows.files.sources`` (of an NPZ the
            array 'X' or the only two-dimensional one).
        reading: ``columns`` are names or patterns, in this order. Files that name their columns use those alone, or
            else those that ``bounded`` and ``categories`` name: ``rows.columns`` has the rule. Columns of NPY and NPZ
            are called '0', '1', ...; by default all are used. CSV's names of users are text. Where workers read rows,
            ``progress`` hears of them part by part.
        first: number of the first user.
        engine: one that is shared and that somebody else closes, in place of the reading's.

    Attributes: as of ``TableRows``. Where rows name their users, ``keep`` comes before ``gather``.

    Raises:
        UnknownName, InvalidInput: there is no such file, column or engine, it cannot be used, or nothing says which
            columns to use; no message quotes a row.
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
        self._first = as_first(first)
        name = "serial" if reading.engine is None else reading.engine
        self._engine = engine_of(name, reading.workers, reading.scheduler) if engine is None else engine
        self._mine, self.apart = engine is None, self._engine.apart
        if reading.threads is not None and self._engine.apart:
            raise InvalidInput("threads go with engine 'serial': other engines have workers, each with one thread")
        self._threads = Threads(1 if self._engine.apart else reading.threads)
        self._owners: dict[Place, Owners] | None = None
        self._kept: dict[Place, NDArray[np.uint8]] = {}
        found = listed(paths)
        if (reading.delimiter, reading.encoding) != (None, None) and not any(is_csv(path) for path in found):
            raise InvalidInput("delimiter and encoding are for CSV files: leave them out")
        self._form = Form(
            "," if reading.delimiter is None else reading.delimiter,
            "utf-8" if reading.encoding is None else reading.encoding,
        )
        self._files = [File(os.path.abspath(path) if self._engine.elsewhere else path, self._form) for path in found]
        first_file = self._files[0]
        super().__init__(select(first_file.known, reading, everything=not first_file.by_name), reading)
        for file in self._files[1:]:
            file.match(self.selection, reading)

    def check(self, most_rows: int = CAP) -> None:
        """The validation pass, for the data holder's eyes: rows outside the bounds are fine.

        Args:
            most_rows: how many rows can be used at most, for one of several parties.

        Raises:
            InvalidInput: a file cannot be read to its end, there are no rows, too many, or missing or infinite cells
                that were not to be dropped.
        """
        if self._users is None:
            used = self._counted(self.missing)
        else:
            self._owners = self._owned(self.missing)
            used = sum(owners.rows for owners in self._owners.values())
        refuse_unfit(used, most_rows)
        refuse_too_many(self.rows)

    @property
    def by(self) -> str:
        return type(self._engine).__name__.lower() if self.apart else self._threads.words

    @property
    def people(self) -> int:
        """How many rows there are, those that cannot be used too: counted unless the files say it, or ``check`` has."""
        return sum(self._rows(file) for file in self._files)

    def fingerprints(self, key: bytes) -> dict[str, bytes]:
        """By which a run that goes on knows these rows again (``core.record``), without reading them all: a file that
        was copied has another time, one with as many other bytes in its middle and its old time passes."""
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

    def keep(self, most: int, rng: PublicRng) -> None:
        """Read at most so many rows of each user from now on. It takes a pass over the rows unless ``check`` has."""
        owners = self._owned("drop") if self._owners is None else self._owners
        places = sorted(owners)
        kept = Owners.joined([owners[place] for place in places]).kept(most, rng)
        ends = np.cumsum([len(owners[place].of) for place in places])
        self._kept = {p: np.packbits(rows) for p, rows in zip(places, np.split(kept, ends[:-1]), strict=True)}
        self._owners = None

    def users_of_rows(self) -> Ints | None:
        """Number (n,) of each usable row's user, in order, for their holder; None if rows name none. NOT private."""
        if not self.has_users:
            return None
        owners = self._owned("drop") if self._owners is None else self._owners
        of = Owners.joined([owners[place] for place in sorted(owners)]).of
        return of[of >= 0].astype(np.int64)

    def gather(self, round: Round[Any], rng: NoiseRng) -> tuple[Any, ...]:
        """Raises: InvalidInput if a file cannot be read to its end or is not what it was, or rows are of users and
        ``keep`` has not said how many of each are read."""
        refuse_all(self.has_users and not self._kept)
        fit(round.domain, self.columns)
        summary = partial(Chunk.summary, round=round, rng=rng, first=self._first)
        return self._passed(summary, merge_summaries, self._parts(numbered=True), self.selection.needed(round.domain))

    def added_up(self, fn: Callable[[Chunk], V], merge: Callable[[V, V], V]) -> V:
        return self._passed(fn, merge, self._parts(numbered=False), self.selection)

    def chunks(self) -> Generator[Chunk]:
        for part in self._parts(numbered=True):
            yield from part.chunks(self.selection)

    @property
    def paths(self) -> list[str]:
        """The files, in order."""
        return [file.path for file in self._files]

    @property
    def origins(self) -> frozenset[Hashable]:
        return frozenset(identity(path) for path in self.paths)

    @property
    def rows(self) -> int:
        """How many rows there are, as files say that do; -1 or less while nobody knows."""
        return sum(file.rows for file in self._files)

    def unchanged(self) -> None:
        """Raises: InvalidInput unless every file is what it was."""
        for file in self._files:
            file.unchanged()

    def beside(self, kept: Sequence[str]) -> Iterator[tuple[Floats, list[Any]]]:
        """All rows for their holder's own use, a bounded number at a time, with the cells of other columns as they are:
        Arrow's arrays, or NumPy's.

        Raises: UnknownName, InvalidInput: there is no such column in some file.
        """
        for file in self._files:
            names = [column.name for column in file.known]
            for name in kept:
                if names.count(name) != 1:
                    raise UnknownName("column", name, names)
        for file in self._files:
            for features, cells in file.beside(self.selection, kept):
                yield np.column_stack([np.asarray(feature, np.float64) for feature in features]), cells

    def close(self) -> None:
        """End the workers of an engine that is not shared. They are started again when they are needed."""
        if self._mine:
            self._engine.close()

    def _counted(self, missing: Missing) -> int:
        whole = partial(Chunk.usable, missing=missing)
        add: Callable[[int, int], int] = operator.add
        return self._passed(whole, add, self._parts(numbered=False), self.selection.needed(None), silent=True)

    def _owned(self, missing: Missing) -> dict[Place, Owners]:
        read = partial(owned, chosen=self.selection, users=self._users or "", missing=missing)
        add: Callable[[dict[Place, Owners], dict[Place, Owners]], dict[Place, Owners]] = operator.or_
        return self._over_all(list(self._parts(numbered=False)), read, add)

    def _passed(
        self,
        fn: Callable[[Chunk], V],
        merge: Callable[[V, V], V],
        given: Iterable[Part],
        chosen: Selection,
        silent: bool = False,
    ) -> V:
        """One pass that is told of: by the chunks of the only part here, or by the parts that are done."""
        parts, progress = list(given), None if silent else self._reading.progress
        here = len(parts) == 1 and not self._engine.apart
        threads = Threads(max(1, self._threads.count // len(parts)))
        over = partial(passed, chosen=chosen, fn=fn, merge=merge, tell=progress if here else None, threads=threads)
        return self._over_all(parts, over, merge, None if here else progress)

    def _over_all(
        self,
        parts: list[Part],
        fn: Callable[[Part], Done[V]],
        merge: Callable[[V, V], V],
        told: Progress | None = None,
    ) -> V:
        """The merged values of all parts."""
        add = partial(joined, merge=merge)
        total: Done[V] = map_merge(parts, fn, add, partial(self._run, told=told))
        self.unchanged()  # one that was read long ago may have changed since
        return total.value

    def _run(self, fn: Callable[[Part], Done[V]], parts: Iterable[Part], told: Progress | None) -> Iterator[Done[V]]:
        run = self._engine.run if self._engine.apart else self._threads.run
        for done in run(fn, parts):
            if self._engine.apart:
                self._files[done.number].learn(done.rows, done.only)
            if told is not None:
                told(done.rows)
            yield done

    def _parts(self, numbered: bool) -> Iterator[Part]:
        """Parts that the files are divided into; at least one part.

        Args:
            numbered: whether users need their numbers. Files of a format that does not say how many rows it has are
                then counted first, unless they have been read before.
        """
        start = 0
        for number, file in enumerate(self._files):
            for only, before in file.stretches():
                part = Part(number, file, only, start + before)
                yield attrs.evolve(part, kept=self._kept.get(part.place)) if numbered else part
                refuse_too_many(start + before)
            if numbered:
                start += self._rows(file)

    def _rows(self, file: File) -> int:
        if file.rows < 0:
            for _ in file.chunks(self.selection.needed(None), chunk_rows(self.dimension)):
                pass
        return file.rows
