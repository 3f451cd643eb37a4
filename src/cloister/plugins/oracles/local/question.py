"""Local questions: the users' half, with a randomiser for each level, and the server's, which adds up or keeps."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar

import attrs
import numpy as np

from cloister.core.buckets import BucketedVectors, BundleArrays, described
from cloister.core.budget import Budget, Event
from cloister.core.errors import Refused
from cloister.core.plain_data import stamp
from cloister.core.randomness import NoiseRng
from cloister.core.reports import Gain, ReportFacts, ReportLaw
from cloister.core.types import AnyArray, Ids, Ints
from cloister.noise.channel import LookupTable
from cloister.plugins.oracles.local.reports import Kept, Reports, Sharing, Tallies

I_contra = TypeVar("I_contra", Ints, BucketedVectors, contravariant=True)


class Randomiser(Protocol):
    """Randomiser of one level's answers. Public plain data with a digest."""

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


class Uncounted:
    """Base of randomisers of whose answers nothing is counted."""

    def counted(self, answers: AnyArray) -> Ints:
        return np.zeros(0, np.int64)

    def laws(self, counted: Ints, reports: int) -> tuple[ReportLaw, ...]:
        return ()


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
    def randomisers(self) -> Sequence[Randomiser]:
        """One for each level."""

    @property
    def widths(self) -> tuple[int, ...]:
        """Numbers in one answer, for each level."""
        return tuple(level.width for level in self.randomisers)

    @property
    def dtype(self) -> str:
        """Their unsigned type: the widest one."""
        return max((level.dtype for level in self.randomisers), key=lambda dtype: np.dtype(dtype).itemsize)

    @abstractmethod
    def together(self, level: int) -> int:
        """Users of a level who are encoded at once."""

    @abstractmethod
    def answer(self, items: I_contra, some: Ints, users: Ids, level: int, secret: NoiseRng) -> AnyArray:
        """Randomised answers (m, width) of these users (m,), whose items are at some positions (m,)."""

    def counted(self, answers: AnyArray, level: int) -> Ints:
        """See ``Randomiser``."""
        return self.randomisers[level].counted(answers)

    def level_laws(self, counted: Ints, reports: int, level: int) -> tuple[ReportLaw, ...]:
        """See ``Randomiser``."""
        return tuple(law.at(f"level {level + 1}") for law in self.randomisers[level].laws(counted, reports))

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
            if beyond.any() or not self.randomisers[level].possible(reports.answers[mine, at]):
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


Q = TypeVar("Q", bound=LocalQuestion[Any])


@attrs.frozen
class LocalChannel(ReportFacts, Generic[Q]):
    """An opened question. Args: asked, the users' half."""

    asked: Q

    @property
    def events(self) -> tuple[Event, ...]:
        return self.asked.events

    @property
    def response_values(self) -> int | None:
        return self.asked.response_values

    def bundled(self, arrays: BundleArrays) -> Mapping[str, Any]:
        return described(self.asked, arrays)

    @property
    def gains(self) -> tuple[Gain, ...]:
        return self.asked.gains

    def encode(self, items: Any, users: Ids, rng: NoiseRng) -> Reports:
        return self.asked.encode(items, users, rng)


class Tallying(LocalChannel[Q], ABC):
    """Channel of buckets that can be listed: reports are added up as they come in."""

    @abstractmethod
    def tally(self, users: Ids, answers: AnyArray, level: int) -> Ints:
        """Exact integers, flat, which add up over the users (n,) who gave a level these answers (n, width)."""

    def absorb(self, report: Reports) -> Tallies:
        return self.asked.added_up(report, self.tally)

    def reported(self, summary: Tallies) -> tuple[int, ...]:
        return summary.reports

    def answered(self, summary: Tallies) -> tuple[int, ...]:
        return self.asked.sharing.divided(summary.reports)

    def laws(self, summary: Tallies) -> tuple[ReportLaw, ...]:
        each = enumerate(zip(summary.counted, summary.reports, strict=True))
        return tuple(law for level, known in each for law in self.asked.level_laws(*known, level))


class Keeping(LocalChannel[Q]):
    """Channel of buckets that cannot: reports are kept, and looked through for every bucket that is asked for."""

    def absorb(self, report: Reports) -> Kept:
        return Kept((self.asked.checked(report),))

    def reported(self, summary: Kept) -> tuple[int, ...]:
        return self.asked.sharing.counted(piece.users for piece in summary.pieces)

    def answered(self, summary: Kept) -> tuple[int, ...]:
        return self.asked.sharing.divided(self.reported(summary))

    def laws(self, summary: Kept) -> tuple[ReportLaw, ...]:
        each = (
            (self.asked.counted(answers, level), len(answers), level)
            for level, (_, answers) in enumerate(self.parts(summary))
        )
        return tuple(law for known in each for law in self.asked.level_laws(*known))

    def parts(self, summary: Kept) -> list[tuple[Ids, AnyArray]]:
        """Who answers each level, and what: a look at two long arrays is sooner done than at many short ones."""
        return [
            (np.concatenate([users for users, _ in level]), np.concatenate([answers for _, answers in level]))
            for level in zip(*map(self.asked.parts, summary.pieces), strict=True)
        ]
