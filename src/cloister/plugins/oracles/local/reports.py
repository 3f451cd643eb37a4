"""What leaves a person, and how it adds up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

import attrs
import numpy as np

from cloister.core.errors import Refused
from cloister.core.types import AnyArray, Ids, Ints

COLUMNS = ("users", "question", "answers")


@final
@attrs.frozen(eq=False)
class Reports:
    """Reports of n users: on the wire, their public numbers, the question that they answer, and what they say.

    Args:
        users: (n,) uint64.
        answers: (n, width) unsigned integers.
        question: the stamp of the channel that encoded them, so that answers to another question are not added up.
    """

    users: Ids
    answers: AnyArray
    question: int

    def columns(self) -> dict[str, AnyArray]:
        """Arrays with one entry per user."""
        question = np.broadcast_to(np.uint64(self.question), len(self.users))
        return dict(zip(COLUMNS, (self.users, question, self.answers), strict=True))

    @classmethod
    def load(cls, columns: Mapping[str, AnyArray]) -> Reports:
        """Reports from arrays that came from outside.

        Raises:
            Refused: they are not what ``columns`` gives. Whether the answers are possible is for ``absorb`` to say.
        """
        if sorted(columns) != sorted(COLUMNS):
            raise Refused(f"reports have the columns {', '.join(COLUMNS)}, not {', '.join(sorted(columns))}")
        users, question, answers = (columns[name] for name in COLUMNS)
        for name, column, kinds, dimensions in (
            ("users", users, "8", 1),
            ("question", question, "8", 1),
            ("answers", answers, "124", 2),
        ):
            if column.dtype.kind != "u" or str(column.dtype.itemsize) not in kinds or column.ndim != dimensions:
                raise Refused(
                    f"the column '{name}' of a report has type {column.dtype} and shape {column.shape}: no encoder "
                    f"sends that"
                )
        if not len(users) == len(question) == len(answers):
            raise Refused("the columns of a report differ in length")
        if len(question) and (question != question[0]).any():
            raise Refused("the reports answer several questions: keep those of each question apart")
        return cls(users, answers, int(question[0]) if len(question) else 0)

    def checked(self, question: int, width: int, dtype: str) -> Reports:
        """Itself.

        Raises:
            Refused: not in the form of this question's reports, or a user reports twice.
        """
        users, answers = self.users, self.answers
        if users.dtype != np.uint64 or users.ndim != 1:
            raise Refused(f"user numbers have type {users.dtype} and shape {users.shape}: they are a line of uint64")
        if answers.dtype != np.dtype(dtype) or answers.shape != (len(users), width):
            raise Refused(
                f"answers of {len(users)} users have type {answers.dtype} and shape {answers.shape}, "
                f"not {dtype} and ({len(users)}, {width}): no encoder sends that"
            )
        if len(users) and self.question != question:
            raise Refused("these reports answer another question: another plan, seed, space or budget")
        ascending = np.sort(users)
        if (ascending[1:] == ascending[:-1]).any():
            raise Refused("a user reports twice: numbers are unique in a plan")
        return self


@final
@attrs.frozen(eq=False)
class Tallies:
    """Merged reports where buckets can be listed: exact integers.

    Args:
        totals: one int64 vector per level.
        reports: how many users answered each level.
        counted: what ``Randomiser.counted`` makes of their answers, one int64 vector per level.
    """

    totals: tuple[Ints, ...]
    reports: tuple[int, ...]
    counted: tuple[Ints, ...]

    def merge(self, other: Tallies) -> Tallies:
        totals = tuple(a + b for a, b in zip(self.totals, other.totals, strict=True))
        counted = tuple(a + b for a, b in zip(self.counted, other.counted, strict=True))
        return Tallies(totals, tuple(a + b for a, b in zip(self.reports, other.reports, strict=True)), counted)


@final
@attrs.frozen(eq=False)
class Kept:
    """Merged reports where buckets cannot be listed: the reports themselves. What is asked of them depends on no
    order."""

    pieces: tuple[Reports, ...]

    def merge(self, other: Kept) -> Kept:
        return Kept(self.pieces + other.pieces)
