"""How local count oracles are opened: levels, odds, seeds, limits."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TypeVar

from cloister.core.buckets import Setting, Space
from cloister.core.budget import Budget
from cloister.core.errors import InvalidInput
from cloister.core.randomness import PublicRng
from cloister.plugins.oracles.local.counts.channel import Answers
from cloister.plugins.oracles.local.counts.support import Randomiser
from cloister.plugins.oracles.local.exact_probability import odds
from cloister.plugins.oracles.local.levels import Share, Sharing

R = TypeVar("R", bound=Randomiser)


def opened(
    mechanism: str, space: Space, budget: Budget, setting: Setting, share: Share, make: Callable[[int, Fraction, PublicRng], R],
) -> Answers[R]:  # fmt: skip
    """The users' half of a question.

    Args:
        make: a level's mechanism, from its number of buckets, the odds (at most e^eps of one answer) and its own public seed.
    """
    sharing = Sharing(share, space.levels, setting.seed.child("sharing"))
    each = odds(budget, sharing.parts)
    levels = tuple(make(size, each, setting.seed.child("hash", number)) for number, size in enumerate(space.sizes))
    return Answers(mechanism, budget, setting.rows, sharing, levels)


def limit(mechanism: str, space: Space, most: int, instead: str) -> None:
    """Refuse a space with more buckets than a mechanism is for.

    Raises:
        InvalidInput: says which oracle to use instead.
    """
    if max(space.sizes) > most:
        raise InvalidInput(f"'{mechanism}' is for at most {most} buckets, not {max(space.sizes)}: use {instead}")
