"""One estimator for all local counts: how many reports support a bucket.

A report *supports* a bucket, or not. It supports the bucket that its user is in with probability p, and any other
bucket, and every bucket if she is in none, with probability q (over her own coins and the public ones). Of N reports, S
support bucket v:

    estimate  (S - N q) / (p - q),            unbiased: n_v p + (N - n_v) q reports are expected
    variance  N q (1 - q) / (p - q)^2  +  n_v (1 - p - q) / (p - q),

the first term being the noise of an empty bucket. Where levels share the users, both are scaled, see ``levels``.

Source: Wang, Blocki, Li, Jha 2017 (Locally differentially private protocols for frequency estimation), section 3.
"""

from __future__ import annotations

from typing import Any, Protocol, final

import attrs
import numpy as np

from cloister.core.reports import ReportLaw
from cloister.core.types import AnyArray, Floats, Ids, Ints
from cloister.plugins.oracles.local.question import Randomiser

ROUNDED = 2.0**-30
"""Twice as much, relatively, as p and q of any oracle are off: public hashes of two buckets are equal by up to 2^-32
oftener than if they were random, multiply-shift is uneven by at most 2^-32, ties and float64 are less."""

CUT = 2.0**-46
"""Above the probability of a set that is too large to be sent (``optimised_unary``), e^-32."""


@final
@attrs.frozen
class Chances:
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
    def size(self) -> int:
        """Buckets of this level."""
        ...

    @property
    def chances(self) -> Chances: ...

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
