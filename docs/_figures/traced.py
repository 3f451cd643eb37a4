"""Runs that are looked into: what each round asked, and what the method was told."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from cloister.core.randomness import NoiseRng
from cloister.metrics import cost
from cloister.run.fit import source
from cloister.run.opening import open_run, planned_run
from cloister.run.request import Request

warnings.filterwarnings("ignore", message=".*", category=UserWarning)  # seeded noise and small budgets, on purpose


@dataclass(frozen=True)
class Run:
    """A finished run on rows that are nobody's.

    Attributes: rows (n, 2), request, plan, session (its rounds and the record of all answers), clustering.
    """

    rows: Any
    request: Request
    plan: Any
    session: Any
    clustering: Any

    @classmethod
    def of(cls, rows: Any, k: int, method: Any, epsilon: float, seed: int, **options: Any) -> Run:
        """Cluster rows, within bounds of -1 and 1. Args: seed (of the noise and of the public choices)."""
        return next(cls.several(rows, k, method, epsilon, [seed], **options))

    @classmethod
    def several(
        cls, rows: Any, k: int, method: Any, epsilon: float, seeds: Iterable[int], **options: Any
    ) -> Iterator[Run]:
        """Cluster rows once with each seed, by one plan."""
        given = {"delta": 1e-6, "bounds": (-1, 1), "zoom": "off"} | options
        request = Request(k=k, method=method, epsilon=epsilon, rows=len(rows), **given)
        population = source(rows)
        plan = planned_run(request, population, None)
        for seed in seeds:
            noise = NoiseRng.for_tests(seed)
            opened = open_run(plan, seed, population, None, noise, None)
            session = opened.session(plan, noise)
            clustering = plan.composed.value.cluster(plan.problem, session, opened.seed.child("method"))
            yield cls(rows, request, plan, session, clustering)

    @property
    def centers(self) -> Any:
        return self.clustering.centers

    @property
    def cost(self) -> float:
        """Mean squared distance of a row to the nearest released centre: exact, so that no real run could show it."""
        return cost(self.rows, self.centers) / len(self.rows)

    @property
    def domain(self) -> Any:
        return self.plan.problem.domain

    def part(self, number: int, question: int = 0) -> Any:
        """A round's opened question."""
        return self.session.rounds[number].parts[question]

    def answers(self, number: int, question: int = 0, level: int = 0, *, error: bool = False) -> Any:
        """What the method was told: values by bucket, NaN in buckets that it never looked at."""
        values: Any = None
        for look in self.session.record.lookups:
            if (look.round, look.question, look.level, look.error) == (number, question, level, error):
                if values is None:
                    size = self.part(number, question).cells.space.sizes[level]
                    values = np.full((size, *look.values.shape[1:]), np.nan)
                values[look.ids] = look.values
        return values

    def exact(self, number: int, level: int = 0) -> Any:
        """What the first question of a round would be answered without noise."""
        cells = self.part(number).cells
        return np.bincount(cells.locate(self.domain.snap(self.rows))[:, level], minlength=cells.space.sizes[level])

    def painted(self, values: Any, number: int, level: int = 0, pixels: int = 400) -> Any:
        """Values by bucket as an image (pixels, pixels) of the square: each pixel has its bucket's value."""
        middles = (np.arange(pixels) + 0.5) / pixels * 2 - 1
        points = np.stack(np.meshgrid(middles, middles), axis=-1).reshape(-1, 2)
        ids = self.part(number).cells.locate(self.domain.snap(points))[:, level]
        return np.where(ids < 0, np.nan, np.asarray(values, float)[ids]).reshape(pixels, pixels)

    def centers_of(self, number: int) -> Any:
        """Centres (m, 2) that rows of a round were nearest to."""
        cells = self.part(number).cells
        return self.domain.real(getattr(cells, "near", cells).centers)

    def radii_of(self, number: int, question: int) -> Any:
        """Radii (m,) that a round's offsets were clipped to, or within which rows counted."""
        vectors = self.part(number, question).vectors
        radii = getattr(vectors, "radii", None)
        if radii is None:
            radii = np.full(vectors.cells.space.sizes[0], vectors.cells.within)
        return radii * self.domain.unit

    def sums_of(self, number: int, question: int) -> Any:
        """Noisy sums (m, 2) of clipped offsets."""
        vectors = self.part(number, question).vectors
        return self.answers(number, question) * (vectors.radii / vectors.bound.l2)[:, None]
