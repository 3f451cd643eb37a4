"""Rows of a database's table that rounds read.

They are a snapshot; of its usable rows those of a user that are kept; and the facts by which they are recognised.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import attrs

from cloister.core.fingerprints import ENGINE
from cloister.plugin import InvalidInput, PublicRng
from cloister.rows.databases.database import Database
from cloister.rows.databases.features import feature_table, table_name, usable, usable_rows
from cloister.rows.databases.stage import Fence, Stage
from cloister.rows.databases.users import (
    KEPT,
    NAMED,
    ODD,
    ROWS,
    SEVERAL,
    UNNUMBERED,
    USER,
    choose_rows,
    comparable,
    count_per_user,
    mark_all_kept,
    named,
)
from cloister.rows.databases.watched import RowFacts, refuse_changed
from cloister.rows.options import Reading
from cloister.rows.reading import Chunk, TableRows
from cloister.rows.selection import Selection
from cloister.rows.users import NO_NAME

MARK = "mark"
"""Column of rows' hashes."""


class SqlRows(TableRows):
    """Base of ``SqlTable``: the rows that rounds read, as expressions of Ibis.

    Args:
        table: of Ibis, or an expression that is one.
        selection: which of its columns are read, and what they are.
        database: its engine, as this run speaks to it.
        reading: as of ``SqlTable``.
    """

    def __init__(self, table: Any, selection: Selection, database: Database, reading: Reading) -> None:
        super().__init__(selection, reading)
        self._database, self._told = database, reading.told
        users = reading.user_column
        naming = {} if users is None else named(table[users], database.dialect)
        if naming is None:
            raise InvalidInput(NO_NAME)
        self._given, self._features = feature_table(table, selection, database.dialect, naming)
        self._origin: Hashable = table.op()
        self._rows: Any = None
        self._copy: Any = None
        self._held: list[Chunk] | None = None
        self._limit: tuple[int, bytes] | None = None
        self._numbered, self._crowded = False, True
        self._seen: RowFacts | None = None
        self._everybody: RowFacts | None = None
        self._count: int | None = None
        self._kept_facts: RowFacts | None = None
        self._described = {ENGINE: [database.name], "the table": [table_name(table)]} | {
            "the columns, or their types": [
                f"{name} {table.schema()[name]}" for name in (*selection.used, *([users] if users else []))
            ]
        }

    @property
    def origins(self) -> frozenset[Hashable]:
        return frozenset([self._origin])

    @property
    def _watched_here(self) -> bool:
        """Whether rows are counted and watched by this process, not by the engine."""
        return False

    def _count_rows(self) -> tuple[int, RowFacts]:
        """Return the number of rows, and the facts of the usable ones."""
        return self._engine_facts()

    @property
    def people(self) -> int:
        if self._count is None:
            self._count, self._seen = self._count_rows()
        return self._count

    @property
    def _all_facts(self) -> RowFacts:
        """Facts of all usable rows."""
        if self._seen is None:
            self._count, self._seen = self._count_rows()
        return self._seen

    def keep(self, max_rows: int, rng: PublicRng) -> None:
        """Read at most so many rows of each user from now on (``rows.databases.users``).

        They are chosen once if the engine can keep a copy, anew in every round if it cannot.

        Raises:
            InvalidInput: the engine fails, it has no hash, or the rows have changed.
        """
        _, _, self._limit = self._all_facts, self._snapshot(), (max_rows, rng.key)
        self._choose()
        if self._copy is None and self._told is not None:
            self._told("every round chooses the rows of users anew, since no temporary table could be made for them")

    def number_by_name(self) -> None:
        """Check that every row names another user; where all report, also rows that cannot be used.

        Raises:
            InvalidInput: rows name no users, two rows name one, or the engine fails.
        """
        if self._users is None:
            raise InvalidInput(UNNUMBERED)
        if self._numbered:
            return
        rows = self._numberable
        names = comparable(rows[USER], self._database.dialect).nunique()
        marks = {name: rows[name].sum() for name in self._marked}
        figures = self._sums(rows, names=names, named=rows[USER].count(), **marks)
        if figures["names"] != figures["named"]:
            raise InvalidInput(SEVERAL)
        self._everybody = RowFacts(figures["rows"], figures.get(MARK))
        self._numbered = True

    @property
    def _numberable(self) -> Any:
        """Rows of rounds in which users have numbers: kept ones, or all, with ``MARK`` where they are watched."""
        if self._limit is not None:
            return self._kept.table
        rows = self._snapshot()
        return rows.mutate(**self._hashed(rows, self._marked))

    @property
    def _usable(self) -> Stage:
        """Rows that rounds read, with the column ``MARK`` where they are watched."""
        return self._kept if self._copy is None else attrs.evolve(self._named, table=self._copy)

    @property
    def _kept(self) -> Stage:
        """The same rows, chosen anew, with the names of their users."""
        named = self._named
        if self._limit is None:
            return named
        table = self._chosen(named.table)
        return attrs.evolve(named, table=table.filter(table[KEPT]).drop(KEPT))

    @property
    def _named(self) -> Stage:
        """All usable rows, with the names of their users."""
        rows = self._snapshot()
        stage = usable_rows(rows if self._users is None else rows.filter(rows[NAMED]), self._features, self._fence)
        table = stage.table.mutate(**self._hashed(stage.table, self._marked))
        return attrs.evolve(stage, table=table, steps=self._database.dialect.steps)

    def _snapshot(self) -> Any:
        """Return all rows as features, in their snapshot; those that are kept are chosen from it."""
        if self._rows is None:
            self._rows = self._database.begin(self._given)
            if self._database.copies and self._seen is not None:
                refuse_changed(self._count_rows()[1], self._seen)
            if self._limit is not None:
                self._choose()
        return self._rows

    def _chosen(self, table: Any) -> Any:
        """Return usable rows with the column ``KEPT``."""
        assert self._limit is not None
        if not self._crowded:
            return mark_all_kept(table)
        return choose_rows(table, self._features, *self._limit, self._database.dialect)

    def _choose(self) -> None:
        """Choose the rows that are kept from here on, in a copy that rounds read if the engine makes one.

        All that count are in the copy, so that they are sorted once. All are kept, and none sorted, where no user has
        too many.
        """
        assert self._limit is not None
        self._copy, self._held, self._kept_facts = None, None, None
        self._numbered, self._crowded, dialect = False, True, self._database.dialect
        if dialect.hashed is None:
            raise InvalidInput(
                f"{self._database.name} has no hash function that cloister knows, and choosing rows of users needs "
                f"one: save the rows as Parquet"
            )
        rows, names = self._named.table, self._marked
        users = count_per_user(rows, names, dialect)
        counted = self._sums(
            users, used=users[ROWS].sum(), most=users[ROWS].max(), **{n: users[n].sum() for n in names}
        )
        self._recognise(counted["used"], counted.get(MARK, 0), self._all_facts)
        self._crowded = counted["most"] > self._limit[0]
        table = self._chosen(rows).select(*self._features, *names, KEPT)
        copy = self._database.copy_in_snapshot(table)
        table = table if copy is None else copy
        marks = {name: table[name].sum() for name in names}
        marks |= {f"{KEPT}_{name}": table[name].sum(where=table[KEPT]) for name in names}
        figures = self._sums(table, **{KEPT: table[KEPT].sum()}, **marks)
        self._recognise(figures["rows"], figures.get(MARK, 0), self._all_facts)
        self._kept_facts = RowFacts(figures[KEPT], figures.get(f"{KEPT}_{MARK}"))
        if copy is not None:
            self._copy = copy.filter(copy[KEPT]).select(*self._features)

    @property
    def _fence(self) -> Fence:
        return self._database.dialect.fence

    @property
    def _marked(self) -> list[str]:
        """``MARK``, where hashes of rows are compared."""
        return [MARK] if self._database.watched and not (self._watched_here or self._copy is not None) else []

    def _hashed(self, table: Any, names: Sequence[str] = (MARK,)) -> dict[str, Any]:
        """Return the column of rows' hashes, where the engine has any."""
        hashed = self._database.dialect.hashed
        cells = [table[name] for name in (*self._features, *([] if self._users is None else [USER]))]
        return {} if hashed is None else {name: hashed(cells) for name in names}

    def _engine_facts(self) -> tuple[int, RowFacts]:
        """Return the number of rows, and the facts of the usable ones, by the engine."""
        rows = self._snapshot()
        in_use, odd = usable(rows, self._features), {}
        if self._users is not None:
            in_use, odd = in_use & rows[NAMED], {ODD: rows[ODD].sum()}
        marks = {name: hashed.sum(where=in_use) for name, hashed in self._hashed(rows).items()}
        figures = self._sums(rows, used=in_use.sum(), **marks, **odd)
        if figures.get(ODD):
            raise InvalidInput(NO_NAME)
        return figures["rows"], RowFacts(figures["used"], figures.get(MARK))

    def _sums(self, table: Any, **figures: Any) -> dict[str, int]:
        """Return whole numbers that a table adds up to, and its number of rows."""
        answer = self._database.answer(table.aggregate(rows=table.count(), **figures))
        return {name: int(answer[name][0].as_py() or 0) for name in answer.column_names}

    @property
    def _round_facts(self) -> RowFacts:
        """Facts of the rows that every round reads."""
        return self._all_facts if self._kept_facts is None else self._kept_facts

    def _recognise(self, rows: int, mark: int, expected: RowFacts) -> None:
        """Raise InvalidInput unless these are the expected rows. Args: mark, the sum of their hashes."""
        refuse_changed(RowFacts(rows, mark if self._marked or self._watched_here else None), expected)
