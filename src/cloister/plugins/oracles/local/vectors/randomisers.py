"""The randomisers of one vector, by name: what people choose from, and their half of a question with one of them."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from cloister.core.buckets import QuestionContext, Space
from cloister.core.budget import Budget
from cloister.core.lattice import Bound
from cloister.core.registry.components import option
from cloister.plugins.oracles.local.levels import Share, Sharing
from cloister.plugins.oracles.local.randomised_response import odds
from cloister.plugins.oracles.local.vectors.channel import VectorAnswers
from cloister.plugins.oracles.local.vectors.codebook import Codebook
from cloister.plugins.oracles.local.vectors.duchi import Duchi
from cloister.plugins.oracles.local.vectors.privunit import PrivUnit
from cloister.plugins.oracles.local.vectors.unit_randomiser import Unit

Randomised: TypeAlias = Literal["one-byte", "privunit", "duchi"]


RANDOMISERS: dict[Randomised, Callable[[Fraction, int], Unit]] = {
    "one-byte": Codebook.within,
    "privunit": PrivUnit.within,
    "duchi": Duchi.within,
}


def randomiser_option(default: Randomised) -> Any:
    """The option ``randomiser`` of a local vector-sum oracle."""
    return option(
        default=default,
        help="of one vector: one-byte (a codeword), privunit (least variance, slow above epsilon 4) or duchi (the "
        "paper's); the last two send 2 bytes per coordinate",
        choices=tuple(RANDOMISERS),
    )


def answers(
    mechanism: str,
    randomiser: Randomised,
    share: Share,
    space: Space,
    budget: Budget,
    context: QuestionContext,
    bound: Bound,
) -> VectorAnswers:
    """The users' half of a question."""
    sharing = Sharing(share, space.levels, context.seed.child("sharing"))
    unit = RANDOMISERS[randomiser](odds(budget, sharing.parts), bound.dimension)
    seeds = tuple(context.seed.child("level", number) for number in range(space.levels))
    return VectorAnswers(
        mechanism, budget, context.rows, space.sizes, bound.dimension, bound.l2, context.unit, sharing, unit, seeds
    )
