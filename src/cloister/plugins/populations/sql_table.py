"""Rows in a database: its engine does the pass, and exact totals come back."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from typing import Any, cast

import attrs

from cloister.core.capabilities import TakesTotals
from cloister.core.encoding import Progress, chunk_rows, map_merge, merge_summaries
from cloister.core.errors import InvalidInput
from cloister.core.lattice import CAP
from cloister.core.questions import Round
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.record import mark_of
from cloister.core.trust import Aggregated, Central
from cloister.rows.columns import select
from cloister.rows.databases.database import Database
from cloister.rows.databases.features import featured, table_columns, table_name, usable, used
from cloister.rows.databases.lattices import snapped
from cloister.rows.databases.questions import Compiled, Grouped
from cloister.rows.databases.stage import Described, Fence, NotCompiled, Stage
from cloister.rows.databases.users import KEPT, ODD, SEVERAL, UNNUMBERED, USER, chosen, named, told_apart
from cloister.rows.databases.watched import Batches, Pass, Passed, Seen, refuse_other
from cloister.rows.reading import (
    Chunk,
    Missing,
    TableRows,
    fit,
    marks_of_reading,
    refuse_all,
    refuse_missing,
    refuse_too_many,
    refuse_unfit,
)
from cloister.rows.users import NO_NAME
from cloister.rows.words import Texts
from cloister.rows.workers.machine import Threads

MARK = "mark"
"""The column of rows' hashes."""

PASSES = "stream", "query", "workers"

HELD = 2**28
"""Bytes of rows that are held here, at most."""


