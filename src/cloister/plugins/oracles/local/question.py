"""The users' half of a local question: who answers which level, what a report holds, which reports are refused.

What leaves a person, and how it adds up.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar, final

import attrs
import numpy as np

from cloister.core.buckets import BucketedVectors, BundleArrays
from cloister.core.budget import Budget, Event
from cloister.core.errors import Refused
from cloister.core.plain_data import stamp
from cloister.core.randomness import NoiseRng
from cloister.core.reports import Gain, ReportLaw
from cloister.core.types import AnyArray, Ids, Ints
from cloister.plugins.oracles.local.levels import Sharing
from cloister.plugins.oracles.table import LookupTable

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


I_contra = TypeVar("I_contra", Ints, BucketedVectors, contravariant=True)


class Randomiser(Protocol):
    """Randomiser of a bucket or of a vector. Public plain data with a digest."""

    @property
    def each(self) -> int:
        """Secret words that one answer takes (one go of it), whatever the row is."""
        ...

    @property
    def width(self) -> int:
        """Numbers in one answer."""
        ...

    @property
    def dtype(self) -> str:
        """Their unsigned type."""
        ...

    def possible(self, answers: AnyArray) -> bool:
        """Whether an encoder could have sent all of these: what bounds the weight of a user who lies."""
        ...

    def counted(self, answers: AnyArray) -> Ints:
        """Summary of answers (n, width) for ``laws``: exact integers (m,), which add up over reports."""
        ...

    def laws(self, counted: Ints, reports: int) -> tuple[ReportLaw, ...]:
        """How often so many honest reports say a thing, whatever the rows are, beside how often they did (see
        ``ReportFacts``)."""
        ...


class LocalQuestion(ABC, Generic[I_contra]):
    """The users' half of a question, and what the server knows about it. Subclasses are attrs classes with a digest.

    Args:
        mechanism, budget: what is declared to the accountant for a user's whole report.
        rows: the public number of users.
        sharing: how a row in several buckets is paid for.
    """

    mechanism: str
    budget: Budget
    rows: int
    sharing: Sharing

    @property
    @abstractmethod
    def widths(self) -> tuple[int, ...]:
        """Numbers in one answer, for each level."""

    @property
    @abstractmethod
    def dtype(self) -> str:
        """Their unsigned type."""

    @abstractmethod
    def together(self, level: int) -> int:
        """Users of a level who are encoded at once."""

    @abstractmethod
    def answer(self, items: I_contra, some: Ints, users: Ids, level: int, secret: NoiseRng) -> AnyArray:
        """Randomised answers (m, width) of these users (m,), whose items are at some positions (m,)."""

    @abstractmethod
    def possible(self, answers: AnyArray, level: int) -> bool:
        """Whether an encoder could have sent all of these answers (m, width)."""

    def counted(self, answers: AnyArray, level: int) -> Ints:
        """See ``Randomiser``."""
        return np.zeros(0, np.int64)

    def level_laws(self, counted: Ints, reports: int, level: int) -> tuple[ReportLaw, ...]:
        """See ``Randomiser``."""
        return ()

    @abstractmethod
    def error(self, level: int) -> float:
        """Standard deviation of an empty bucket's value, in the caller's units, with the public number of users."""

    @abstractmethod
    def bundled_level(self, level: int, arrays: BundleArrays) -> dict[str, Any]:
        """Facts of a level for devices that run no Python, beside its place in a report."""

    def bundled_form(self, arrays: BundleArrays) -> dict[str, Any]:
        """Facts of a report for them: who answers which level, where its answer stands."""
        places = enumerate(self.layout)
        levels = [{"at": at.start, "width": at.stop - at.start, **self.bundled_level(i, arrays)} for i, at in places]
        return {"dtype": self.dtype, "width": self.width, **self.sharing.bundled, "levels": levels}

    @property
    @abstractmethod
    def gains(self) -> tuple[Gain, ...]:
        """See ``ReportFacts``: what one possible report can add to each level's values."""

    @property
    def response_values(self) -> int | None:
        """See ``ReportFacts``: k, where a report is one answer of k-ary response."""
        return None

    @property
    def events(self) -> tuple[Event, ...]:
        """One report per user, eps-DP as a whole."""
        return (Event(self.mechanism, self.budget),)

    @cached_property
    def stamp(self) -> int:
        """64 bits that tell this question from any other."""
        return stamp(self)

    @property
    def layout(self) -> tuple[slice, ...]:
        """Place of each level's answer in a report."""
        return self.sharing.layout(self.widths)

    @property
    def width(self) -> int:
        """Numbers in one report. Where users share levels of several widths, all reports are as long as the longest."""
        return max(int(at.stop) for at in self.layout)

    def blocks(self, positions: Ints, level: int) -> Iterator[Ints]:
        """Positions of users (n,), cut into pieces that are worked on at once."""
        step = self.together(level)
        return (positions[start : start + step] for start in range(0, len(positions), step))

    def encode(self, items: I_contra, users: Ids, rng: NoiseRng) -> Reports:
        answers = np.zeros((len(users), self.width), self.dtype)
        for level, (mine, at) in enumerate(zip(self.sharing.answers(users), self.layout, strict=True)):
            secret = rng.child("level", level)
            for some in self.blocks(mine, level):
                answers[some, at] = self.answer(items, some, users[some], level, secret)
        return Reports(users, answers, self.stamp)

    def checked(self, reports: Reports) -> Reports:
        """Itself, if an encoder could have sent it.

        Raises:
            Refused: none could.
        """
        reports.checked(self.stamp, self.width, self.dtype)
        for level, (mine, at) in enumerate(zip(self.sharing.answers(reports.users), self.layout, strict=True)):
            beyond = reports.answers[mine, at.stop :] if self.sharing.factor > 1 else reports.answers[:0]
            if beyond.any() or not self.possible(reports.answers[mine, at], level):
                raise Refused(f"a report of '{self.mechanism}' has an answer at level {level} that no encoder sends")
        return reports

    def parts(self, reports: Reports) -> list[tuple[Ids, AnyArray]]:
        """Who answers each level, and what."""
        found = zip(self.sharing.answers(reports.users), self.layout, strict=True)
        return [(reports.users[mine], reports.answers[mine, at]) for mine, at in found]

    def added_up(self, report: Reports, tally: Callable[[Ids, AnyArray, int], Ints]) -> Tallies:
        """Reports, checked, where buckets can be listed: what ``tally`` makes of each level's users and answers."""
        parts = self.parts(self.checked(report))
        totals = tuple(tally(*part, level) for level, part in enumerate(parts))
        counted = tuple(self.counted(answers, level) for level, (_, answers) in enumerate(parts))
        return Tallies(totals, tuple(len(users) for users, _ in parts), counted)

    def turnout(self, reports: Sequence[int]) -> float:
        """Ratio of standard errors to those of all planned users: sqrt(N / n), where N users reported.

        Noise grows with the reports that came, not with the users who were planned; who reports is public under Local
        trust. With the planned errors a fifth of the users would have to say 2.2 times as much before a cell counted
        for anything. Which of the users answer which level is left to the public coins, over which an error is meant.

        Args:
            reports: that answered each level.
        """
        came = self.sharing.factor * sum(reports) / len(reports)
        return math.sqrt(max(1.0, came) / self.rows)

    def table(self, reports: Sequence[int], look: Callable[[Ints, int], AnyArray]) -> LookupTable:
        """Values, whose ``standard_error`` is that of a bucket with few of those who reported.

        Args:
            reports: that answered each level.
            look: ids (m,) of a level to values.
        """
        turnout = self.turnout(reports)
        return LookupTable(look, [self.error(level) * turnout for level in range(len(reports))])
