"""Both halves of a local count question, for any mechanism: what users send, tallies, tables.

What count oracles under local trust have in common: a person's half of a question is opened in one way for all of
them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import Any, ClassVar, Generic, TypeVar, final

import attrs
import numpy as np

from cloister.core.buckets import BundleArrays, QuestionContext, Space
from cloister.core.budget import Budget, Measure
from cloister.core.errors import InvalidInput
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.registry.components import component
from cloister.core.reports import Gain, ReportLaw
from cloister.core.trust import Local
from cloister.core.types import AnyArray, Ids, Ints
from cloister.plugins.oracles.local.channel import Keeping, Tallying
from cloister.plugins.oracles.local.counts.support import Asked, Chances, CountRandomiser, Tallied
from cloister.plugins.oracles.local.levels import Share, Sharing, share_option
from cloister.plugins.oracles.local.question import Kept, LocalQuestion, Tallies
from cloister.plugins.oracles.local.randomised_response import OneResponse, odds
from cloister.plugins.oracles.table import LookupTable

DRAWN = 2**19
"""Most secret words that are held at once (4 MB)."""

R = TypeVar("R", bound=CountRandomiser)


@final
@attrs.frozen
class Answers(LocalQuestion[Ints], Generic[R]):
    """The users' half of a count question. Args: see ``LocalQuestion``; levels (a mechanism for each)."""

    mechanism: str
    budget: Budget
    rows: int
    sharing: Sharing
    levels: tuple[R, ...]

    @property
    def widths(self) -> tuple[int, ...]:
        return tuple(level.width for level in self.levels)

    @property
    def dtype(self) -> str:
        return max((level.dtype for level in self.levels), key=lambda dtype: np.dtype(dtype).itemsize)

    @property
    def response_values(self) -> int | None:
        """k of the levels with the fewest values, if each user answers one level by k-ary response."""
        levels: tuple[CountRandomiser, ...] = self.levels
        symbols = [level.response.symbols for level in levels if isinstance(level, OneResponse)]
        return min(symbols) if self.sharing.parts == 1 and len(symbols) == len(self.levels) else None

    def together(self, level: int) -> int:
        return max(1, DRAWN // self.levels[level].each)

    def answer(self, items: Ints, some: Ints, users: Ids, level: int, secret: NoiseRng) -> AnyArray:
        randomiser = self.levels[level]
        return randomiser.randomise(items[some, level], users, secret.words(users, randomiser.each))

    def bundled_level(self, level: int, arrays: BundleArrays) -> dict[str, Any]:
        return self.levels[level].bundled()

    def bundled(self, arrays: BundleArrays) -> dict[str, Any]:
        return {"kind": "counts", **self.bundled_form(arrays)}

    def possible(self, answers: AnyArray, level: int) -> bool:
        return self.levels[level].possible(answers)

    def counted(self, answers: AnyArray, level: int) -> Ints:
        return self.levels[level].counted(answers)

    def level_laws(self, counted: Ints, reports: int, level: int) -> tuple[ReportLaw, ...]:
        return tuple(law.at(f"level {level + 1}") for law in self.levels[level].laws(counted, reports))

    def chances(self, level: int) -> Chances:
        return self.levels[level].chances

    @property
    def gains(self) -> tuple[Gain, ...]:
        """By ``Chances.gain``: a report that supports a bucket, or not, is all that an estimate sees of it."""
        found = [(*level.chances.gain, level.at_once) for level in self.levels]
        return tuple(Gain(most, least, most, at_once, factor=self.sharing.factor) for most, least, at_once in found)

    def error(self, level: int) -> float:
        return float(np.sqrt(self.rows * self.sharing.factor * self.chances(level).noise))

    @property
    def variance(self) -> float:
        """Variance of one count, on average over the levels."""
        return float(np.mean([self.error(level) ** 2 for level in range(len(self.levels))]))

    def counts(self, reports: tuple[int, ...], support: Callable[[Ints, int], Ints]) -> LookupTable:
        """Counts from supports: of so many reports of each level, how many support each of its ids (m,)."""
        factor, chances = self.sharing.factor, [level.chances for level in self.levels]
        return self.table(
            reports, lambda ids, level: factor * chances[level].estimate(support(ids, level), reports[level])
        )


@final
@attrs.frozen
class TalliedChannel(Tallying[Answers[Tallied]]):
    """Reports are added up as they come in; a summary has a number per bucket."""

    def tally(self, users: Ids, answers: AnyArray, level: int) -> Ints:
        return self.asked.levels[level].tally(users, answers)

    def supports(self, summary: Tallies) -> list[Ints]:
        """How many reports of each level support each of its buckets, and more (see ``Tallied``)."""
        each = zip(self.asked.levels, summary.totals, summary.reports, strict=True)
        return [level.supports(total, reports) for level, total, reports in each]

    def laws(self, summary: Tallies) -> tuple[ReportLaw, ...]:
        each = enumerate(zip(self.asked.levels, self.supports(summary), summary.reports, strict=True), 1)
        found = (one.chances.law(supports, n, one.size).at(f"level {i}") for i, (one, supports, n) in each)
        return (*found, *super().laws(summary))

    def decode(self, summary: Tallies, rng: NoiseRng) -> LookupTable:
        found = self.supports(summary)
        return self.asked.counts(summary.reports, lambda ids, level: found[level][ids])


@final
@attrs.frozen
class KeptChannel(Keeping[Answers[Asked]]):
    """Reports are kept, and looked through for every bucket that is asked for."""

    def decode(self, summary: Kept, rng: NoiseRng) -> LookupTable:
        levels, parts = self.asked.levels, self.parts(summary)
        reports = tuple(len(users) for users, _ in parts)
        return self.asked.counts(reports, lambda ids, level: levels[level].support(*parts[level], ids))


@component
class LocalCounts(ABC):
    """A count oracle whose users answer each level by one randomiser. The guarantee is that of ``level``, which keeps
    the odds that it is given; how a row that is in a bucket of every level is paid for, see ``levels``.

    Class attributes: mechanism (registry name), most (buckets per level that it is for), instead (the oracles to use
    for more), channel (whether reports are added up as they come in, or kept for whatever is asked).
    """

    share: Share = share_option()

    trust = Local
    measure: ClassVar[Measure] = "pure"
    mechanism: ClassVar[str]
    most: ClassVar[float] = math.inf
    instead: ClassVar[str] = ""
    channel: ClassVar[type[TalliedChannel] | type[KeptChannel]] = TalliedChannel

    @abstractmethod
    def level(self, size: int, odds: Fraction, seed: PublicRng) -> Any:
        """A level's randomiser: of so many buckets, whose answers are at most ``odds`` times as likely for one row as
        for another.

        Args:
            seed: public, this level's own.
        """

    def open(self, space: Space, budget: Budget, context: QuestionContext) -> TalliedChannel | KeptChannel:
        """Raises: InvalidInput for more buckets than it is for, with the oracle to use instead."""
        if max(space.sizes) > self.most:
            raise InvalidInput(
                f"'{self.mechanism}' is for at most {self.most} buckets, not {max(space.sizes)}: use {self.instead}"
            )
        sharing = Sharing(self.share, space.levels, context.seed.child("sharing"))
        each = odds(budget, sharing.parts)
        levels = tuple(self.level(n, each, context.seed.child("hash", i)) for i, n in enumerate(space.sizes))
        return self.channel(Answers(self.mechanism, budget, context.rows, sharing, levels))

    def variance(self, space: Space, budget: Budget, context: QuestionContext) -> float:
        return self.open(space, budget, context).asked.variance
