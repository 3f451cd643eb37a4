"""Questions under local trust: the users' half, and the server's, which adds up reports or keeps them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar

import attrs
import numpy as np

from cloister.plugin import (
    AnyArray,
    BucketedVectors,
    Budget,
    BundleArrays,
    Event,
    Gain,
    Ids,
    Ints,
    LookupTable,
    NoiseRng,
    Refused,
    ReportFacts,
    ReportLaw,
    describe_part,
    stamp,
)
from cloister.plugins.oracles.local.reports import Kept, Reports, Sharing, Tallies

I_contra = TypeVar("I_contra", Ints, BucketedVectors, contravariant=True)


class Randomiser(Protocol):
    """Mechanism by which a user answers one level. Public plain data with a digest."""

    @property
    def width(self) -> int:
        """Numbers in one answer."""
        ...

    @property
    def dtype(self) -> str:
        """Their unsigned type."""
        ...

    def possible(self, answers: AnyArray) -> bool:
        """Return True if an encoder could have sent all of these, which bounds the weight of a malicious user."""
        ...

    def counted(self, answers: AnyArray) -> Ints:
        """Summarise answers (n, width) for ``laws``: exact integers (m,), which add up over reports."""
        ...

    def laws(self, counted: Ints, reports: int) -> tuple[ReportLaw, ...]:
        """Return what holds for honest reports whatever the rows are, with what was counted (``ReportFacts.laws``)."""
        ...


class WithoutReportLaws:
    """Base of randomisers whose answers are not tested against a law."""

    def counted(self, answers: AnyArray) -> Ints:
        return np.zeros(0, np.int64)

    def laws(self, counted: Ints, reports: int) -> tuple[ReportLaw, ...]:
        return ()


class LocalQuestion(ABC, Generic[I_contra]):
    """Users' half of a question, and its public facts. Subclasses are attrs classes with a digest.

    Args:
        mechanism, budget: declared to the accountant for a user's whole report.
        rows: public number of users.
        sharing: of users or budget among the levels.
    """

    mechanism: str
    budget: Budget
    rows: int
    sharing: Sharing

    @property
    @abstractmethod
    def randomisers(self) -> Sequence[Randomiser]:
        """Randomiser of each level."""

    @property
    def widths(self) -> tuple[int, ...]:
        """Numbers in one answer, for each level."""
        return tuple(level.width for level in self.randomisers)

    @property
    def dtype(self) -> str:
        """Widest unsigned type of the levels."""
        return max((level.dtype for level in self.randomisers), key=lambda dtype: np.dtype(dtype).itemsize)

    @abstractmethod
    def batch_size(self, level: int) -> int:
        """Return how many users of a level are encoded at once."""

    @abstractmethod
    def answer(self, items: I_contra, positions: Ints, users: Ids, level: int, secret: NoiseRng) -> AnyArray:
        """Return randomised answers (m, width) of users (m,) whose items are at ``positions`` (m,)."""

    def counted(self, answers: AnyArray, level: int) -> Ints:
        """Summarise a level's answers, see ``Randomiser``."""
        return self.randomisers[level].counted(answers)

    def level_laws(self, counted: Ints, reports: int, level: int) -> tuple[ReportLaw, ...]:
        """Return a level's laws, see ``Randomiser``."""
        return tuple(law.at(f"level {level + 1}") for law in self.randomisers[level].laws(counted, reports))

    @abstractmethod
    def error(self, level: int) -> float:
        """Return the standard deviation of an empty bucket's value, in the caller's units, at ``rows`` users."""

    @abstractmethod
    def bundled_level(self, level: int, arrays: BundleArrays) -> dict[str, Any]:
        """Return a level's parameters for non-Python clients, without its place in a report."""

    def bundled_form(self, arrays: BundleArrays) -> dict[str, Any]:
        """Return a report's form for non-Python clients: who answers which level, and its place."""
        places = enumerate(self.layout)
        levels = [{"at": at.start, "width": at.stop - at.start, **self.bundled_level(i, arrays)} for i, at in places]
        return {"dtype": self.dtype, "width": self.width, **self.sharing.bundled, "levels": levels}

    @property
    @abstractmethod
    def gains(self) -> tuple[Gain, ...]:
        """Largest effect of one possible report on each level's values (``ReportFacts.gains``)."""

    @property
    def response_values(self) -> int | None:
        """Number k of values where a report is one k-ary response (``ReportFacts.response_values``), else None."""
        return None

    @property
    def events(self) -> tuple[Event, ...]:
        """One event: a user's report, eps-DP as a whole."""
        return (Event(self.mechanism, self.budget),)

    @cached_property
    def stamp(self) -> int:
        """Fingerprint of the question, 64 bits."""
        return stamp(self)

    @property
    def layout(self) -> tuple[slice, ...]:
        """Slice of each level's answer in a report."""
        return self.sharing.layout(self.widths)

    @property
    def width(self) -> int:
        """Numbers in one report: where levels share the users, as many as the widest level needs."""
        return max(int(at.stop) for at in self.layout)

    def blocks(self, positions: Ints, level: int) -> Iterator[Ints]:
        """Yield positions of users (n,) in batches."""
        step = self.batch_size(level)
        return (positions[start : start + step] for start in range(0, len(positions), step))

    def encode(self, items: I_contra, users: Ids, rng: NoiseRng) -> Reports:
        answers = np.zeros((len(users), self.width), self.dtype)
        for level, (positions, at) in enumerate(zip(self.sharing.answers(users), self.layout, strict=True)):
            secret = rng.child("level", level)
            for block in self.blocks(positions, level):
                answers[block, at] = self.answer(items, block, users[block], level, secret)
        return Reports(users, answers, self.stamp)

    def checked(self, reports: Reports) -> Reports:
        """Return the reports if encoders could have sent them.

        Raises:
            Refused: they could not.
        """
        reports.checked(self.stamp, self.width, self.dtype)
        for level, (positions, at) in enumerate(zip(self.sharing.answers(reports.users), self.layout, strict=True)):
            beyond = reports.answers[positions, at.stop :] if self.sharing.factor > 1 else reports.answers[:0]
            if beyond.any() or not self.randomisers[level].possible(reports.answers[positions, at]):
                raise Refused(f"a report of '{self.mechanism}' has an answer at level {level} that no encoder sends")
        return reports

    def parts(self, reports: Reports) -> list[tuple[Ids, AnyArray]]:
        """Return each level's users and their answers."""
        levels = zip(self.sharing.answers(reports.users), self.layout, strict=True)
        return [(reports.users[positions], reports.answers[positions, at]) for positions, at in levels]

    def tallied(self, report: Reports, tally: Callable[[Ids, AnyArray, int], Ints]) -> Tallies:
        """Check the reports and apply ``tally`` to each level's users, answers and number."""
        parts = self.parts(self.checked(report))
        totals = tuple(tally(*part, level) for level, part in enumerate(parts))
        counted = tuple(self.counted(answers, level) for level, (_, answers) in enumerate(parts))
        return Tallies(totals, tuple(len(users) for users, _ in parts), counted)

    def turnout(self, reports: Sequence[int]) -> float:
        """Return the ratio of standard errors to those of all planned users: sqrt(N / n), where N users reported.

        Noise grows with the reports received, not with the planned users: if a fifth of them report, planned errors are
        2.2 times too large. Who reports is public under Local trust. Errors are meant over the public coins that assign
        users to levels.

        Args:
            reports: number of users who answered each level.
        """
        received = self.sharing.factor * sum(reports) / len(reports)
        return math.sqrt(max(1.0, received) / self.rows)

    def table(self, reports: Sequence[int], look: Callable[[Ints, int], AnyArray]) -> LookupTable:
        """Return a table whose ``standard_error`` is that of a bucket with few of the users who reported.

        Args:
            reports: number of users who answered each level.
            look: function from ids (m,) and their level to values.
        """
        turnout = self.turnout(reports)
        return LookupTable(look, [self.error(level) * turnout for level in range(len(reports))])


