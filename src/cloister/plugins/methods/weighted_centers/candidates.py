"""What executions of CentersProcedure find: run side by side, and their centres together, Y."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, TypeAlias, final

import attrs
import numpy as np

from cloister.core.clustering import Coreset, Errors
from cloister.core.questions import Question
from cloister.core.roles import Counts
from cloister.core.session import Session
from cloister.core.trust import T
from cloister.core.types import Bools, Floats, Ints
from cloister.plugins.methods.weighted_centers.buckets import Assigned, Created, Own
from cloister.plugins.methods.weighted_centers.budget_shares import Pair


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
    """What procedures of equally many rounds find: a round of all of them is one round of communication."""
    asked, found = [next(procedure) for procedure in procedures], list[Candidates]()
    while not found:
        answers = iter(session.ask(*chain.from_iterable(asked)))
        own = [tuple(islice(answers, len(questions))) for questions in asked]
        asked = []
        for procedure, answered in zip(procedures, own, strict=True):
            try:
                asked.append(procedure.send(answered))
            except StopIteration as end:
                found.append(end.value)
    return found


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
    def of(cls, found: Mapping[Pair, Candidates]) -> Found:
        parts = list(found.values())
        sizes = [len(part.points) for part in parts]
        starts = np.cumsum([0, *sizes[:-1]]).tolist()
        return cls(
            np.concatenate([part.points for part in parts]),
            np.concatenate([part.errors for part in parts]),
            np.concatenate([part.created.places for part in parts]),
            np.repeat([rank for rank, _ in found], sizes),
            {pair: Own(pair[0], start, found[pair].created) for pair, start in zip(found, starts, strict=True)},
        )

    def assigned(self, pairs: Sequence[Pair], reach: int, most: int) -> Assigned:
        """a(i, x), of users who can have created a centre for these pairs."""
        return Assigned(tuple(self.of_pairs[pair] for pair in pairs), self.centers, self.ranks, reach, most)

    def coreset(self, kept: Bools, weights: Floats, errors: Floats) -> Coreset:
        """W with weights b and their standard errors (m,); one point in the domain's middle if nothing was found."""
        if not kept.any():
            return Coreset(np.zeros((1, self.points.shape[1])), np.zeros(1))
        sums = self.errors * np.maximum(weights, 1.0)
        return Coreset(self.points[kept], weights[kept], errors=Errors(errors[kept], sums[kept]))
