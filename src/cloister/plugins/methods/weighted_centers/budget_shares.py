"""What radii, repetitions and steps share: each user's epsilon (the paper), or the users (each answers one question).

Why users by default: at n = 1e6 and epsilon = 1 the paper's split by budget leaves counts a standard error of 53,000 in
groups of 6,851 users. By users it grows with the square root of what it is divided by, not in proportion.

Guarantee: events that share a user add up to the budget, delta included; shares of the users are disjoint, drawn by one
public key for the whole run. Under add-or-remove users have no numbers: there everything shares the budget.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Literal, TypeAlias, final

import attrs

from cloister.core.budget import Budget
from cloister.core.randomness import PublicRng

Sharing: TypeAlias = Literal["users", "budget"]
Step: TypeAlias = Literal["hashes", "axes", "sizes", "sums", "check", "assign", "weigh"]
Pair: TypeAlias = tuple[int, int]
"""A radius and a repetition, by number."""


@final
@attrs.frozen(eq=False)
class Group:
    """Users of one I_m^r (of all of them that are not told apart). Args: pairs, of its users; spend, per step."""

    pairs: tuple[Pair, ...]
    spend: Mapping[Step, Budget]


def groups_of(
    budget: Budget, weights: Mapping[Step, float], radii: int, repetitions: int,
    *, radii_by: Sharing, repetitions_by: Sharing, steps_by: Sharing, failing: Collection[Step], seed: PublicRng,
) -> tuple[Group, ...]:  # fmt: skip
    """Divide a budget among disjoint groups, or one of all users.

    Args:
        weights: per step, > 0.
        failing: steps whose oracles spend delta: they share all of it.
    """
    by_radius = [(r,) for r in range(radii)] if radii_by == "users" else [tuple(range(radii))]
    by_turn = [(m,) for m in range(repetitions)] if repetitions_by == "users" else [tuple(range(repetitions))]
    members = [tuple((r, m) for r in rs for m in ms) for rs in by_radius for ms in by_turn]
    if steps_by == "users":
        cells = iter(_divided(budget, [w for _ in members for w in weights.values()], seed))
        return tuple(Group(pairs, {step: next(cells) for step in weights}) for pairs in members)
    among = [cell.user_share for cell in _divided(budget, [1.0] * len(members), seed)]
    amounts = _amounts(budget, weights, failing)
    return tuple(
        Group(pairs, {step: attrs.evolve(amount, user_share=who) for step, amount in amounts.items()})
        for pairs, who in zip(members, among, strict=True)
    )


def of_pair(groups: Sequence[Group], pair: Pair) -> dict[Step, Budget]:
    """What one radius and repetition may spend on each step of ``CentersProcedure``."""
    group = next(group for group in groups if pair in group.pairs)
    return {step: budget.over(len(group.pairs)) for step, budget in group.spend.items()}


def _amounts(budget: Budget, weights: Mapping[Step, float], failing: Collection[Step]) -> dict[Step, Budget]:
    """Per step, so that both figures add up to the budget's."""
    total = math.fsum(weights[step] for step in failing) or 1.0
    deltas = [budget.delta * weights[step] / total if step in failing else 0.0 for step in weights]
    amounts = budget.split(*weights.values())
    return {step: attrs.evolve(b, delta=d) for step, b, d in zip(weights, amounts, deltas, strict=True)}


def _divided(budget: Budget, weights: list[float], seed: PublicRng) -> tuple[Budget, ...]:
    return (budget,) if len(weights) == 1 else budget.split_users(seed, *weights)
