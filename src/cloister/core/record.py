"""The record of a run's releases, and the journal that holds them before anybody sees them."""

from __future__ import annotations

from typing import Protocol

import attrs

from cloister.core.types import Floats, Ints


@attrs.frozen(eq=False)
class Lookup:
    """One look at a table: the bucket ids asked for, and the answers.

    Args:
        round, question, level: which table and level; a flat bucketing has level 0 only. With ``SETTLED``
            for a question, the level counts what was settled after the round.
        error: whether standard errors were asked for instead of values.
        ids: bucket ids (m,).
        values: (m,) counts or errors, or (m, dim) sums.
    """

    round: int
    question: int
    level: int
    error: bool
    ids: Ints
    values: Floats


SETTLED = -1
"""The question of a ``Lookup`` that is none: what a run found from released values, as ``Session.settled`` says."""


class Journal(Protocol):
    """Durable memory of a run. Each call returns only after the entry would survive a crash."""

    def open_round(self, index: int, digest: str) -> None:
        """Round ``index`` is charged and about to be asked."""
        ...

    def close_round(self, index: int) -> None:
        """The answers of round ``index`` are in: it is never asked of anybody again, except to look further."""
        ...

    def write(self, lookup: Lookup) -> None:
        """These values are about to be released."""
        ...


@attrs.define
class Record:
    """Everything released so far: the digest of each round, how many rounds are closed, every look in order.

    A run that starts from a record replays it: the same public choices, the same values, nothing paid twice.
    """

    digests: list[str] = attrs.field(factory=list)
    closed: int = 0
    lookups: list[Lookup] = attrs.field(factory=list)

    def open_round(self, index: int, digest: str) -> None:
        if index == len(self.digests):
            self.digests.append(digest)

    def close_round(self, index: int) -> None:
        self.closed = max(self.closed, index + 1)

    def write(self, lookup: Lookup) -> None:
        self.lookups.append(lookup)
