"""Rows in Parquet files that DuckDB reads: each pass is a query."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self, final

from cloister.core.columns import Selection
from cloister.core.encoding import Progress
from cloister.core.errors import InvalidInput, MissingExtra
from cloister.core.lattice import CAP
from cloister.core.questions import Round
from cloister.core.randomness import NoiseRng
from cloister.core.registry.registry import registry
from cloister.core.threads import Threads, allowed
from cloister.core.types import Floats
from cloister.plugins.populations.listing import Path
from cloister.plugins.populations.reading import Missing, fit, refuse_too_many


@final
class QueriedFiles:
    """A curator's rows in Parquet files, whose passes are queries of a DuckDB in this process.

    What it promises, and what it says of bad files, is what ``Files`` promises and says, and its answers are the same
    integers. A round with a question that has no form in SQL is read by ``Files``; ``told`` is called with a line that
    says so. No rows of users: which of them are kept goes by their order in the files, and a query has none.

    Args:
        paths, columns, missing, progress, threads, categories, bounded: as of ``Files``.
        users: is refused.
        delimiter, encoding: as of ``Files``, which refuses them: they are for CSV files.
        told: called with what the rows' holder should know.

    Attributes: columns, selection, dimension: as of ``Files``.

    Raises:
        UnknownName, InvalidInput: as of ``Files``, or some file is not Parquet, or has columns whose names differ in
            capital letters alone, or a name that DuckDB cannot be told.
        MissingExtra: Ibis or DuckDB is not installed.
    """

    def __init__(
        self, paths: Path | Sequence[Path], columns: Sequence[str | int] | str | None = None,
        missing: Missing = "refuse", progress: Progress | None = None, threads: int | None = None,
        users: str | None = None, categories: Mapping[str, Any] | None = None, bounded: Sequence[str] | None = None,
        delimiter: str | None = None, encoding: str | None = None, told: Callable[[str], None] | None = None,
    ) -> None:  # fmt: skip
        if users is not None:
            raise InvalidInput(
                "engine 'duckdb' reads no rows of users (which of them count goes by their order): leave --engine out"
            )
        self._files = _component("files")(
            paths, columns, missing, progress=progress, threads=threads, categories=categories, bounded=bounded,
            delimiter=delimiter, encoding=encoding,
        )  # fmt: skip
        self._progress = progress
        self.selection: Selection = self._files.selection
        self.columns = self.selection.features
        other = next((path for path in self._files.paths if not path.lower().endswith(".parquet")), None)
        if other is not None:
            raise InvalidInput(f"'{other}': engine 'duckdb' reads Parquet files only: leave --engine out")
        try:
            from cloister.sql.parquet import ParquetTable
        except ImportError as error:
            raise MissingExtra("ibis", "sql", "engine 'duckdb'") from error
        kinds = {name: None if self.selection.category(name) else "DOUBLE" for name in self.selection.used}
        self._parquet = ParquetTable(_alike(self._files.paths, kinds), kinds, Threads(threads).many or allowed())
        self._table = _component("sql")(
            self._parquet.table, self.selection.used, missing, categories=self.selection.recorded(), guarded=True,
            told=told,
        )  # fmt: skip

    @property
    def dimension(self) -> int:
        return len(self.columns)

    @property
    def paths(self) -> list[str]:
        """The files, in order."""
        found: list[str] = self._files.paths
        return found

    def check(self, most_rows: int = CAP) -> None:
        """The validation pass, as that of ``Files``. Raises: InvalidInput."""
        with self._same_files():
            self._table.check(most_rows)

    @property
    def people(self) -> int:
        """How many rows can be used."""
        with self._same_files():
            found: int = self._table.people
            return found

    def marks(self, key: bytes) -> dict[str, bytes]:
        """Those of ``Files``: a run may go on with another engine."""
        found: dict[str, bytes] = self._files.marks(key)
        return found

    def table(self) -> Floats:
        """As of ``Files``. NOT private."""
        found: Floats = self._files.table()
        return found

    def chunks(self) -> Iterator[tuple[int, Floats]]:
        """As of ``Files``."""
        found: Iterator[tuple[int, Floats]] = self._files.chunks()
        return found

    def beside(self, kept: Sequence[str]) -> Iterator[tuple[Floats, list[Any]]]:
        """As of ``Files``."""
        found: Iterator[tuple[Floats, list[Any]]] = self._files.beside(kept)
        return found

    def gather(self, round: Round[Any], rng: NoiseRng) -> tuple[Any, ...]:
        """Raises: InvalidInput: as ``Files``, or DuckDB has not enough memory and room to spill."""
        fit(round.domain, self.columns)
        queries = self._table.compiled(round)
        if queries is None:
            found: tuple[Any, ...] = self._files.gather(round, rng)
            return found
        with self._same_files():
            summaries = self._table.answered(round, queries)
            if self._progress is not None:
                self._progress(self._files.rows)
        return tuple(summaries[i] for i in range(len(round.parts)))

    def close(self) -> None:
        """End DuckDB."""
        self._table.close()
        self._parquet.close()
        self._files.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _same_files(self) -> Iterator[None]:
        """What is read of files that stay what they are.

        Raises: InvalidInput: some file is not what it was, or cannot be read. DuckDB's message may quote it, so it goes
        no further: the files are read once more, to say which.
        """
        from cloister.sql.database import EngineFailed

        self._files.unchanged()
        try:
            yield
        except EngineFailed:
            self._table.close()
            self._files.unchanged()
            for start, rows in self._files.chunks():
                refuse_too_many(start + len(rows))
            raise
        self._files.unchanged()


def _component(name: str) -> Any:
    """Another population, which is not known here but by its name."""
    return registry().load(registry().spec("Population", name))


def _alike(paths: Sequence[str], used: Mapping[str, Any]) -> list[list[str]]:
    """Absolute paths of files, those together that have the same columns of the same types, in any order."""
    import pyarrow.parquet

    found = dict[tuple[Any, ...], list[str]]()
    for path in paths:
        columns = [(field.name, str(field.type)) for field in pyarrow.parquet.read_schema(path)]
        names = [name.lower() for name, _ in columns]
        twice = next((name for name in used if names.count(name.lower()) > 1), None)
        if twice is not None:
            raise InvalidInput(
                f"'{path}' has another column than '{twice}' whose name differs in capital letters alone: engine "
                f"'duckdb' cannot tell them apart, leave --engine out"
            )
        found.setdefault(tuple(sorted(columns)), []).append(os.path.abspath(path))
    return list(found.values())
