"""Counts under local trust, by any mechanism: the estimator, both halves of a question, and the oracles' base class.

The estimator counts the reports that *support* a bucket. A report supports its user's bucket with probability p, and
any other bucket, or every bucket if she is in none, with probability q (over her own coins and the public ones). If S
of N reports support bucket v:

    estimate  (S - N q) / (p - q),            unbiased: n_v p + (N - n_v) q reports are expected
    variance  N q (1 - q) / (p - q)^2  +  n_v (1 - p - q) / (p - q),

where the first term is the noise of an empty bucket. If levels share the users, both are scaled, see ``reports``.

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

from cloister.plugin import (
    AnyArray,
    Budget,
    BundleArrays,
    Floats,
    Gain,
    Ids,
    Ints,
    InvalidInput,
    Local,
    LookupTable,
    Measure,
    NoiseRng,
    PublicRng,
    QuestionContext,
    ReportLaw,
    Space,
    component,
)
from cloister.plugins.oracles.local.coins import odds
from cloister.plugins.oracles.local.question import Keeping, LocalQuestion, Randomiser, Tallying, WithoutReportLaws
from cloister.plugins.oracles.local.randomised_response import Response
from cloister.plugins.oracles.local.reports import Kept, Share, Sharing, Tallies, share_option

ROUNDED = 2.0**-30
"""Twice the relative error of any oracle's p and q: public hashes collide by up to 2^-32 more often than random ones,
multiply-shift is uneven by at most 2^-32, ties and float64 contribute less."""

CUT = 2.0**-46
"""Bound on the probability e^-32 of a set that is too large to be sent (``optimised_unary``)."""


@final
@attrs.frozen
class ResponseProbabilities:
    """Probabilities that a report supports its user's bucket (p) and any other bucket (q)."""

    p: float
    q: float

    @property
    def noise(self) -> float:
        """Variance that one report adds to the count of an empty bucket."""
        return self.q * (1 - self.q) / (self.p - self.q) ** 2

    @property
    def gain(self) -> tuple[float, float]:
        """Amounts that a report adds to a count if it supports the bucket, and subtracts if it does not.

        N grows by one, and S by one or not: (1 - q) / (p - q), or -q / (p - q), exactly, whatever other reports are.
        """
        return (1 - self.q) / (self.p - self.q), self.q / (self.p - self.q)

    def law(self, supports: Ints, reports: int, size: int) -> ReportLaw:
        """Return the law that a report supports each bucket with a probability from q to p, whatever its row is.

        Fewer supports than noise alone makes, or more than if everyone were in the bucket, come from malicious users.
        The law holds up to ``ROUNDED`` and ``CUT``.

        Args:
            supports: see ``TalliedRandomiser.supports``.
            reports: N.
            size: number of buckets.
        """
        low, high = max(0.0, self.q * (1 - ROUNDED) - CUT), min(1.0, self.p * (1 + ROUNDED))
        return ReportLaw.alike(lambda at: f"bucket {at}" if at < size else "no bucket", supports, reports, low, high)

    def estimate(self, supports: Ints, reports: int) -> Floats:
        """Return counts (m,) from the numbers of reports that support each bucket (m,)."""
        return np.asarray((supports - reports * self.q) / (self.p - self.q), np.float64)


class CountRandomiser(Randomiser, Protocol):
    """Randomiser of one level's buckets."""

    @property
    def secret_words(self) -> int:
        """Secret words per answer, whatever the row is."""
        ...

    @property
    def size(self) -> int:
        """Number of buckets of this level."""
        ...

    @property
    def chances(self) -> ResponseProbabilities: ...

    @property
    def at_once(self) -> int:
        """Buckets of a malicious user's choice that one answer can support, whatever her number is."""
        ...

    def randomise(self, ids: Ints, users: Ids, words: Ids) -> AnyArray:
        """Return answers (n, width) for bucket ids (n,), -1 for none."""
        ...

    def bundled(self) -> dict[str, Any]:
        """Return parameters for non-Python clients, with the name of the "randomiser"."""
        ...


