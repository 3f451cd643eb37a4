"""Robust decoding: assume that a share s of the reports is malicious, and discard what these could fabricate.

Of N reports that answer a level of a count question at most s N are malicious. The estimate of a bucket without honest
people exceeds b + B only with small probability:

    b = T s N most,      B = T (most + least) (L / 3 + sqrt((L / 3)^2 + 2 L N q (1 - q))),

with ``Gain.most``, ``least`` and q of the channel, and T levels that share the users. Malicious reports add at most b,
whatever they say (``ReportFacts``). The honest support of the bucket is a sum of at most N independent coins of
probability q, which exceeds its mean by L / 3 + sqrt(...) with probability at most e^-L = ``CHANCE`` (Bernstein's
inequality). This holds for every bucket that is chosen without knowing the secret coins of the honest.

From a count of at most b + B, b is subtracted: a bucket of malicious reports alone then looks like noise, and no more.
A larger count is left unchanged, and up to b of it may be fabricated. So malicious reports do not make a bucket count
that would not count without them, except with probability ``CHANCE``; and they shift the count of a bucket that does by
at most b.

A sum is shortened to what its bucket's (decoded) count and noise allow: |S| <= C R + e (sqrt(d) + ``FAR``), for vectors
of norm at most R and a standard error of e. Shorter lies stay: in a bucket that counts, they move the mean by s N
``usual`` bounds over the count (``plan.liars``), and no test can tell them from rows.

A malicious share of 1 / (k most) or more can fabricate a group as large as the average one. Nothing withstands that: it
is refused.

The cost: groups whose buckets hold fewer people than b + B are lost, also if nobody lies. Privacy is not affected: this
is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, final

import attrs
import numpy as np

from cloister.core.errors import InvalidInput, Refused
from cloister.core.questions import OpenedQuestion, Round
from cloister.core.reports import Gain, facts_of
from cloister.core.roles import Table
from cloister.core.types import Floats, Ints

INSTEAD = "Assume a smaller share, or plan for fewer buckets, more people or a larger epsilon"

FAR = 4.0
"""Standard deviations: noise in d coordinates exceeds sqrt(d) + 4 of them in one of 3,000 sums."""

SURE = 7.0
"""Standard deviations that reveal manipulation: a normal value exceeds them once in 1e11 times."""

CHANCE = 0.01
"""Bound on the probability that noise lifts a bucket of malicious reports alone above b + B."""


@final
@attrs.define
class RobustDecoding:
    """Decoding of the tables of one round (``Session``).

    Args:
        share: maximum share of malicious reports per question and level, above 0 and below 1.
        k: number of centres.
    """

    share: float
    k: int
    _counted: list[LimitedCounts] = attrs.field(factory=list, init=False)
    _summed: list[LimitedSums] = attrs.field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise InvalidInput(f"the share of malicious reports is {self.share:g}: give one above 0 and below 1")

    def check(self, round: Round[Any]) -> None:
        """Raise InvalidInput if the share can fabricate an average group, or its influence is unbounded."""
        for part in round.parts:
            names, gains = ", ".join(event.mechanism for event in part.channel.events), facts_of(part.channel).gains
            if not gains:
                raise InvalidInput(f"the influence of one report on '{names}' is unbounded: it withstands no share")
            if part.vectors is not None:
                continue
            largest_gain = max(gain.most for gain in gains)
            if self.share * largest_gain * self.k >= 1:
                raise InvalidInput(
                    f"{self.share:.2%} of the reports can fabricate {self.share * largest_gain:.1%} of the people, as "
                    f"much as one of {self.k} equal groups: '{names}' withstands less than "
                    f"{1 / (self.k * largest_gain):.2%}"
                )

    def __call__(self, round: Round[Any], summaries: Sequence[Any], tables: Sequence[Table]) -> tuple[Table, ...]:
        """Decode the tables. Raises: InvalidInput: as ``check``."""
        self.check(round)
        decoded, counted = list[Any](tables), list[int]()
        for at, part in enumerate(round.parts):
            if part.vectors is None:
                decoded[at] = self._limited(part, summaries[at], tables[at])
                counted.append(at)
        for at, part in enumerate(round.parts):
            same = [j for j in counted if round.parts[j].cells is part.cells]
            if part.vectors is not None and same:
                scale = part.fraction / round.parts[same[0]].fraction
                decoded[at] = LimitedSums(
                    tables[at], decoded[same[0]], tables[same[0]], facts_of(part.channel).gains[0].bound, scale
                )
                self._summed.append(decoded[at])
        return tuple(decoded)

    def doubts(self) -> list[str]:
        """Describe signs of manipulation in the tables, once they were read. Raises: Refused: no bucket counts."""
        fewest = min((len(table.above) for table in self._counted if table.looked), default=self.k)
        pulled, signs = sum(len(table.pulled) for table in self._summed), list[str]()
        if not fewest:
            raise Refused(
                f"no bucket holds more people than {self.share:.3g} of the reports can fabricate: nothing was "
                f"released. {INSTEAD}"
            )
        if fewest < self.k:
            signs.append(
                f"only {fewest} buckets hold more people than {self.share:.3g} of the reports can fabricate, for "
                f"{self.k} centres: some may be fabricated, or noise. {INSTEAD}"
            )
        if pulled:
            signs.append(
                f"the sums of {pulled} buckets are longer than their people and noise can make them: malicious "
                f"reports pull there"
            )
        return signs

    def _limited(self, part: OpenedQuestion, summary: Any, table: Table) -> LimitedCounts:
        facts = facts_of(part.channel)
        levels = list(zip(facts.gains, facts.reported(summary), strict=True))
        harms = [gain.factor * self.share * reports * gain.most for gain, reports in levels]
        self._counted.append(LimitedCounts(table, harms, [noise(gain, reports) for gain, reports in levels]))
        return self._counted[-1]


def noise(gain: Gain, reports: int) -> float:
    """Return B, the bound on what honest people elsewhere add to a bucket."""
    q, seldom = gain.chance, -math.log(CHANCE)
    above = seldom / 3 + math.sqrt((seldom / 3) ** 2 + 2 * seldom * reports * q * (1 - q))
    return gain.factor * (gain.most + gain.least) * above


@final
class LimitedCounts:
    """Counts, less b where malicious reports may be all there is.

    Args:
        table: counts.
        harms: b of each level.
        noises: B of each level.

    Attributes:
        looked: whether any bucket was read.
        above: level and id of the buckets above b + B.
    """

    def __init__(self, table: Table, harms: Sequence[float], noises: Sequence[float]) -> None:
        self._table, self._harms, self._noises = table, harms, noises
        self.looked, self.above = False, set[tuple[int, int]]()

    def at(self, ids: Ints, level: int = 0) -> Floats:
        values, harm = self._table.at(ids, level), self._harms[level]
        above, self.looked = values > harm + self._noises[level], True
        self.above.update((level, bucket) for bucket in ids[above].tolist())
        return np.where(above, values, values - harm)

    def standard_error(self, ids: Ints, level: int = 0) -> Floats:
        return self._table.standard_error(ids, level)


@final
class LimitedSums:
    """Sums, no longer than their bucket's people and noise can make them.

    Args:
        table: sums.
        counts: decoded counts.
        plain: original counts.
        bound: norm bound of one vector.
        scale: users asked for sums over users asked for counts.

    Attributes:
        pulled: level and id of the buckets read whose sums are longer than even the original counts allow, with
            ``SURE`` standard deviations of all chance: the counts' noise, the sums', and who is asked for which.
    """

    def __init__(self, table: Table, counts: Table, plain: Table, bound: float, scale: float) -> None:
        self._table, self._counts, self._plain, self._bound, self._scale = table, counts, plain, bound, scale
        self.pulled = set[tuple[int, int]]()

    def at(self, ids: Ints, level: int = 0) -> Floats:
        sums, errors = self._table.at(ids, level), self._table.standard_error(ids, level)
        lengths, wide = np.linalg.norm(sums, axis=1), math.sqrt(sums.shape[1])
        people = np.maximum(self._counts.at(ids, level) * self._scale, 1.0)
        longest = people * self._bound + errors * (wide + FAR)
        threshold = self._people(ids, level) * self._bound + errors * (wide + SURE)
        self.pulled.update((level, bucket) for bucket in ids[lengths > threshold].tolist())
        return np.asarray(sums * np.minimum(1.0, longest / np.maximum(lengths, 1e-300))[:, None], np.float64)

    def _people(self, ids: Ints, level: int) -> Floats:
        """Return upper bounds (m,) on the number of people asked for sums."""
        people = np.maximum(self._plain.at(ids, level) * self._scale, 1.0)
        noise = self._plain.standard_error(ids, level) * self._scale
        return np.asarray(people + SURE * np.sqrt(noise**2 + people * (1 + self._scale)), np.float64)

    def standard_error(self, ids: Ints, level: int = 0) -> Floats:
        return self._table.standard_error(ids, level)
