"""Facts of reports before they come: what one can add to an answer, the law of their numbers, and whether chance
explains those that came.

A number x of n is a sum of n independent coins, each of a probability between two known bounds, whoever reports and
whatever the rows are. Hoeffding 1963, Theorem 1, for coins that differ: P(X >= x) <= exp(-n KL(x / n, p)) for every p
from their mean up to x / n, and likewise below. The mean is within the bounds too, so p is taken at the nearer one; a
number within them is no wonder.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, final

import attrs

from cloister.core.types import Ints


@final
@attrs.frozen
class Gain:
    """Effect that a report which is possible, but not honest, has on to the values of one level.

    An honest report adds one row to one bucket on average. That of a liar adds up to ``most``, since estimators divide
    by how much noise leaves of the truth. Rows of a count; for sums, lengths of a vector in norm bounds.

    Args:
        most: that any report adds to a bucket.
        least: that any report takes off a bucket. For sums as ``most``, in the opposite direction.
        usual: that a liar adds to a bucket, and in a direction, of her choice, if numbers are given out blindly: the
            mean over the public coins of a number.
        buckets: so many of her choice get it at once, whatever her number is.
        bound: what one is worth: 1 row, or the norm bound of a vector in the caller's units.
        factor: of how many users a report that answers this level stands for one (levels that share the users).
    """

    most: float
    least: float
    usual: float
    buckets: int
    bound: float = 1.0
    factor: float = 1.0

    @property
    def chance(self) -> float:
        """q: that a report supports a bucket its user is not in. Of counts: least = q / (p - q), and most = (1 - q) /
        (p - q)."""
        return self.least / (self.most + self.least)


SIGNIFICANCE = 1e-9
"""Probability, at most, that a round of people with blindly given numbers, who send what encoders make, is doubted: one
half for ``shares``, one for ``laws``."""


@final
@attrs.frozen
class Proportion:
    """A number of reports that chance may or may not explain.

    Args: what (in words), found, among (how many could have), planned (probability of each; the least, if it is not
        known exactly), most (the largest; None: as planned).
    """

    what: str
    found: int
    among: int
    planned: float
    most: float | None = None

    @property
    def bounds(self) -> tuple[float, float]:
        """Least and largest probability that one report is counted."""
        return self.planned, self.planned if self.most is None else self.most

    def log_chance(self) -> float:
        """Upper bound on the log-probability of a number at least this far off, on either side."""
        if not self.among:
            return 0.0
        q = self.found / self.among
        low, high = self.bounds
        p = min(max(q, low), high)
        divergence = sum(a * math.log(a / b) for a, b in ((q, p), (1 - q, 1 - p)) if a > 0)
        return math.log(2) - self.among * divergence


@final
@attrs.frozen
class ReportLaw:
    """Numbers of reports that one proof bounds. Args: proportions (all that can be doubted), of (how many numbers of
    that kind there are)."""

    proportions: tuple[Proportion, ...]
    of: int

    @classmethod
    def alike(cls, named: Callable[[int], str], counts: Ints, among: int, low: float, high: float) -> ReportLaw:
        """Numbers (m,) with the same bounds: only the smallest and the largest can be doubted. Args: named (what each
        of them is called)."""
        ends = dict.fromkeys((int(counts.argmin()), int(counts.argmax())))
        proportions = (Proportion(named(at), int(counts[at]), among, low, high) for at in ends)
        return cls(tuple(proportions), len(counts))

    def at(self, place: str) -> ReportLaw:
        """The same law, with the place of its numbers before their names: "level 2, ..."."""
        return ReportLaw(tuple(attrs.evolve(one, what=f"{place}, {one.what}") for one in self.proportions), self.of)


class ReportFacts:
    """Base of channels that know something of the reports which people will send. Of any other channel nothing is
    known: that is what the members here say.

    Laws: whatever reports are absorbed, one more that ``absorb`` takes changes no value of the answer by more than its
    level's ``Gain`` says, times ``factor``. It holds for every report of that level, not on average: it is the law of
    the estimator, not of the people. A proportion's number is that of independent coins, one per report, whose
    probabilities are within its bounds for every row, over the secret coins of its user and the public ones of her
    number. Or it is so given how many coins there are (``among``).
    """

    __slots__ = ()

    @property
    def response_values(self) -> int | None:
        """k, if each report is, given public coins, one answer of k-ary randomised response (of at least k values; at
        no input is an answer more than e^epsilon times as likely as any other); else None."""
        return None

    @property
    def gains(self) -> tuple[Gain, ...]:
        """Gains of each level; empty where nothing bounds what one person who lies can do to the answers."""
        return ()

    def reported(self, summary: Any) -> tuple[int, ...]:
        """How many reports of each level a summary holds, where there are ``gains``."""
        return ()

    def answered(self, summary: Any) -> tuple[int, ...]:
        """How many users answered each level, if a public coin of each user number divides them evenly over the levels;
        empty if all users answer every level. A cheater who chooses a number can thereby choose a level."""
        return ()

    def laws(self, summary: Any) -> tuple[ReportLaw, ...]:
        """How often honest reports say a thing, whatever the rows are, for all levels; empty where nothing is known."""
        return ()


def facts_of(channel: object) -> ReportFacts:
    """What a channel knows of its reports."""
    return channel if isinstance(channel, ReportFacts) else ReportFacts()