class OneResponse(WithoutReportLaws, ABC):
    """Count mechanism that answers by ``Response`` on one symbol, a function of bucket and public coins: eps-DP.

    Args:
        size: number of buckets of this level.
        response: on the symbols.
    """

    size: int
    response: Response

    secret_words, width, at_once = 2, 1, 1

    @property
    def dtype(self) -> str:
        return "u1" if self.response.symbols <= 2**8 else "u2" if self.response.symbols <= 2**16 else "u4"

    @abstractmethod
    def symbols(self, ids: Ints, users: Ids) -> Ints:
        """Return the symbols (n,) of users in these buckets (n,), -1 for none (which stays -1, or has a symbol)."""

    def randomise(self, ids: Ints, users: Ids, words: Ids) -> AnyArray:
        return self.response.randomise(self.symbols(ids, users), words).astype(self.dtype)[:, None]

    def possible(self, answers: AnyArray) -> bool:
        return bool((answers < self.response.symbols).all())


class TalliedRandomiser(CountRandomiser, Protocol):
    """Randomiser whose answers add up to a vector."""

    def tally(self, users: Ids, answers: AnyArray) -> Ints:
        """Return exact integers, which add up over reports."""
        ...

    def supports(self, total: Ints, reports: int) -> Ints:
        """Count the reports that support each bucket (size,), and then 'in no bucket' where that is a symbol."""
        ...


class KeptRandomiser(CountRandomiser, Protocol):
    """Randomiser whose answers are scanned whenever a bucket is looked up."""

    def support(self, users: Ids, answers: AnyArray, ids: Ints) -> Ints:
        """Count the reports that support each of the buckets (m,)."""
        ...


DRAWN = 2**19
"""Limit of secret words in memory at once (4 MB)."""

R = TypeVar("R", bound=CountRandomiser)


