"""Reports of local oracles, and how one person's epsilon pays for all T levels of a space.

``users``: a public keyed hash of the user's number picks the one level that she answers, with her whole eps. A level's
estimate is multiplied by T, one over the *planned* fraction of users, so that the factor depends on no answer. Variance
T times that of one level, and n_v (T - 1) more for a bucket with n_v rows, since its share of users is random.

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

from cloister.plugin import AnyArray, Ids, Ints, PublicRng, Refused, hex_key, option
from cloister.plugins.oracles.local.coins import multiply_shift

Share: TypeAlias = Literal["users", "budget"]


def share_option() -> Any:
    """Return the option ``share`` of a local oracle."""
    return option(
        default="users",
        help="what the levels of a tree divide: the users (each answers one level with all of epsilon) or everyone's "
        "epsilon",
        choices=("users", "budget"),
    )


@final
@attrs.frozen
class Sharing:
    """Division of the users, or of everyone's budget, among the levels.

    Args:
        share: what the levels divide.
        levels: T.
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
        """One over the planned fraction of users who answer a level."""
        return self.levels if self.share == "users" else 1

    @property
    def bundled(self) -> dict[str, Any]:
        """Parameters for non-Python clients: "level_key" picks a user's level; None if she answers all."""
        level_key = None if self.factor == 1 else hex_key(self.seed.child("level"))
        return {"share": self.share, "level_key": level_key}

    def answers(self, users: Ids) -> tuple[Ints, ...]:
        """Return, for each level, the positions of the users (n,) who answer it."""
        if self.factor == 1:
            return (np.arange(len(users)),) * self.levels
        levels = multiply_shift(self.seed.child("level").of_users(users), self.levels)
        return tuple(np.flatnonzero(levels == level) for level in range(self.levels))

    def answered(self, reports: Sequence[int]) -> tuple[int, ...]:
        """Return how many users answered each level, as ``ReportFacts.answered``: empty if all answer all levels."""
        return tuple(reports) if self.factor > 1 else ()

    def counted(self, pieces: Iterable[Ids]) -> tuple[int, ...]:
        """Count the users, given in pieces, who answer each level."""
        return tuple(sum(map(len, level)) for level in zip(*map(self.answers, pieces), strict=True))

    def layout(self, widths: tuple[int, ...]) -> tuple[slice, ...]:
        """Return each level's slice of a report, from the widths of its answers."""
        if self.share == "users":
            return tuple(slice(0, width) for width in widths)
        ends = np.cumsum(widths).tolist()
        return tuple(slice(end - width, end) for end, width in zip(ends, widths, strict=True))


COLUMNS = ("users", "question", "answers")


@final
@attrs.frozen(eq=False)
class Reports:
    """Reports of n users to one question.

    Args:
        users: their public numbers (n,), uint64.
        answers: (n, width) unsigned integers.
        question: stamp of the channel that encoded them, so that answers to another question are not added up.
    """

    users: Ids
    answers: AnyArray
    question: int

    def columns(self) -> dict[str, AnyArray]:
        """Return arrays with one entry per user."""
        question = np.broadcast_to(np.uint64(self.question), len(self.users))
        return dict(zip(COLUMNS, (self.users, question, self.answers), strict=True))

    @classmethod
    def load(cls, columns: Mapping[str, AnyArray]) -> Reports:
        """Return reports from untrusted arrays. ``absorb`` checks later whether the answers are possible.

        Raises:
            Refused: names, types or shapes are not those that ``columns`` gives.
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
            raise Refused("the reports answer several questions: load those of each question separately")
        return cls(users, answers, int(question[0]) if len(question) else 0)

    def checked(self, question: int, width: int, dtype: str) -> Reports:
        """Return the reports if they have the form of this question's.

        Raises:
            Refused: they have not, or a user reports twice.
        """
        users, answers = self.users, self.answers
        if users.dtype != np.uint64 or users.ndim != 1:
            raise Refused(f"user numbers have type {users.dtype} and shape {users.shape}, not uint64 and (n,)")
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
    """Summary of reports where buckets can be listed: exact integers.

    Args:
        totals: one int64 vector per level.
        reports: number of users who answered each level.
        counted: ``Randomiser.counted`` of their answers, one int64 vector per level.
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
    """Summary of reports where buckets cannot be listed: the reports themselves, in any order."""

    pieces: tuple[Reports, ...]

    def merge(self, other: Kept) -> Kept:
        return Kept(self.pieces + other.pieces)
