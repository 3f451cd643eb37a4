"""Executions of CentersProcedure, run side by side, and the union Y of their centres.

Radii, repetitions and steps divide each user's epsilon (the paper), or the users (each answers one question).

Why users by default: at n = 1e6 and epsilon = 1 the paper's split by budget leaves counts a standard error of 53,000 in
groups of 6,851 users. By users it grows with the square root of what it is divided by, not in proportion.

Guarantee: events that share a user add up to the budget, delta included; shares of the users are disjoint, drawn by one
public key for the whole run. Under add-or-remove users have no numbers: there everything shares the budget.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Generator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, Literal, TypeAlias, final

import attrs
import numpy as np

from cloister.plugin import (
    Bools,
    Budget,
    Coreset,
    Counts,
    Errors,
    Floats,
    Ints,
    PublicRng,
    Question,
    Session,
    T,
    option,
)
from cloister.plugins.methods.weighted_centers.buckets import Assigned, Created, Own

Sharing: TypeAlias = Literal["users", "budget"]
Divided: TypeAlias = Literal["auto", "users", "budget"]
Step: TypeAlias = Literal["hashes", "axes", "sizes", "sums", "check", "assign", "weigh"]
Pair: TypeAlias = tuple[int, int]
"""A radius and a repetition, by number."""


def divided(subject: str) -> Any:
    """Return an option for how radii, repetitions or steps are paid for."""
    return option(
        default="auto",
        choices=("auto", "users", "budget"),
        help=f"what {subject} divide: the users (each answers one, with all of epsilon), everyone's epsilon (as the "
        "paper does for radii and steps), or as the trust model has it (users under Local)",
    )


@final
@attrs.frozen(eq=False)
class Group:
    """Users of one I_m^r (of all of them that are not told apart). Args: pairs, of its users; spend, per step."""

    pairs: tuple[Pair, ...]
    spend: Mapping[Step, Budget]


def groups_of(
    budget: Budget,
    weights: Mapping[Step, float],
    radii: int,
    repetitions: int,
    *,
    radii_by: Sharing,
    repetitions_by: Sharing,
    steps_by: Sharing,
    failing: Collection[Step],
    seed: PublicRng,
) -> tuple[Group, ...]:
    """Divide a budget among disjoint groups, or one of all users.

    Weights are per step, > 0. Steps whose oracles spend delta (``failing``) share all of it.
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
    """Return the budget of one radius and repetition on each step of CentersProcedure."""
    group = next(group for group in groups if pair in group.pairs)
    return {step: budget.over(len(group.pairs)) for step, budget in group.spend.items()}


def _amounts(budget: Budget, weights: Mapping[Step, float], failing: Collection[Step]) -> dict[Step, Budget]:
    """Return the budget per step, so that both figures add up to the whole."""
    total = math.fsum(weights[step] for step in failing) or 1.0
    deltas = [budget.delta * weights[step] / total if step in failing else 0.0 for step in weights]
    amounts = budget.split(*weights.values())
    return {step: attrs.evolve(b, delta=d) for step, b, d in zip(weights, amounts, deltas, strict=True)}


def _divided(budget: Budget, weights: list[float], seed: PublicRng) -> tuple[Budget, ...]:
    return (budget,) if len(weights) == 1 else budget.split_users(seed, *weights)


@final
@attrs.frozen(eq=False)
class Candidates:
    """Released centres of one procedure.

    Args:
        points: (m, d) relative to the domain's middle, and errors (m,), standard errors of a coordinate, in the
            caller's units.
        created: which of them a row creates; holds their hash values, and the points on the lattice.
    """

    points: Floats
    errors: Floats
    created: Created

    def at(self, ids: Ints) -> Candidates:
        created = attrs.evolve(self.created, values=self.created.values[ids], places=self.created.places[ids])
        return Candidates(self.points[ids], self.errors[ids], created)


