"""Labels as a query or a view of the table that holds the rows: nothing leaves the database. NOT private."""

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
        result: whose centres.
        table: its name.
        address: of the database; None: nothing is connected to, and cells are what the engine casts them to.
        dialect: Ibis' name of the engine, where there is no address.
        columns: what the result's columns are called there, in its order; None: as in the result.
        kept: columns that stand beside the label; None: all, or without an address those that are compared.
    """

    result: Result
    table: str
    address: str | None = None
    dialect: str | None = None
    columns: list[str] | None = None
    kept: list[str] | None = None

    def query(self, name: str | None = None) -> str:
        """The query, or what creates a view of this name. Raises: CloisterError."""
        from cloister.rows.databases.labels import statement

        with self._backend() as backend:
            return statement(backend, self._labelled(backend), name)

    def create(self, name: str) -> None:
        """Create a view in the database. Raises: CloisterError: it was not created."""
        from cloister.rows.databases.connecting import executed
        from cloister.rows.databases.labels import statement

        with self._backend(writable=True) as backend:
            executed(backend, statement(backend, self._labelled(backend), name), f"the view '{name}' was not created")

    @contextmanager
    def _backend(self, writable: bool = False) -> Iterator[Any]:
        try:
            from cloister.rows.databases import connecting, labels
        except ImportError as error:
            raise MissingExtra("ibis", "sql", "labels in SQL") from error
        if self.address is None:
            yield labels.unconnected(self.dialect or "duckdb")
            return
        backend = connecting.connected(self.address, writable=writable)
        try:
            yield backend
        finally:
            backend.disconnect()

    def _labelled(self, backend: Any) -> Any:
        """An expression of Ibis."""
        from cloister.rows.databases import connecting, labels
        from cloister.rows.databases.database import dialect_of
        from cloister.rows.databases.features import table_columns as columns_of

        categories = self.result.problem.get("categories", {})
        own = table_columns(self.result.columns, categories)
        wanted = self.columns or own
        if self.address is None:
            texts = [*categories, *(name for name in self.kept or () if name not in wanted)]
            table = labels.unseen({name: name in texts for name in dict.fromkeys([*wanted, *texts])}, self.table)
        else:
            table = connecting.table_of(backend, self.table, connecting.shown(self.address))
        reading = Reading(columns=wanted, categories=categories)
        used = select(columns_of(table), reading).used
        chosen = select(columns_of(table), attrs.evolve(reading, columns=in_order(used, own)))
        check_columns(self.result, chosen.features)
        labelling = Labelling.of(self.result.centers, self.result.units)
        return labels.labelled(table, chosen, labelling, dialect_of(backend), self.kept)


def refuse_with(given: dict[str, Any], why: str) -> None:
    """Raises: InvalidInput: an option was given that does not go with another. Args: given (by flag)."""
    if names := [name for name, value in given.items() if value]:
        raise InvalidInput(f"{why}: leave out {', '.join(names)}")
