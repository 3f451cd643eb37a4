"""A row is in one bucket of every level: how one person's epsilon pays for all of them. Written once for all local
oracles.

``users``: a public keyed hash of the user's number picks the one level that she answers, with her whole eps. Level by
level the estimate is multiplied by T, the number of levels: the *planned* fraction, so that no answer enters the
factor. Variance T times that of one level, and n_v (T - 1) more for a bucket with n_v rows, since its share of users is
random.

``budget``: every user answers all levels at eps / T each, and answers compose to eps. Variance about T^2 times that of
one level at small eps, but nothing is sampled.

Either way a person's report is eps-DP as a whole. Her level is public and does not depend on her row.

Source: Chang, Ghazi, Kumar, Manurangsi 2021: appendix D (users), Lemma 25 (budget).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeAlias, final

import attrs
import numpy as np

from cloister.core.buckets import key
from cloister.core.randomness import PublicRng
from cloister.core.registry.components import option
from cloister.core.types import Ids, Ints
from cloister.plugins.oracles.local.randomised_response import below

Share: TypeAlias = Literal["users", "budget"]


def share_option() -> Any:
    """The option ``share`` of a local oracle."""
    return option(
        default="users",
        help="what the levels of a tree divide: the users (each answers one level with all of epsilon) or everyone's "
        "epsilon",
        choices=("users", "budget"),
    )


@final
@attrs.frozen
class Sharing:
    """Who answers which level.

    Args:
        share: what the levels divide.
        levels: T, how many there are.
        seed: public.
    """

    share: Share
    levels: int
    seed: PublicRng

    @property
    def parts(self) -> int:
        """Divisor of epsilon."""
        return self.levels if self.share == "budget" else 1

    @property
    def factor(self) -> int:
        """One over the planned fraction of the users that answer a level."""
        return self.levels if self.share == "users" else 1

    @property
    def bundled(self) -> dict[str, Any]:
        """For devices that run no Python. "level_key" is of the words that pick a user's level; None: she answers
        all."""
        level_key = None if self.factor == 1 else key(self.seed.child("level"))
        return {"share": self.share, "level_key": level_key}

    def answers(self, users: Ids) -> tuple[Ints, ...]:
        """For each level, the positions of the users (n,) who answer it."""
        if self.factor == 1:
            return (np.arange(len(users)),) * self.levels
        levels = below(self.seed.child("level").of_users(users), self.levels)
        return tuple(np.flatnonzero(levels == level) for level in range(self.levels))

    def divided(self, reports: Sequence[int]) -> tuple[int, ...]:
        """How many users answered each level, if their numbers say which: as ``ReportFacts`` has it."""
        return tuple(reports) if self.factor > 1 else ()

    def counted(self, pieces: Iterable[Ids]) -> tuple[int, ...]:
        """How many users answered each level, of those whose reports are kept, in pieces."""
        return tuple(sum(map(len, level)) for level in zip(*map(self.answers, pieces), strict=True))

    def layout(self, widths: tuple[int, ...]) -> tuple[slice, ...]:
        """Place of each level's answer in a report, and how many numbers it has."""
        if self.share == "users":
            return tuple(slice(0, width) for width in widths)
        ends = np.cumsum(widths).tolist()
        return tuple(slice(end - width, end) for end, width in zip(ends, widths, strict=True))
