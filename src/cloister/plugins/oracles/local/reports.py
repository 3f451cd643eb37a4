"""What leaves a person, and who answers which level of it.

A row is in one bucket of every level: how one person's epsilon pays for all of them. Written once for all local
oracles.

``users``: a public keyed hash of the user's number picks the one level that she answers, with her whole eps. Level by
level the estimate is multiplied by T, the number of levels: the *planned* fraction, so that no answer enters the
factor. Variance T times that of one level, and n_v (T - 1) more for a bucket with n_v rows, since its share of users is
random.

``budget``: every user answers all levels at eps / T each, and answers compose to eps. Variance about T^2 times that of
one level at small eps, but nothing is sampled.

Either way a person's report is eps-DP as a whole. Her level is public and does not depend on her row.

Source: Chang, Ghazi, Kumar, Manurangsi 2021: appendix D (users), Lemma 25 (budget).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, final

import attrs
import numpy as np

from cloister.core.buckets import key
from cloister.core.errors import Refused
from cloister.core.randomness import PublicRng
from cloister.core.registry.components import option
from cloister.core.types import AnyArray, Ids, Ints
from cloister.plugins.oracles.local.randomised_response import below

Share: TypeAlias = Literal["users", "budget"]


def share_option() -> Any:
    """The option ``share`` of a local oracle."""
    return option(
        default="users",
        help="what the levels of a tree divide: the users (each answers one level with all of epsilon) or everyone's "
        "epsilon",
        choices=("users", "budget"),
    )


@final
@attrs.frozen
class Sharing:
    """Who answers which level.

    Args:
        share: what the levels divide.
        levels: T, how many there are.
        seed: public.
    """

    share: Share
    levels: int
    seed: PublicRng

    @property
    def parts(self) -> int:
        """Divisor of epsilon."""
        return self.levels if self.share == "budget" else 1

    @property
    def factor(self) -> int:
        """One over the planned fraction of the users that answer a level."""
        return self.levels if self.share == "users" else 1

    @property
    def bundled(self) -> dict[str, Any]:
        """For devices that run no Python. "level_key" is of the words that pick a user's level; None: she answers
        all."""
        level_key = None if self.factor == 1 else key(self.seed.child("level"))
        return {"share": self.share, "level_key": level_key}

    def answers(self, users: Ids) -> tuple[Ints, ...]:
        """For each level, the positions of the users (n,) who answer it."""
        if self.factor == 1:
            return (np.arange(len(users)),) * self.levels
        levels = below(self.seed.child("level").of_users(users), self.levels)
        return tuple(np.flatnonzero(levels == level) for level in range(self.levels))

    def divided(self, reports: Sequence[int]) -> tuple[int, ...]:
        """How many users answered each level, if their numbers say which: as ``ReportFacts`` has it."""
        return tuple(reports) if self.factor > 1 else ()

    def counted(self, pieces: Iterable[Ids]) -> tuple[int, ...]:
        """How many users answered each level, of those whose reports are kept, in pieces."""
        return tuple(sum(map(len, level)) for level in zip(*map(self.answers, pieces), strict=True))

    def layout(self, widths: tuple[int, ...]) -> tuple[slice, ...]:
        """Place of each level's answer in a report, and how many numbers it has."""
        if self.share == "users":
            return tuple(slice(0, width) for width in widths)
        ends = np.cumsum(widths).tolist()
        return tuple(slice(end - width, end) for end, width in zip(ends, widths, strict=True))


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
