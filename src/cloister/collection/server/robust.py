"""Reading answers as if a stated share of the reports lied: what so many liars may have invented does not count.

Of N reports that answer a level of a count question at most s N lie. A bucket in which no honest person is has an
estimate of at most b + B, but for noise that is seldom:

    b = T s N most,      B = T (most + least) (L / 3 + sqrt((L / 3)^2 + 2 L N q (1 - q))),

with ``Gain.most``, ``least`` and q of the channel, and T levels that share the users. Liars add at most b, whatever
they say (``ReportFacts``). Of the honest, so many support the bucket as of at most N independent coins of probability q
come up, L / 3 + ... above the mean with a probability of at most e^-L = ``CHANCE`` (Bernstein's inequality). That is so
of every bucket that liars name without knowing the secret coins of the honest.

A count of at most b + B is read less b: a bucket of liars alone then reads as noise would have it, and no more. A count
above that is read as it is, up to b of which liars may have added. So liars make no bucket count that would not count
without them, but with probability ``CHANCE``; and of a bucket that does, they shift the count by at most b.

A sum is read as no longer than its bucket's count, as it is read, and noise can make it: |S| <= C R + e (sqrt(d) +
``FAR``), for vectors of norm at most R and a standard error of e. Shorter lies stay: in a bucket that counts, liars
move the mean by s N ``usual`` bounds over the count (``plan.liars``), and no test can tell them from rows.

Liars of a share above 1 / (k most) can invent a group as large as the average one. Nothing withstands that: it is
refused.

It costs groups whose buckets hold fewer people than b + B, also where nobody lies. It costs no privacy: all of it comes
after the reports.
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

INSTEAD = "Withstand less, or plan for fewer buckets, more people or a larger epsilon"

FAR = 4.0
"""Standard deviations: noise in d coordinates is longer than sqrt(d) + 4 of them in one of 3,000 sums."""

SURE = 7.0
"""Standard deviations of a doubt: a normal value is farther off once in 1e11 times."""

CHANCE = 0.01
"""Probability, at most, that noise lifts a bucket that only liars speak for above b + B."""


@final
@attrs.define
class RobustDecoding:
    """How the tables of one round are read (``Session``).

    Args:
        share: of the reports of every question and level, at most so many lie; above 0, below 1.
        k: centres.
    """

    share: float
    k: int
    _counted: list[LimitedCounts] = attrs.field(factory=list, init=False)
    _summed: list[LimitedSums] = attrs.field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise InvalidInput(f"the share of reports that may lie is {self.share:g}: give one above 0 and below 1")

    def check(self, round: Round[Any]) -> None:
        """Raises: InvalidInput: so many liars can invent an average group, or nothing bounds what they can do."""
        for part in round.parts:
            names, gains = ", ".join(event.mechanism for event in part.channel.events), facts_of(part.channel).gains
            if not gains:
                raise InvalidInput(f"nothing bounds what one liar can do to '{names}': it withstands no share of them")
            if part.vectors is not None:
                continue
            most = max(gain.most for gain in gains)
            if self.share * most * self.k >= 1:
                raise InvalidInput(
                    f"{self.share:.2%} of liars can invent {self.share * most:.1%} of the people, as much as one of "
                    f"{self.k} equal groups: '{names}' withstands less than {1 / (self.k * most):.2%}"
                )

    def __call__(self, round: Round[Any], summaries: Sequence[Any], tables: Sequence[Table]) -> tuple[Table, ...]:
        """Raises: InvalidInput: as ``check``."""
        self.check(round)
        found, counted = list[Any](tables), list[int]()
        for at, part in enumerate(round.parts):
            if part.vectors is None:
                found[at] = self._limited(part, summaries[at], tables[at])
                counted.append(at)
        for at, part in enumerate(round.parts):
            same = [j for j in counted if round.parts[j].cells is part.cells]
            if part.vectors is not None and same:
                scale = part.fraction / round.parts[same[0]].fraction
                found[at] = LimitedSums(
                    tables[at], found[same[0]], tables[same[0]], facts_of(part.channel).gains[0].bound, scale
                )
                self._summed.append(found[at])
        return tuple(found)

    def doubts(self) -> list[str]:
        """What the tables, once they are looked at, say of liars, in words. Raises: Refused: no bucket counts."""
        fewest = min((len(table.above) for table in self._counted if table.looked), default=self.k)
        pulled, found = sum(len(table.pulled) for table in self._summed), list[str]()
        if not fewest:
            raise Refused(
                f"no bucket holds more people than {self.share:.3g} of liars can invent: nothing was released. "
                f"{INSTEAD}"
            )
        if fewest < self.k:
            found.append(
                f"only {fewest} buckets hold more people than {self.share:.3g} of liars can invent, and there are "
                f"{self.k} centres: some may be theirs, or noise. {INSTEAD}"
            )
        if pulled:
            found.append(
                f"the sums of {pulled} buckets are longer than their people and noise can make them: somebody pulls "
                f"there"
            )
        return found

    def _limited(self, part: OpenedQuestion, summary: Any, table: Table) -> LimitedCounts:
        facts = facts_of(part.channel)
        each = list(zip(facts.gains, facts.reported(summary), strict=True))
        harms = [gain.factor * self.share * reports * gain.most for gain, reports in each]
        self._counted.append(LimitedCounts(table, harms, [noise(gain, reports) for gain, reports in each]))
        return self._counted[-1]


def noise(gain: Gain, reports: int) -> float:
    """B: what honest people elsewhere seldom add to a bucket."""
    q, seldom = gain.chance, -math.log(CHANCE)
    above = seldom / 3 + math.sqrt((seldom / 3) ** 2 + 2 * seldom * reports * q * (1 - q))
    return gain.factor * (gain.most + gain.least) * above


@final
class LimitedCounts:
    """Counts less what liars may have added, where that may be all. Args: table; harms (b) and noises (B) by level.

    Attributes:
        looked: whether any bucket was looked at.
        above: level and id of those that are above b + B.
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
        table: sums. counts: as they are read. plain: counts as they came.
        bound: of one vector.
        scale: users asked for sums over users asked for counts.

    Attributes:
        pulled: level and id of the buckets that were looked at whose sums are longer than even the counts as they came
            allow, with ``SURE`` standard deviations of everything: of their noise, of that of the sums, and of who is
            asked for which.
    """

    def __init__(self, table: Table, counts: Table, plain: Table, bound: float, scale: float) -> None:
        self._table, self._counts, self._plain, self._bound, self._scale = table, counts, plain, bound, scale
        self.pulled = set[tuple[int, int]]()

    def at(self, ids: Ints, level: int = 0) -> Floats:
        sums, errors = self._table.at(ids, level), self._table.standard_error(ids, level)
        lengths, wide = np.linalg.norm(sums, axis=1), math.sqrt(sums.shape[1])
        people = np.maximum(self._counts.at(ids, level) * self._scale, 1.0)
        longest = people * self._bound + errors * (wide + FAR)
        most = self._people(ids, level) * self._bound + errors * (wide + SURE)
        self.pulled.update((level, bucket) for bucket in ids[lengths > most].tolist())
        return np.asarray(sums * np.minimum(1.0, longest / np.maximum(lengths, 1e-300))[:, None], np.float64)

    def _people(self, ids: Ints, level: int) -> Floats:
        """The most (m,) who may have been asked for sums."""
        asked = np.maximum(self._plain.at(ids, level) * self._scale, 1.0)
        noise = self._plain.standard_error(ids, level) * self._scale
        return np.asarray(asked + SURE * np.sqrt(noise**2 + asked * (1 + self._scale)), np.float64)

    def standard_error(self, ids: Ints, level: int = 0) -> Floats:
        return self._table.standard_error(ids, level)
