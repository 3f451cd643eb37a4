"""Both halves of a local count question, for any mechanism: who answers which level, words, checks, tallies, tables."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Generic, NoReturn, TypeVar, final

import attrs
import numpy as np

from cloister.core.budget import Budget, Event
from cloister.core.digests import stamp
from cloister.core.errors import Refused
from cloister.core.randomness import NoiseRng
from cloister.core.types import AnyArray, Floats, Ids, Ints
from cloister.plugins.oracles.local.counts.support import Asked, Chances, Randomiser, Tallied
from cloister.plugins.oracles.local.levels import Sharing
from cloister.plugins.oracles.local.randomised_response import Response
from cloister.plugins.oracles.local.reports import Kept, Reports, Tallies, turnout

DRAWN = 2**19
"""Most secret words that are held at once (4 MB)."""

R = TypeVar("R", bound=Randomiser)


@final
@attrs.frozen
class Answers(Generic[R]):
    """The users' half of a question, and what the server knows about it.

    Args:
        mechanism, budget: what is declared to the accountant.
        rows: the public number of users.
        sharing: how a row in several buckets is paid for.
        levels: a mechanism for each.
    """

    mechanism: str
    budget: Budget
    rows: int
    sharing: Sharing
    levels: tuple[R, ...]

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
        return self.sharing.layout(tuple(level.width for level in self.levels))

    @property
    def shape(self) -> tuple[int, str]:
        """Numbers in one report, and their type."""
        return max(at.stop for at in self.layout), max(
            (level.dtype for level in self.levels), key=lambda d: np.dtype(d).itemsize
        )

    def encode(self, items: Ints, users: Ids, rng: NoiseRng) -> Reports:
        width, dtype = self.shape
        answers = np.zeros((len(users), width), dtype)
        for number, mine in enumerate(self.sharing.answers(users)):
            level, at, secret = self.levels[number], self.layout[number], rng.child("level", number)
            step = max(1, DRAWN // level.each)
            for start in range(0, len(mine), step):
                some = mine[start : start + step]
                words = secret.words(users[some], level.each)
                answers[some, at] = level.randomise(items[some, number], users[some], words)
        return Reports(users, answers, self.stamp)

    def checked(self, reports: Reports) -> Reports:
        """Itself, if an encoder could have sent it.

        Raises:
            Refused: none could.
        """
        reports.checked(self.stamp, *self.shape)
        for number, (mine, at) in enumerate(zip(self.sharing.answers(reports.users), self.layout, strict=True)):
            beyond = reports.answers[mine, at.stop :] if self.sharing.factor > 1 else reports.answers[:0]
            if beyond.any() or not self.levels[number].possible(reports.answers[mine, at]):
                raise Refused(f"a report of '{self.mechanism}' has an answer at level {number} that no encoder sends")
        return reports

    def parts(self, reports: Reports) -> list[tuple[Ids, AnyArray]]:
        """Who answers each level, and what."""
        found = zip(self.sharing.answers(reports.users), self.layout, strict=True)
        return [(reports.users[mine], reports.answers[mine, at]) for mine, at in found]

    def chances(self, level: int) -> Chances:
        return self.levels[level].chances

    def error(self, level: int) -> float:
        """Standard deviation of an empty bucket's count, with the public number of users."""
        return float(np.sqrt(self.rows * self.sharing.factor * self.chances(level).noise))

    @property
    def variance(self) -> float:
        """Of one count, on average over the levels."""
        return float(np.mean([self.error(level) ** 2 for level in range(len(self.levels))]))


@final
class Estimates:
    """Counts from supports. ``standard_error`` is that of an empty bucket: what a bucket with few of those who reported has."""

    def __init__(self, asked: Answers[R], reports: tuple[int, ...], support: Callable[[Ints, int], Ints]) -> None:
        self._factor, self._reports, self._support = asked.sharing.factor, reports, support
        self._chances = [level.chances for level in asked.levels]
        came = turnout(reports, asked.rows, asked.sharing.factor)
        self._errors = [asked.error(level) * came for level in range(len(asked.levels))]

    def at(self, ids: Ints, level: int = 0) -> Floats:
        return self._factor * self._chances[level].estimate(self._support(ids, level), self._reports[level])

    def standard_error(self, ids: Ints, level: int = 0) -> Floats:
        return np.full(len(ids), self._errors[level])

    def __reduce__(self) -> NoReturn:
        raise TypeError("tables do not travel: keep what at() gave")


def values(asked: Answers[Any]) -> int | None:
    """k of the levels with the fewest values, if each user answers one level by k-ary response."""
    responses = [getattr(level, "response", None) for level in asked.levels]
    symbols = [response.symbols for response in responses if isinstance(response, Response)]
    return min(symbols) if asked.sharing.parts == 1 and len(symbols) == len(responses) else None


@final
@attrs.frozen
class TalliedChannel:
    """Reports are added up as they come in; a summary has a number per bucket. Args: asked, the users' half."""

    asked: Answers[Tallied]

    @property
    def events(self) -> tuple[Event, ...]:
        return self.asked.events

    @property
    def values(self) -> int | None:
        return values(self.asked)

    def encode(self, items: Ints, users: Ids, rng: NoiseRng) -> Reports:
        return self.asked.encode(items, users, rng)

    def absorb(self, report: Reports) -> Tallies:
        self.asked.checked(report)
        parts = self.asked.parts(report)
        totals = tuple(level.tally(*part) for level, part in zip(self.asked.levels, parts, strict=True))
        return Tallies(totals, tuple(len(users) for users, _ in parts))

    def answered(self, summary: Tallies) -> tuple[int, ...]:
        return self.asked.sharing.divided(summary.reports)

    def decode(self, summary: Tallies, rng: NoiseRng) -> Estimates:
        found = [
            level.supports(total, reports)
            for level, total, reports in zip(self.asked.levels, summary.totals, summary.reports, strict=True)
        ]
        return Estimates(self.asked, summary.reports, lambda ids, level: found[level][ids])


@final
@attrs.frozen
class KeptChannel:
    """Reports are kept, and looked through for every bucket that is asked for. Args: asked, the users' half."""

    asked: Answers[Asked]

    @property
    def events(self) -> tuple[Event, ...]:
        return self.asked.events

    @property
    def values(self) -> int | None:
        return values(self.asked)

    def encode(self, items: Ints, users: Ids, rng: NoiseRng) -> Reports:
        return self.asked.encode(items, users, rng)

    def absorb(self, report: Reports) -> Kept:
        return Kept((self.asked.checked(report),))

    def answered(self, summary: Kept) -> tuple[int, ...]:
        return self.asked.sharing.counted(piece.users for piece in summary.pieces)

    def decode(self, summary: Kept, rng: NoiseRng) -> Estimates:
        parts = [self.asked.parts(piece) for piece in summary.pieces]
        levels = [_together([part[level] for part in parts]) for level in range(len(self.asked.levels))]

        def support(ids: Ints, level: int) -> Ints:
            return self.asked.levels[level].support(*levels[level], ids)

        return Estimates(self.asked, tuple(len(users) for users, _ in levels), support)


def _together(pieces: list[tuple[Ids, AnyArray]]) -> tuple[Ids, AnyArray]:
    """All who answer a level: a look at a few long arrays is sooner done than at many short ones."""
    return np.concatenate([users for users, _ in pieces]), np.concatenate([answers for _, answers in pieces])
