"""Stand-in for a session: a method's answers for millions of rows from a sample's exact sums and noise as stated.

The exact cell sums of a sample are scaled to the public number of rows, and each gets Gaussian noise of the variance
that its question states (``Question.variance``). A run costs as much as the sample has rows. NOT private.
"""

from __future__ import annotations

import math
from typing import Any, final

import numpy as np

from cloister.core.clustering import Clustering, Problem, Released
from cloister.core.lattice import shrink
from cloister.core.randomness import PublicRng
from cloister.core.types import AnyArray, Floats, Ints
from cloister.run.request import Request, prepare


def simulated(request: Request, rows: AnyArray, seed: int) -> Clustering:
    """Return what a run finds. Args: request (with the number of rows that is simulated), rows (n, d), seed."""
    plan, public = prepare(request, [str(j) for j in range(rows.shape[1])]), PublicRng.from_seed(seed)
    session: Any = SimulatedSession(plan.problem, rows, public, np.random.default_rng([seed, 2]))
    found: Clustering = plan.composed.value.cluster(plan.problem, session, public.child("method"))
    return found


@final
class SimulatedSession:
    """What a method sees of a session.

    Args:
        problem: with the number of rows that is simulated.
        rows: a sample (n, d) of them.
        seed: key of the public choices.
        g: source of the noise.
    """

    def __init__(self, problem: Problem, rows: AnyArray, seed: PublicRng, g: np.random.Generator) -> None:
        self.problem, self._seed, self._g, self.rounds = problem, seed, g, 0
        self._rows = problem.domain.snap(rows)

    def ask(self, *questions: Any) -> tuple[SimulatedTable, ...]:
        """Answer a round's questions."""
        self.rounds += 1
        return tuple(self._answer(number, question) for number, question in enumerate(questions))

    def release(self, value: Any) -> Released[Any]:
        """Mark a value as released."""
        return Released(value, ())

    def _answer(self, number: int, question: Any) -> SimulatedTable:
        domain, rows, fraction = self.problem.domain, self.problem.rows, question.budget.fraction
        context = self.problem.context(question.budget, self._seed.child("round", self.rounds - 1, number))
        error = math.sqrt(question.variance(context)) / fraction
        buckets = question.cells.locate(self._rows)
        values: Floats = np.ones((len(self._rows), 1))
        if question.vectors is not None:
            values = np.asarray(
                shrink(question.vectors.values(self._rows, buckets), question.vectors.bound) * domain.unit, np.float64
            )
        counted = question.vectors is None
        scaled = np.asarray(values * (rows / len(self._rows)), np.float64)
        return SimulatedTable(buckets, scaled, error, fraction, self._g, counted)


@final
class SimulatedTable:
    """Exact sums with noise that a bucket keeps.

    Args:
        buckets: (n, levels) of the sample.
        values: (n, p) that are added up.
        error: standard error of each number.
        fraction: of the users, who are asked.
        g: source of the noise.
        counted: whether the sums are counts.
    """

    def __init__(
        self, buckets: Ints, values: Floats, error: float, fraction: float, g: np.random.Generator, counted: bool
    ) -> None:
        self._error, self._fraction, self._g, self._counted = error, fraction, g, counted
        self._levels = [_added(buckets[:, level], values) for level in range(buckets.shape[1])]
        self._width = values.shape[1]
        self._noised: dict[tuple[int, int], Floats] = {}

    def at(self, ids: Ints, level: int = 0) -> Floats:
        """Return the noisy sums (m, p) of buckets, or counts (m,)."""
        sums = np.array([self._one(level, bucket) for bucket in ids.tolist()]).reshape(len(ids), self._width)
        return sums[:, 0] if self._counted else sums

    def standard_error(self, ids: Ints, level: int = 0) -> Floats:
        """Return the standard errors (m,) that the oracle states."""
        return np.full(len(ids), self._error)

    def _one(self, level: int, bucket: int) -> Floats:
        if (level, bucket) not in self._noised:
            exact = self._levels[level].get(bucket, np.zeros(self._width))
            sampling = float(exact[0]) * (1 / self._fraction - 1) if self._counted else 0.0  # which rows are asked
            noise = self._g.standard_normal(self._width) * math.sqrt(self._error**2 + max(sampling, 0.0))
            self._noised[level, bucket] = exact + noise
        return self._noised[level, bucket]


def _added(ids: Ints, values: Floats) -> dict[int, Floats]:
    known, where = np.unique(ids, return_inverse=True)
    total = np.zeros((len(known), values.shape[1]))
    np.add.at(total, where, values)
    return dict(zip(known.tolist(), total, strict=True))
