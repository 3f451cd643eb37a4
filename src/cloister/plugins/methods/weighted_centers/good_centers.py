"""GoodCenters: several CentersProcedures of one radius, on disjoint users; and what those of all radii found together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, final

import attrs
import numpy as np

from cloister.core.domains import Domain
from cloister.core.questions import Question
from cloister.core.randomness import PublicRng
from cloister.core.roles import FrequencyOracle, VectorSumOracle
from cloister.core.session import Session
from cloister.core.trust import T
from cloister.core.types import Floats, Ints
from cloister.plugins.methods.weighted_centers.assignment import Own
from cloister.plugins.methods.weighted_centers.budget_shares import Pair, Shares
from cloister.plugins.methods.weighted_centers.centers_procedure import Candidates, CentersProcedure, Constants


@final
@attrs.frozen(eq=False)
class GoodCenters(Generic[T]):
    """M procedures of one radius: a single hash function may cut a cluster in two, of several one will not.

    Args:
        rank: of the radius, 0 the largest.
        procedures: one for each I_m.

    Source: Stemmer 2021, theorem 3.1 and appendix A.3.
    """

    rank: int
    procedures: tuple[CentersProcedure[T], ...]

    @classmethod
    def sample(
        cls, domain: Domain, radius: float, repetitions: int, constants: Constants, counts: FrequencyOracle[T],
        sums: VectorSumOracle[T], rank: int, seed: PublicRng,
    ) -> GoodCenters[T]:  # fmt: skip
        """Public choices."""
        return cls(
            rank,
            tuple(
                CentersProcedure.sample(domain, radius, constants, counts, sums, seed.child("repetition", m))
                for m in range(repetitions)
            ),
        )


@final
@attrs.frozen(eq=False)
class Found:
    """Y: what all executions found (WeightedCenters, step 1).

    Args:
        points: (m, d) relative to the domain's middle, and errors (m,) of a coordinate, in the caller's units.
        centers: (m, d) the same on the lattice.
        ranks: (m,) of the radius.
        of_pairs: by radius and repetition, for users who can have created a centre there.
    """

    points: Floats
    errors: Floats
    centers: Ints
    ranks: Ints
    of_pairs: dict[Pair, Own]

    @classmethod
    def of(cls, good: Sequence[GoodCenters[T]], shares: Shares, session: Session[T]) -> Found:
        """Run all procedures side by side, in three rounds."""
        runs = {(g.rank, m): procedure for g in good for m, procedure in enumerate(g.procedures)}
        asked: list[Question[T, Any]] = []
        for pair, run in runs.items():
            asked += run.search(shares.of_pair("hashes", pair), shares.of_pair("axes", pair))
        answers = session.ask(*asked)
        regions = {pair: run.enclosed(*answers[2 * i : 2 * i + 2]) for i, (pair, run) in enumerate(runs.items())}
        asked = []
        for pair, run in runs.items():
            asked += run.averaging(regions[pair], shares.of_pair("sizes", pair), shares.of_pair("sums", pair))
        answers = session.ask(*asked)
        candidates = {
            pair: run.averages(regions[pair], *answers[2 * i : 2 * i + 2]) for i, (pair, run) in enumerate(runs.items())
        }
        checks = [run.checking(candidates[pair], shares.of_pair("check", pair)) for pair, run in runs.items()]
        counts = session.ask(*checks)
        kept = {pair: run.kept(candidates[pair], c) for (pair, run), c in zip(runs.items(), counts, strict=True)}
        return cls._joined(runs, kept)

    @classmethod
    def _joined(cls, runs: dict[Pair, CentersProcedure[T]], kept: dict[Pair, Candidates]) -> Found:
        parts: list[Candidates] = list(kept.values())
        starts = np.cumsum([0, *map(len, parts)]).tolist()
        return cls(
            np.concatenate([part.points for part in parts]),
            np.concatenate([part.errors for part in parts]),
            np.concatenate([part.centers for part in parts]),
            np.concatenate([np.full(len(part), rank) for (rank, _), part in kept.items()]),
            {
                pair: Own(pair[0], start, run.created(kept[pair]))
                for (pair, run), start in zip(runs.items(), starts, strict=False)
            },
        )

    def own(self, pairs: Sequence[Pair]) -> tuple[Own, ...]:
        """The procedures that users of these pairs are in."""
        return tuple(self.of_pairs[pair] for pair in pairs)
