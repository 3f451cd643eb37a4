"""What count oracles under local trust have in common: a person's half of a question is opened in one way for all of
them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any, ClassVar

from cloister.core.buckets import QuestionContext, Space
from cloister.core.budget import Budget, Measure
from cloister.core.errors import InvalidInput
from cloister.core.randomness import PublicRng
from cloister.core.registry.components import component
from cloister.core.trust import Local
from cloister.plugins.oracles.local.counts.channel import Answers, KeptChannel, TalliedChannel
from cloister.plugins.oracles.local.exact_probability import odds
from cloister.plugins.oracles.local.levels import Share, Sharing, share_option


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
