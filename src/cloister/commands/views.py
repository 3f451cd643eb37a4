"""Labels as a query or a view in the database of the rows, which nothing leaves. NOT private."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, final

import attrs

from cloister.commands.predicting import check_columns
from cloister.core.errors import InvalidInput, MissingExtra
from cloister.rows.columns import select
from cloister.rows.labelling import Labelling
from cloister.rows.options import Reading
from cloister.rows.selection import in_order, table_columns
from cloister.run.result import Result


@final
@attrs.frozen
class LabelView:
    """Query that gives each row of a table its label.

    Args:
        result: the result.
        table: name of the table.
        address: of the database; None: connect to none, and write what the engine casts cells to.
        dialect: Ibis' name of the engine, without an address.
        columns: names of the result's columns in the table, in its order; None: the result's own.
        copied: columns beside the label; None: all, or without an address the compared ones.
    """

    result: Result
    table: str
    address: str | None = None
    dialect: str | None = None
    columns: list[str] | None = None
    copied: list[str] | None = None

    def query(self, name: str | None = None) -> str:
        """Return the query, or the statement that creates a view of this name. Raises: CloisterError."""
        from cloister.rows.databases.labels import statement

        with self._backend() as backend:
            return statement(backend, self._labelled(backend), name)

    def create(self, name: str) -> None:
        """Create a view in the database. Raises: CloisterError: it was not created."""
        from cloister.rows.databases.connecting import execute
        from cloister.rows.databases.labels import statement

        with self._backend(writable=True) as backend:
            execute(backend, statement(backend, self._labelled(backend), name), f"the view '{name}' was not created")

    @contextmanager
    def _backend(self, writable: bool = False) -> Iterator[Any]:
        try:
            from cloister.rows.databases import connecting, labels
        except ImportError as error:
            raise MissingExtra("ibis", "sql", "labels in SQL") from error
        if self.address is None:
            yield labels.offline_backend(self.dialect or "duckdb")
            return
        backend = connecting.connect(self.address, writable=writable)
        try:
            yield backend
        finally:
            backend.disconnect()

    def _labelled(self, backend: Any) -> Any:
        """Return the query as an expression of Ibis."""
        from cloister.rows.databases import connecting, labels
        from cloister.rows.databases.database import dialect_of
        from cloister.rows.databases.features import table_columns as columns_of

        categories = self.result.problem.get("categories", {})
        own_columns = table_columns(self.result.columns, categories)
        columns = self.columns or own_columns
        if self.address is None:
            texts = [*categories, *(name for name in self.copied or () if name not in columns)]
            table = labels.declare_table(
                {name: name in texts for name in dict.fromkeys([*columns, *texts])}, self.table
            )
        else:
            table = connecting.table_of(backend, self.table, connecting.shown(self.address))
        reading = Reading(columns=columns, categories=categories)
        used = select(columns_of(table), reading).used
        chosen = select(columns_of(table), attrs.evolve(reading, columns=in_order(used, own_columns)))
        check_columns(self.result, chosen.features)
        labelling = Labelling.of(self.result.centers, self.result.units)
        return labels.label_table(table, chosen, labelling, dialect_of(backend), self.copied)


def refuse_with(values: dict[str, Any], why: str) -> None:
    """Raise InvalidInput if an option is given that does not go with another. Args: values (by flag), why."""
    if names := [name for name, value in values.items() if value]:
        raise InvalidInput(f"{why}: leave out {', '.join(names)}")
