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
        self._parquet = ParquetTable(_alike(self._files.paths, self.selection), Threads(threads).many or allowed())
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


def _alike(paths: Sequence[str], selection: Selection) -> list[tuple[list[str], dict[str, str | None]]]:
    """Absolute paths of files, those together that have the same columns of the same types, in any order; and how each
    column in use becomes a double: by ``cloister.sql.parquet``.

    Raises: InvalidInput: DuckDB would read some column otherwise than ``Files``.
    """
    import pyarrow.parquet

    found = dict[tuple[Any, ...], list[str]]()
    types = dict[str, set[str]]()
    for path in paths:
        columns = [(field.name, str(field.type)) for field in pyarrow.parquet.read_schema(path)]
        _refuse_misread(path, columns, selection.used)
        found.setdefault(tuple(sorted(columns)), []).append(os.path.abspath(path))
        for name, kind in columns:
            types.setdefault(name, set()).add(kind)
    mixed = [name for name in selection.used if len(types[name]) > 1]
    for name in mixed:
        if selection.category(name) is not None:
            raise InvalidInput(f"'{name}' is of different types in these files: {HELP}")
    return [
        (group, {name: _double(kinds[name]) if name in mixed else None for name in selection.used})
        for group, kinds in ((group, dict(columns)) for columns, group in found.items())
    ]


HELP = "engine 'duckdb' cannot read such a column as it is meant, leave --engine out"


def _refuse_misread(path: str, columns: Sequence[tuple[str, str]], used: Sequence[str]) -> None:
    """Args: columns, with their types."""
    names = [name.lower() for name, _ in columns]
    for name, kind in columns:
        if name in used and names.count(name.lower()) > 1:
            raise InvalidInput(
                f"'{path}' has another column than '{name}' whose name differs in capital letters alone: engine "
                f"'duckdb' cannot tell them apart, leave --engine out"
            )
        if name in used and kind.startswith("decimal256"):
            raise InvalidInput(f"'{name}' of '{path}' is of decimals of more than 38 digits: {HELP}")
        if name in used and not name:
            raise InvalidInput(f"'{path}' has a column without a name: {HELP}")


def _double(kind: str) -> str:
    """How a column of this type becomes a double."""
    if kind in ("halffloat", "float", "double"):
        return "float"
    return "decimal" if kind.startswith("decimal") else "other"