@final
@attrs.frozen
class Answers(LocalQuestion[Ints], Generic[R]):
    """Users' half of a count question: a ``LocalQuestion`` with a randomiser for each of its ``levels``."""

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
        """Smallest k of the levels, if each user answers one level by k-ary response, else None."""
        levels: tuple[CountRandomiser, ...] = self.levels
        symbols = [level.response.symbols for level in levels if isinstance(level, OneResponse)]
        return min(symbols) if self.sharing.parts == 1 and len(symbols) == len(self.levels) else None

    def batch_size(self, level: int) -> int:
        return max(1, DRAWN // self.levels[level].secret_words)

    def answer(self, items: Ints, positions: Ints, users: Ids, level: int, secret: NoiseRng) -> AnyArray:
        randomiser = self.levels[level]
        return randomiser.randomise(items[positions, level], users, secret.words(users, randomiser.secret_words))

    def bundled_level(self, level: int, arrays: BundleArrays) -> dict[str, Any]:
        return self.levels[level].bundled()

    def bundled(self, arrays: BundleArrays) -> dict[str, Any]:
        return {"kind": "counts", **self.bundled_form(arrays)}

    def chances(self, level: int) -> ResponseProbabilities:
        return self.levels[level].chances

    @property
    def gains(self) -> tuple[Gain, ...]:
        """Gain of each level: an estimate depends on a report only through the buckets it supports."""
        gains = [(*level.chances.gain, level.at_once) for level in self.levels]
        return tuple(
            Gain(added, removed, added, at_once, factor=self.sharing.factor) for added, removed, at_once in gains
        )

    def error(self, level: int) -> float:
        return float(np.sqrt(self.rows * self.sharing.factor * self.chances(level).noise))

    @property
    def variance(self) -> float:
        """Variance of one count, on average over the levels."""
        return float(np.mean([self.error(level) ** 2 for level in range(len(self.levels))]))

    def counts(self, reports: tuple[int, ...], support: Callable[[Ints, int], Ints]) -> LookupTable:
        """Return a table of counts.

        Args:
            reports: number of reports of each level.
            support: function from ids (m,) and their level to the numbers of reports that support them.
        """
        factor, chances = self.sharing.factor, [level.chances for level in self.levels]
        return self.table(
            reports, lambda ids, level: factor * chances[level].estimate(support(ids, level), reports[level])
        )


@final
@attrs.frozen
class TalliedChannel(Tallying[Answers[TalliedRandomiser]]):
    """Channel that adds up reports as they arrive, in a summary of one number per bucket."""

    def tally(self, users: Ids, answers: AnyArray, level: int) -> Ints:
        return self.asked.levels[level].tally(users, answers)

    def supports(self, summary: Tallies) -> list[Ints]:
        """Return ``TalliedRandomiser.supports`` of every level."""
        levels = zip(self.asked.levels, summary.totals, summary.reports, strict=True)
        return [level.supports(total, reports) for level, total, reports in levels]

    def laws(self, summary: Tallies) -> tuple[ReportLaw, ...]:
        levels = enumerate(zip(self.asked.levels, self.supports(summary), summary.reports, strict=True), 1)
        laws = (level.chances.law(supports, n, level.size).at(f"level {i}") for i, (level, supports, n) in levels)
        return (*laws, *super().laws(summary))

    def decode(self, summary: Tallies, rng: NoiseRng) -> LookupTable:
        supports = self.supports(summary)
        return self.asked.counts(summary.reports, lambda ids, level: supports[level][ids])


@final
@attrs.frozen
class KeptChannel(Keeping[Answers[KeptRandomiser]]):
    """Channel that keeps reports, and scans them for every bucket that is looked up."""

    def decode(self, summary: Kept, rng: NoiseRng) -> LookupTable:
        levels, parts = self.asked.levels, self.parts(summary)
        reports = tuple(len(users) for users, _ in parts)
        return self.asked.counts(reports, lambda ids, level: levels[level].support(*parts[level], ids))


@final
@attrs.frozen
class Direct(OneResponse):
    """Randomised response on k = K + 1 symbols: the user's bucket, or the last one for 'in no bucket'.

    A report supports the bucket that it names: p = t + (1 - t) / k, q = (1 - t) / k.
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
    """Base of count oracles whose users answer each level by one randomiser.

    The guarantee is that of ``level``, which keeps to the given odds. For several levels see ``reports``.

    Attributes:
        mechanism: registry name.
        max_buckets: limit per level.
        instead: oracles to use above it, as text.
        channel: adds up reports as they arrive, or keeps them.
    """

    share: Share = share_option()

    trust = Local
    measure: ClassVar[Measure] = "pure"
    mechanism: ClassVar[str]
    max_buckets: ClassVar[float] = math.inf
    instead: ClassVar[str] = ""
    channel: ClassVar[type[TalliedChannel] | type[KeptChannel]] = TalliedChannel

    @abstractmethod
    def level(self, size: int, odds: Fraction, seed: PublicRng) -> Any:
        """Return a level's randomiser, whose answers are at most ``odds`` times as likely for one row as for another.

        Args:
            size: number of buckets.
            odds: at most e^eps.
            seed: public, this level's own.
        """

    def open(self, space: Space, budget: Budget, context: QuestionContext) -> TalliedChannel | KeptChannel:
        """Return a channel with a randomiser for each level.

        Raises:
            InvalidInput: more buckets than ``max_buckets``.
        """
        if (size := max(space.sizes)) > self.max_buckets:
            raise InvalidInput(
                f"'{self.mechanism}' is for at most {self.max_buckets} buckets, not {size}: use {self.instead}"
            )
        sharing = Sharing(self.share, space.levels, context.seed.child("sharing"))
        level_odds = odds(budget, sharing.parts)
        levels = tuple(self.level(n, level_odds, context.seed.child("hash", i)) for i, n in enumerate(space.sizes))
        return self.channel(Answers(self.mechanism, budget, context.rows, sharing, levels))

    def variance(self, space: Space, budget: Budget, context: QuestionContext) -> float:
        return self.open(space, budget, context).asked.variance