Procedure: TypeAlias = Generator[tuple[Question[T, Any], ...], tuple[Any, ...], Candidates]
"""Yields each round's questions, is sent their answers, and returns what it found."""


def side_by_side(procedures: Sequence[Procedure[T]], session: Session[T]) -> list[Candidates]:
    """Run procedures of equally many rounds, whose questions share rounds; return the candidates of each."""
    pending, candidates = [next(procedure) for procedure in procedures], list[Candidates]()
    while not candidates:
        answers = iter(session.ask(*chain.from_iterable(pending)))
        answers_each = [tuple(islice(answers, len(questions))) for questions in pending]
        pending = []
        for procedure, answered in zip(procedures, answers_each, strict=True):
            try:
                pending.append(procedure.send(answered))
            except StopIteration as end:
                candidates.append(end.value)
    return candidates


def certain(counts: Counts, size: int, deviations: float) -> tuple[Ints, Floats]:
    """Which buckets (of ``size``) have a count of more than so many standard errors, and these counts."""
    ids = np.arange(size)
    rows = counts.at(ids)
    sure = rows > deviations * counts.standard_error(ids)
    return ids[sure], rows[sure]


@final
@attrs.frozen(eq=False)
class Found:
    """Y: what all executions found (WeightedCenters, step 1).

    Args:
        points: (m, d) relative to the domain's middle, and errors (m,) of a coordinate, in the caller's units.
        centers: (m, d) the same on the lattice.
        ranks: (m,) of the radius, 0 the largest.
        of_pairs: by radius and repetition, for users who can have created a centre there.
    """

    points: Floats
    errors: Floats
    centers: Ints
    ranks: Ints
    of_pairs: Mapping[Pair, Own]

    @classmethod
    def of(cls, by_pair: Mapping[Pair, Candidates]) -> Found:
        parts = list(by_pair.values())
        sizes = [len(part.points) for part in parts]
        starts = np.cumsum([0, *sizes[:-1]]).tolist()
        return cls(
            np.concatenate([part.points for part in parts]),
            np.concatenate([part.errors for part in parts]),
            np.concatenate([part.created.places for part in parts]),
            np.repeat([rank for rank, _ in by_pair], sizes),
            {pair: Own(pair[0], start, by_pair[pair].created) for pair, start in zip(by_pair, starts, strict=True)},
        )

    def assigned(self, pairs: Sequence[Pair], reach: int, max_centers: int) -> Assigned:
        """a(i, x), of users who can have created a centre for these pairs."""
        return Assigned(tuple(self.of_pairs[pair] for pair in pairs), self.centers, self.ranks, reach, max_centers)

    def coreset(self, in_w: Bools, weights: Floats, errors: Floats) -> Coreset:
        """W with weights b and their standard errors (m,); one point in the domain's middle if nothing was found."""
        if not in_w.any():
            return Coreset(np.zeros((1, self.points.shape[1])), np.zeros(1))
        sums = self.errors * np.maximum(weights, 1.0)
        return Coreset(self.points[in_w], weights[in_w], errors=Errors(errors[in_w], sums[in_w]))


def in_w(weights: Floats, thresholds: Floats) -> Bools:
    """Step 4: which centres are heavy enough; the heaviest, if none is."""
    heavy: Bools = weights >= thresholds
    if len(heavy) and not heavy.any():
        heavy[np.argmax(weights)] = True
    return heavy


def added(tables: tuple[Any, ...], ids: Ints, spends: list[Budget]) -> tuple[Floats, Floats]:
    """Pool counts of disjoint groups, each scaled up to all users by its table; return counts and standard errors."""
    parts = np.array([spend.fraction for spend in spends])
    parts /= parts.sum()
    counts = [table.at(ids) * part for table, part in zip(tables, parts, strict=True)]
    squares = [(table.standard_error(ids) * part) ** 2 for table, part in zip(tables, parts, strict=True)]
    return np.asarray(sum(counts)), np.sqrt(sum(squares))
