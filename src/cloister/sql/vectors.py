"""What is summed in each bucket, in SQL: the vectors of ``docs/reference/format.md``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, final

import attrs

from cloister.core.types import Ints
from cloister.sql.buckets import REACH, Located
from cloister.sql.bundles import Described, Description, NotCompiled
from cloister.sql.stage import Stage


@final
@attrs.frozen(eq=False)
class Summed:
    """Vectors to be summed.

    Args:
        stage: the rows.
        columns: names of the vectors' numbers, whole doubles of at most 2^21.
        origins: (m, d) what is taken from the vectors of a bucket, or (1, d) from all: as often as it has rows, which
            is exact, and need not be told the engine; None for nothing.
    """

    stage: Stage
    columns: tuple[str, ...]
    origins: Ints | None = None

    def finished(self, ids: Ints, rows: Ints, sums: Ints) -> Ints:
        """Sums (m, dimension) of the vectors, from those of the columns. Args: ids, rows (m,) of buckets."""
        if self.origins is None:
            return sums
        mine = self.origins if len(self.origins) == 1 else self.origins[ids]
        return sums - rows[:, None] * mine


Sum: TypeAlias = Callable[[Located, Description, Described], Summed]


def summed(buckets: Located, vectors: Description, known: Described) -> Summed:
    """Raises: NotCompiled: there is no SQL for such vectors."""
    if vectors["kind"] not in KINDS:
        raise NotCompiled(f"vectors of kind '{vectors['kind']}' have no form in SQL")
    return KINDS[vectors["kind"]](buckets, vectors, known)


def _rows(buckets: Located, vectors: Description, known: Described) -> Summed:
    return Summed(buckets.stage, buckets.stage.row)


def _offsets(buckets: Located, vectors: Description, known: Described) -> Summed:
    return Summed(buckets.stage, buckets.stage.row, known.array(vectors["centers"]))


KINDS: dict[str, Sum] = {"rows": _rows, "offsets": _offsets}
"""How each kind of vectors is compiled."""

__all__ = ["KINDS", "REACH", "Summed", "summed"]
