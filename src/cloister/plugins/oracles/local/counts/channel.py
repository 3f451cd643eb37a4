"""Local counts, by any mechanism: the estimator, both halves of a question, and the base of their oracles.

There is one estimator: how many reports support a bucket.

A report *supports* a bucket, or not. It supports the bucket that its user is in with probability p, and any other
bucket, and every bucket if she is in none, with probability q (over her own coins and the public ones). Of N reports, S
support bucket v:

    estimate  (S - N q) / (p - q),            unbiased: n_v p + (N - n_v) q reports are expected
    variance  N q (1 - q) / (p - q)^2  +  n_v (1 - p - q) / (p - q),

the first term being the noise of an empty bucket. Where levels share the users, both are scaled, see ``reports``.

Source: Wang, Blocki, Li, Jha 2017 (Locally differentially private protocols for frequency estimation), section 3.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import Any, ClassVar, Generic, Protocol, TypeVar, final

import attrs
import numpy as np

from cloister.core.buckets import BundleArrays, QuestionContext, Space
from cloister.core.budget import Budget, Measure
from cloister.core.errors import InvalidInput
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.registry.components import component
from cloister.core.reports import Gain, ReportLaw
from cloister.core.trust import Local
from cloister.core.types import AnyArray, Floats, Ids, Ints
from cloister.noise.channel import LookupTable
from cloister.plugins.oracles.local.question import Keeping, LocalQuestion, Randomiser, Tallying, Uncounted
from cloister.plugins.oracles.local.randomised_response import Response, odds
from cloister.plugins.oracles.local.reports import Kept, Share, Sharing, Tallies, share_option

ROUNDED = 2.0**-30
"""Twice as much, relatively, as p and q of any oracle are off: public hashes of two buckets are equal by up to 2^-32
oftener than if they were random, multiply-shift is uneven by at most 2^-32, ties and float64 are less."""

CUT = 2.0**-46
"""Above the probability of a set that is too large to be sent (``optimised_unary``), e^-32."""


@final
@attrs.frozen
class ResponseProbabilities:
    """Chances of a report to support a bucket. Args: own (p: its user's bucket), other (q: any other)."""

    own: float
    other: float

    @property
    def noise(self) -> float:
        """Variance that one report adds to the count of an empty bucket."""
        return self.other * (1 - self.other) / (self.own - self.other) ** 2

    @property
    def gain(self) -> tuple[float, float]:
        """The most that one report adds to a count, by supporting its bucket, and takes off, by not doing so.

        With it N grows by one, and S by one or by nothing: (1 - q) / (p - q), or -q / (p - q). It is exact, whatever
        other reports say.
        """
        return (1 - self.other) / (self.own - self.other), self.other / (self.own - self.other)

    def law(self, supports: Ints, reports: int, size: int) -> ReportLaw:
        """Whatever bucket a user is in, or none, she supports each with a probability from q to p: fewer supports than
        noise alone would make, or more than if all people were there, are liars'. It is true of what is drawn but for
        ``ROUNDED`` and ``CUT``.

        Args:
            supports: see ``Tallied.supports``.
            size: buckets.
        """
        least, most = max(0.0, self.other * (1 - ROUNDED) - CUT), min(1.0, self.own * (1 + ROUNDED))
        return ReportLaw.alike(lambda at: f"bucket {at}" if at < size else "no bucket", supports, reports, least, most)

    def estimate(self, supports: Ints, reports: int) -> Floats:
        """Counts (m,) from how many of so many reports support each bucket (m,)."""
        return np.asarray((supports - reports * self.other) / (self.own - self.other), np.float64)


class CountRandomiser(Randomiser, Protocol):
    """One level's mechanism: a user's half, and what reports say about buckets."""

    @property
    def each(self) -> int:
        """Secret words that one answer takes, whatever the row is."""
        ...

    @property
    def size(self) -> int:
        """Buckets of this level."""
        ...

    @property
    def chances(self) -> ResponseProbabilities: ...

    @property
    def at_once(self) -> int:
        """Buckets of a liar's choice that one possible answer supports, whatever her number is."""
        ...

    def randomise(self, ids: Ints, users: Ids, words: Ids) -> AnyArray:
        """Bucket ids (n,), -1 for none, to answers (n, width)."""
        ...

    def bundled(self) -> dict[str, Any]:
        """For devices that run no Python, with the name of its "randomiser"."""
        ...


class OneResponse(Uncounted, ABC):
    """A count mechanism whose answer is one symbol, a function of the bucket and public coins, by ``Response``: eps-DP.

    Args:
        size: buckets of this level.
        response: on the symbols.
    """

    size: int
    response: Response

    each, width, at_once = 2, 1, 1

    @property
    def dtype(self) -> str:
        return "u1" if self.response.symbols <= 2**8 else "u2" if self.response.symbols <= 2**16 else "u4"

    @abstractmethod
    def symbols(self, ids: Ints, users: Ids) -> Ints:
        """The symbols (n,) of users in these buckets (n,), -1 for none (which stays -1, or has a symbol)."""

    def randomise(self, ids: Ints, users: Ids, words: Ids) -> AnyArray:
        return self.response.randomise(self.symbols(ids, users), words).astype(self.dtype)[:, None]

    def possible(self, answers: AnyArray) -> bool:
        return bool((answers < self.response.symbols).all())


class Tallied(CountRandomiser, Protocol):
    """A mechanism whose answers add up to a vector."""

    def tally(self, users: Ids, answers: AnyArray) -> Ints:
        """Exact integers, which add up over reports."""
        ...

    def supports(self, total: Ints, reports: int) -> Ints:
        """How many of so many reports support each bucket (size,); after these, where 'in no bucket' is a symbol like
        any other, that."""
        ...


class Asked(CountRandomiser, Protocol):
    """A mechanism whose answers are looked through whenever a bucket is asked for."""

    def support(self, users: Ids, answers: AnyArray, ids: Ints) -> Ints:
        """How many of these reports support each of the buckets (m,)."""
        ...


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
    def randomisers(self) -> tuple[R, ...]:
        return self.levels

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

    def chances(self, level: int) -> ResponseProbabilities:
        return self.levels[level].chances

    @property
    def gains(self) -> tuple[Gain, ...]:
        """By ``ResponseProbabilities.gain``: a report that supports a bucket, or not, is all that an estimate sees
        of it."""
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


@final
@attrs.frozen
class Direct(OneResponse):
    """A user's bucket, by randomised response on K + 1 symbols, the last for 'in no bucket', so that she is a user like
    any other.

    A report supports the bucket that it names: p = t + (1 - t) / k, q = (1 - t) / k, with k = K + 1 symbols.
    """

    size: int
    response: Response

    @property
    def chances(self) -> ResponseProbabilities:
        k, t = self.response.symbols, self.response.truth
        return ResponseProbabilities(t + (1 - t) / k, (1 - t) / k)

    def symbols(self, ids: Ints, users: Ids) -> Ints:
        return np.where(ids >= 0, ids, self.size)

    def bundled(self) -> dict[str, Any]:
        return {"randomiser": "direct", "size": self.size, **self.response.bundled}

    def tally(self, users: Ids, answers: AnyArray) -> Ints:
        return np.asarray(np.bincount(answers[:, 0].astype(np.int64), minlength=self.response.symbols), np.int64)

    def supports(self, total: Ints, reports: int) -> Ints:
        return total


@component
class LocalCounts(ABC):
    """A count oracle whose users answer each level by one randomiser. The guarantee is that of ``level``, which keeps
    the odds that it is given; how a row that is in a bucket of every level is paid for, see ``reports``.

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
