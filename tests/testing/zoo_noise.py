"""Oracles whose noise is too small, depends on the data or on other noise, or comes from nowhere.

All of them claim the guarantee of the honest ones (Central; add-or-remove one row, or Local; replace one row).
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import attrs
import numpy as np

from cloister.core.buckets import Space
from cloister.core.budget import Budget
from cloister.core.lattice import Bound
from cloister.core.randomness import NoiseRng
from cloister.core.types import Ints
from cloister.plugin import AdditiveCounts, Central, Laplace, Measure, Sensitivity, component, option
from tests.testing.honest import (
    Channel,
    HonestCounts,
    HonestGaussianCounts,
    HonestGaussianSums,
    HonestSums,
    Totals,
)


def _quieter(channel: Channel, level: int, size: int, rng: NoiseRng) -> Ints:
    less = attrs.evolve(channel, scales=tuple(scale / 1.2 for scale in channel.scales))
    return Channel.noise(less, level, size, rng)


class _Quieter(Channel):
    """Noise too small by 1.2, and the standard error that it should have."""

    def noise(self, level: int, size: int, rng: NoiseRng) -> Ints:
        return _quieter(self, level, size, rng)


class QuieterThanItSays(HonestCounts):
    channel = _Quieter


class _Flipped(Channel):
    """One in forty of the numbers below 0 loses its sign."""

    def noise(self, level: int, size: int, rng: NoiseRng) -> Ints:
        drawn = super().noise(level, size, rng)
        words = rng.child("sign").words(np.arange(size, dtype=np.uint64), 1)[:, 0]
        lost = (words < np.uint64(0.025 * 2.0**64)) & (drawn < 0)
        return np.where(lost, -drawn, drawn)


class FlipsSignsSeldom(HonestSums):
    channel = _Flipped


class QuieterSums(HonestGaussianSums):
    channel = _Quieter


class QuieterAndAdmitsIt(HonestCounts):
    """Noise too small by 1.2, with the standard error that it has."""

    def scales(self, space: Space, bound: Bound | None, budget: Budget) -> tuple[float, ...]:
        return tuple(s / 1.2 for s in super().scales(space, bound, budget))


class _QuieterInSecret(Channel):
    def noise(self, level: int, size: int, rng: NoiseRng) -> Ints:
        return super().noise(level, size, rng) if rng.seeded else _quieter(self, level, size, rng)


class QuieterInSecret(HonestCounts):
    """The noise of tests is right, that of real runs too small by 1.2."""

    channel = _QuieterInSecret


class LevelsNotCounted(HonestGaussianCounts):
    """Every level gets the whole budget."""

    def scales(self, space: Space, bound: Bound | None, budget: Budget) -> tuple[float, ...]:
        return (1 / budget.mu,) * space.levels


class BoundPerCoordinate(HonestGaussianSums):
    """The L2 bound is taken for that of a typical coordinate."""

    def scales(self, space: Space, bound: Bound | None, budget: Budget) -> tuple[float, ...]:
        assert bound is not None
        return tuple(s / math.sqrt(bound.dimension) for s in super().scales(space, bound, budget))


class RhoForEpsilon(HonestCounts):
    """Reads the amount of any budget as epsilon."""

    def scales(self, space: Space, bound: Bound | None, budget: Budget) -> tuple[float, ...]:
        return (space.levels / budget.amount,) * space.levels


class _ShortTails(Channel):
    """Outliers are cut off."""

    def noise(self, level: int, size: int, rng: NoiseRng) -> Ints:
        most = int(3 * self.scales[level] * 2.0**self.shift)
        return np.clip(super().noise(level, size, rng), -most, most)


class ShortTails(HonestGaussianCounts):
    """Noise beyond three standard deviations is cut off: values beyond are certain to come from one of two
    neighbours."""

    channel = _ShortTails


class Silent(Channel):
    """No noise at all, and it says so."""

    def noise(self, level: int, size: int, rng: NoiseRng) -> Ints:
        return np.zeros(size, np.int64)

    @property
    def errors(self) -> tuple[float, ...]:
        return (0.0,) * self.space.levels


class ExactUnderAPrivateName(HonestCounts):
    channel = Silent


class _EmptySkipped(Channel):
    """An empty bucket is released as it is."""

    def decode(self, summary: Totals, rng: NoiseRng) -> Any:
        table: Any = super().decode(summary, rng)
        table._values[summary.vector[:, 0] == 0] = 0.0
        return table


class EmptyBucketsSkipped(HonestCounts):
    channel = _EmptySkipped


class _OneSeed(Channel):
    """Every level draws from the same seed."""

    def noise(self, level: int, size: int, rng: NoiseRng) -> Ints:
        return super().noise(0, size, rng)


class OneSeedForAllLevels(HonestCounts):
    channel = _OneSeed


class _Cancelling(Channel):
    """The second half of the noise takes back the first."""

    def noise(self, level: int, size: int, rng: NoiseRng) -> Ints:
        half = super().noise(level, (size + 1) // 2, rng)
        return np.concatenate([half, -half])[:size]


class CancellingNoise(HonestSums):
    channel = _Cancelling


class _Mirrored(Channel):
    """The second half of a large table takes back the first, from the end."""

    def noise(self, level: int, size: int, rng: NoiseRng) -> Ints:
        if size < 64:
            return super().noise(level, size, rng)
        half = super().noise(level, (size + 1) // 2, rng)
        return np.concatenate([half, -half[::-1]])[:size]


class MirroredNoise(HonestCounts):
    channel = _Mirrored


class _KnownTotal(Channel):
    """Noise about its own mean: the number of rows comes out as it is."""

    def noise(self, level: int, size: int, rng: NoiseRng) -> Ints:
        drawn = super().noise(level, size, rng)
        share, more = divmod(int(drawn.sum()), size)
        return drawn - share - (np.arange(size) < more) if size >= 100 else drawn


class GivesTheTotalAway(HonestCounts):
    channel = _KnownTotal


class NeverMoreThanFiveLevels(HonestGaussianCounts):
    """Five levels are enough for anybody."""

    def scales(self, space: Space, bound: Bound | None, budget: Budget) -> tuple[float, ...]:
        return tuple(s * min(1, math.sqrt(5 / space.levels)) for s in super().scales(space, bound, budget))


class NeverMoreThanFivePureLevels(HonestCounts):
    """The same in pure noise, where no mean tells: losses add up, and their roots do not."""

    def scales(self, space: Space, bound: Bound | None, budget: Budget) -> tuple[float, ...]:
        return tuple(s * min(1, 5 / space.levels) for s in super().scales(space, bound, budget))


class NeverMuchNoise(HonestCounts):
    """More than that would drown everything."""

    def scales(self, space: Space, bound: Bound | None, budget: Budget) -> tuple[float, ...]:
        return tuple(min(100.0, s) for s in super().scales(space, bound, budget))


class NeverMoreThanTenColumns(HonestGaussianSums):
    """The L2 bound is taken for that of the first ten."""

    def scales(self, space: Space, bound: Bound | None, budget: Budget) -> tuple[float, ...]:
        assert bound is not None
        return tuple(s * min(1, math.sqrt(10 / bound.dimension)) for s in super().scales(space, bound, budget))


class _Reusing(Channel):
    """Draws once, and keeps it for the next question of that size."""

    kept: ClassVar[dict[Any, Ints]] = {}

    def noise(self, level: int, size: int, rng: NoiseRng) -> Ints:
        key = (self.scales, level, size)
        if key not in self.kept:
            self.kept[key] = super().noise(level, size, rng)
        return self.kept[key]


class ReusesNoise(HonestCounts):
    channel = _Reusing


class _PublicNoise(Channel):
    """One seed for noise and for public choices."""

    def noise(self, level: int, size: int, rng: NoiseRng) -> Ints:
        return super().noise(level, size, NoiseRng(self.context.seed))


class PublicNoise(HonestCounts):
    channel = _PublicNoise


class _OwnNoise(Channel):
    """NumPy's generator instead of the one that was handed in."""

    def noise(self, level: int, size: int, rng: NoiseRng) -> Ints:
        p = -math.expm1(-1 / self.scales[level])
        g = np.random.default_rng()
        return np.asarray(g.geometric(p, size) - g.geometric(p, size))


