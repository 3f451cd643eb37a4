"""Both halves of a local question: users have a ``LocalQuestion``, and the server adds reports up or keeps them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import attrs
import numpy as np

from cloister.core.buckets import BundleArrays, described
from cloister.core.budget import Event
from cloister.core.randomness import NoiseRng
from cloister.core.reports import Gain, ReportFacts, ReportLaw
from cloister.core.types import AnyArray, Ids, Ints
from cloister.plugins.oracles.local.question import Kept, LocalQuestion, Reports, Tallies

Q = TypeVar("Q", bound=LocalQuestion[Any])


@attrs.frozen
class LocalChannel(ReportFacts, Generic[Q]):
    """An opened question. Args: asked, the users' half."""

    asked: Q

    @property
    def events(self) -> tuple[Event, ...]:
        return self.asked.events

    @property
    def response_values(self) -> int | None:
        return self.asked.response_values

    def bundled(self, arrays: BundleArrays) -> Mapping[str, Any]:
        return described(self.asked, arrays)

    @property
    def gains(self) -> tuple[Gain, ...]:
        return self.asked.gains

    def encode(self, items: Any, users: Ids, rng: NoiseRng) -> Reports:
        return self.asked.encode(items, users, rng)


class Tallying(LocalChannel[Q], ABC):
    """Channel of buckets that can be listed: reports are added up as they come in."""

    @abstractmethod
    def tally(self, users: Ids, answers: AnyArray, level: int) -> Ints:
        """Exact integers, flat, which add up over the users (n,) who gave a level these answers (n, width)."""

    def absorb(self, report: Reports) -> Tallies:
        return self.asked.added_up(report, self.tally)

    def reported(self, summary: Tallies) -> tuple[int, ...]:
        return summary.reports

    def answered(self, summary: Tallies) -> tuple[int, ...]:
        return self.asked.sharing.divided(summary.reports)

    def laws(self, summary: Tallies) -> tuple[ReportLaw, ...]:
        each = enumerate(zip(summary.counted, summary.reports, strict=True))
        return tuple(law for level, known in each for law in self.asked.level_laws(*known, level))


class Keeping(LocalChannel[Q]):
    """Channel of buckets that cannot: reports are kept, and looked through for every bucket that is asked for."""

    def absorb(self, report: Reports) -> Kept:
        return Kept((self.asked.checked(report),))

    def reported(self, summary: Kept) -> tuple[int, ...]:
        return self.asked.sharing.counted(piece.users for piece in summary.pieces)

    def answered(self, summary: Kept) -> tuple[int, ...]:
        return self.asked.sharing.divided(self.reported(summary))

    def laws(self, summary: Kept) -> tuple[ReportLaw, ...]:
        each = (
            (self.asked.counted(answers, level), len(answers), level)
            for level, (_, answers) in enumerate(self.parts(summary))
        )
        return tuple(law for known in each for law in self.asked.level_laws(*known))

    def parts(self, summary: Kept) -> list[tuple[Ids, AnyArray]]:
        """Who answers each level, and what: a look at two long arrays is sooner done than at many short ones."""
        return [
            (np.concatenate([users for users, _ in level]), np.concatenate([answers for _, answers in level]))
            for level in zip(*map(self.asked.parts, summary.pieces), strict=True)
        ]
