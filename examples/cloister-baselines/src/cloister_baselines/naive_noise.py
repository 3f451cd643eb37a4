"""Clustering of rows that were noised one by one: the baseline that everybody thinks of first.

Guarantee (Local; replace one row; pure, no delta): that of the randomiser of one vector
(``oracles.local.vectors.channel``): a person's one report is epsilon-DP. Noised rows are unbiased, so that the mean
of a cluster would be right if its rows were known; but the noise of one row, of squared length about d /
m(eps)^2 times the squared radius, is far longer than any distance between clusters, and k-means finds the shape of the
noise. Chang et al. 2021, footnote 9, found no setting up to a million rows in which it works.

The question that is asked has no buckets: the bucket ids that the answer is looked at by are user numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, final

import attrs
import numpy as np

from cloister.plugin import (
    Bound,
    Budget,
    BundleArrays,
    Clustering,
    Coreset,
    Ints,
    InvalidInput,
    Local,
    LookupTable,
    Measure,
    NoiseRng,
    NonPrivateSolver,
    Problem,
    PublicRng,
    QuestionContext,
    Rows,
    Session,
    Space,
    component,
    json_integers,
    slot,
    vector_sum,
)
from cloister.plugins.oracles.local.question import Keeping
from cloister.plugins.oracles.local.reports import Kept
from cloister.plugins.oracles.local.vectors.channel import Randomised, VectorAnswers, answers, randomiser_option

MAX_NUMBERS = 2**28
"""Numbers in all noised rows together."""


@component
class NaiveNoise:
    """k-means on rows that were noised one by one: the baseline that does not work."""

    solver: NonPrivateSolver = slot("kmeans++", help="clusters the noised rows")
    randomiser: Randomised = randomiser_option("privunit")

    trust = Local
    measure: ClassVar[Measure] = "pure"

    def cluster(self, problem: Problem, session: Session[Local], rng: PublicRng) -> Clustering:
        domain, everyone = problem.domain, np.arange(problem.rows)
        if problem.rows * domain.dimension > MAX_NUMBERS:
            raise InvalidInput(
                f"'naive-noise' keeps every noised row: {problem.rows} rows of {domain.dimension} are too many"
            )
        rows = Rows.of(OneBucketEach(problem.rows), domain)
        (noised,) = session.ask(vector_sum(rows, oracle=EveryRow(self.randomiser), budget=problem.budget))
        points = domain.truncate(noised.at(everyone) + domain.middle)
        centers = self.solver.solve(
            session.release(Coreset(points, np.ones(len(points)))), problem.k, rng.child("solve")
        )
        return Clustering(domain.truncate(centers))


@final
@attrs.frozen
class OneBucketEach:
    """Bucketing with as many buckets as users.

    A row cannot tell its user: all are put in the first bucket, and the oracle tells them apart.
    """

    users: int

    @property
    def space(self) -> Space:
        return Space((self.users,))

    def locate(self, rows: Ints) -> Ints:
        return np.zeros((len(rows), 1), np.int64)

    def bundled(self, arrays: BundleArrays) -> Mapping[str, Any]:
        return {"kind": "one", "sizes": json_integers(self.space.sizes)}


@final
@attrs.frozen
class EveryRow:
    """A vector-sum oracle whose buckets are user numbers. Args: randomiser."""

    randomiser: Randomised
    uses_delta = asks_all_users = biased = False

    trust = Local

    @property
    def measure(self) -> Measure:
        return "pure"

    def open(self, space: Space, budget: Budget, context: QuestionContext, bound: Bound) -> EveryRowChannel:
        return EveryRowChannel(answers("naive-noise", self.randomiser, "users", space, budget, context, bound))

    def variance(self, space: Space, budget: Budget, context: QuestionContext, bound: Bound) -> float:
        return self.open(space, budget, context, bound).asked.variance / context.rows


@final
@attrs.frozen
class EveryRowChannel(Keeping[VectorAnswers]):
    """Reports are kept; each is one noised row. Without a report it is zero, as a row in the middle is on average."""

    def decode(self, summary: Kept, rng: NoiseRng) -> LookupTable:
        question, ((users, payloads),) = self.asked, self.parts(summary)
        rows, signs = (
            np.zeros((question.sizes[0], question.dimension)),
            question.signs(np.zeros(len(users), np.int64), users, 0),
        )
        for block in question.blocks(np.arange(len(users)), 0):
            estimates = question.estimates(users[block], payloads[block], 0) * (signs[block] * question.value)[:, None]
            valid = users[block] < np.uint64(len(rows))
            rows[users[block][valid].astype(np.int64)] = estimates[valid]
        return LookupTable(lambda ids, level: rows[ids], [math.sqrt(question.variance / question.rows)])