Q = TypeVar("Q", bound=LocalQuestion[Any])


@attrs.frozen
class LocalChannel(ReportFacts, Generic[Q]):
    """Opened question, with the users' half ``asked``."""

    asked: Q

    @property
    def events(self) -> tuple[Event, ...]:
        return self.asked.events

    @property
    def response_values(self) -> int | None:
        return self.asked.response_values

    def bundled(self, arrays: BundleArrays) -> Mapping[str, Any]:
        return describe_part(self.asked, arrays)

    @property
    def gains(self) -> tuple[Gain, ...]:
        return self.asked.gains

    def encode(self, items: Any, users: Ids, rng: NoiseRng) -> Reports:
        return self.asked.encode(items, users, rng)


class Tallying(LocalChannel[Q], ABC):
    """Channel of buckets that can be listed: reports are added up as they arrive."""

    @abstractmethod
    def tally(self, users: Ids, answers: AnyArray, level: int) -> Ints:
        """Summarise a level's answers (n, width) of users (n,) as flat exact integers, which add up over users."""

    def absorb(self, report: Reports) -> Tallies:
        return self.asked.tallied(report, self.tally)

    def reported(self, summary: Tallies) -> tuple[int, ...]:
        return summary.reports

    def answered(self, summary: Tallies) -> tuple[int, ...]:
        return self.asked.sharing.answered(summary.reports)

    def laws(self, summary: Tallies) -> tuple[ReportLaw, ...]:
        levels = enumerate(zip(summary.counted, summary.reports, strict=True))
        return tuple(law for level, counts in levels for law in self.asked.level_laws(*counts, level))


class Keeping(LocalChannel[Q]):
    """Channel of buckets that cannot be listed: reports are kept, and scanned for every bucket that is looked up."""

    def absorb(self, report: Reports) -> Kept:
        return Kept((self.asked.checked(report),))

    def reported(self, summary: Kept) -> tuple[int, ...]:
        return self.asked.sharing.counted(piece.users for piece in summary.pieces)

    def answered(self, summary: Kept) -> tuple[int, ...]:
        return self.asked.sharing.answered(self.reported(summary))

    def laws(self, summary: Kept) -> tuple[ReportLaw, ...]:
        levels = (
            (self.asked.counted(answers, level), len(answers), level)
            for level, (_, answers) in enumerate(self.parts(summary))
        )
        return tuple(law for counts in levels for law in self.asked.level_laws(*counts))

    def parts(self, summary: Kept) -> list[tuple[Ids, AnyArray]]:
        """Return each level's users and their answers."""
        return [  # concatenated: two long arrays are scanned faster than many short ones
            (np.concatenate([users for users, _ in level]), np.concatenate([answers for _, answers in level]))
            for level in zip(*map(self.asked.parts, summary.pieces), strict=True)
        ]