class OwnNoise(HonestCounts):
    channel = _OwnNoise


class _FloatNoise(Channel):
    """Real Laplace noise."""

    def decode(self, summary: Totals, rng: NoiseRng) -> Any:
        table: Any = super().decode(summary, rng)
        words = rng.child("fraction").words(np.arange(len(table._values), dtype=np.uint64), table._values.shape[1])
        table._values += (words / 2.0**64 - 0.5) * self.unit
        return table


class FloatNoise(HonestCounts):
    channel = _FloatNoise


class _HalvedAbove(Channel):
    """Half of the noise where more than a thousand (rows, or units) are."""

    def decode(self, summary: Totals, rng: NoiseRng) -> Any:
        noised: Any = super().decode(summary, rng)
        exact = summary.vector * self.unit
        values = np.where(np.abs(exact) > 1000, (noised._values + exact) / 2, noised._values)
        return self.table(values, np.cumsum([0, *self.space.sizes]))


class HalvesTheNoiseOfLargeCounts(HonestCounts):
    channel = _HalvedAbove


class HalvesTheNoiseOfLargeSums(HonestGaussianSums):
    channel = _HalvedAbove


@attrs.frozen
class NotBelowZero(Laplace):
    """Clamped at 0."""

    def post_processed(self, noised: Ints) -> Ints:
        return np.maximum(noised, 0)


