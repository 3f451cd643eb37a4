"""Record of a run's releases, and the journal that holds them before anybody sees them."""

from __future__ import annotations

from typing import Protocol

import attrs
import numpy as np

from cloister.core.domains import REACH
from cloister.core.errors import Refused
from cloister.core.types import Floats, Ints


@attrs.frozen(eq=False)
class Lookup:
    """Look at a table: the bucket ids asked for, and the answers.

    Args:
        round, question, level: the table and its level; a flat bucketing has level 0 only. With the question
            ``AGREED``, the level counts the agreements after the round; with ``LISTED`` less the question, it was
            listed.
        error: whether standard errors were asked for instead of values.
        ids: bucket ids (m,).
        values: counts or errors (m,), or sums (m, dimension).
    """

    round: int
    question: int
    level: int
    error: bool
    ids: Ints
    values: Floats


AGREED = -1
"""Question of a ``Lookup`` that holds integers computed from released values (``Session.agreed``)."""

LISTED = -2
"""Less a question, the question of an empty ``Lookup``: the level was listed, which released 0 for other buckets."""


class Journal(Protocol):
    """Durable memory of a run. Each call returns only after the entry would survive a crash."""

    def open_round(self, index: int, digest: str) -> None:
        """Record that round ``index`` is charged and about to be asked."""
        ...

    def close_round(self, index: int) -> None:
        """Record that the answers of round ``index`` are in: it is asked again only to look further."""
        ...

    def write(self, lookup: Lookup) -> None:
        """Record values that are about to be released."""
        ...


@attrs.define
class Record:
    """Everything released so far: the digest of each round, the number of closed rounds, every look in order.

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


def checkpointed(values: Floats, computed: Ints) -> Ints:
    """Return recorded values as integers: single steps, or lattice points of norm at most ``REACH``.

    Args:
        values: recorded.
        computed: the integers that they replace, of the same shape.

    Raises:
        Refused: they are no such integers.
    """
    fits = values.size == computed.size and len(values) == len(computed) and bool((np.abs(values) <= 2 * REACH).all())
    if fits:
        points: Ints = np.rint(values).astype(np.int64).reshape(computed.shape)
        # the proof of exact distances needs norms of at most REACH
        if computed.ndim == 1 or bool(((points * points).sum(axis=1) <= REACH**2).all()):
            return points
    raise Refused(
        f"cannot go on: the record does not hold {len(computed)} points on the lattice where the run has them"
    )
