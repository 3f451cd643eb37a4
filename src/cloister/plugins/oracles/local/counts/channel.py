"""Both halves of a local count question, for any mechanism: what users send, tallies, tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, final

import attrs
import numpy as np

from cloister.core.budget import Budget
from cloister.core.bundling import BundleArrays
from cloister.core.gains import Gain
from cloister.core.portions import ReportLaw
from cloister.core.randomness import NoiseRng
from cloister.core.types import AnyArray, Ids, Ints
from cloister.plugins.oracles.local.channel import Keeping, Tallying
from cloister.plugins.oracles.local.counts.support import Asked, Chances, CountRandomiser, Tallied
from cloister.plugins.oracles.local.levels import Sharing
from cloister.plugins.oracles.local.question import LocalQuestion
from cloister.plugins.oracles.local.randomised_response import OneResponse
from cloister.plugins.oracles.local.reports import Kept, Tallies
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
    def values(self) -> int | None:
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
        """Of one count, on average over the levels."""
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