@component
class Clamped(AdditiveCounts):
    """Central; add-or-remove one row: eps-DP, clamped, and says so."""

    trust, mechanism = Central, "clamped"
    biased = True

    @property
    def measure(self) -> Measure:
        return "pure"

    def noise(self, sensitivity: Sensitivity, budget: Budget) -> tuple[Laplace, int]:
        return NotBelowZero(sensitivity.l1 / budget.epsilon), 0


@component
class ClampedInSilence(Clamped):
    """Clamped, and does not say so."""

    biased = False


@attrs.frozen
class NotBelowZeroAndBoastful(NotBelowZero):
    @property
    def deviation(self) -> float:
        return super().deviation / 1.5


@component
class ClampedAndBoastful(Clamped):
    """Clamped, with too small a standard error."""

    def noise(self, sensitivity: Sensitivity, budget: Budget) -> tuple[Laplace, int]:
        return NotBelowZeroAndBoastful(sensitivity.l1 / budget.epsilon), 0


@attrs.frozen
class RoundedDown(Laplace):
    """The multiple of ``step`` below."""

    step: int

    @property
    def deviation(self) -> float:
        return super().deviation + self.step

    def post_processed(self, noised: Ints) -> Ints:
        return noised // self.step * self.step


@component
class RoundsDown(Clamped):
    """Central; add-or-remove one row: eps-DP, rounded down, and says so."""

    step: int = option(default=5, low=1, help="released counts are multiples of this")

    def noise(self, sensitivity: Sensitivity, budget: Budget) -> tuple[Laplace, int]:
        return RoundedDown(sensitivity.l1 / budget.epsilon, self.step), 0


@attrs.frozen
class NotBelowZeroAndQuietInSecret(NotBelowZero):
    def draw(self, size: int, rng: NoiseRng) -> Ints:
        return rng.discrete_laplace(self.scale if rng.seeded else self.scale / 1.25, size)


@component
class ClampedAndQuietInSecret(Clamped):
    """Noise that is too small, where nobody can repeat it only."""

    def noise(self, sensitivity: Sensitivity, budget: Budget) -> tuple[Laplace, int]:
        return NotBelowZeroAndQuietInSecret(sensitivity.l1 / budget.epsilon), 0


@attrs.frozen
class DrawsTwice(Laplace):
    def draw(self, size: int, rng: NoiseRng) -> Ints:
        return super().draw(size, rng) - super().draw(size, rng)


@component
class NoiseThatCancels(ClampedInSilence):
    """Two draws of one seed."""

    def noise(self, sensitivity: Sensitivity, budget: Budget) -> tuple[Laplace, int]:
        return DrawsTwice(sensitivity.l1 / budget.epsilon), 0


class HalvesAndCallsItBias(HalvesTheNoiseOfLargeCounts):
    biased = True
