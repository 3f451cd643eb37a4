"""Facts of reports: the largest effect of one report, the laws of their statistics, and tests of these laws.

A statistic X of n reports is a sum of n independent coins, each of a probability between two known bounds, whoever
reports and whatever the rows are. Hoeffding 1963, Theorem 1, for coins that differ: P(X >= x) <= exp(-n KL(x / n, p))
for every p from their mean up to x / n, and likewise below. The mean is within the bounds too, so p is taken at the
nearer one; a value of x / n within them is never doubted.
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
    """Largest effect of a dishonest but possible report on the values of one level.

    An honest report adds one row to one bucket on average. A liar's adds up to ``most``, since estimators divide by the
    part of the truth that the noise leaves. Effects are in rows for counts, in norm bounds for sums.

    Args:
        most: largest amount that any report adds to a bucket.
        least: largest amount that any report takes off a bucket; for sums as ``most``, in the opposite direction.
        usual: amount that a liar adds to a bucket (and in a direction) of her choice if user numbers are assigned
            blindly: the mean over the public coins of a number.
        buckets: number of buckets of her choice that get it at once, whatever her number is.
        bound: value of one: 1 row, or the norm bound of a vector in the caller's units.
        factor: number of users that one report on this level stands for (levels share the users).
    """

    most: float
    least: float
    usual: float
    buckets: int
    bound: float = 1.0
    factor: float = 1.0

    @property
    def chance(self) -> float:
        """Probability q that a report supports a bucket its user is not in.

        For counts, least = q / (p - q) and most = (1 - q) / (p - q).
        """
        return self.least / (self.most + self.least)


SIGNIFICANCE = 1e-9
"""False-alarm rate, at most, of the tests of a round of honest reports with blindly assigned numbers: one half for
response rates per question and level, one half for ``ReportFacts.laws``."""


@final
@attrs.frozen
class Proportion:
    """Number of reports with some property, which chance may or may not explain.

    Args:
        label: the property, in words.
        count: number of reports that have it.
        among: number of reports that could.
        planned: probability of each, or its lower bound.
        upper: upper bound on that probability; None: as planned.
    """

    label: str
    count: int
    among: int
    planned: float
    upper: float | None = None

    @property
    def bounds(self) -> tuple[float, float]:
        """Bounds on the probability that one report is counted."""
        return self.planned, self.planned if self.upper is None else self.upper

    def log_chance(self) -> float:
        """Return an upper bound on the log-probability of a number at least this far off, on either side."""
        if not self.among:
            return 0.0
        q = self.count / self.among
        low, high = self.bounds
        p = min(max(q, low), high)
        divergence = sum(a * math.log(a / b) for a, b in ((q, p), (1 - q, 1 - p)) if a > 0)
        return math.log(2) - self.among * divergence


@final
@attrs.frozen
class ReportLaw:
    """Numbers of reports with bounds by one proof.

    Args:
        proportions: those that can be doubted.
        of: how many numbers of that kind there are, for the correction of multiple tests.
    """

    proportions: tuple[Proportion, ...]
    of: int

    @classmethod
    def alike(cls, named: Callable[[int], str], counts: Ints, among: int, low: float, high: float) -> ReportLaw:
        """Return the law of numbers (m,) with the same bounds; only the smallest and the largest can be doubted."""
        ends = dict.fromkeys((int(counts.argmin()), int(counts.argmax())))
        proportions = (Proportion(named(at), int(counts[at]), among, low, high) for at in ends)
        return cls(tuple(proportions), len(counts))

    def at(self, place: str) -> ReportLaw:
        """Return the same law, with the place of its numbers before their names: "level 2, ..."."""
        return ReportLaw(tuple(attrs.evolve(one, label=f"{place}, {one.label}") for one in self.proportions), self.of)


class ReportFacts:
    """Base class of channels that know facts of their reports; by default nothing is known.

    Laws: whatever reports are absorbed, one more that ``absorb`` accepts changes no value of the answer by more than
    its level's ``Gain``, times ``factor``. This holds for every report of that level, not on average: it is a property
    of the estimator, not of the people. A proportion counts heads of independent coins, one per report, whose
    probabilities are within its bounds for every row, over the secret coins of its user and the public ones of her
    number; or it does so given the number of coins (``among``).
    """

    __slots__ = ()

    @property
    def response_values(self) -> int | None:
        """Number k of values, if each report is, given public coins, one answer of k-ary randomised response.

        There are at least k values, and at no input is an answer more than e^epsilon times as likely as any other.
        """
        return None

    @property
    def gains(self) -> tuple[Gain, ...]:
        """Gains of each level; empty if nothing bounds the effect of one liar on the answers."""
        return ()

    def reported(self, summary: Any) -> tuple[int, ...]:
        """Return the number of reports of each level in a summary, if there are ``gains``."""
        return ()

    def answered(self, summary: Any) -> tuple[int, ...]:
        """Return the number of users who answered each level, if a public coin of the user number decides the level.

        The coin divides users evenly; a cheater who chooses a number can thereby choose a level. Empty if all users
        answer every level.
        """
        return ()

    def laws(self, summary: Any) -> tuple[ReportLaw, ...]:
        """Return the laws of honest reports' statistics, whatever the rows are, for all levels."""
        return ()


def facts_of(channel: object) -> ReportFacts:
    """Return the facts that a channel knows of its reports."""
    return channel if isinstance(channel, ReportFacts) else ReportFacts()
