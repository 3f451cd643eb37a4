"""Population of rows in a database, whose engine makes the passes and returns exact totals."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from typing import Any, cast

import attrs

from cloister.core.capabilities import TakesTotals
from cloister.core.fingerprints import HOW_HASHED
from cloister.plugin import (
    CAP,
    Aggregated,
    Central,
    InvalidInput,
    NoiseRng,
    Round,
    chunk_rows,
    fingerprint_of,
    map_merge,
    merge_summaries,
)
from cloister.plugins.populations.sql_rows import SqlRows
from cloister.rows.columns import select
from cloister.rows.databases.database import Database, dialect_of
from cloister.rows.databases.features import table_columns, with_actual_types
from cloister.rows.databases.lattices import snap_rows
from cloister.rows.databases.questions import Compiled, Grouped
from cloister.rows.databases.stage import Described, NotCompiled
from cloister.rows.databases.users import USER
from cloister.rows.databases.watched import Batches, Pass, PassResult, RowFacts
from cloister.rows.keywords import Texts
from cloister.rows.options import Reading
from cloister.rows.reading import (
    Chunk,
    check_dimension,
    reading_fingerprints,
    refuse_before_keep,
    refuse_missing,
    refuse_too_many,
    refuse_unfit,
)
from cloister.rows.workers.threads import Threads

PASSES = "stream", "query", "workers"

HELD = 2**28
"""Bytes of rows that are kept in memory here, at most."""


class SqlTable(SqlRows):
    """Rows of a curator in a database that Ibis speaks to.

    Each round is a query for each of its bucketings, compiled from their descriptions: the engine puts rows on the
    lattice, locates them and adds them up, in the integers that other populations find, and exact totals of occupied
    buckets come back. What has no form in SQL, or one too long, is located here, over batches of rows that the engine
    streams; ``told`` is called with a line that says so.

    All rounds read the same rows: they are asked in one snapshot if the engine has any. Every round's own query also
    returns the number of rows and the sum of their hashes, which are compared with those of ``check``: that finds
    changes in spite of the snapshot (a view over files, say). An engine that can do neither is refused, unless rows
    are copied.

    **Numbers.** Under trust Local and Shuffled, and where users are shared out, a row is a person whose public number
    decides what she is asked. Rows here have no places, and a number by the order of their cells would move with every
    row that is replaced: so each row must name a user of its own, whose number follows from that name alone, or such a
    round is refused. Where all report (``core.encoding.everybody_reports``), so do the owners of rows that cannot be
    used, and of rows that name nobody: these are in no bucket, so that their numbers, one each, may be counted off.

    **Rows by stream.** Instead of its query a pass may be that of other populations, over rows that come in batches:
    the same integers. Then rows are watched by a hash made here, and kept once they were read, up to ``HELD``, so that
    later passes read nothing. The choice never depends on what rows hold: the caller makes it, or a trial of the
    engine over rows that it makes up (``Dialect.streams``). Or the engine's own Python workers make that pass, each
    over its part, which the engine keeps (``Dialect.spread``): exact summaries come back, watched by the same hash,
    and no rows. What users' numbers decide comes by stream.

    Args:
        table: of Ibis, or an expression that is one.
        reading: as of ``Files``. ``progress`` is called for rows of a stream as they come, else for all at once. With
            ``materialise`` the columns in use are first copied to a temporary table of the session, which all rounds
            read, and ``close`` drops: for rows without a snapshot, and for views that are slow (DuckDB reads its own
            tables of floats 1.5 times as fast as a copy, which is of doubles). ``passes`` is one of ``PASSES``; by
            default the engine's trial decides.
        owned: whether the connection is this object's, which ends it in ``close``.

    Raises:
        UnknownName: there is no such column.
        InvalidInput: a column cannot be used.
    """

    def __init__(self, table: Any, reading: Reading | None = None, owned: bool = False) -> None:
        reading = Reading() if reading is None else reading
        passes = reading.passes
        if passes not in (None, *PASSES):
            raise InvalidInput(f"pass is '{passes}': choose from {' | '.join(PASSES)}")
        if any(isinstance(column, Texts) for column in reading.described or ()):
            raise InvalidInput(
                "words are counted where rows are read by this process, and these are in a database: fetch them, as in "
                "table.to_pandas(), or save them as Parquet"
            )
        table = with_actual_types(table, dialect_of(table.get_backend()))
        chosen = select(table_columns(table), reading)
        database = Database(table, bool(reading.materialise), reading.user_column is not None)
        if passes == "workers" and database.dialect.spread is None:
            raise InvalidInput(f"pass is 'workers', and {database.name} has none for Python: choose stream or query")
        super().__init__(table, chosen, database, reading)
        self._owned, self._passes = owned, passes

    def check(self, most_rows: int = CAP) -> None:
        self._report(0)  # the engine does not tell how far it is: the bar moves until it is done
        rows, facts = self._count_rows()
        refuse_too_many(rows)
        if self.missing == "refuse" and facts.rows < rows:
            refuse_missing()
        refuse_unfit(facts.rows, most_rows)
        self._count, self._seen = rows, facts

    @property
    def _pass_kind(self) -> str:
        """The one of ``PASSES`` that is taken: found once."""
        if self._passes is None:
            self._snapshot()
            self._passes, why = self._database.fastest_pass(self.dimension)
            if why and self._told is not None:
                self._told(f"passes are by {self._passes} (--pass): {why}")
        return self._passes

    @property
    def _watched_here(self) -> bool:
        """Whether rows are counted and watched here: users are known to the engine alone."""
        return self._users is None and self._pass_kind != "query"

    def fingerprints(self, key: bytes) -> dict[str, bytes]:
        # of the engine: a run may go on by the other pass
        facts = self._engine_facts()[1] if self._watched_here else self._all_facts
        values = self._described | {"the number of rows": [facts.rows], "the rows": [facts.mark or 0], HOW_HASHED: [2]}
        read = reading_fingerprints(self.selection, self._reading)
        return {name: fingerprint_of(key, cells) for name, cells in values.items()} | read

    def gather(self, round: Round[Any], rng: NoiseRng) -> tuple[Any, ...]:
        """Return the summaries of a round, by queries where they have any, and otherwise by batches of rows.

        Raises:
            InvalidInput: the engine fails, the rows have changed, or users have no numbers.
        """
        if _in_numbers(round):
            self.number_by_name()
        else:
            refuse_before_keep(self.has_users and self._kept_facts is None)
        check_dimension(round.domain, self.columns)
        questions = _by_cells(round) if self._pass_kind == "query" else []
        compiled = [(numbers, self._compiled(round, numbers)) for numbers in questions]
        summaries = dict[int, Any]()
        for numbers, query in ((numbers, query) for numbers, query in compiled if query is not None):
            for i, levels in zip(numbers, query.totals(self._grouped(query)), strict=True):
                channel = cast(TakesTotals, round.parts[i].channel)
                summaries[i] = channel.totalled([(level.ids, level.values) for level in levels], self._round_facts.rows)
        uncompiled = [i for i in range(len(round.parts)) if i not in summaries]
        if uncompiled:
            summaries |= dict(zip(uncompiled, self._streamed(round, uncompiled, rng), strict=True))
        else:
            self._report(self._all_facts.rows)
        return tuple(summaries[i] for i in range(len(round.parts)))

    def chunks(self) -> Generator[Chunk]:
        """Yield rows as they come. Raises: InvalidInput: the engine fails, or the rows have changed."""
        if self._watched_here:
            return self._pass()
        rows = self._snapshot()
        table = rows.mutate(**self._hashed(rows, self._marked)) if self._copy is None else self._copy
        return self._read(table, self._round_facts)

    def close(self) -> None:
        """End the snapshot, drop the copy of the rows, and end the connection if it is this object's.

        The next round begins a new snapshot, of the same rows.
        """
        self._rows, self._copy, self._held = None, None, None
        try:
            self._database.close()
        finally:
            if self._owned:
                self._database.backend.disconnect()

    def _count_rows(self) -> tuple[int, RowFacts]:
        if not self._watched_here:
            return super()._count_rows()
        workers = self._pass_kind == "workers"
        rows = self._spread(None).rows if workers else sum(len(chunk.rows) for chunk in self._pass())
        assert self._seen is not None
        return rows, self._seen

    def _compiled(self, round: Round[Any], numbers: list[int]) -> Compiled | None:
        """Return the queries of questions about one bucketing; None where there are none."""
        parts = [round.parts[i] for i in numbers]
        if _in_numbers(round) or not all(isinstance(part.channel, TakesTotals) for part in parts):
            return None
        description = Described()
        try:
            rows = attrs.evolve(self._usable, terms=self._database.terms)
            return Compiled.of(snap_rows(rows, description.of(round.domain)), parts, description)
        except NotCompiled as error:
            if self._told is not None:
                self._told(f"{error}: rows are located in Python, a batch at a time")
            return None

    def _grouped(self, compiled: Compiled) -> list[Grouped]:
        queries = compiled.queries(next(iter(self._marked), None), self._database.dialect.sets)
        levels = compiled.grouped([self._database.answer(query) for query in queries])
        for level in levels:
            self._recognise(int(level.rows.sum()), int(level.marks.sum()), self._round_facts)
        return levels

    def _streamed(self, round: Round[Any], numbers: list[int], rng: NoiseRng) -> tuple[Any, ...]:
        """Return the summaries of these questions, of rows that come here in batches."""
        subround = attrs.evolve(round, parts=tuple(round.parts[i] for i in numbers))
        numbered = _in_numbers(round)
        if self._pass_kind == "workers" and not numbered:
            passed = self._spread(subround)
            self._report(passed.rows)
            return passed.summaries
        summary = self._reporting(lambda chunk: chunk.summary(subround, rng))
        with closing(self._read(self._numberable, self._everybody, True) if numbered else self._pass()) as chunks:
            return map_merge(chunks, summary, merge_summaries, Threads(1).run)

    def _pass(self) -> Generator[Chunk]:
        """Yield the rows of a round, where they are watched here also unusable ones. A stream's are kept."""
        if self._held is not None:
            yield from self._held
            return
        chunks, room = list[Chunk](), HELD if self._pass_kind == "stream" else -1
        for chunk in self._read(*self._watched):
            room -= chunk.rows.nbytes
            chunks = [*chunks, chunk] if room >= 0 else []
            yield chunk
        self._held = chunks if room >= 0 else None

    @property
    def _watched(self) -> tuple[Any, RowFacts | None]:
        """The rows of a pass that is no query, and the expected facts of the usable ones, if known."""
        return (self._snapshot(), self._seen) if self._watched_here else (self._usable.table, self._round_facts)

    def _read(self, table: Any, expected: RowFacts | None, numbered: bool = False) -> Generator[Chunk]:
        """Yield rows in batches; at least one, which may be empty.

        Args:
            table: the rows.
            expected: facts of the usable ones; None: not known yet.
            numbered: whether users have numbers; else all are 0.
        """
        reading = self._batches(numbered)
        batches, total = (
            self._database.batches(table.select(*reading.columns), chunk_rows(self.dimension)),
            RowFacts(0, 0),
        )
        for chunk, part in reading.chunks(batches):
            total = total.plus(part)
            yield chunk
        self._check_facts(total, expected)

    def _batches(self, numbered: bool = False) -> Batches:
        named = [USER] if self._users is not None and (numbered or self._copy is None) else []
        return Batches(list(self._features), self._marked, named, self._watched_here, numbered)

    def _check_facts(self, facts: RowFacts, expected: RowFacts | None) -> None:
        """Remember the facts of the rows of a pass, or compare them with those that are expected."""
        if expected is None:
            self._seen = facts
        else:
            self._recognise(facts.rows, facts.mark or 0, expected)

    def _spread(self, round: Round[Any] | None) -> PassResult:
        """Make one pass by the engine's workers, over the rows of a round, or all of them."""
        table, expected = self._watched
        reading = self._batches()
        passed = self._database.spread(table.select(*reading.columns), Pass(reading, round), PassResult.merge)
        self._check_facts(passed.facts, expected)
        return passed


def _in_numbers(round: Round[Any]) -> bool:
    """Return True if what a user is asked, or answers, follows from her number."""
    shared = any(part.user_share is not None for part in round.parts)
    return shared or round.trust not in (Central, Aggregated)


def _by_cells(round: Round[Any]) -> list[list[int]]:
    """Return the questions' numbers, those of one bucketing together."""
    numbers = dict[int, list[int]]()
    for i, part in enumerate(round.parts):
        numbers.setdefault(id(part.cells), []).append(i)
    return list(numbers.values())
