"""What engines differ in, beyond the text that Ibis writes for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

import attrs

from cloister.sql.stage import Fence


def _nothing(backend: Any) -> None:
    """What does not have to be done."""


@final
@attrs.frozen(eq=False)
class Dialect:
    """One engine. The members of an engine that nobody has tried are the defaults.

    Args:
        begin, end: of a snapshot, through Ibis' backend; ``begin`` says whether there is one.
        fence: keeps a step a step where an engine would write a computed column out wherever it is used.
        tables: names of the tables that are there, for an error that names near ones.
        stream: the answer to an expression, as Arrow's reader of batches of at most so many rows.
    """

    begin: Callable[[Any], bool] = lambda backend: False
    end: Callable[[Any], None] = _nothing
    fence: Fence = lambda table: table
    tables: Callable[[Any], Sequence[str]] = lambda backend: backend.list_tables()
    stream: Callable[[Any, int], Any] = lambda expression, size: expression.to_pyarrow_batches(chunk_size=size)