class SqlTable(TableRows):
    """A curator's rows in a database that Ibis speaks to.

    Each round is a query for each of its bucketings, compiled from their descriptions: rows are put on the lattice,
    located and added up by the engine, in the integers that other populations find, and exact totals of occupied
    buckets come back. What has no form in SQL, or one too long, is located here, over batches of rows that the engine
    streams; ``told`` is called with a line that says so.

    All rounds are of the same rows: they are asked in one snapshot if the engine has any, and how many rows there are,
    and the sum of their hashes, are compared with what ``check`` saw in every round's own query, which finds what
    changed all the same (a view over files, say). An engine that can do neither is refused, unless rows are copied.

    **Numbers.** Under trust Local and Shuffled, and where users are shared out, a row is a person whose public number
    decides what she is asked. Rows here have no places, and a number by the order of their cells would move with every
    row that is replaced: so each row must name a user of its own, whose number follows from that name alone, or such a
    round is refused.

    **Rows by stream.** Instead of its query a pass may be the one of other populations, over rows that come in batches:
    the same integers. Then rows are watched by a hash made here, and held once they were read, up to ``HELD``, so that
    other passes read nothing. Which of the two it is never depends on what rows hold: the caller says it, or a trial of
    the engine over rows that it makes up (``Dialect.streams``). Or the engine's own Python workers make that pass, each
    over its part, which the engine holds (``Dialect.spread``): exact summaries come back, watched by the same hash, and
    no rows. What users' numbers decide comes by stream.

    Args:
        table: of Ibis, or an expression that is one.
        columns, missing, categories, bounded, described: as of ``Files``.
        progress: told how many rows of a round are done: of a stream as they come, else all at once.
        materialise: whether the columns in use are first copied to a temporary table of the session, which all rounds
            read, and ``close`` drops. It is for rows without a snapshot, and for views that are slow: DuckDB reads its
            own tables of floats 1.5 times as fast as a copy, which is of doubles.
        passes: one of ``PASSES``; by default as the engine's trial ends.
        told: called with what its holder should know.
        owned: whether the connection is this object's, which ends it in ``close``.

    Attributes: as of ``TableRows``.

    Raises: UnknownName, InvalidInput: there is no such column, or it cannot be used.
    """

    def __init__(
        self,
        table: Any,
        columns: Sequence[str | int] | str | None = None,
        missing: Missing = "refuse",
        progress: Progress | None = None,
        users: str | None = None,
        categories: Mapping[str, Any] | None = None,
        bounded: Sequence[str] | None = None,
        described: Sequence[str | Texts] | None = None,
        threads: int | None = None,
        told: Callable[[str], None] | None = None,
        materialise: bool = False,
        passes: str | None = None,
        owned: bool = False,
    ) -> None:
        if passes not in (None, *PASSES):
            raise InvalidInput(f"pass is '{passes}': choose from {' | '.join(PASSES)}")
        chosen = select(table_columns(table), columns, categories, bounded, users, described=described)
        if chosen.texts:
            raise InvalidInput(
                "words are counted where rows are read by this process, and these are in a database: fetch them, as in "
                "table.to_pandas(), or save them as Parquet"
            )
        super().__init__(chosen, missing, users, progress)
        self._told, self._owned, self._passes = told, owned, passes
        self._database = Database(table, materialise, users is not None)
        dialect = self._database.dialect
        if passes == "workers" and dialect.spread is None:
            raise InvalidInput(
                f"pass is 'workers', and {self._database.name} has none for Python: choose stream or query"
            )
        naming = {} if users is None else named(table[users], dialect)
        if naming is None:
            raise InvalidInput(NO_NAME)
        self._given, self._features = featured(table, self.selection, dialect, naming)
        self._rows: Any = None
        self._held: list[Chunk] | None = None
        self._limit: tuple[int, bytes] | None = None
        self._numbered = self._settled = False
        self._seen: Seen | None = None
        self._narrowed: Seen | None = None
        self._described = {"the engine": [self._database.name], "the table": [table_name(table)]} | {
            "the columns, or their types": [
                f"{name} {table.schema()[name]}" for name in (*self.selection.used, *([users] if users else []))
            ]
        }

    def check(self, most_rows: int = CAP) -> None:
        """The validation pass, for the data holder's eyes: rows outside the bounds are fine.

        Raises: InvalidInput: the engine fails, there are no rows, too many, or missing or infinite cells that were not
            to be dropped.
        """
        self._tell(0)  # the engine does not tell how far it is: the bar moves until it is done
        rows, found = self._counted()
        refuse_too_many(rows)
        if self._missing == "refuse" and found.rows < rows:
            refuse_missing()
        refuse_unfit(found.rows, most_rows)
        self._seen = found

    @property
    def _way(self) -> str:
        """The one of ``PASSES`` that is taken: found out once."""
        if self._passes is None:
            self._begun()
            self._passes, why = self._database.quickest(self.dimension)
            if why and self._told is not None:
                self._told(f"passes are by {self._passes} (--pass): {why}")
        return self._passes

    @property
    def _here(self) -> bool:
        """Whether rows are counted and watched here: users are known to the engine alone."""
        return self._users is None and self._way != "query"

    @property
    def people(self) -> int:
        """How many rows can be used."""
        return self._known.rows

    @property
    def _known(self) -> Seen:
        """Facts of all rows that can be used."""
        if self._seen is None:
            self._seen = self._counted()[1]
        return self._seen

    def marks(self, key: bytes) -> dict[str, bytes]:
        """By which a run that goes on knows these rows again: ``core.record``."""
        known = self._figured()[1] if self._here else self._known  # of the engine: a run may go on by the other pass
        values = self._described | {"the number of rows": [known.rows], "the rows": [known.mark or 0]}
        read = marks_of_reading(self.selection, self._missing, self._users)
        return {name: mark_of(key, some) for name, some in values.items()} | read

    def keep(self, most: int, rng: PublicRng) -> None:
        """Read at most so many rows of each user from now on: ``rows.databases.users`` chooses them, once if the engine
        can keep a copy, in every round anew if it cannot.

        Raises: InvalidInput: the engine fails, it has no hash, or the rows are not what they were.
        """
        _, rows, self._limit = self._known, self._begun(), (most, rng.key)
        self._choose(rows)
        if not self._settled and self._told is not None:
            self._told("every round chooses the rows of users anew, since no temporary table could be made for them")

    def number_by_name(self) -> None:
        """Raises: InvalidInput: rows name no users, two rows name one, or the engine fails."""
        if self._users is None:
            raise InvalidInput(UNNUMBERED)
        if self._numbered:
            return
        rows = self._usable.table
        found = self._figures(rows, names=told_apart(rows[USER], self._database.dialect).nunique())
        if found["names"] != found["rows"]:
            raise InvalidInput(SEVERAL)
        self._numbered = True

    def gather(self, round: Round[Any], rng: NoiseRng) -> tuple[Any, ...]:
        """Raises: InvalidInput: the engine fails, the rows are not what they were, or users have no numbers."""
        if _in_numbers(round):
            self.number_by_name()
        else:
            refuse_all(self.has_users and self._narrowed is None)
        fit(round.domain, self.columns)
        questions = _by_cells(round) if self._way == "query" else []
        found = [(numbers, self._compiled(round, numbers)) for numbers in questions]
        summaries = dict[int, Any]()
        for numbers, query in ((numbers, query) for numbers, query in found if query is not None):
            for i, levels in zip(numbers, query.totals(self._grouped(query)), strict=True):
                channel = cast(TakesTotals, round.parts[i].channel)
                summaries[i] = channel.totalled([(level.ids, level.values) for level in levels], self._reading.rows)
        left = [i for i in range(len(round.parts)) if i not in summaries]
        if left:
            summaries |= dict(zip(left, self._streamed(round, left, rng), strict=True))
        else:
            self._tell(self.people)
        return tuple(summaries[i] for i in range(len(round.parts)))

    def chunks(self) -> Generator[Chunk]:
        """Rows as they come. Raises: InvalidInput: the engine fails, or the rows are not what they were."""
        if self._here:
            return self._pass()
        rows = self._begun()
        return self._read(rows.mutate(**self._hashed(rows, self._marked)), self._reading)

    def close(self) -> None:
        """End the snapshot, or drop the copy of the rows, and end the connection if it is this object's; the next round
        of another's begins a new one, of the same rows."""
        self._rows, self._held, self._settled = None, None, False
        try:
            self._database.close()
        finally:
            if self._owned:
                self._database.backend.disconnect()

    @property
    def _usable(self) -> Stage:
        """The rows that rounds read, with the column ``MARK`` where they are watched."""
        rows = self._begun()
        limited = self._limit is not None and not self._settled
        return attrs.evolve(self._counting(rows), table=self._kept(rows)) if limited else self._counting(rows)

    def _begun(self) -> Any:
        """All rows as features, in their snapshot; or a copy, of those that are kept if some are not."""
        if self._rows is None:
            self._rows = self._database.begin(self._given)
            if self._database.copies and self._seen is not None:
                refuse_other(self._counted()[1], self._seen)
            if self._limit is not None:
                self._choose(self._rows)
        return self._rows

    def _counting(self, rows: Any) -> Stage:
        """Those rows that can be used."""
        stage = used(rows if self._users is None else rows.filter(rows[USER].notnull()), self._features, self._fence)
        table = stage.table.mutate(**self._hashed(stage.table, self._marked))
        return attrs.evolve(stage, table=table, steps=self._database.dialect.steps)

    def _chosen(self, rows: Any) -> Any:
        """Those that can be used, with the column ``KEPT``."""
        assert self._limit is not None
        if self._database.dialect.hashed is None:
            raise InvalidInput(f"{self._database.name} has no hash that is known here, and rows of users need one")
        return chosen(self._counting(rows).table, self._features, *self._limit, self._database.dialect)

    def _choose(self, rows: Any) -> None:
        """The rows that are kept from here on, in a copy that rounds read if the engine makes one: all that count are
        in it, so that they are sorted once."""
        table, names = self._chosen(rows), self._marked
        copy = self._database.kept(table)
        table = table if copy is None else copy
        marks = {name: table[name].sum() for name in names}
        marks |= {f"{KEPT}_{name}": table[name].sum(where=table[KEPT]) for name in names}
        found = self._figures(table, **{KEPT: table[KEPT].sum()}, **marks)
        self._recognise(found["rows"], found.get(MARK, 0), self._known)
        self._narrowed = Seen(found[KEPT], found.get(f"{KEPT}_{MARK}"))
        if copy is not None:
            self._rows, self._settled = copy.filter(copy[KEPT]).drop(KEPT, *names), True

    def _kept(self, rows: Any) -> Any:
        table = self._chosen(rows)
        return table.filter(table[KEPT]).drop(KEPT)

    @property
    def _fence(self) -> Fence:
        return self._database.dialect.fence

    @property
    def _marked(self) -> list[str]:
        """``MARK``, where hashes of rows are compared."""
        return [MARK] if self._database.watched and not (self._here or self._settled) else []

    def _hashed(self, table: Any, names: Sequence[str] = (MARK,)) -> dict[str, Any]:
        """The column of rows' hashes, where the engine has any."""
        hashed = self._database.dialect.hashed
        cells = [table[name] for name in (*self._features, *([] if self._users is None else [USER]))]
        return {} if hashed is None else {name: hashed(cells) for name in names}

    def _counted(self) -> tuple[int, Seen]:
        """How many rows there are, and what is seen of those that can be used."""
        if not self._here:
            return self._figured()
        workers = self._way == "workers"
        rows = self._spread(None).rows if workers else sum(len(chunk.rows) for chunk in self._pass())
        assert self._seen is not None
        return rows, self._seen

    def _figured(self) -> tuple[int, Seen]:
        """The same by the engine."""
        rows = self._begun()
        whole, odd = usable(rows, self._features), {}
        if self._users is not None:
            whole, odd = whole & rows[USER].notnull(), {ODD: rows[ODD].sum()}
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
    def _reading(self) -> Seen:
        """Facts of the rows that every round sees."""
        return self._known if self._narrowed is None else self._narrowed

    def _recognise(self, rows: int, mark: int, seen: Seen) -> None:
        """Raises: InvalidInput unless these are the rows that were seen before. Args: mark, the sum of their hashes."""
        refuse_other(Seen(rows, mark if self._marked or self._here else None), seen)

    def _compiled(self, round: Round[Any], numbers: list[int]) -> Compiled | None:
        """The queries of questions about one bucketing; None where there are none."""
        parts = [round.parts[i] for i in numbers]
        if _in_numbers(round) or not all(isinstance(part.channel, TakesTotals) for part in parts):
            return None
        known = Described()
        try:
            rows = attrs.evolve(self._usable, terms=self._database.terms)
            return Compiled.of(snapped(rows, known.of(round.domain)), parts, known)
        except NotCompiled as error:
            if self._told is not None:
                self._told(f"{error}: rows are located in Python, a batch at a time")
            return None

    def _grouped(self, compiled: Compiled) -> list[Grouped]:
        queries = compiled.queries(next(iter(self._marked), None), self._database.dialect.sets)
        found = compiled.grouped([self._database.answer(query) for query in queries])
        for each in found:
            self._recognise(int(each.rows.sum()), int(each.marks.sum()), self._reading)
        return found

    def _streamed(self, round: Round[Any], numbers: list[int], rng: NoiseRng) -> tuple[Any, ...]:
        """The summaries of these questions, of rows that come here in batches."""
        some = attrs.evolve(round, parts=tuple(round.parts[i] for i in numbers))
        numbered = _in_numbers(round)
        if self._way == "workers" and not numbered:
            found = self._spread(some)
            self._tell(found.rows)
            return found.summaries
        summary = self._telling(lambda chunk: chunk.summary(some, rng))
        with closing(self._read(self._usable.table, self._reading, True) if numbered else self._pass()) as chunks:
            return map_merge(chunks, summary, merge_summaries, Threads(1).run)

    def _pass(self) -> Generator[Chunk]:
        """The rows of a round, and where they are watched here those that cannot be used; a stream's are held."""
        if self._held is not None:
            yield from self._held
            return
        held, room = list[Chunk](), HELD if self._way == "stream" else -1
        for chunk in self._read(*self._watched):
            room -= chunk.rows.nbytes
            held = [*held, chunk] if room >= 0 else []
            yield chunk
        self._held = held if room >= 0 else None

    @property
    def _watched(self) -> tuple[Any, Seen | None]:
        """The rows of a pass that is no query, and what those of them are that can be used, if that is known."""
        return (self._begun(), self._seen) if self._here else (self._usable.table, self._reading)

    def _read(self, table: Any, seen: Seen | None, numbered: bool = False) -> Generator[Chunk]:
        """Rows in batches; at least one, which may be empty.

        Args: seen (what those of them are that can be used; None: that is not known yet), numbered (whether users have
            numbers; else all are 0).
        """
        reading = self._batches(numbered)
        batches, total = self._database.batches(table.select(*reading.columns), chunk_rows(self.dimension)), Seen(0, 0)
        for chunk, part in reading.chunks(batches):
            total = total.plus(part)
            yield chunk
        self._witness(total, seen)

    def _batches(self, numbered: bool = False) -> Batches:
        named = [] if self._users is None else [USER]
        return Batches(list(self._features), self._marked, named, self._here, numbered)

    def _witness(self, found: Seen, seen: Seen | None) -> None:
        """Facts of the rows of a pass, which are remembered or compared with those that were seen before."""
        if seen is None:
            self._seen = found
        else:
            self._recognise(found.rows, found.mark or 0, seen)

    def _spread(self, round: Round[Any] | None) -> Passed:
        """One pass by the engine's workers, over the rows of a round, or all of them."""
        table, seen = self._watched
        reading = self._batches()
        found = self._database.spread(table.select(*reading.columns), Pass(reading, round), Passed.merge)
        self._witness(found.seen, seen)
        return found


def _in_numbers(round: Round[Any]) -> bool:
    """Whether what a user is asked, or answers, follows from her number."""
    shared = any(part.user_share is not None for part in round.parts)
    return shared or round.trust not in (Central, Aggregated)


def _by_cells(round: Round[Any]) -> list[list[int]]:
    """The questions' numbers, those of one bucketing together."""
    found = dict[int, list[int]]()
    for i, part in enumerate(round.parts):
        found.setdefault(id(part.cells), []).append(i)
    return list(found.values())
