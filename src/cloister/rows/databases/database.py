"""A connected engine, which answers queries within one snapshot, and its failures without the driver's message."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import reduce
from typing import Any, TypeVar, final

from cloister.core.errors import CloisterError, InvalidInput
from cloister.rows.databases.dialect import Dialect, End
from cloister.rows.databases.duckdb import DUCKDB
from cloister.rows.databases.features import table_names
from cloister.rows.databases.postgres import POSTGRES
from cloister.rows.databases.probe import check_engine
from cloister.rows.databases.spark import SPARK
from cloister.rows.databases.watched import Batches, Pass, PassResult
from cloister.rows.workers.batches import unpickled
from cloister.rows.workers.work import packed

V = TypeVar("V")

DIALECTS = {"duckdb": DUCKDB, "postgres": POSTGRES, "pyspark": SPARK}
"""Supported engines by the name of Ibis' backend."""


def dialect_of(backend: Any) -> Dialect:
    return DIALECTS.get(backend.name, Dialect())


ANSWER = 2**16
"""Rows per fetch."""


class EngineFailed(InvalidInput):
    """The database engine failed to answer a query."""


@final
class Database:
    """Engine that holds an Ibis table.

    Args:
        table: of Ibis.
        materialise: whether queries run on a copy of the rows, a temporary table.
        keeps: whether ``kept`` will create a temporary table within the snapshot.

    Attributes:
        name: Ibis' name of the engine.
        copies: as ``materialise``.
        watched: whether rows may change during a run, so that their hashes are compared in every round.
    """

    def __init__(self, table: Any, materialise: bool = False, keeps: bool = False) -> None:
        self.backend = table.get_backend()
        self.dialect = dialect_of(self.backend)
        self.name = str(self.backend.name)
        self.watched = self.dialect.hashed is not None and not materialise
        self.copies, self._keeps = materialise, keeps
        self._names, self._tried = table_names(table), False
        self._ends = list[End]()
        self._spread: tuple[Any, Callable[[bytes], Sequence[bytes]], End] | None = None

    def begin(self, rows: Any) -> Any:
        """Start a snapshot, or copy the rows; return the table that all further queries use.

        Raises:
            InvalidInput: the engine's arithmetic is inexact, or rows could change unnoticed.
        """
        if not self._tried:
            self._try()
            self._tried = True
        if self.copies:
            return self._copied(rows)
        end = self._call(lambda: self.dialect.begin(self.backend, self._keeps))
        if end is not None:
            self._ends.append(end)
        elif self.dialect.hashed is None:
            raise InvalidInput(
                f"cloister knows no snapshot or row hash of {self.name}, so changes of the rows between rounds would "
                f"go unnoticed: copy the rows with --materialise (materialise=True)"
            )
        return rows

    def kept(self, rows: Any) -> Any | None:
        """Copy rows of the snapshot to a table that is dropped with it; return None if the engine cannot."""
        try:
            table, drop = self.dialect.materialise(self.backend, rows)
        except Exception as error:  # a driver's message may quote a row
            _interrupted(error)
            return None

        def ended() -> None:
            with suppress(Exception):  # otherwise dropped with the snapshot or connection
                drop()

        self._ends.append(ended)
        return table

    @property
    def terms(self) -> int:
        """Maximum number of products per row in one query (``Dialect.terms``)."""
        return int(self._call(lambda: self.dialect.terms(self.backend)))

    def quickest(self, columns: int) -> tuple[str, str]:
        """Return the fastest way to pass over so many columns ('workers', 'stream' or 'query'), and a reason to show.

        Workers are used if they have this version of cloister, which is tried on one constant row; otherwise
        ``Dialect.streams`` decides. Raises as ``answer``.
        """
        if self.dialect.spread is None:
            quick, why = self._call(lambda: self.dialect.streams(self.backend, columns))
            return ("stream" if quick else "query"), str(why)
        row = self.backend.sql("SELECT CAST(1 AS DOUBLE) AS x", schema={"x": "float64"})
        try:
            self.spread(row, Pass(Batches(["x"], [], [], True)), PassResult.merge)
        except InvalidInput as error:
            return "query", f"{self.name} has no workers with this cloister: {error}"
        return "workers", f"workers of {self.name} run this version of cloister"

    def spread(self, expression: Any, work: Callable[[Any], V], merge: Callable[[V, V], V]) -> V:
        """Merge the values that the engine's workers compute of parts of the rows (``Dialect.spread``).

        Workers cache the rows until other rows are requested, or ``close``.

        Raises:
            EngineFailed: as ``answer``.
            InvalidInput: a worker failed, or there is none.
        """
        packet, spread = packed(work), self.dialect.spread
        assert spread is not None
        if self._spread is None or not self._spread[0].equals(expression):
            self._let_go()
            self._spread = (expression, *self._call(lambda: spread(expression)))
        run = self._spread[1]
        return reduce(merge, unpickled(self._call(lambda: run(packet))), work([]))

    def _let_go(self) -> None:
        if self._spread is not None:
            with suppress(Exception):  # otherwise freed with the session
                self._spread[2]()
        self._spread = None

    def answer(self, expression: Any) -> Any:
        """Return the answer to a query as an Arrow table; raise EngineFailed if there is none."""
        fetch = self.dialect.answer or (lambda query: self.dialect.stream(query, ANSWER).read_all())
        return self._call(lambda: fetch(expression))

    def batches(self, expression: Any, size: int) -> Iterator[Any]:
        """Yield the answer as Arrow batches of at most ``size`` rows; raises as ``answer``."""
        batches = self._call(lambda: iter(self.dialect.stream(expression, size)))
        while (batch := self._call(lambda: next(batches, None))) is not None:
            yield batch

    def close(self) -> None:
        """End the snapshot, or drop the copy; the connection stays open for its owner."""
        self._let_go()
        while self._ends:
            self._call(self._ends.pop())

    def _try(self) -> None:
        try:
            check_engine(self.name, self.dialect, self.backend, self.answer)
        except EngineFailed:
            if self.name in DIALECTS:  # a supported engine can answer: the connection was lost
                raise
            raise InvalidInput(
                f"{self.name} cannot be used: it does not answer the queries that test its arithmetic; export the rows "
                f"to Parquet, and fit the files"
            ) from None

    def _copied(self, rows: Any) -> Any:
        try:
            table, drop = self.dialect.materialise(self.backend, rows)
        except Exception as error:  # a driver's message may quote a row
            _interrupted(error)
            raise EngineFailed(
                f"{self.name} could not copy the rows to a temporary table ({type(error).__name__}): --materialise "
                f"needs the permission to create one, and disk space"
            ) from None
        self._ends.append(drop)
        return table

    def _call(self, action: Any) -> Any:
        try:
            return action()
        except CloisterError:
            raise
        except Exception as error:  # a driver's message may quote a row
            _interrupted(error)
            why, raised = self.dialect.why(error), self._raised() if self.dialect.computed(error) else ""
            raise EngineFailed(
                f"{self.name} could not answer ({why or type(error).__name__}): nothing was answered, and no part of "
                f"an answer is kept{raised}"
            ) from None

    def _raised(self) -> str:
        """Return a hint that a view's computed cells are at fault, once the engine's arithmetic has been checked."""
        if not self._tried or not self._names:
            return ""
        names = " or ".join(f"'{name}'" for name in self._names)
        return f"; it was raised in {names}, where a view computes its cells, or in what that reads: {self.dialect.log}"


def _interrupted(error: Exception) -> None:
    """Raise KeyboardInterrupt if a driver's error stands for it, as DuckDB's does after Ctrl-C."""
    if type(error) is RuntimeError and str(error) == "Query interrupted":
        raise KeyboardInterrupt from None
