"""The users' half of a local question: who answers which level, what a report holds, which reports are refused."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from cloister.core.buckets import BucketedVectors
from cloister.core.budget import Budget, Event
from cloister.core.bundling import BundleArrays
from cloister.core.digests import stamp
from cloister.core.errors import Refused
from cloister.core.gains import Gain
from cloister.core.portions import ReportLaw
from cloister.core.randomness import NoiseRng
from cloister.core.types import AnyArray, Ids, Ints
from cloister.plugins.oracles.local.levels import Sharing
from cloister.plugins.oracles.local.reports import Reports, Tallies
from cloister.plugins.oracles.table import LookupTable

I_contra = TypeVar("I_contra", Ints, BucketedVectors, contravariant=True)


class Randomiser(Protocol):
    """What randomisers of a bucket and of a vector have in common. Public plain data with a digest."""

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
        """What ``laws`` needs to know of answers (n, width): exact integers (m,), which add up over reports."""
        ...

    def laws(self, counted: Ints, reports: int) -> tuple[ReportLaw, ...]:
        """How often so many honest reports say a thing, whatever the rows are, beside how often they did (see
        ``KnowsLaws``)."""
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
        """What devices that run no Python need of a level beside its place in a report."""

    def bundled_form(self, arrays: BundleArrays) -> dict[str, Any]:
        """What they need of a report: who answers which level, where its answer stands."""
        places = enumerate(self.layout)
        levels = [{"at": at.start, "width": at.stop - at.start, **self.bundled_level(i, arrays)} for i, at in places]
        return {"dtype": self.dtype, "width": self.width, **self.sharing.bundled, "levels": levels}

    @property
    @abstractmethod
    def gains(self) -> tuple[Gain, ...]:
        """See ``BoundsLiars``: what one possible report can add to each level's values."""

    @property
    def values(self) -> int | None:
        """See ``IsRandomisedResponse``: k, where a report is one answer of k-ary response."""
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
        """Where each level's answer stands in a report."""
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
        """What standard errors are, over those of all planned users: sqrt(N / n), where N users reported.

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
