"""Rows in a database: its engine does the pass, and exact totals come back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self, cast

import attrs
import numpy as np

from cloister.core.capabilities import TakesTotals
from cloister.core.columns import select
from cloister.core.encoding import Progress, chunk_rows, map_merge, merge_summaries, summarise_rows
from cloister.core.errors import InvalidInput
from cloister.core.lattice import CAP
from cloister.core.marks import mark_of
from cloister.core.questions import OpenedQuestion, Round
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.types import Floats
from cloister.plugins.populations.reading import (
    Missing,
    as_missing,
    fit,
    refuse_all,
    refuse_missing,
    refuse_too_many,
    refuse_unfit,
    user_numbers,
)
from cloister.sql.bundles import Described, NotCompiled
from cloister.sql.database import Database
from cloister.sql.features import featured, table_columns, usable, used
from cloister.sql.lattices import snapped
from cloister.sql.questions import Compiled, Grouped
from cloister.sql.stage import Stage

MARK = "mark"
"""The column of rows' hashes."""


class SqlTable:
    """A curator's rows in a database that Ibis speaks to.

    Each round is a query for each of its bucketings, compiled from their descriptions: rows are put on the lattice,
    located and added up by the engine, in the integers that other populations find, and exact totals of occupied
    buckets come back. What has no form in SQL, or one too long, is located here, over batches of rows that the engine
    streams; ``told`` is called with a line that says so.

    Args:
        table: of Ibis, or an expression that is one.
        columns, missing, categories, bounded: as of ``Files``.
        progress: told how many rows of a round are done, all at once.
        told: called with what its holder should know.
        owned: whether the connection is this object's, which ends it in ``close``.

    Attributes: columns, selection, dimension, has_users: as of ``Files``.

    Raises: UnknownName, InvalidInput: there is no such column, or it cannot be used.
    """

    def __init__(
        self, table: Any, columns: Sequence[str | int] | str | None = None, missing: Missing = "refuse",
        progress: Progress | None = None, users: str | None = None, categories: Mapping[str, Any] | None = None,
        bounded: Sequence[str] | None = None, threads: int | None = None,
        told: Callable[[str], None] | None = None, owned: bool = False,
    ) -> None:  # fmt: skip
        self._missing: Missing = as_missing(missing)
        self._progress, self._told, self._owned = progress, told, owned
        self._users, self.has_users = users, users is not None
        self.selection = select(table_columns(table), columns, categories, bounded, users)
        self.columns = self.selection.features
        self._database = Database(table)
        self._rows, self._features = featured(table, self.selection, self._database.dialect.fence)
        self._kept = False
        self._people: int | None = None

    @property
    def dimension(self) -> int:
        return len(self.columns)

    def check(self, most_rows: int = CAP) -> None:
        """The validation pass, for the data holder's eyes: rows outside the bounds are fine.

        Raises: InvalidInput: the engine fails, there are no rows, too many, or missing or infinite cells that were not
            to be dropped.
        """
        whole = usable(self._rows, self._features)
        if self._progress is not None:
            self._progress(0)  # the engine does not tell how far it is: the bar moves until it is done
        self._database.begin()
        found = self._database.answer(self._rows.aggregate(rows=self._rows.count(), used=whole.sum()))
        rows, usable_rows = (int(found[name][0].as_py() or 0) for name in ("rows", "used"))
        refuse_too_many(rows)
        if self._missing == "refuse" and usable_rows < rows:
            refuse_missing()
        refuse_unfit(usable_rows, most_rows)
        self._people = usable_rows

    @property
    def people(self) -> int:
        """How many rows can be used."""
        if self._people is None:
            missing, self._missing = self._missing, "drop"
            try:
                self.check()
            finally:
                self._missing = missing
        assert self._people is not None
        return self._people

    def marks(self, key: bytes) -> dict[str, bytes]:
        """By which a run that goes on knows these rows again: ``core.marks``."""
        return {"the number of rows": mark_of(key, [self.people])}

    def keep(self, most: int, rng: PublicRng) -> None:
        """Read at most so many rows of each user from now on."""
        raise NotImplementedError

    def gather(self, round: Round[Any], rng: NoiseRng) -> tuple[Any, ...]:
        """Raises: InvalidInput: the engine fails, or the rows are not what they were."""
        refuse_all(self.has_users and not self._kept)
        fit(round.domain, self.columns)
        self._database.begin()
        summaries = dict[int, Any]()
        for numbers in _by_cells(round):
            compiled = self._compiled(round, [round.parts[i] for i in numbers])
            if compiled is None:
                continue
            totals = compiled.totals(self._grouped(compiled))
            for i, levels in zip(numbers, totals, strict=True):
                channel = cast(TakesTotals, round.parts[i].channel)
                summaries[i] = channel.totalled([(level.ids, level.values) for level in levels], self.people)
        left = [i for i in range(len(round.parts)) if i not in summaries]
        if left:
            summaries |= dict(zip(left, self._streamed(round, left, rng), strict=True))
        if self._progress is not None:
            self._progress(self.people)
        return tuple(summaries[i] for i in range(len(round.parts)))

    def close(self) -> None:
        """End the snapshot, and the connection if it is this object's."""
        try:
            self._database.close()
        finally:
            if self._owned:
                self._database.backend.disconnect()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _usable(self) -> Stage:
        return used(self._rows, self._features, self._database.dialect.fence)

    def _compiled(self, round: Round[Any], parts: list[OpenedQuestion]) -> Compiled | None:
        """The queries of questions about one bucketing; None where there are none."""
        if not all(isinstance(part.channel, TakesTotals) and part.user_share is None for part in parts):
            return None
        known = Described()
        try:
            return Compiled.of(snapped(self._usable, known.of(round.domain)), parts, known)
        except NotCompiled as error:
            if self._told is not None:
                self._told(f"{error}: rows are located in Python, in batches that {self._database.name} streams")
            return None

    def _grouped(self, compiled: Compiled) -> list[Grouped]:
        found = [Grouped.of(self._database.answer(query)) for query in compiled.queries(None)]
        for each in found:
            self._people = int(each.rows.sum()) if self._people is None else self._people
            if int(each.rows.sum()) != self._people:
                raise InvalidInput(
                    "the table is not what it was when this run began: take a snapshot with --materialise"
                )
        return found

    def _streamed(self, round: Round[Any], numbers: list[int], rng: NoiseRng) -> tuple[Any, ...]:
        """The summaries of these questions, of rows that come here in batches."""
        some = attrs.evolve(round, parts=tuple(round.parts[i] for i in numbers))

        def summary(batch: tuple[int, Floats]) -> tuple[Any, ...]:
            start, rows = batch
            return summarise_rows(some, rows, user_numbers(start, len(rows)), rng.child("chunk", start))

        return map_merge(self._batches(), summary, merge_summaries)

    def _batches(self) -> Iterator[tuple[int, Floats]]:
        """The usable rows, each batch with the position of its first; at least one, which may be empty."""
        start, stage = 0, self._usable
        ordered = stage.table.order_by([stage.table[name] for name in stage.row])
        for batch in self._database.batches(ordered, chunk_rows(self.dimension)):
            rows = np.column_stack([batch.column(name).to_numpy() for name in stage.row])
            yield start, rows
            start += len(rows)
        if not start:
            yield 0, np.empty((0, self.dimension))


def _by_cells(round: Round[Any]) -> list[list[int]]:
    """The questions' numbers, those of one bucketing together."""
    found = dict[int, list[int]]()
    for i, part in enumerate(round.parts):
        found.setdefault(id(part.cells), []).append(i)
    return list(found.values())
