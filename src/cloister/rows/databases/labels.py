"""Labels of rows as a query, by the formula of ``rows.labelling`` that ``cloister predict`` uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any

import ibis
import sqlglot as sg

from cloister.core.errors import InvalidInput, UnknownName
from cloister.rows.databases.connecting import missing_driver
from cloister.rows.databases.database import dialect_of
from cloister.rows.databases.dialect import Dialect
from cloister.rows.databases.features import feature_table, usable
from cloister.rows.databases.stage import Expr, NotCompiled, Stage, clipped, integer, number, refuse_wide, total
from cloister.rows.labelling import LARGE, SMALL, Labelling
from cloister.rows.selection import Selection

LABEL = "cluster"
"""Name of the label column."""

UNUSED = -1
"""Label of a row with a missing or infinite cell."""


def label_table(
    table: Any, chosen: Selection, labelling: Labelling, dialect: Dialect, keep: Sequence[str] | None = None
) -> Any:
    """Return the rows of a table with the column ``cluster``, beside the columns to ``keep`` (None for all).

    Raises:
        InvalidInput: there is a column of that name already, or the query would be too long.
        UnknownName: a column to keep does not exist.
    """
    beside = list(table.columns) if keep is None else list(keep)
    for name in beside:
        if name not in table.columns:
            raise UnknownName("column", name, table.columns)
    if LABEL in beside:
        raise InvalidInput(f"the table has a column '{LABEL}': say which others to keep beside the label (--keep)")
    try:
        refuse_wide(labelling.slopes.size)
    except NotCompiled as error:
        raise InvalidInput(f"{error} for a view: label files of the rows instead (cloister predict)") from None
    rows, features = feature_table(table, chosen, dialect, {f"k{i}": table[name] for i, name in enumerate(beside)})
    stage, label = _nearest(Stage(rows, features, dialect.fence), labelling)
    label = ibis.ifelse(usable(stage.table, features), label, integer(UNUSED))
    return stage.table.select(*(stage[f"k{i}"].name(name) for i, name in enumerate(beside)), label.name(LABEL))


def _nearest(stage: Stage, labelling: Labelling) -> tuple[Stage, Expr]:
    """Return the index of the centre with the least score, the lowest on ties, computed as ``Labelling.scores``."""
    stage = stage.moved([_bounded(x) - number(m) for x, m in zip(stage.x, labelling.middle, strict=True)])
    stage, scores = stage.add(
        *(
            total([*(number(a) * y for a, y in zip(slopes, stage.x, strict=True)), number(offset)])
            for slopes, offset in zip(labelling.slopes, labelling.offsets, strict=True)
        )
    )
    if len(scores) == 1:
        return stage, integer(0)
    stage, (least_score,) = stage.add(ibis.least(*(stage[score] for score in scores)))
    first, *others = [(stage[score] == stage[least_score], integer(j)) for j, score in enumerate(scores)]
    return stage, ibis.cases(first, *others)


def _bounded(x: Expr) -> Expr:
    small = (x < number(SMALL)) & (x > number(-SMALL))
    return ibis.ifelse(small, number(0), clipped(x, -LARGE, LARGE))


def statement(backend: Any, expression: Any, view: str | None = None) -> str:
    """Return a query in the SQL of a backend, which need not be connected; or one that creates a view of it.

    The view is called NAME or SCHEMA.NAME.
    """
    query = dialect_of(backend).statement(backend, expression)
    return query if view is None else f"CREATE VIEW {quote_identifier(backend, view)} AS\n{query}"


def quote_identifier(backend: Any, name: str) -> str:
    """Quote a name as an identifier; raise InvalidInput if a part of it is empty."""
    parts = name.split(".")
    if not all(parts):
        raise InvalidInput(f"a view cannot be called '{name}': give NAME or SCHEMA.NAME")
    return ".".join(sg.to_identifier(part, quoted=True).sql(backend.dialect) for part in parts)


def offline_backend(name: str) -> Any:
    """Return Ibis' backend of this name, to write queries; raise UnknownName or InvalidInput if there is none."""
    backends = {entry.name: entry for entry in entry_points(group="ibis.backends")}
    if name not in backends:
        raise UnknownName("dialect", name, backends)
    try:
        getattr(ibis, name)  # registers its options
        return backends[name].load().Backend()
    except ImportError:
        raise missing_driver(name, "writing") from None


def declare_table(columns: Mapping[str, bool], name: str) -> Any:
    """Declare an Ibis table without connecting to it.

    Args:
        columns: whether each holds text, by name.
        name: NAME, SCHEMA.NAME or CATALOG.SCHEMA.NAME.
    """
    *places, last = name.split(".")
    if not all([*places, last]) or len(places) > 2:
        raise InvalidInput(f"a table cannot be called '{name}': give NAME, SCHEMA.NAME or CATALOG.SCHEMA.NAME")
    schema = {column: "string" if text else "int64" for column, text in columns.items()}  # so that numbers are cast
    catalog, database = [None, None, *places][-2:]
    return ibis.table(schema, name=last, catalog=catalog, database=database)
