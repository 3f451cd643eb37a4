"""Messages of split-and-mix, and what they add up to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

import attrs
import numpy as np

from cloister.core.errors import Refused
from cloister.core.types import AnyArray, Ids, Ints

COLUMNS = ("question", "slot", "share")


@final
@attrs.frozen(eq=False)
class Shares:
    """What users send: one entry per message, whose slot says which number it is a share of. Nothing says whose.

    Args:
        question: the stamp of the channel that encoded them.
        slots: (messages,) uint32.
        shares: (messages,) uint32 or uint64.
    """

    question: int
    slots: AnyArray = attrs.field(repr=False)
    shares: AnyArray = attrs.field(repr=False)

    def columns(self) -> dict[str, AnyArray]:
        """Arrays with one entry per message."""
        question = np.broadcast_to(np.uint64(self.question), len(self.slots))
        return dict(zip(COLUMNS, (question, self.slots, self.shares), strict=True))

    @classmethod
    def load(cls, columns: Mapping[str, AnyArray]) -> Shares:
        """Messages from arrays that came from outside, in any order.

        Raises:
            Refused: they are not what ``columns`` gives. Whether they are possible is for ``absorb`` to say.
        """
        if sorted(columns) != sorted(COLUMNS):
            raise Refused(f"shares have the columns {', '.join(COLUMNS)}, not {', '.join(sorted(columns))}")
        question, slots, shares = (columns[name] for name in COLUMNS)
        if any(c.ndim != 1 or len(c) != len(slots) for c in (question, slots, shares)):
            raise Refused("the columns of shares are lines of one length")
        if question.dtype != np.uint64 or slots.dtype != np.uint32 or shares.dtype not in (np.uint32, np.uint64):
            raise Refused("the columns of shares have types that no encoder sends")
        if len(question) and (question != question[0]).any():
            raise Refused("the shares answer several questions: keep those of each question apart")
        return cls(int(question[0]) if len(question) else 0, slots, shares)


@final
@attrs.frozen(eq=False)
class Mixed:
    """Merged messages: every slot's sum modulo 2^64, and how many shares are in it.

    Args:
        vector: words (slots,).
        counts: (slots,).
        owed: how many users, simulated at once by ``pooled``, have not drawn their noise yet.
    """

    vector: Ids = attrs.field(repr=False)
    counts: Ints = attrs.field(repr=False)
    owed: int = 0

    def merge(self, other: Mixed) -> Mixed:
        return Mixed(self.vector + other.vector, self.counts + other.counts, self.owed + other.owed)

    def users(self, each: int) -> int:
        """How many users sent these.

        Raises:
            Refused: not all of them have sent ``each`` shares of every slot.
        """
        users, rest = divmod(int(self.counts[0]), each)
        if rest or (self.counts != users * each).any():
            raise Refused(
                f"every user sends {each} shares of each of {len(self.counts)} numbers: some are missing, or some too "
                "many"
            )
        return users
