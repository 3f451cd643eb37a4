"""The baseline that everybody thinks of first: every person sends her row with noise on it, and the noised rows are clustered.

Guarantee (Local; replace one row; pure, no delta): that of the randomiser of one vector (``oracles.local.vectors.randomisers``): a
person's one report is epsilon-DP. Noised rows are unbiased, so that the mean of a cluster would be right if anybody knew which
rows are in it; but the noise of one row, of squared length about d / m(eps)^2 times the squared radius, is far longer than any
distance between clusters, and k-means finds the shape of the noise. Chang et al. 2021, footnote 9, found no setting up to
a million rows in which it works.

The question that is asked has no buckets: the bucket ids that the answer is looked at by are user numbers.
"""

from __future__ import annotations

from typing import ClassVar, NoReturn, final

import attrs
import numpy as np

from cloister.core.buckets import Placed, Setting, Space
from cloister.core.budget import Budget, Event, Measure
from cloister.core.clustering import Clustering, Coreset, Problem
from cloister.core.errors import InvalidInput
from cloister.core.lattice import Bound
from cloister.core.questions import Rows, add_up
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.registry.components import component, slot
from cloister.core.roles import NonPrivateSolver
from cloister.core.session import Session
from cloister.core.trust import Local
from cloister.core.types import Floats, Ids, Ints
from cloister.plugins.oracles.local.reports import Kept, Reports
from cloister.plugins.oracles.local.vectors.answers import VectorAnswers
from cloister.plugins.oracles.local.vectors.randomisers import Randomised, answers, randomiser_option

MOST = 2**28
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
        if problem.rows * domain.dimension > MOST:
            raise InvalidInput(
                f"'naive-noise' keeps every noised row: {problem.rows} rows of {domain.dimension} are too many"
            )
        rows = Rows.of(OneBucketEach(problem.rows), domain)
        (noised,) = session.ask(add_up(rows, via=EveryRow(self.randomiser), spend=problem.budget))
        points = domain.truncate(noised.at(everyone) + domain.middle)
        centers = self.solver.solve(
            session.release(Coreset(points, np.ones(len(points)))), problem.k, rng.child("solve")
        )
        return Clustering(domain.truncate(centers))


@final
@attrs.frozen
class OneBucketEach:
    """As many buckets as users. A row cannot tell its user: all are put in the first, and the oracle tells them apart."""

    users: int

    @property
    def space(self) -> Space:
        return Space((self.users,))

    def locate(self, rows: Ints) -> Ints:
        return np.zeros((len(rows), 1), np.int64)


@final
@attrs.frozen
class EveryRow:
    """A vector-sum oracle whose buckets are user numbers. Args: randomiser."""

    randomiser: Randomised
    failing = everybody = biased = False

    @property
    def trust(self) -> type[Local]:
        return Local

    @property
    def measure(self) -> Measure:
        return "pure"

    def open(self, space: Space, bound: Bound, budget: Budget, setting: Setting) -> EveryRowChannel:
        return EveryRowChannel(answers("naive-noise", self.randomiser, "users", space, bound, budget, setting))

    def variance(self, space: Space, bound: Bound, budget: Budget, setting: Setting) -> float:
        return self.open(space, bound, budget, setting).asked.variance / setting.rows


@final
@attrs.frozen
class EveryRowChannel:
    """Reports are kept; each is one noised row. Args: asked, the users' half."""

    asked: VectorAnswers

    @property
    def events(self) -> tuple[Event, ...]:
        return self.asked.events

    def encode(self, items: Placed, users: Ids, rng: NoiseRng) -> Reports:
        return self.asked.encode(items, users, rng)

    def absorb(self, report: Reports) -> Kept:
        return Kept((self.asked.checked(report),))

    def decode(self, summary: Kept, rng: NoiseRng) -> NoisedRows:
        return NoisedRows(self.asked, summary)


@final
class NoisedRows:
    """Noised rows by user number; users who did not report have zeros, as a row in the middle has on average."""

    def __init__(self, asked: VectorAnswers, summary: Kept) -> None:
        self._rows, self._error = np.zeros((asked.sizes[0], asked.dimension)), (asked.variance / asked.rows) ** 0.5
        for piece in summary.pieces:
            users, said = asked.of_level(piece, 0)
            signs = asked.signs(np.zeros(len(users), np.int64), users, 0)
            for some in asked.blocks(np.arange(len(users))):
                found = asked.estimates(users[some], said[some], 0) * (signs[some] * asked.value)[:, None]
                known = users[some] < np.uint64(len(self._rows))
                self._rows[users[some][known].astype(np.int64)] = found[known]

    def at(self, ids: Ints, level: int = 0) -> Floats:
        return self._rows[ids]

    def standard_error(self, ids: Ints, level: int = 0) -> Floats:
        return np.full(len(ids), self._error)

    def __reduce__(self) -> NoReturn:
        raise TypeError("tables do not travel: keep what at() gave")
