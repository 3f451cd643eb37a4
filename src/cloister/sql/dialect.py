"""What engines differ in, beyond the text that Ibis writes for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import attrs
import ibis.expr.datatypes as dt

from cloister.sql.arithmetic import Expr
from cloister.sql.stage import Fence


def _nothing(backend: Any) -> None:
    """What does not have to be done."""


def as_text(column: Expr) -> Expr:
    """A column cast to text, also one of which Ibis says that it is text: it may be an enumeration."""
    return column.cast(dt.String(nullable=False))


@final
@attrs.frozen(eq=False)
class Dialect:
    """One engine. The members of an engine that nobody has tried are the defaults.

    Args:
        begin, end: of a snapshot, through Ibis' backend; ``begin`` says whether there is one.
        double: numbers, booleans or their texts as doubles, correctly rounded; NULL for what no double holds.
        text: a column's text, whose equality is that of its characters, whatever the column's collation.
        fence: keeps a step a step where an engine would write a computed column out wherever it is used.
        stream: the answer to an expression, as Arrow's reader of batches of at most so many rows.
    """

    begin: Callable[[Any], bool] = lambda backend: False
    end: Callable[[Any], None] = _nothing
    double: Callable[[Expr], Expr] = lambda column: column.cast("float64")
    text: Callable[[Expr], Expr] = as_text
    fence: Fence = lambda table: table
    stream: Callable[[Any, int], Any] = lambda expression, size: expression.to_pyarrow_batches(chunk_size=size)
