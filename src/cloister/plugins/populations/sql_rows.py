"""Which rows of a table in a database are read: their snapshot, those that can be used, those of a user that are kept,
and the facts by which they are known again."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import attrs

from cloister.core.errors import InvalidInput
from cloister.core.fingerprints import ENGINE
from cloister.core.randomness import PublicRng
from cloister.rows.databases.database import Database
from cloister.rows.databases.features import featured, table_name, usable, used
from cloister.rows.databases.stage import Fence, Stage
from cloister.rows.databases.users import (
    KEPT,
    NAMED,
    ODD,
    ROWS,
    SEVERAL,
    UNNUMBERED,
    USER,
    all_kept,
    chosen,
    named,
    of_each,
    told_apart,
)
from cloister.rows.databases.watched import Seen, refuse_other
from cloister.rows.options import Reading
from cloister.rows.reading import Chunk, TableRows
from cloister.rows.selection import Selection
from cloister.rows.users import NO_NAME

MARK = "mark"
"""The column of rows' hashes."""


class SqlRows(TableRows):
    """The rows that rounds see, as expressions of Ibis. What is asked of them, and how they come, is ``SqlTable``'s.

    Args:
        table: of Ibis, or an expression that is one.
        selection: which of its columns are read, and what they are.
        database: its engine, as this run speaks to it.
        reading: as of ``SqlTable``.
    """

    def __init__(
        self,
        table: Any,
        selection: Selection,
        database: Database,
        reading: Reading,
    ) -> None:
        super().__init__(selection, reading)
        self._database, self._told = database, reading.told
        users = reading.user_column
        naming = {} if users is None else named(table[users], database.dialect)
        if naming is None:
            raise InvalidInput(NO_NAME)
        self._given, self._features = featured(table, selection, database.dialect, naming)
        self._origin: Hashable = table.op()
        self._rows: Any = None
        self._copy: Any = None
        self._held: list[Chunk] | None = None
        self._limit: tuple[int, bytes] | None = None
        self._numbered, self._crowded = False, True
        self._seen: Seen | None = None
        self._everybody: Seen | None = None
        self._count: int | None = None
        self._narrowed: Seen | None = None
        self._described = {ENGINE: [database.name], "the table": [table_name(table)]} | {
            "the columns, or their types": [
                f"{name} {table.schema()[name]}" for name in (*selection.used, *([users] if users else []))
            ]
        }

    @property
    def origins(self) -> frozenset[Hashable]:
        return frozenset([self._origin])

    @property
    def _here(self) -> bool:
        """Whether rows are counted and watched by this process, not by the engine."""
        return False

    def _counted(self) -> tuple[int, Seen]:
        """How many rows there are, and what is seen of those that can be used."""
        return self._figured()

    @property
    def people(self) -> int:
        """How many rows there are, those that cannot be used too."""
        if self._count is None:
            self._count, self._seen = self._counted()
        return self._count

    @property
    def _known(self) -> Seen:
        """Facts of all rows that can be used."""
        if self._seen is None:
            self._count, self._seen = self._counted()
        return self._seen

    def keep(self, most: int, rng: PublicRng) -> None:
        """Read at most so many rows of each user from now on: ``rows.databases.users`` chooses them, once if the engine
        can keep a copy, in every round anew if it cannot.

        Raises: InvalidInput: the engine fails, it has no hash, or the rows are not what they were.
        """
        _, _, self._limit = self._known, self._begun(), (most, rng.key)
        self._choose()
        if self._copy is None and self._told is not None:
            self._told("every round chooses the rows of users anew, since no temporary table could be made for them")

    def number_by_name(self) -> None:
        """Raises: InvalidInput: rows name no users, two rows name one, or the engine fails. Of rows that cannot be
        used, too, where all report."""
        if self._users is None:
            raise InvalidInput(UNNUMBERED)
        if self._numbered:
            return
        rows = self._numberable
        names = told_apart(rows[USER], self._database.dialect).nunique()
        marks = {name: rows[name].sum() for name in self._marked}
        found = self._figures(rows, names=names, named=rows[USER].count(), **marks)
        if found["names"] != found["named"]:
            raise InvalidInput(SEVERAL)
        self._everybody = Seen(found["rows"], found.get(MARK))
        self._numbered = True

    @property
    def _numberable(self) -> Any:
        """The rows of rounds in which users have numbers: all that there are, with the column ``MARK`` where they are
        watched, or those that are kept."""
        if self._limit is not None:
            return self._kept.table
        rows = self._begun()
        return rows.mutate(**self._hashed(rows, self._marked))

    @property
    def _usable(self) -> Stage:
        """The rows that rounds read, with the column ``MARK`` where they are watched."""
        return self._kept if self._copy is None else attrs.evolve(self._named, table=self._copy)

    @property
    def _kept(self) -> Stage:
        """The same, chosen anew, with the names of their users."""
        named = self._named
        if self._limit is None:
            return named
        table = self._chosen(named.table)
        return attrs.evolve(named, table=table.filter(table[KEPT]).drop(KEPT))

    @property
    def _named(self) -> Stage:
        """All rows that can be used, with the names of their users."""
        rows = self._begun()
        stage = used(rows if self._users is None else rows.filter(rows[NAMED]), self._features, self._fence)
        table = stage.table.mutate(**self._hashed(stage.table, self._marked))
        return attrs.evolve(stage, table=table, steps=self._database.dialect.steps)

    def _begun(self) -> Any:
        """All rows as features, in their snapshot, of which those that are kept are chosen."""
        if self._rows is None:
            self._rows = self._database.begin(self._given)
            if self._database.copies and self._seen is not None:
                refuse_other(self._counted()[1], self._seen)
            if self._limit is not None:
                self._choose()
        return self._rows

    def _chosen(self, table: Any) -> Any:
        """Rows that can be used, with the column ``KEPT``."""
        assert self._limit is not None
        if not self._crowded:
            return all_kept(table)
        return chosen(table, self._features, *self._limit, self._database.dialect)

    def _choose(self) -> None:
        """The rows that are kept from here on, in a copy that rounds read if the engine makes one: all that count are
        in it, so that they are sorted once. All are kept, and none sorted, where no user has too many."""
        assert self._limit is not None
        self._copy, self._held, self._narrowed = None, None, None
        self._numbered, self._crowded, dialect = False, True, self._database.dialect
        if dialect.hashed is None:
            raise InvalidInput(f"{self._database.name} has no hash that is known here, and rows of users need one")
        rows, names = self._named.table, self._marked
        users = of_each(rows, names, dialect)
        seen = self._figures(
            users, used=users[ROWS].sum(), most=users[ROWS].max(), **{n: users[n].sum() for n in names}
        )
        self._recognise(seen["used"], seen.get(MARK, 0), self._known)
        self._crowded = seen["most"] > self._limit[0]
        table = self._chosen(rows).select(*self._features, *names, KEPT)
        copy = self._database.kept(table)
        table = table if copy is None else copy
        marks = {name: table[name].sum() for name in names}
        marks |= {f"{KEPT}_{name}": table[name].sum(where=table[KEPT]) for name in names}
        found = self._figures(table, **{KEPT: table[KEPT].sum()}, **marks)
        self._recognise(found["rows"], found.get(MARK, 0), self._known)
        self._narrowed = Seen(found[KEPT], found.get(f"{KEPT}_{MARK}"))
        if copy is not None:
            self._copy = copy.filter(copy[KEPT]).select(*self._features)

    @property
    def _fence(self) -> Fence:
        return self._database.dialect.fence

    @property
    def _marked(self) -> list[str]:
        """``MARK``, where hashes of rows are compared."""
        return [MARK] if self._database.watched and not (self._here or self._copy is not None) else []

    def _hashed(self, table: Any, names: Sequence[str] = (MARK,)) -> dict[str, Any]:
        """The column of rows' hashes, where the engine has any."""
        hashed = self._database.dialect.hashed
        cells = [table[name] for name in (*self._features, *([] if self._users is None else [USER]))]
        return {} if hashed is None else {name: hashed(cells) for name in names}

    def _figured(self) -> tuple[int, Seen]:
        """The same, by the engine."""
        rows = self._begun()
        whole, odd = usable(rows, self._features), {}
        if self._users is not None:
            whole, odd = whole & rows[NAMED], {ODD: rows[ODD].sum()}
        marks = {name: hashed.sum(where=whole) for name, hashed in self._hashed(rows).items()}
        found = self._figures(rows, used=whole.sum(), **marks, **odd)
        if found.get(ODD):
            raise InvalidInput(NO_NAME)
        return found["rows"], Seen(found["used"], found.get(MARK))

    def _figures(self, table: Any, **figures: Any) -> dict[str, int]:
        """Whole numbers that a table adds up to, and how many rows it has."""
        answer = self._database.answer(table.aggregate(rows=table.count(), **figures))
        return {name: int(answer[name][0].as_py() or 0) for name in answer.column_names}

    @property
    def _round_facts(self) -> Seen:
        """Facts of the rows that every round sees."""
        return self._known if self._narrowed is None else self._narrowed

    def _recognise(self, rows: int, mark: int, seen: Seen) -> None:
        """Raises: InvalidInput unless these are the rows that were seen before. Args: mark, the sum of their hashes."""
        refuse_other(Seen(rows, mark if self._marked or self._here else None), seen)
