"""Protocols of one round or several, simulated: exact cell sums of a sample, scaled, plus noise at the oracles' own
stated variance."""

from __future__ import annotations

import math
from typing import Any

import attrs
import numpy as np

from cloister.core.buckets import QuestionContext
from cloister.core.clustering import Problem, Released
from cloister.core.encoding import encode_lattice
from cloister.core.lattice import shrink
from cloister.core.questions import Round
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.types import AnyArray, Floats, Ints


class Simulated:
    """Stands in for a session: answers with scaled exact sums and Gaussian noise of each oracle's own standard
    error."""

    def __init__(self, problem: Problem, rows: AnyArray, seed: PublicRng, g: np.random.Generator) -> None:
        self.problem, self._seed, self._g, self.rounds = problem, seed, g, 0
        self._rows = problem.domain.snap(rows)

    def ask(self, *questions: Any) -> tuple[Any, ...]:
        self.rounds += 1
        return tuple(self._answer(number, question) for number, question in enumerate(questions))

    def release(self, value: Any) -> Released[Any]:
        return Released(value, ())

    def _answer(self, number: int, question: Any) -> Noised:
        among, domain, n = question.spend.user_share, self.problem.domain, self.problem.rows
        fraction = 1.0 if among is None else among.fraction
        context = QuestionContext(
            max(1, round(n * fraction)), domain.unit, self._seed.child("round", self.rounds - 1, number)
        )
        channel = question.open(context)
        part = attrs.make_class("Part", ["cells", "sums", "among", "channel"])(
            question.cells, question.vectors, None, channel
        )
        nobody: Round[Any] = Round(0, question.trust, domain, (part,))
        (report,) = encode_lattice(nobody, self._rows[:0], np.zeros(0, np.uint64), NoiseRng.for_tests(0))
        table = channel.decode(channel.absorb(report), NoiseRng.for_tests(0))
        buckets = question.cells.locate(self._rows)
        values = np.ones((len(self._rows), 1))
        if question.vectors is not None:
            values = shrink(question.vectors.values(self._rows, buckets), question.vectors.bound) * domain.unit
        return Noised(table, buckets, values * (n / len(self._rows)), n, fraction, self._g, question.vectors is None)


class Noised:
    """Exact sums (of a sample, scaled) with noise that a bucket keeps."""

    def __init__(
        self, table: Any, buckets: Ints, values: Floats, n: int, fraction: float, g: np.random.Generator, counts: bool
    ) -> None:
        self._table, self._fraction, self._g, self._counts, self._n = table, fraction, g, counts, n
        self._levels = [self._summed(buckets[:, level], values) for level in range(buckets.shape[1])]
        self._seen: dict[tuple[int, int], Floats] = {}

    @staticmethod
    def _summed(ids: Ints, values: Floats) -> dict[int, Floats]:
        known, where = np.unique(ids, return_inverse=True)
        total = np.zeros((len(known), values.shape[1]))
        np.add.at(total, where, values)
        return dict(zip(known.tolist(), total, strict=True))

    def at(self, ids: Ints, level: int = 0) -> Floats:
        width = len(next(iter(self._levels[level].values())))
        out = np.zeros((len(ids), width))
        errors = self.standard_error(ids, level)
        for i, (bucket, error) in enumerate(zip(ids.tolist(), errors.tolist(), strict=True)):
            if (level, bucket) not in self._seen:
                true = self._levels[level].get(bucket, np.zeros(width))
                drawn = float(true[0]) * (1 / self._fraction - 1) if self._counts else 0.0  # which rows are asked
                noise = self._g.standard_normal(width) * math.sqrt(error**2 + max(drawn, 0.0))
                self._seen[level, bucket] = true + noise
            out[i] = self._seen[level, bucket]
        return out[:, 0] if self._counts else out

    def standard_error(self, ids: Ints, level: int = 0) -> Floats:
        errors: Floats = self._table.standard_error(ids, level) / self._fraction
        return errors
