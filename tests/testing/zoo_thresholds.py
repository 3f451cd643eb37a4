"""Counts above a threshold, honest and broken.

All of them claim (Central; add-or-remove one row): epsilon by Laplace noise of scale levels / eps, and a delta by a
threshold that a lone row exceeds, on any level, with at most that probability.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import attrs
import numpy as np

from cloister.core.buckets import QuestionContext, Space
from cloister.core.budget import Budget, Event
from cloister.core.randomness import NoiseRng
from cloister.core.types import Floats, Ints
from tests.testing.honest import Channel, HonestCounts, Totals


class _Above(Channel):
    """Releases occupied buckets above a threshold."""

    levels_paid: ClassVar[bool] = True

    @property
    def share(self) -> float:
        """Delta of one level."""
        delta = self.budget.delta
        return delta / self.space.levels if self.levels_paid else delta

    @property
    def above(self) -> int:
        """1 + Z > T has probability q^T / (1 + q)."""
        q = math.exp(-1 / self.scales[0])
        return max(1, math.ceil(math.log(self.share * (1 + q)) / math.log(q)))

    @property
    def events(self) -> tuple[Event, ...]:
        return (attrs.evolve(super().events[0], delta=self.budget.delta),)

    def decode(self, summary: Totals, rng: NoiseRng) -> Any:
        starts = np.cumsum([0, *self.space.sizes])
        noise = np.concatenate([self.noise(level, n, rng)[:, None] for level, n in enumerate(self.space.sizes)])
        return self.table(self.chosen(summary.vector, summary.vector + noise), starts)

    def chosen(self, totals: Ints, noised: Ints) -> Floats:
        return np.where((totals > 0) & (noised > self.above), noised, 0).astype(np.float64)


class HonestThreshold(HonestCounts):
    channel = _Above
    uses_delta = True


class _Empty(_Above):
    def chosen(self, totals: Ints, noised: Ints) -> Floats:
        return np.where(noised > self.above, noised, 0).astype(np.float64)


class EmptyOnesToo(HonestThreshold):
    """Empty buckets above the threshold, too: harmless, and not what it says."""

    channel = _Empty


class _LevelsFree(_Above):
    levels_paid = False


class LevelsFree(HonestThreshold):
    """Delta for every level."""

    channel = _LevelsFree


class _Quieter(_Above):
    def noise(self, level: int, size: int, rng: NoiseRng) -> Ints:
        return rng.child("level", level).discrete_laplace(self.scales[level] / 1.3, size)


class QuieterAbove(HonestThreshold):
    channel = _Quieter


class LouderThanPaid(HonestThreshold):
    """Half the scale, and says so."""

    def scales(self, space: Space, bound: Any, budget: Budget) -> tuple[float, ...]:
        return tuple(scale / 2 for scale in super().scales(space, bound, budget))


class _Cheap(_Above):
    @property
    def events(self) -> tuple[Event, ...]:
        return (attrs.evolve(super().events[0], delta=0.0),)


class CheapestDelta(HonestThreshold):
    """Forgets to declare it."""

    channel = _Cheap


class _Dear(_Above):
    @property
    def events(self) -> tuple[Event, ...]:
        return (attrs.evolve(super().events[0], delta=2 * self.budget.delta),)


class DearerDelta(HonestThreshold):
    """A delta for each of two, from one budget."""

    channel = _Dear

    def open(self, space: Space, budget: Budget, context: QuestionContext) -> Channel:
        return super().open(space, budget, context)
